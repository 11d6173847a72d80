//! (to be written)

pub mod facts;

pub use facts::Facts;
