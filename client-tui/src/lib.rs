//! The terminal client: shows a session and takes input for it.

mod markdown;
mod paint;
mod transcript;
mod wrap;

pub use paint::Look;
pub use transcript::transcript;
