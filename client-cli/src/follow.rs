//! Following a session through lost connections: whoever reads gets each event once, in order, whatever happens to the daemon
//! in between.

use crate::exit::Exit;
use crate::failure::Failure;
use protocol::client::{Autostart, Client, ClientError, Connect, Frames};
use protocol::frame::EndReason;
use protocol::method::{AttachParams, Method, SessionAttach};
use protocol::{ErrorKind, Frame, Seq, SessionId};
use std::time::{Duration, Instant};

/// How long a lost daemon is looked for. A start migrates and resumes first; a planned stop lets tools end for 30 s.
pub(crate) const LOOK_FOR: Duration = Duration::from_secs(45);

/// How often it is looked for.
pub(crate) const LOOK_EVERY: Duration = Duration::from_millis(100);

/// Whether the text of open items is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Deltas {
    Wanted,
    Unwanted,
}

/// What comes.
#[derive(Debug)]
pub(crate) enum News {
    /// Never `end`.
    Frame(Frame),
    /// The connection is gone, for the reason given, and is made again.
    Lost(&'static str),
}

/// A subscription to one session that attaches again by itself, and a connection for calls beside it.
#[derive(Debug)]
pub(crate) struct Follow {
    connect: Connect,
    session: SessionId,
    deltas: Deltas,
    /// The last event that was handed out.
    seen: Seq,
    frames: Option<Frames<Frame>>,
    /// When looking for a lost daemon ends.
    give_up_at: Instant,
    caller: Option<Client>,
}

impl Follow {
    /// Attaches behind the event `after`.
    pub(crate) async fn start(
        connect: Connect,
        session: SessionId,
        after: Seq,
        deltas: Deltas,
    ) -> Result<Self, ClientError> {
        let mut follow = Self {
            connect: Connect {
                autostart: Autostart::AfterCrash,
                ..connect
            },
            session,
            deltas,
            seen: after,
            frames: None,
            give_up_at: Instant::now(),
            caller: None,
        };
        follow.frames = Some(follow.attach().await?);
        Ok(follow)
    }

    /// What comes next. Cancel-safe: a dropped read loses nothing, a dropped attempt to attach is made anew.
    pub(crate) async fn next(&mut self) -> Result<News, Failure> {
        loop {
            let Some(frames) = &mut self.frames else {
                self.attach_again().await?;
                continue;
            };
            return match frames.next().await {
                Some(Ok(Frame::End(end))) => self.ended(end.reason),
                Some(Ok(frame)) => {
                    if let Frame::Event(event) = &frame {
                        self.seen = event.seq;
                    }
                    Ok(News::Frame(frame))
                }
                Some(Err(ClientError::Lost)) | None => Ok(self.lost("the connection to agentd was lost")),
                Some(Err(error)) => Err(error.into()),
            };
        }
    }

    /// Uses `client` for calls, rather than a new connection.
    pub(crate) fn call_on(&mut self, client: Client) {
        self.caller = Some(client);
    }

    /// A call on a connection of its own. Made again where the connection was lost: only for methods that change nothing when
    /// they are called twice.
    pub(crate) async fn call<M: Method>(&mut self, params: &M::Params) -> Result<M::Answer, Failure> {
        let give_up_at = Instant::now() + LOOK_FOR;
        loop {
            match self.try_call::<M>(params).await {
                Err(error) if passing(&error) && Instant::now() < give_up_at => {
                    self.caller = None;
                    tokio::time::sleep(LOOK_EVERY).await;
                }
                result => return Ok(result?),
            }
        }
    }

    async fn try_call<M: Method>(&mut self, params: &M::Params) -> Result<M::Answer, ClientError> {
        let client = match self.caller.take() {
            Some(client) => client,
            None => Client::connect(&self.connect).await?,
        };
        self.caller.insert(client).call::<M>(params).await
    }

    fn ended(&mut self, reason: EndReason) -> Result<News, Failure> {
        match reason {
            EndReason::Shutdown => Ok(self.lost("agentd stops")),
            EndReason::Deleted => Err(Failure::with(Exit::Interrupted, "the session was deleted")),
            EndReason::Unreadable => {
                let message = "the session's log cannot be read\nhint: see `agentctl daemon logs`";
                Err(Failure::error(message))
            }
            EndReason::Storage => {
                let message = "agentd could not read the session\nhint: see `agentctl daemon logs`; what was accepted goes on, and \
                               `agentctl wait` waits for it";
                Err(Failure::error(message))
            }
        }
    }

    /// A successor is looked for. Where the daemon was stopped on purpose none is started.
    fn lost(&mut self, what: &'static str) -> News {
        self.give_up_at = Instant::now() + LOOK_FOR;
        self.frames = None;
        self.caller = None;
        News::Lost(what)
    }

    async fn attach_again(&mut self) -> Result<(), Failure> {
        loop {
            match self.attach().await {
                Ok(frames) => {
                    self.frames = Some(frames);
                    return Ok(());
                }
                Err(error) if passing(&error) && Instant::now() < self.give_up_at => {
                    tokio::time::sleep(LOOK_EVERY).await;
                }
                Err(ClientError::Unreachable { reason, .. }) => {
                    let message = format!(
                        "{reason}\nhint: an accepted turn goes on when agentd starts again: `agentctl daemon start`"
                    );
                    return Err(Failure::with(Exit::Unreachable, message));
                }
                Err(error) => return Err(error.into()),
            }
        }
    }

    async fn attach(&self) -> Result<Frames<Frame>, ClientError> {
        let params = AttachParams {
            session: self.session.0.clone(),
            after_seq: Some(self.seen),
            tail: None,
            deltas: self.deltas == Deltas::Wanted,
        };
        let client = Client::connect(&self.connect).await?;
        client.subscribe::<SessionAttach>(&params).await
    }
}

/// Whether the same again may go well in a moment.
pub(crate) fn passing(error: &ClientError) -> bool {
    match error {
        ClientError::Unreachable { .. } | ClientError::Lost => true,
        _ => matches!(error.kind(), Some(ErrorKind::Draining | ErrorKind::Busy)),
    }
}
