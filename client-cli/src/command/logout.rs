//! `agentctl logout`: has the daemon forget the tokens of a login, and the provider end them where it can be told to.

use super::login::{inline, names};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::invocation::Invocation;
use protocol::method::{AuthLogout, LogoutParams, Revoked};

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Model profile to log out of; the default model's if left out
    profile: Option<String>,
}

pub(crate) async fn run(invocation: &Invocation, arguments: Arguments) -> Result<Exit, Failure> {
    let params = LogoutParams {
        profile: arguments.profile,
    };
    let out = invocation.connect().await?.call::<AuthLogout>(&params).await?;
    let (output, names) = (&invocation.output, names(&out.profiles));
    if !out.was_in {
        output.tell(&format!("nobody was logged in for {names}"));
        return Ok(Exit::Completed);
    }
    let provider = match (out.revoked, &out.problem) {
        (Revoked::Yes, _) => "the provider has ended the tokens too".to_owned(),
        (Revoked::NotAsked, _) => "the provider was not told: the login has no revoke_url".to_owned(),
        (Revoked::Failed, problem) => format!(
            "the provider did not end the tokens: {}\nhint: end them in your account at the provider",
            inline(problem.as_deref().unwrap_or("no reason given"))
        ),
    };
    output.tell(&format!("logged out of {names}; {provider}"));
    Ok(Exit::Completed)
}
