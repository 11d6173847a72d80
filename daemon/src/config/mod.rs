//! Placeholder.

pub mod profile;
