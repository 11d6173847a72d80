//! The daemon: owns sessions, model connections, tools, approvals and their history, and serves them over a Unix socket.

pub mod api;
pub mod auth;
pub mod config;
pub mod context;
pub mod log;
pub mod policy;
pub mod provider;
pub mod session;
pub mod target;
pub mod tool;
