//! What people read about a model server that was found on this machine. Every line has been through [`display`].

use crate::display::{Form, display};
use crate::method::{LocalDecision, LocalServer};

/// What it is, whose it is and what it would get, a line each.
#[must_use]
pub fn local_server_lines(server: &LocalServer) -> Vec<String> {
    vec![
        format!("{} can answer with the model {}", at(server), inline(&server.model)),
        format!(
            "it was found on this machine, run by {}; nobody configured it",
            inline(&server.owner)
        ),
        "it would get what you write and what is read of your files".to_owned(),
    ]
}

/// What follows from a decision.
#[must_use]
pub fn local_decision(server: &LocalServer, decision: LocalDecision) -> String {
    match decision {
        LocalDecision::Use => format!(
            "{} answers from now on, where nothing is configured and no key is set",
            at(server)
        ),
        LocalDecision::Never => format!("{} does not answer and is not asked about again", at(server)),
    }
}

fn at(server: &LocalServer) -> String {
    format!("{} at {}", inline(&server.name), inline(&server.address))
}

fn inline(text: &str) -> String {
    display(text, Form::Inline).into_owned()
}
