//! `bash`: runs a shell command, to its end or in the background as a job. No state carries over from one call to the next.

use std::sync::LazyLock;
use std::time::Duration;

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use super::digest::{CallDigest, agrees};
use super::jobs::{MAX_JOBS, NoRoom};
use super::output::MODEL_LIMIT_BYTES;
use super::supervise::{Limit, Waited, Watch};
use super::{Action, ArgumentError, Ended, Inspected, Outcome, Place, RunContext, Spec, Tool};
use super::{arguments, blocking, duration, scripts};
use crate::policy::Facts;
use crate::policy::facts::{Access, CommandFact};
use crate::policy::shell::{operands, reach};
use crate::target::sandbox::{Confinement, Mode};
use crate::target::{GuardPlan, Resolved, Running, TargetError, is_personal};

/// How long a command may run when the call does not say.
const TIMEOUT_DEFAULT: Duration = Duration::from_secs(120);

/// How long a command may run at most.
const TIMEOUT_LIMIT: Duration = Duration::from_secs(600);

/// Bytes of a command: below what the kernel takes as one argument, and far beyond what a person reads.
const COMMAND_LIMIT_BYTES: usize = 100_000;

/// Runs a shell command.
pub(super) struct Bash;

/// Arguments of `bash`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// The command line, run by `bash -c`. Standard input is empty.
    #[schemars(length(min = 1, max = 100_000))]
    command: String,
    /// Directory to run it in; the session's working directory if left out.
    cwd: Option<String>,
    /// Ask the person to let this one command run outside the sandbox, as a call of its own. Only when the sandbox
    /// refused what the task needs, or clearly will (a push with the person's keys, a file outside the project).
    outside_sandbox: Option<bool>,
    /// Milliseconds until the command is ended, 120000 if left out; without a limit in the background.
    #[schemars(range(min = 1, max = 600_000))]
    timeout_ms: Option<u64>,
    /// true: wait for its end. false: start it in the background. A duration up to "10m": wait so long, then let it go on in
    /// the background. true if left out.
    #[schemars(with = "Option<WaitForm>")]
    wait: Option<Value>,
}

/// What `wait` may be, for the schema.
#[derive(JsonSchema)]
#[serde(untagged)]
#[expect(dead_code, reason = "only its schema is used")]
enum WaitForm {
    Plain(bool),
    Duration(String),
}

/// How long the call waits for its command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wait {
    ToTheEnd,
    For(Duration),
    Not,
}

impl Wait {
    fn parse(value: Option<&Value>) -> Result<Self, ArgumentError> {
        match value {
            None | Some(Value::Null | Value::Bool(true)) => Ok(Self::ToTheEnd),
            Some(Value::Bool(false)) => Ok(Self::Not),
            Some(Value::String(text)) => duration::parse(text)
                .map(Self::For)
                .map_err(|why| ArgumentError::at("wait", why)),
            Some(_) => Err(ArgumentError::at(
                "wait",
                "expected true, false or a duration such as \"90s\"",
            )),
        }
    }
}

impl Wait {
    /// When the command is let go on in the background; none: never.
    fn background_after_ms(self) -> Option<u64> {
        match self {
            Self::ToTheEnd => None,
            Self::For(patience) => Some(u64::try_from(patience.as_millis()).unwrap_or(u64::MAX)),
            Self::Not => Some(0),
        }
    }
}

static SPEC: LazyLock<Spec> = LazyLock::new(|| Spec {
    name: "bash",
    description: format!(
        "Runs a shell command and returns its output (standard output and error interleaved), exit code and duration. \
         Each call starts afresh: `cd` and variables do not carry over; use `cwd` and one command line. What it leaves \
         running with `&` is killed at its end: for a server or a long build use `wait: false`, which answers with a job for \
         job_output and job_kill (at most {MAX_JOBS} at once), or a `wait` such as \"2m\". Nothing can be typed into it. It is \
         ended after `timeout_ms` (default 120000, at most 600000). Of more than {MODEL_LIMIT_BYTES} bytes of output you see \
         the beginning and the end. Commands may run in a sandbox that lets them write in the project, in temporary \
         directories and in build caches only, and hides keys; set `outside_sandbox` to ask for more."
    ),
    schema: arguments::schema::<Arguments>(),
    writes: true,
});

/// The arguments after they were checked against the target.
struct Checked {
    arguments: Arguments,
    cwd: Resolved,
    limit: Limit,
    wait: Wait,
}

impl Arguments {
    /// The sandbox of the call, which would be `judged` if it did not ask to leave it. It asked a person for that.
    fn confinement(&self, judged: Confinement) -> Confinement {
        if self.outside_sandbox == Some(true) {
            Confinement::Outside
        } else {
            judged
        }
    }
}

impl Checked {
    /// What these arguments mean now. A call that runs works on the very value it was held against its verdict with:
    /// a second look could follow a link that was not there at the first.
    fn new(arguments: &Value, place: &Place) -> Result<Self, ArgumentError> {
        let arguments: Arguments = arguments::parse(arguments)?;
        if arguments.command.trim().is_empty() {
            return Err(ArgumentError::at("command", "is empty"));
        }
        if arguments.command.len() > COMMAND_LIMIT_BYTES {
            let text = format!(
                "has {} bytes, at most {COMMAND_LIMIT_BYTES} are allowed; write a script file instead",
                arguments.command.len()
            );
            return Err(ArgumentError::at("command", text));
        }
        if arguments.command.contains('\0') {
            return Err(ArgumentError::at("command", "holds a NUL character"));
        }
        let wait = Wait::parse(arguments.wait.as_ref())?;
        let limit = match (arguments.timeout_ms.map(Duration::from_millis), wait) {
            (Some(timeout), _) if timeout.is_zero() || timeout > TIMEOUT_LIMIT => {
                return Err(ArgumentError::at("timeout_ms", "must be from 1 to 600000"));
            }
            (Some(timeout), _) => Limit::After(timeout),
            (None, Wait::ToTheEnd) => Limit::After(TIMEOUT_DEFAULT),
            (None, _) => Limit::Never,
        };
        let cwd = place.target.resolve(arguments.cwd.as_deref().unwrap_or("."));
        let cwd = cwd.map_err(|error| ArgumentError::at("cwd", error))?;
        Ok(Self {
            arguments,
            cwd,
            limit,
            wait,
        })
    }
}

/// The arguments as they are now, and what is to be judged of them.
fn looked(arguments: &Value, place: &Place) -> Result<(Checked, Inspected), ArgumentError> {
    let checked = Checked::new(arguments, place)?;
    let inspected = inspected(arguments, &checked, place)?;
    Ok((checked, inspected))
}

fn inspected(arguments: &Value, checked: &Checked, place: &Place) -> Result<Inspected, ArgumentError> {
    let (parsed, cwd) = (&checked.arguments, &checked.cwd);
    let cwd_id = place
        .target
        .directory_id(cwd)
        .map_err(|error| ArgumentError::at("cwd", error))?;
    let mut digest = CallDigest::new("bash", arguments, cwd_id);
    for (name, value) in place.target.environment().iter().filter(|(name, _)| !is_personal(name)) {
        digest = digest.with("variable", name.as_bytes()).with("value", value.as_bytes());
    }
    let scripts = scripts::named_in(&parsed.command, &cwd.path, &place.target);
    for (path, hash) in &scripts {
        digest = digest
            .with_content("script", path.as_bytes())
            .with_content("hash", hash.as_bytes());
    }
    let outside_sandbox = parsed.confinement(Confinement::Session) == Confinement::Outside
        && place.target.sandbox().effective_mode() != Mode::Off;
    digest = digest.with(
        "sandbox mode",
        place.target.sandbox().effective_mode().as_str().as_bytes(),
    );
    let mut command = CommandFact {
        outside_sandbox,
        scripts,
        ..command_fact(checked, place)
    };
    command.operands = place.target.operands(&operands(&command), &cwd.path);
    place.target.look_for_programs(&mut command);
    let paths = parsed.cwd.iter().map(|_| cwd.fact(Access::Read)).collect();
    let roots = command.roots.clone();
    Ok(Inspected {
        facts: Facts {
            tool: "bash".into(),
            writes: true,
            paths,
            command: Some(command),
            host: None,
            roots,
        },
        action: Action {
            command: Some(parsed.command.clone()),
            cwd: Some(cwd.path.display().to_string()),
            background_after_ms: checked.wait.background_after_ms(),
            timeout_ms: parsed.timeout_ms,
            ..Action::default()
        },
        digest: digest.finish(),
        writes: true,
    })
}

/// The command line, and where it would run.
fn command_fact(checked: &Checked, place: &Place) -> CommandFact {
    CommandFact {
        text: checked.arguments.command.clone(),
        cwd: checked.cwd.path.clone(),
        roots: place.target.standing_roots(),
        // Without HOME a shell asks the user database what `~` is, so the guard has to know it too.
        home: place
            .target
            .home()
            .map(Into::into)
            .or_else(|| protocol::place::home().ok()),
        ..CommandFact::default()
    }
}

#[async_trait]
impl Tool for Bash {
    fn spec(&self) -> &Spec {
        &SPEC
    }

    async fn inspect(&self, arguments: &Value, place: &Place) -> Result<Inspected, ArgumentError> {
        let (arguments, place) = (arguments.clone(), place.clone());
        Ok(blocking(move || looked(&arguments, &place)).await??.1)
    }

    async fn run(&self, arguments: &Value, digest: &str, run: RunContext) -> Ended {
        let (called, place) = (arguments.clone(), run.place.clone());
        let looked = blocking(move || looked(&called, &place)).await;
        let checked = match looked.and_then(|looked| looked) {
            Ok((checked, now)) if agrees(&now.digest, digest) => checked,
            Ok(_) => return Ended::changed_since_approved(),
            Err(error) => return Ended::new(Outcome::NotRun, error.to_string()),
        };
        match (checked.wait, run.place.jobs.room()) {
            // What is waited for at first need not become a job.
            (Wait::ToTheEnd, _) | (Wait::For(_), Err(NoRoom::Closing)) | (_, Ok(())) => {}
            (Wait::For(_) | Wait::Not, Err(no_room)) => return Ended::new(Outcome::NotRun, no_room.to_string()),
        }
        let sandboxed = Sandboxed {
            place: run.place,
            guard: run.guard,
            confinement: checked.arguments.confinement(run.confinement),
        };
        let watch = match sandboxed.start(&checked.arguments.command, &checked.cwd) {
            Ok(running) => Watch::new(running, run.output, checked.limit),
            Err(error) => return Ended::new(Outcome::Error, error.to_string()),
        };
        let waited = match checked.wait {
            Wait::ToTheEnd => Waited::Ended(Box::new(watch.until_ended(run.stop).await)),
            Wait::Not => Waited::Runs(Box::new(watch)),
            Wait::For(patience) => {
                let waited = watch.for_a_while(patience, run.stop.clone()).await;
                match (waited, sandboxed.place.jobs.room()) {
                    // In the background it would end with the daemon, unseen; in its call it may still come to its own end.
                    (Waited::Runs(watch), Err(NoRoom::Closing)) => {
                        Waited::Ended(Box::new(watch.until_ended(run.stop).await))
                    }
                    (waited, _) => waited,
                }
            }
        };
        match waited {
            Waited::Ended(ended) => sandboxed.explain(*ended, &checked).await,
            Waited::Runs(watch) => in_background(&sandboxed.place, &run.call, *watch),
        }
    }
}

/// Where and in which sandbox a command runs.
struct Sandboxed {
    place: Place,
    guard: GuardPlan,
    confinement: Confinement,
}

impl Sandboxed {
    fn start(&self, line: &str, cwd: &Resolved) -> Result<Running, TargetError> {
        self.place
            .target
            .start_confined(&self.guard, line, cwd, self.confinement)
    }

    /// Says after a failure which sandbox the command ran in, and what that kept from it as far as facts tell.
    async fn explain(self, mut ended: Ended, checked: &Checked) -> Ended {
        let Some(words) = self.place.target.sandbox_words(&self.guard, self.confinement) else {
            return ended;
        };
        let met = std::mem::take(&mut ended.met);
        // Who refused a repository knows it, whatever became of the command.
        if ended.outcome != Outcome::Error && met.repositories.is_empty() {
            return ended;
        }
        let command = command_fact(checked, &self.place);
        let confinement = self.confinement;
        let refusal = blocking(move || {
            self.place
                .target
                .refusal(&self.guard, confinement, &reach(&command), met)
        })
        .await;
        let refusal = refusal.ok().flatten().map(|refusal| refusal.text());
        let refusal = refusal.unwrap_or_default();
        ended.output.push_str(&format!("\n[ran in the sandbox ({words})"));
        if !refusal.is_empty() {
            ended.output.push_str(&format!(": {refusal}. If that is why it failed and the task needs it, repeat it once with outside_sandbox: true; a person is asked, and the first run may have had effects"));
        }
        ended.output.push(']');
        ended
    }
}

/// Hands the command over to the session, which goes on with it once the end of this call is recorded.
fn in_background(place: &Place, call: &str, mut watch: Watch) -> Ended {
    let (output, mut produced) = watch.so_far();
    let ran = watch.begin().elapsed();
    let job = match place.jobs.adopt(call, watch) {
        Ok(job) => job,
        // Nobody else starts jobs while this call runs, so this is a second line of defence; the command ends with its watch.
        Err(full) => return Ended::new(Outcome::Error, full.to_string()),
    };
    let line = format!("[goes on in the background as job {job}; job_output shows more, job_kill ends it]");
    let shown = output.trim_end_matches('\n');
    let text = if output.is_empty() {
        line
    } else {
        format!("{shown}\n{line}")
    };
    produced.end = shown.len() as u64;
    Ended {
        produced: Some(produced),
        job: Some(job),
        duration_ms: u64::try_from(ran.as_millis()).unwrap_or(u64::MAX),
        ..Ended::new(Outcome::Ok, text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_schema_says_the_limits_the_code_enforces() {
        let schema = &SPEC.schema["properties"];
        assert_eq!(
            schema["timeout_ms"]["maximum"].as_u64(),
            Some(TIMEOUT_LIMIT.as_millis() as u64)
        );
        assert_eq!(
            schema["command"]["maxLength"].as_u64(),
            Some(COMMAND_LIMIT_BYTES as u64)
        );
    }
}
