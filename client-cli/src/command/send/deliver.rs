//! Getting the input into a session's log. Session and input ids are made here, so that the whole of it may be done again after
//! a lost answer or against a daemon's successor without anything happening twice.

use super::Arguments;
use super::local::Offer;
use crate::ask::Tty;
use crate::failure::Failure;
use crate::follow::{Deltas, Follow, LOOK_EVERY, LOOK_FOR, passing};
use crate::invocation::Invocation;
use protocol::attention::Attention;
use protocol::client::{Client, ClientError, Connect};
use protocol::method::{
    CreateParams, GetParams, SendParams, Sent, SessionCreate, SessionGet, SessionInfo, SessionSend, SessionUpdate,
    UpdateParams,
};
use protocol::{Content, ErrorKind, InputId, Seq, SessionId};
use std::time::Instant;

/// Where the input goes.
enum Which {
    /// What a person calls a session.
    Named(GetParams),
    /// The one that is made.
    New(CreateParams),
}

/// All that the daemon is asked for.
pub(super) struct Plan {
    which: Which,
    offer: Offer,
    /// What of an existing session is to be otherwise: its model from its next turn on, its directories.
    update: Option<UpdateParams>,
    send: SendParams,
    /// Whether and how the answer is followed.
    deltas: Option<Deltas>,
    /// The session's head before the input: from there the answer is followed, however often it is sent.
    before: Option<Seq>,
}

/// The input is durable.
pub(super) struct Delivered {
    pub(super) session: SessionInfo,
    pub(super) sent: Sent,
    /// What has happened in the session since before the input; absent if nobody waits for the answer.
    pub(super) follow: Option<Follow>,
    /// How the person who waits is to be called.
    pub(super) attention: Attention,
}

impl Plan {
    pub(super) fn new(
        invocation: &Invocation,
        arguments: &Arguments,
        content: Vec<Content>,
        tty: Option<&Tty>,
    ) -> Result<Self, Failure> {
        let which = match named(arguments) {
            Some(session) => Which::Named(GetParams {
                session,
                cwd: Some(invocation.cwd()),
            }),
            None => Which::New(new_session(invocation, arguments)?),
        };
        let update = match which {
            Which::Named(_) => update(invocation, arguments)?,
            Which::New(_) => None,
        };
        let named = match &which {
            Which::Named(_) => arguments.model.clone(),
            Which::New(params) => params.model.clone(),
        };
        let send = SendParams {
            session: String::new(),
            input_id: Some(InputId(uuid::Uuid::now_v7().to_string())),
            content,
            delivery: arguments.delivery(),
            mode: arguments.mode.map(|mode| mode.mode),
            mode_for_ms: arguments.mode.and_then(|mode| mode.for_ms),
            unattended: Some(arguments.unattended(tty)),
            tools: arguments.tools(),
            timeout_ms: arguments.timeout,
            interactive: invocation.output.on_terminal() && !arguments.json && !arguments.no_wait,
        };
        let deltas = (!arguments.no_wait).then(|| arguments.deltas(&invocation.output));
        Ok(Self {
            which,
            offer: Offer::new(invocation.output, tty, named),
            update,
            send,
            deltas,
            before: None,
        })
    }

    async fn carry_out(&mut self, connect: &Connect, mut client: Client) -> Result<Delivered, ClientError> {
        let attention = client.hello().attention;
        self.offer.make(&mut client).await?;
        let mut session = self.session(&mut client).await?;
        let before = *self.before.get_or_insert(session.head);
        if let Some(update) = &mut self.update {
            update.session.clone_from(&session.id.0);
            session = client.call::<SessionUpdate>(update).await?;
        }
        // First the subscription, then the input: so every piece of its answer comes as it is made.
        let mut follow = match self.deltas {
            Some(deltas) => Some(Follow::start(connect.clone(), session.id.clone(), before, deltas).await?),
            None => None,
        };
        let sent = client.call::<SessionSend>(&self.send).await?;
        if let Some(follow) = &mut follow {
            follow.call_on(client);
        }
        Ok(Delivered {
            session,
            sent,
            follow,
            attention,
        })
    }

    /// Finds or makes the session; from then on it is meant by its id.
    async fn session(&mut self, client: &mut Client) -> Result<SessionInfo, ClientError> {
        let session = match &self.which {
            Which::Named(params) => client.call::<SessionGet>(params).await?,
            Which::New(params) => client.call::<SessionCreate>(params).await?,
        };
        self.send.session = session.id.0.clone();
        if let Which::Named(params) = &mut self.which {
            params.session = session.id.0.clone();
        }
        Ok(session)
    }
}

/// The session the flags name; the environment's where they say nothing.
fn named(arguments: &Arguments) -> Option<String> {
    match (&arguments.session, arguments.continue_last, arguments.new) {
        (Some(session), ..) => Some(session.clone()),
        (None, true, _) => Some("last".to_owned()),
        (None, false, true) => None,
        (None, false, false) if arguments.name.is_some() => None,
        (None, false, false) => std::env::var("AGENTD_SESSION").ok().filter(|name| !name.is_empty()),
    }
}

/// What the flags change of a session that exists; it is named later.
fn update(invocation: &Invocation, arguments: &Arguments) -> Result<Option<UpdateParams>, Failure> {
    let update = UpdateParams {
        model: arguments.model.clone(),
        add_roots: invocation.directories(&arguments.roots.add_dir)?,
        ..UpdateParams::default()
    };
    Ok(Some(update).filter(|update| update.model.is_some() || !update.add_roots.is_empty()))
}

fn new_session(invocation: &Invocation, arguments: &Arguments) -> Result<CreateParams, Failure> {
    let base = invocation.new_session()?;
    Ok(CreateParams {
        session: Some(SessionId(uuid::Uuid::now_v7().to_string())),
        add_roots: invocation.directories(&arguments.roots.add_dir)?,
        name: arguments.name.clone(),
        model: arguments.model.clone().or(base.model.clone()),
        ..base
    })
}

/// Delivers, and waits for a successor where the daemon is about to stop or just did.
pub(super) async fn deliver(invocation: &Invocation, connect: &Connect, mut plan: Plan) -> Result<Delivered, Failure> {
    let mut give_up_at = None;
    loop {
        let result = match Client::connect(connect).await {
            Ok(client) => {
                invocation.warn(&client);
                give_up_at.get_or_insert_with(|| Instant::now() + LOOK_FOR);
                plan.carry_out(connect, client).await
            }
            Err(error) => Err(error),
        };
        match result {
            // A daemon that was there once is waited for. One that never was did not start, and said why.
            Err(error) if passing(&error) && give_up_at.is_some_and(|limit| Instant::now() < limit) => {
                tokio::time::sleep(pause(&error)).await;
            }
            result => return Ok(result?),
        }
    }
}

fn pause(error: &ClientError) -> std::time::Duration {
    let ClientError::Rpc(error) = error else {
        return LOOK_EVERY;
    };
    let asked = error.data.get("retry_after_ms").and_then(serde_json::Value::as_u64);
    match (error.kind, asked) {
        (ErrorKind::Busy, Some(ms)) => std::time::Duration::from_millis(ms).min(LOOK_FOR),
        _ => LOOK_EVERY,
    }
}
