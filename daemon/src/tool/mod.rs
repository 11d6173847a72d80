//! What the model can do: the [`Tool`] trait, the list of tools (`catalog`), and the values a call is made of.
//!
//! A call goes through a tool twice. [`Tool::inspect`] parses the arguments, resolves what they name and previews the
//! effect, touching nothing; policy and the person judge exactly that. [`Tool::run`] inspects again, refuses to start if
//! the digest differs from the judged one, and then acts through the target. Every run ends in an [`Ended`]; errors are
//! results for the model, not failures of the daemon.

use std::time::Instant;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::sync::watch;

use crate::policy::Facts;
use crate::policy::facts::Access;
use crate::target::{Resolved, Target};

pub use crate::target::GuardPlan;
pub use crate::target::sandbox::Confinement;
pub use arguments::ArgumentError;
pub use catalog::{Listed, Settings, all, catalog};
pub use digest::judged_part;
pub use jobs::Jobs;
pub use read_set::ReadSet;

mod arguments;
mod bash;
pub mod catalog;
mod change;
mod charset;
mod diff;
mod digest;
mod duration;
mod edit_file;
mod fetch_url;
mod file_tool;
mod glob;
mod grep;
mod job_kill;
mod job_output;
pub mod jobs;
mod list_dir;
mod listed;
mod nearest;
pub mod output;
mod patience;
mod read_file;
mod read_set;
pub(crate) mod scripts;
mod supervise;
mod text;
mod time;
mod todo_write;
mod web;
mod web_search;
#[cfg(test)]
mod world;
mod write_file;

/// What a model is told about a tool.
#[derive(Debug, Clone)]
pub struct Spec {
    /// The name the model calls.
    pub name: &'static str,
    /// What it does and its limits, for the model.
    pub description: String,
    /// JSON Schema of the arguments, made from their Rust type.
    pub schema: Value,
    /// Whether a call may change anything; such calls run one after another.
    pub writes: bool,
}

/// One thing the model can do.
#[async_trait]
pub trait Tool: Send + Sync {
    /// Name, description and schema.
    fn spec(&self) -> &Spec;

    /// Parses the arguments, resolves paths and previews the effect: everything policy and the approval need. Touches
    /// nothing.
    ///
    /// # Errors
    /// The arguments are wrong or the call cannot work; the text is for the model and names the path of a mistake
    /// ("`limit`: expected integer").
    async fn inspect(&self, arguments: &Value, place: &Place) -> Result<Inspected, ArgumentError>;

    /// Runs the call. The digest is made again first; if it is not `digest`, nothing happens and the call ends
    /// [`Outcome::NotRun`] with `changed_since_approved`. For a call that no person approved, `digest` is the
    /// [`judged_part`]. Dropping the future kills what it started.
    async fn run(&self, arguments: &Value, digest: &str, run: RunContext) -> Ended;
}

/// Where a session's calls happen. Cheap to clone; made once per session.
#[derive(Debug, Clone)]
pub struct Place {
    /// Roots, working directory and environment.
    pub target: Target,
    /// What this session has read, shared by its clones.
    pub read: ReadSet,
    /// The session's commands in the background, shared by its clones.
    pub jobs: Jobs,
}

/// What a call would do, found without doing it.
#[derive(Debug, Clone)]
pub struct Inspected {
    /// For policy.
    pub facts: Facts,
    /// For the person who approves.
    pub action: Action,
    /// Digest of everything that will run: tool, arguments, working directory, environment, contents to be replaced,
    /// scripts named. Equal digests mean the same effect.
    pub digest: String,
    /// Whether this call may change anything.
    pub writes: bool,
}

impl Inspected {
    /// A call of `tool` that touches no file and changes nothing: its arguments are all it is judged by.
    fn nowhere(tool: &str, arguments: &Value) -> Self {
        Self {
            facts: Facts {
                tool: tool.into(),
                ..Facts::default()
            },
            action: Action::default(),
            digest: digest::CallDigest::nowhere(tool, arguments).finish(),
            writes: false,
        }
    }

    /// A call of `tool` that reads what is at `path`.
    fn reading(tool: &str, arguments: &Value, path: &Resolved, place: &Place) -> Result<Self, ArgumentError> {
        let digest = digest::CallDigest::new(tool, arguments, place.target.cwd_id()?)
            .with("path", path.path.as_os_str().as_encoded_bytes());
        Ok(Self {
            facts: Facts {
                tool: tool.into(),
                paths: vec![path.fact(Access::Read)],
                roots: place.target.standing_roots(),
                ..Facts::default()
            },
            action: Action {
                path: Some(path.path.display().to_string()),
                ..Action::default()
            },
            digest: digest.finish(),
            writes: false,
        })
    }

    /// A call of `tool` that only lists a directory: one whose name looks secret may be, and the files in it are judged when they
    /// are read.
    fn listing(tool: &str, arguments: &Value, dir: &Resolved, place: &Place) -> Result<Self, ArgumentError> {
        let mut inspected = Self::reading(tool, arguments, dir, place)?;
        for path in &mut inspected.facts.paths {
            path.secret = false;
        }
        Ok(inspected)
    }
}

/// What an approval shows. Exactly one of `command`, `path` and `host` is the subject.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Action {
    /// The whole shell command.
    pub command: Option<String>,
    /// The unified diff of the file to be written, uncut.
    pub diff: Option<String>,
    /// The resolved path.
    pub path: Option<String>,
    /// For a command the directory it runs in, resolved.
    pub cwd: Option<String>,
    /// For a command the time after which it is left to the background, in milliseconds; none: its end is waited for.
    pub background_after_ms: Option<u64>,
    /// For a command the time it may run if the model chose it, in milliseconds.
    pub timeout_ms: Option<u64>,
    /// The host contacted.
    pub host: Option<String>,
    /// The whole address requested.
    pub url: Option<String>,
}

/// What a running call gets besides its arguments.
pub struct RunContext {
    /// Where it happens.
    pub place: Place,
    /// Takes output while it appears.
    pub output: Box<dyn OutputSink>,
    /// Asks the call to end.
    pub stop: StopSignal,
    /// The call's id, for logs.
    pub call: String,
    /// How commands are started.
    pub guard: GuardPlan,
    /// Which sandbox a command of this call runs in.
    pub confinement: Confinement,
}

/// Takes the output of a running call in order, in pieces that never split a character, and answers with what of it may be
/// kept: without secrets, whose beginnings it holds back until more comes. Must not block.
pub trait OutputSink: Send {
    /// The next piece.
    #[must_use]
    fn push(&mut self, text: &str) -> String;

    /// There is no more; answers with what was held back.
    #[must_use]
    fn finish(&mut self) -> String;
}

/// How a running call is asked to end. A closed channel counts as [`StopLevel::Kill`].
pub type StopSignal = watch::Receiver<StopLevel>;

/// How urgently a call should end; only ever raised.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum StopLevel {
    /// Go on.
    #[default]
    Run,
    /// End soon: commands get SIGTERM.
    Stop,
    /// End now: commands get SIGKILL.
    Kill,
}

/// How a call ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// It did what was asked; a command exited with 0.
    Ok,
    /// It could not; the output says why.
    Error,
    /// It was never started.
    NotRun,
    /// Its time was over.
    TimedOut,
    /// It was asked to end before it was done.
    Stopped,
}

/// The end of a call.
#[derive(Debug, Clone, PartialEq)]
pub struct Ended {
    /// How it ended.
    pub outcome: Outcome,
    /// What the model sees.
    pub output: String,
    /// The whole output up to [`output::WHOLE_LIMIT_BYTES`], where `output` shows less.
    pub whole: Option<Vec<u8>>,
    /// Bytes that are in neither `whole` nor, without it, `output`.
    pub cut_bytes: u64,
    /// What of `output` the tool or its command put out; none where that is not told apart.
    pub produced: Option<protocol::event::Produced>,
    /// Images for the model.
    pub images: Vec<protocol::Content>,
    /// Unified diff of what was written, for clients.
    pub diff: Option<String>,
    /// Files read or written now as (path, content hash); they are in the session's [`ReadSet`] already, and enter it
    /// again when the session is opened after a restart.
    pub files: Vec<(String, String)>,
    /// Exit code of a command that exited.
    pub exit_code: Option<i32>,
    /// The list of what is to be done, if the call replaced it.
    pub todo: Option<Vec<protocol::event::TodoItem>>,
    /// The job the command goes on as.
    pub job: Option<protocol::JobId>,
    /// What a command met at the walls of its sandbox.
    pub(crate) met: crate::target::sandbox::Met,
    /// How long it ran, in milliseconds.
    pub duration_ms: u64,
}

impl Ended {
    /// An end with nothing but a text for the model.
    pub fn new(outcome: Outcome, output: impl Into<String>) -> Self {
        Self {
            outcome,
            output: output.into(),
            whole: None,
            cut_bytes: 0,
            produced: None,
            images: Vec::new(),
            diff: None,
            files: Vec::new(),
            exit_code: None,
            todo: None,
            job: None,
            met: crate::target::sandbox::Met::default(),
            duration_ms: 0,
        }
    }

    /// An end whose output is `produced` with `words` behind it that say more about it.
    fn with_words(outcome: Outcome, produced: String, words: &str) -> Self {
        let facts = protocol::event::Produced::all(&produced);
        Self {
            produced: Some(facts),
            ..Self::new(outcome, produced + words)
        }
    }

    /// Puts words before the output.
    pub(crate) fn preface(&mut self, words: &str) {
        self.output.insert_str(0, words);
        if let Some(produced) = &mut self.produced {
            produced.start += words.len() as u64;
            produced.end += words.len() as u64;
        }
    }

    /// The end of a run that blocks on files.
    async fn of_blocking(work: impl FnOnce() -> Self + Send + 'static) -> Self {
        let failed = |error: ArgumentError| Self::new(Outcome::Error, error.to_string());
        Self::timed(async { blocking(work).await.unwrap_or_else(failed) }).await
    }

    /// The end of a run, with the time it took.
    async fn timed(work: impl Future<Output = Self>) -> Self {
        let begin = Instant::now();
        let mut ended = work.await;
        ended.duration_ms = u64::try_from(begin.elapsed().as_millis()).unwrap_or(u64::MAX);
        ended
    }

    /// What the call was judged by is not so any more.
    pub(crate) fn changed_since_approved() -> Self {
        Self::new(
            Outcome::NotRun,
            "changed_since_approved: the files or the directory this call was judged by have changed since; nothing was \
             done. Look at them again and repeat the call if it is still right.",
        )
    }
}

/// Runs work that blocks on files. A panic in it is an error of the call, not of the daemon.
async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, ArgumentError> {
    let failed = |error: tokio::task::JoinError| ArgumentError::new(format!("the tool failed inside: {error}"));
    tokio::task::spawn_blocking(work).await.map_err(failed)
}
