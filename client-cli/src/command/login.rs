//! `agentctl login`: shows where a person has to go to let the daemon use their account at a model's provider, and waits until they have.
//! The flow runs in the daemon, which keeps the tokens; this program never sees one.

use crate::exit::Exit;
use crate::failure::Failure;
use crate::invocation::Invocation;
use crate::signals::Signals;
use protocol::client::Client;
use protocol::display::{Form, display};
use protocol::method::{AuthCancel, AuthLogin, AuthWait, LoggedIn, LoginParams, LoginRef, LoginStarted, LoginWay};
use std::time::Duration;

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Model profile to log in for; the default model's if left out
    profile: Option<String>,
    /// Show a code to type in any browser, also of another machine
    #[arg(long)]
    device: bool,
}

pub(crate) async fn run(invocation: &Invocation, arguments: Arguments) -> Result<Exit, Failure> {
    let mut signals = Signals::new()?;
    let mut client = invocation.connect().await?;
    let params = LoginParams {
        profile: arguments.profile,
        way: arguments.device.then_some(LoginWay::Device),
    };
    let started = client.call::<AuthLogin>(&params).await?;
    show(&started, invocation);
    let login = LoginRef {
        login: started.login.clone(),
    };
    tokio::select! {
        done = client.call::<AuthWait>(&login) => {
            said(&done?, invocation);
            Ok(Exit::Completed)
        }
        caught = signals.next() => {
            // On a connection of its own: the other one waits for an answer. That it fails changes nothing for who leaves.
            let _told = cancel(invocation, &login).await;
            Ok(caught.exit())
        }
    }
}

async fn cancel(invocation: &Invocation, login: &LoginRef) -> Result<(), Failure> {
    let mut client: Client = invocation.connect_to_running().await?;
    client.call::<AuthCancel>(login).await?;
    Ok(())
}

fn show(started: &LoginStarted, invocation: &Invocation) {
    let output = &invocation.output;
    let minutes = Duration::from_millis(started.expires_in_ms).as_secs().div_ceil(60);
    output.tell_always(&format!(
        "To let agentd use your account for {}, open",
        names(&started.profiles)
    ));
    // On a line of its own, so that it can be copied, and whole.
    output.tell_always(&format!("\n  {}\n", inline(&started.url)));
    match &started.code {
        Some(code) => output.tell_always(&format!(
            "in any browser, check that it is {}, and type the code\n\n  {}\n",
            inline(&started.host),
            inline(code)
        )),
        None => output.tell_always(&format!(
            "in a browser on this machine, and check that it is {}. From another machine: agentctl login --device",
            inline(&started.host)
        )),
    }
    output.tell(&format!("waiting for at most {minutes} minutes; Ctrl-C cancels"));
}

fn said(done: &LoggedIn, invocation: &Invocation) {
    let renewed = match (done.renews, done.expires_in_ms) {
        (true, _) => "agentd renews it by itself".to_owned(),
        (false, Some(ms)) => format!("it ends in {} minutes", Duration::from_millis(ms).as_secs() / 60),
        (false, None) => "it holds until the provider ends it".to_owned(),
    };
    let output = &invocation.output;
    output.tell(&format!("logged in for {}; {renewed}", names(&done.profiles)));
    output.tell(&output.dim(&format!("kept in {}", inline(&done.kept))));
}

/// Names of profiles for people.
pub(super) fn names(profiles: &[String]) -> String {
    inline(&profiles.join(", "))
}

/// What somebody else wrote, in one line of a terminal.
pub(super) fn inline(text: &str) -> String {
    display(text, Form::Inline).into_owned()
}
