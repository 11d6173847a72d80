//! The client's two connections to the daemon: one that carries calls, one that follows a session. Both are tasks that belong
//! to [`Link`] and end with it; both connect again by themselves.

use crate::request::{News, Reply, Request, Which};
use protocol::client::{Autostart, Client, ClientError, Connect, Frames};
use protocol::frame::{End, EndReason};
use protocol::method::{
    AnswerParams, ApprovalAnswer, AttachParams, CreateParams, DeleteParams, GetParams, InterruptParams, JobKill,
    JobKillParams, ListParams, LocalDecision, ModelConfirm, ModelConfirmParams, ModelList, ModelListParams,
    QueueCancel, QueueCancelParams, QueueResume, SendParams, SessionAttach, SessionCreate, SessionDelete, SessionGet,
    SessionInfo, SessionList, SessionParams, SessionSend, SessionUpdate, TurnInterrupt, TurnResume, UpdateParams,
};
use protocol::{Content, Frame, Seq, SessionId};
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

/// Calls that wait for those before them. A person is slower; what does not fit is refused.
const CALLS: usize = 32;
/// Frames read ahead of the screen. What is not read stays in the daemon's log.
const FRAMES: usize = 64;
/// Turns that are shown of a session's past.
const TAIL: u32 = 10;
/// Wait before the second attempt to connect again; it doubles with each.
const FIRST_WAIT: Duration = Duration::from_millis(200);
/// Longest wait between attempts.
const LONGEST_WAIT: Duration = Duration::from_secs(2);

/// How a session is opened.
#[derive(Debug, Clone)]
pub(crate) struct Way {
    /// Where the person stands.
    pub(crate) cwd: PathBuf,
    /// Profile of a new session.
    pub(crate) model: Option<String>,
    /// Mode of a new session.
    pub(crate) mode: Option<protocol::Mode>,
    /// Further directories of a new session; absolute.
    pub(crate) add_roots: Vec<PathBuf>,
}

/// The connections, as the run loop holds them.
#[derive(Debug)]
pub(crate) struct Link {
    calls: mpsc::Sender<Request>,
    pub(crate) replies: mpsc::Receiver<Reply>,
    pub(crate) news: mpsc::Receiver<News>,
    caller: JoinHandle<()>,
    follower: JoinHandle<()>,
}

impl Link {
    /// Connects and opens a session, without following it yet. What exists gets the further directories, too.
    ///
    /// # Errors
    /// What connecting or opening reports.
    pub(crate) async fn open(way: &Way, which: &Which) -> Result<(Client, SessionInfo), ClientError> {
        let mut client = Client::connect(&connect(Autostart::Yes)).await?;
        let mut info = open(&mut client, way, which).await?;
        if matches!(which, Which::Named(_)) && !way.add_roots.is_empty() {
            info = add(&mut client, &info.id, &way.add_roots).await?;
        }
        Ok((client, info))
    }

    /// Starts both tasks.
    pub(crate) fn start(client: Client, way: Way, session: &SessionId) -> Self {
        let (calls, requests) = mpsc::channel(CALLS);
        let (replies_in, replies) = mpsc::channel(CALLS);
        let caller = Caller {
            client: Some(client),
            way,
        };
        let (news, follower) = follow(session);
        Self {
            calls,
            replies,
            news,
            caller: tokio::spawn(caller.run(requests, replies_in)),
            follower,
        }
    }

    /// Queues a call; gives it back if too many wait.
    pub(crate) fn call(&self, request: Request) -> Result<(), Request> {
        self.calls
            .try_send(request)
            .map_err(mpsc::error::TrySendError::into_inner)
    }

    /// Follows another session from now on.
    pub(crate) fn follow(&mut self, session: &SessionId) {
        self.follower.abort();
        (self.news, self.follower) = follow(session);
    }

    /// Waits until the calls made so far are answered, for as long as `patience`.
    pub(crate) async fn finish(mut self, patience: Duration) {
        self.follower.abort();
        drop(std::mem::replace(&mut self.calls, mpsc::channel(1).0));
        let all = async { while self.replies.recv().await.is_some() {} };
        let _ = tokio::time::timeout(patience, all).await;
        self.caller.abort();
    }
}

fn connect(autostart: Autostart) -> Connect {
    Connect {
        name: "agent-tui".to_owned(),
        kind: "tui".to_owned(),
        answers: true,
        autostart,
    }
}

/// The task that makes calls, one after another.
struct Caller {
    client: Option<Client>,
    way: Way,
}

impl Caller {
    async fn run(mut self, mut requests: mpsc::Receiver<Request>, replies: mpsc::Sender<Reply>) {
        while let Some(request) = requests.recv().await {
            let reply = match self.call_twice(&request).await {
                Ok(reply) => reply,
                Err(error) => Reply::Failed { request, error },
            };
            if replies.send(reply).await.is_err() {
                return;
            }
        }
    }

    /// A connection may have ended since the last call: then the call is made again on a new one. Every request allows that.
    async fn call_twice(&mut self, request: &Request) -> Result<Reply, ClientError> {
        if self.client.is_some() {
            match self.call(request).await {
                Err(ClientError::Lost) => {}
                other => return other,
            }
        }
        self.client = Some(Client::connect(&connect(Autostart::Yes)).await?);
        self.call(request).await
    }

    async fn call(&mut self, request: &Request) -> Result<Reply, ClientError> {
        let Some(client) = &mut self.client else {
            return Err(ClientError::Lost);
        };
        let reply = carry_out(client, &self.way, request).await;
        if matches!(reply, Err(ClientError::Lost | ClientError::Malformed(_))) {
            self.client = None;
        }
        reply
    }
}

async fn carry_out(client: &mut Client, way: &Way, request: &Request) -> Result<Reply, ClientError> {
    match request {
        Request::Send {
            session,
            input_id,
            text,
            delivery,
        } => {
            let params = SendParams {
                session: session.to_string(),
                input_id: Some(input_id.clone()),
                content: vec![Content::text(text)],
                delivery: *delivery,
                interactive: true,
                ..SendParams::default()
            };
            client.call::<SessionSend>(&params).await?;
        }
        Request::Answer {
            approval,
            decision,
            feedback,
            arguments,
        } => {
            let (id, digest) = (approval.id.clone(), approval.digest.clone());
            let params = AnswerParams {
                id,
                digest,
                decision: *decision,
                feedback: feedback.clone(),
                arguments: arguments.clone(),
            };
            client.call::<ApprovalAnswer>(&params).await?;
        }
        Request::Interrupt { session, turn } => {
            let params = InterruptParams {
                session: session.to_string(),
                turn: Some(turn.clone()),
            };
            client.call::<TurnInterrupt>(&params).await?;
        }
        Request::KillJob { session, job } => {
            let params = JobKillParams {
                session: session.to_string(),
                job: job.clone(),
            };
            client.call::<JobKill>(&params).await?;
        }
        Request::Update(params) => _ = client.call::<SessionUpdate>(params).await?,
        Request::AddRoot { session, dir, known } => {
            let path = way.cwd.join(from_home(dir));
            let info = add(client, session, std::slice::from_ref(&path)).await?;
            if info.added_roots.len() == *known {
                return Ok(Reply::Within(text(&path)));
            }
        }
        Request::CancelQueued { session, input_id } => {
            let params = QueueCancelParams {
                session: session.to_string(),
                input_id: input_id.clone(),
            };
            client.call::<QueueCancel>(&params).await?;
        }
        Request::ResumeQueue(session) => _ = client.call::<QueueResume>(&named(session)).await?,
        Request::ResumeTurn(session) => _ = client.call::<TurnResume>(&named(session)).await?,
        Request::Sessions => {
            let params = ListParams {
                cwd: Some(text(&way.cwd)),
                ..ListParams::default()
            };
            return Ok(Reply::Sessions(client.call::<SessionList>(&params).await?.sessions));
        }
        Request::Models => {
            let models = client.call::<ModelList>(&ModelListParams::default()).await?.models;
            return Ok(Reply::Models(models));
        }
        Request::Confirm(server) => {
            let params = ModelConfirmParams {
                address: server.address.clone(),
                uid: server.uid,
                decision: LocalDecision::Use,
            };
            client.call::<ModelConfirm>(&params).await?;
            return Ok(Reply::Confirmed(server.clone()));
        }
        Request::Open(which) => {
            let info = Box::new(open(client, way, which).await?);
            return Ok(Reply::Opened {
                info,
                which: which.clone(),
            });
        }
        Request::Delete(session) => {
            let params = DeleteParams {
                session: session.to_string(),
                force: false,
                now: true,
            };
            client.call::<SessionDelete>(&params).await?;
        }
    }
    Ok(Reply::Done)
}

async fn open(client: &mut Client, way: &Way, which: &Which) -> Result<SessionInfo, ClientError> {
    let cwd = text(&way.cwd);
    match which {
        Which::New => {
            let params = CreateParams {
                cwd,
                model: way.model.clone(),
                mode: way.mode,
                add_roots: texts(&way.add_roots),
                ..CreateParams::default()
            };
            client.call::<SessionCreate>(&params).await
        }
        Which::Named(name) => {
            client
                .call::<SessionGet>(&GetParams {
                    session: name.clone(),
                    cwd: Some(cwd),
                })
                .await
        }
    }
}

async fn add(client: &mut Client, session: &SessionId, roots: &[PathBuf]) -> Result<SessionInfo, ClientError> {
    let params = UpdateParams {
        session: session.to_string(),
        add_roots: texts(roots),
        ..UpdateParams::default()
    };
    client.call::<SessionUpdate>(&params).await
}

/// `~` is the person's home, as their shell has it.
fn from_home(dir: &str) -> PathBuf {
    let rest = match dir.strip_prefix('~') {
        Some(rest) if rest.is_empty() || rest.starts_with('/') => rest.trim_start_matches('/'),
        _ => return PathBuf::from(dir),
    };
    protocol::place::home().map_or_else(|_| PathBuf::from(dir), |home| home.join(rest))
}

fn texts(paths: &[PathBuf]) -> Vec<String> {
    paths.iter().map(|path| text(path)).collect()
}

fn named(session: &SessionId) -> SessionParams {
    SessionParams {
        session: session.to_string(),
    }
}

fn text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

fn follow(session: &SessionId) -> (mpsc::Receiver<News>, JoinHandle<()>) {
    let (news_in, news) = mpsc::channel(FRAMES);
    let follower = Follower {
        session: session.clone(),
        seen: None,
        news: news_in,
    };
    (news, tokio::spawn(follower.run()))
}

/// The task that follows a session, connecting again where the last connection ended.
struct Follower {
    session: SessionId,
    /// The last event that was passed on; everything before it was, too.
    seen: Option<Seq>,
    news: mpsc::Sender<News>,
}

/// Nobody reads the news any more, or nothing can come.
struct Over;

impl Follower {
    async fn run(mut self) {
        let mut wait = FIRST_WAIT;
        loop {
            match self.attach().await {
                Ok(frames) => {
                    wait = FIRST_WAIT;
                    if self.read(frames).await.is_err() {
                        return;
                    }
                }
                Err(error) if is_final(&error) => {
                    let _ = self.news.send(News::Failed(error)).await;
                    return;
                }
                Err(error) => {
                    if self.news.send(News::Lost(error.to_string())).await.is_err() {
                        return;
                    }
                    wait = (wait * 2).min(LONGEST_WAIT);
                }
            }
            tokio::time::sleep(wait).await;
        }
    }

    async fn attach(&self) -> Result<Frames<Frame>, ClientError> {
        // A daemon that crashed is started again; one that was stopped is waited for.
        let client = Client::connect(&connect(Autostart::AfterCrash)).await?;
        let tail = self.seen.is_none().then_some(TAIL);
        let params = AttachParams {
            session: self.session.to_string(),
            after_seq: self.seen,
            tail,
            deltas: true,
        };
        client.subscribe::<SessionAttach>(&params).await
    }

    /// Passes frames on until the connection ends.
    async fn read(&mut self, mut frames: Frames<Frame>) -> Result<(), Over> {
        loop {
            let news = match frames.next().await {
                Some(Ok(frame)) => News::Frame(frame),
                Some(Err(error)) => News::Lost(error.to_string()),
                None => News::Lost("the connection to agentd was lost".to_owned()),
            };
            let next = self.after(&news);
            self.news.send(news).await.map_err(|_| Over)?;
            match next {
                Next::Frame => {}
                Next::Connection => return Ok(()),
                Next::Nothing => return Err(Over),
            }
        }
    }

    /// What follows on this piece of news.
    fn after(&mut self, news: &News) -> Next {
        match news {
            News::Frame(Frame::Event(event)) => {
                self.seen = Some(event.seq);
                Next::Frame
            }
            News::Frame(Frame::Snapshot(snapshot)) => {
                self.seen = self.seen.max(Some(snapshot.head));
                Next::Frame
            }
            News::Frame(Frame::End(End {
                reason: EndReason::Shutdown | EndReason::Storage,
                ..
            })) => Next::Connection,
            News::Frame(Frame::End(_)) | News::Failed(_) => Next::Nothing,
            News::Frame(_) => Next::Frame,
            News::Lost(_) => Next::Connection,
        }
    }
}

enum Next {
    Frame,
    Connection,
    Nothing,
}

/// Errors that trying again does not mend.
fn is_final(error: &ClientError) -> bool {
    use protocol::ErrorKind::{Busy, Draining, LimitReached};
    match error {
        ClientError::Unreachable { .. } | ClientError::Lost => false,
        ClientError::Rpc(error) => !matches!(error.kind, Busy | Draining | LimitReached),
        ClientError::Foreign { .. }
        | ClientError::Incompatible(_)
        | ClientError::Malformed(_)
        | ClientError::Place(_) => true,
    }
}
