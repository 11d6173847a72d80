//! What is on the screen: the live area from the app's state. Pure.
//!
//! From the top: the end of what grows, running calls, the question, what waits, what is going on, completions, the input, one
//! line of status. The area is never higher than [`LIVE_ROWS`]; the input, the status and the question come first when room is
//! short.

mod area;
mod question;
mod report;
mod status;

pub(crate) use area::{compose, input_rows};
pub(crate) use question::{fits_live, whole_question};
pub(crate) use report::{header, model_list, queued_words, session_list};
pub(crate) use status::FRAME;

/// Rows of the live area at most.
pub(crate) const LIVE_ROWS: u16 = 12;
