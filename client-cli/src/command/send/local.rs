//! A model server of this machine that nobody configured: asked about once on a terminal before anything is sent, named on stderr where
//! nobody can be asked.

use crate::ask::Tty;
use crate::command::model::{ask_about, confirm};
use crate::output::Output;
use protocol::client::{Client, ClientError};
use protocol::display::{Form, display};
use protocol::method::LocalDecision;

/// What may have to be asked before the first send.
pub(super) struct Offer {
    output: Output,
    tty: Option<Tty>,
    /// The model the person named: another one than the server's is no question.
    model: Option<String>,
    made: Made,
}

/// Whether the question was put.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Made {
    No,
    Yes,
}

impl Offer {
    pub(super) fn new(output: Output, tty: Option<&Tty>, model: Option<String>) -> Self {
        Self {
            output,
            tty: tty.cloned(),
            model,
            made: Made::No,
        }
    }

    /// Asks, or says that there is something to be asked.
    pub(super) async fn make(&mut self, client: &mut Client) -> Result<(), ClientError> {
        let meant = |name: &str| self.model.as_deref().is_none_or(|model| model == name);
        let server = client.hello().local_server.clone().filter(|server| meant(&server.name));
        let Some(server) = server.filter(|_| self.made == Made::No) else {
            return Ok(());
        };
        self.made = Made::Yes;
        let Some(tty) = &self.tty else {
            let (name, address) = (
                display(&server.name, Form::Inline),
                display(&server.address, Form::Inline),
            );
            self.output.tell(&format!(
                "{name} at {address} could answer here\nhint: `agentctl model confirm` lets it"
            ));
            return Ok(());
        };
        let decision = match ask_about(&server, tty, self.output).await {
            Some(true) => LocalDecision::Use,
            Some(false) => LocalDecision::Never,
            None => return Ok(()),
        };
        confirm(client, &server, decision).await
    }
}
