//! End-to-end tests, a module a theme, in one binary because linking is what takes long.
#![expect(clippy::print_stderr, reason = "a sweep says what it hit, and with which seed")]

mod approvals;
mod attach;
mod bad_input;
mod catalog;
mod cost;
mod crash;
mod display;
mod escape;
mod first_steps;
mod inputs;
mod inside;
mod instructions;
mod jobs;
mod lifecycle;
mod limits;
mod login;
mod machines;
mod model_server;
mod models;
mod neighbours;
mod network;
mod notify;
mod places;
mod protocol;
mod real_model;
mod reload;
mod rules;
mod sandbox;
mod scripts;
mod secrets;
mod storage;
mod switch;
mod terminals;
mod turns;
mod web_tools;
