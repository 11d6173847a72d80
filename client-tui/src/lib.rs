//! The terminal client: follows a session, prints what is finished into the terminal's own scrollback, keeps what is open in a
//! small live area below, and takes input at any time. Owns nothing: the session lives in the daemon and goes on without it.
//!
//! How a frame becomes rows: [`link`] receives it, [`session`] folds it into its state and, through [`transcript`], into
//! finished lines, [`app`] adds what the person is doing, [`view`] composes the live area, [`screen`] writes both. [`app`],
//! [`session`], [`transcript`] and [`view`] are pure; [`run`](mod@run) is the loop around them.

mod app;
mod command;
mod draft;
#[cfg(test)]
mod emulator;
mod link;
mod markdown;
mod paint;
mod request;
mod run;
mod screen;
mod session;
mod terminal;
mod transcript;
mod view;
mod wrap;

pub use paint::Look;
pub use run::{Options, run};
pub use transcript::{Detail, Transcript};
