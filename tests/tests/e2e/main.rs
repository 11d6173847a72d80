//! End-to-end tests, a module a theme, in one binary because linking is what takes long.

mod model_server;
