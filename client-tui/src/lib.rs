//! The terminal client: shows a session and takes input for it.

mod command;
mod draft;
mod markdown;
mod paint;
mod screen;
mod session;
mod transcript;
mod wrap;

pub use paint::Look;
pub use transcript::transcript;
