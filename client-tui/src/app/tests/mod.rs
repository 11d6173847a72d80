//! The client from the outside: frames and keys in, rows and effects out.

mod answers;
mod input;
mod replies;
mod rig;
mod work;
