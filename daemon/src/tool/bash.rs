//! `bash`: runs a shell command to its end. No state carries over from one call to the next.

use std::sync::LazyLock;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use super::digest::{CallDigest, agrees};
use super::output::{Decoder, Kept, MODEL_LIMIT_BYTES};
use super::{
    Action, ArgumentError, Ended, Inspected, Outcome, OutputSink, Place, RunContext, Spec, StopLevel, StopSignal, Tool,
};
use super::{arguments, blocking, scripts};
use crate::policy::Facts;
use crate::policy::facts::{Access, CommandFact};
use crate::policy::shell::operands;
use crate::target::sandbox::{Confinement, Mode};
use crate::target::{CommandEnd, CommandEvent, GuardPlan, Resolved, Running, TargetError, is_personal};

/// How long a command may run when the call does not say.
const TIMEOUT_DEFAULT: Duration = Duration::from_secs(120);

/// How long a command may run at most.
const TIMEOUT_LIMIT: Duration = Duration::from_secs(600);

/// Bytes of a command: below what the kernel takes as one argument, and far beyond what a person reads.
const COMMAND_LIMIT_BYTES: usize = 100_000;

/// From SIGTERM to SIGKILL when the time is over. When a person stops a call the session decides.
const KILL_AFTER: Duration = Duration::from_secs(2);

/// From the order to kill until the guard itself is killed, which happens only where it no longer obeys.
const FORCE_AFTER: Duration = Duration::from_secs(3);

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
    /// Milliseconds until the command is ended, 120000 if left out.
    #[schemars(range(min = 1, max = 600_000))]
    timeout_ms: Option<u64>,
}

static SPEC: LazyLock<Spec> = LazyLock::new(|| Spec {
    name: "bash",
    description: format!(
        "Runs a shell command and returns its output (standard output and error interleaved), exit code and duration. \
         Each call starts afresh: `cd`, variables and background processes do not carry over; use `cwd` and one command \
         line. Nothing can be typed into it. It is ended after `timeout_ms` (default 120000, at most 600000). Of more than \
         {MODEL_LIMIT_BYTES} bytes of output you see the beginning and the end. Commands may run in a sandbox that lets them \
         write in the project, in temporary directories and in build caches only, and hides keys; set `outside_sandbox` to \
         ask for more."
    ),
    schema: arguments::schema::<Arguments>(),
    writes: true,
});

/// The arguments after they were checked against the target.
struct Checked {
    arguments: Arguments,
    cwd: Resolved,
    timeout: Duration,
}

impl Arguments {
    /// The sandbox of the call, which would be `judged` if it did not ask to leave it. It asked a person for that.
    fn confinement(&self, judged: Confinement) -> Confinement {
        if self.outside_sandbox == Some(true) { Confinement::Outside } else { judged }
    }
}

impl Checked {
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
        let timeout = arguments.timeout_ms.map_or(TIMEOUT_DEFAULT, Duration::from_millis);
        if timeout.is_zero() || timeout > TIMEOUT_LIMIT {
            return Err(ArgumentError::at("timeout_ms", "must be from 1 to 600000"));
        }
        let cwd = place.target.resolve(arguments.cwd.as_deref().unwrap_or("."));
        let cwd = cwd.map_err(|error| ArgumentError::at("cwd", error))?;
        Ok(Self {
            arguments,
            cwd,
            timeout,
        })
    }
}

fn inspected(arguments: &Value, place: &Place) -> Result<Inspected, ArgumentError> {
    let Checked {
        arguments: parsed, cwd, ..
    } = Checked::new(arguments, place)?;
    let cwd_id = place
        .target
        .directory_id(&cwd)
        .map_err(|error| ArgumentError::at("cwd", error))?;
    let mut digest = CallDigest::new("bash", arguments, cwd_id);
    for (name, value) in place.target.environment().iter().filter(|(name, _)| !is_personal(name)) {
        digest = digest.with("variable", name.as_bytes()).with("value", value.as_bytes());
    }
    for (path, hash) in scripts::named_in(&parsed.command, &cwd.path, &place.target) {
        digest = digest
            .with_content("script", path.as_bytes())
            .with_content("hash", hash.as_bytes());
    }
    let outside_sandbox = parsed.confinement(Confinement::Session) == Confinement::Outside
        && place.target.sandbox().effective_mode() != Mode::Off;
    digest = digest.with("sandbox mode", place.target.sandbox().effective_mode().as_str().as_bytes());
    let mut command = CommandFact {
        text: parsed.command.clone(),
        cwd: cwd.path.clone(),
        roots: place.target.roots().iter().map(|root| root.path.clone()).collect(),
        home: place.target.home().map(Into::into),
        outside_sandbox,
        ..CommandFact::default()
    };
    command.operands = place.target.operands(&operands(&command), &cwd.path);
    place.target.look_for_programs(&mut command);
    let paths = parsed.cwd.iter().map(|_| cwd.fact(Access::Read)).collect();
    Ok(Inspected {
        facts: Facts {
            tool: "bash".into(),
            writes: true,
            paths,
            command: Some(command),
            host: None,
        },
        action: Action {
            command: Some(parsed.command),
            path: Some(cwd.path.display().to_string()),
            ..Action::default()
        },
        digest: digest.finish(),
        writes: true,
    })
}

#[async_trait]
impl Tool for Bash {
    fn spec(&self) -> &Spec {
        &SPEC
    }

    async fn inspect(&self, arguments: &Value, place: &Place) -> Result<Inspected, ArgumentError> {
        let (arguments, place) = (arguments.clone(), place.clone());
        blocking(move || inspected(&arguments, &place)).await?
    }

    async fn run(&self, arguments: &Value, digest: &str, run: RunContext) -> Ended {
        match self.inspect(arguments, &run.place).await {
            Ok(now) if agrees(&now.digest, digest) => {}
            Ok(_) => return Ended::changed_since_approved(),
            Err(error) => return Ended::new(Outcome::NotRun, error.to_string()),
        }
        let checked = match Checked::new(arguments, &run.place) {
            Ok(checked) => checked,
            Err(error) => return Ended::new(Outcome::NotRun, error.to_string()),
        };
        let begin = Instant::now();
        let sandboxed = Sandboxed {
            place: run.place,
            guard: run.guard,
            confinement: checked.arguments.confinement(run.confinement),
        };
        let line = &checked.arguments.command;
        let started = sandboxed.start(line, &checked.cwd);
        let mut ended = match started {
            Ok(running) => {
                let ended = Watch::new(running, run.output, checked.timeout).until_ended(run.stop).await;
                sandboxed.explain(ended, &checked).await
            }
            Err(error) => Ended::new(Outcome::Error, error.to_string()),
        };
        ended.duration_ms = u64::try_from(begin.elapsed().as_millis()).unwrap_or(u64::MAX);
        ended
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
        self.place.target.start_confined(&self.guard, line, cwd, self.confinement)
    }

    /// Says after a failure which sandbox the command ran in, and what that kept from it as far as facts tell.
    async fn explain(self, mut ended: Ended, checked: &Checked) -> Ended {
        let Some(words) = self.place.target.sandbox_words(&self.guard, self.confinement) else { return ended };
        if ended.outcome != Outcome::Error {
            return ended;
        }
        let (cwd, line, output) = (checked.cwd.clone(), checked.arguments.command.clone(), ended.output.clone());
        let confinement = self.confinement;
        let refusal = blocking(move || self.place.target.refusal(&self.guard, confinement, &cwd, &line, &output)).await;
        let refusal = refusal.ok().flatten().map(|refusal| refusal.text()).unwrap_or_default();
        ended.output.push_str(&format!("\n[ran in the sandbox ({words})"));
        if !refusal.is_empty() {
            ended.output.push_str(&format!(": {refusal}. If that is why it failed and the task needs it, repeat it once with outside_sandbox: true; a person is asked, and the first run may have had effects"));
        }
        ended.output.push(']');
        ended
    }
}

/// A running command and what is known of it so far.
struct Watch {
    running: Running,
    sink: Box<dyn OutputSink>,
    decoder: Decoder,
    kept: Kept,
    begin: Instant,
    /// Why it is being ended, once it is.
    ending: Option<Outcome>,
    next: Next,
    next_at: tokio::time::Instant,
}

/// What happens to the command when the time in [`Watch::next_at`] comes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Next {
    TimeOut,
    Kill,
    Force,
    Nothing,
}

impl Watch {
    fn new(running: Running, sink: Box<dyn OutputSink>, timeout: Duration) -> Self {
        Self {
            running,
            sink,
            decoder: Decoder::default(),
            kept: Kept::default(),
            begin: Instant::now(),
            ending: None,
            next: Next::TimeOut,
            next_at: tokio::time::Instant::now() + timeout,
        }
    }

    async fn until_ended(mut self, mut stop: StopSignal) -> Ended {
        let mut level = StopLevel::Run;
        loop {
            tokio::select! {
                event = self.running.next() => match event {
                    CommandEvent::Output(bytes) => self.output(&bytes),
                    CommandEvent::Ended(end) => return self.ended(&end),
                },
                raised = raised_above(&mut stop, level) => {
                    level = raised;
                    self.stop(level).await;
                }
                () = tokio::time::sleep_until(self.next_at), if self.next != Next::Nothing => self.escalate().await,
            }
        }
    }

    fn output(&mut self, bytes: &[u8]) {
        let text = self.decoder.decode(bytes);
        self.push(&text);
    }

    fn push(&mut self, text: &str) {
        if !text.is_empty() {
            let fit = self.sink.push(text);
            self.kept.push(&fit);
        }
    }

    async fn stop(&mut self, level: StopLevel) {
        self.ending = self.ending.or(Some(Outcome::Stopped));
        match level {
            StopLevel::Run => {}
            StopLevel::Stop => self.running.terminate().await,
            StopLevel::Kill => self.kill().await,
        }
    }

    async fn escalate(&mut self) {
        match self.next {
            Next::TimeOut => {
                self.ending = self.ending.or(Some(Outcome::TimedOut));
                self.running.terminate().await;
                self.plan(Next::Kill, KILL_AFTER);
            }
            Next::Kill => self.kill().await,
            Next::Force => {
                self.running.force().await;
                self.next = Next::Nothing;
            }
            Next::Nothing => {}
        }
    }

    async fn kill(&mut self) {
        self.running.kill().await;
        self.plan(Next::Force, FORCE_AFTER);
    }

    fn plan(&mut self, next: Next, after: Duration) {
        self.next = next;
        self.next_at = tokio::time::Instant::now() + after;
    }

    fn ended(mut self, end: &CommandEnd) -> Ended {
        let rest = self.decoder.finish();
        self.push(rest);
        self.kept.push(&self.sink.finish());
        let outcome = self.ending.unwrap_or(match end {
            CommandEnd::Exited(0) => Outcome::Ok,
            CommandEnd::Exited(_) | CommandEnd::Signalled(_) | CommandEnd::Failed(_) => Outcome::Error,
        });
        let mut text = self.kept.for_model();
        if text.is_empty() {
            text.push_str("(no output)");
        }
        if !text.ends_with('\n') {
            text.push('\n');
        }
        text.push_str(&last_line(outcome, end, self.begin.elapsed()));
        let mut ended = Ended::new(outcome, text);
        ended.whole = self.kept.whole();
        ended.cut_bytes = self.kept.dropped();
        ended.exit_code = match end {
            CommandEnd::Exited(code) => Some(*code),
            _ => None,
        };
        ended
    }
}

/// Waits until the signal is more urgent than `level`. A closed channel means that nobody wants the call any more.
async fn raised_above(stop: &mut StopSignal, level: StopLevel) -> StopLevel {
    if level == StopLevel::Kill {
        return std::future::pending().await;
    }
    match stop.wait_for(|asked| *asked > level).await {
        Ok(asked) => *asked,
        Err(_) => StopLevel::Kill,
    }
}

fn last_line(outcome: Outcome, end: &CommandEnd, took: Duration) -> String {
    let seconds = format!("{:.1} s", took.as_secs_f64());
    let how = match end {
        CommandEnd::Exited(code) => format!("exit code {code}"),
        CommandEnd::Signalled(9) if outcome == Outcome::Error => {
            "killed by SIGKILL, perhaps by the kernel for want of memory".to_string()
        }
        CommandEnd::Signalled(number) => format!("killed by {}", signal_name(*number)),
        CommandEnd::Failed(why) => format!("failed: {why}"),
    };
    match outcome {
        Outcome::TimedOut => format!("[timed out after {seconds}, {how}; the output is what came until then]"),
        Outcome::Stopped => format!("[stopped after {seconds}, {how}; the output is what came until then]"),
        _ => format!("[{how}, {seconds}]"),
    }
}

fn signal_name(number: i32) -> String {
    let name = match number {
        1 => "SIGHUP",
        2 => "SIGINT",
        3 => "SIGQUIT",
        4 => "SIGILL",
        6 => "SIGABRT",
        8 => "SIGFPE",
        9 => "SIGKILL",
        11 => "SIGSEGV",
        13 => "SIGPIPE",
        14 => "SIGALRM",
        15 => "SIGTERM",
        _ => return format!("signal {number}"),
    };
    name.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_line_says_how_it_ended_and_how_long_it_took() {
        let took = Duration::from_millis(1230);
        assert_eq!(
            last_line(Outcome::Ok, &CommandEnd::Exited(0), took),
            "[exit code 0, 1.2 s]"
        );
        assert_eq!(
            last_line(Outcome::Error, &CommandEnd::Signalled(11), took),
            "[killed by SIGSEGV, 1.2 s]"
        );
        assert!(last_line(Outcome::Error, &CommandEnd::Signalled(9), took).contains("memory"));
        assert!(
            last_line(Outcome::TimedOut, &CommandEnd::Signalled(15), took)
                .starts_with("[timed out after 1.2 s, killed by SIGTERM;")
        );
    }

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
