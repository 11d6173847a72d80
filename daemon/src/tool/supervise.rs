//! A command that runs: its output kept and passed on, its time watched, its end told. The same value serves a call that waits
//! for its command and a job that does not; the first can become the second.

use std::time::{Duration, Instant};

use super::output::{Decoder, Kept};
use super::{Ended, Outcome, OutputSink, StopLevel, StopSignal};
use crate::target::{CommandEnd, CommandEvent, Running};
use protocol::event::Produced;

/// From SIGTERM to SIGKILL when the time is over. When a person stops a call the session decides.
const KILL_AFTER: Duration = Duration::from_secs(2);

/// From the order to kill until the guard itself is killed, which happens only where it no longer obeys.
const FORCE_AFTER: Duration = Duration::from_secs(3);

/// Whether a command's time is over some day.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Limit {
    After(Duration),
    Never,
}

/// How a wait of a bounded time ended.
pub(super) enum Waited {
    Ended(Box<Ended>),
    /// The command goes on.
    Runs(Box<Watch>),
}

/// A running command and what is known of it so far.
pub(super) struct Watch {
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
    pub(super) fn new(running: Running, sink: Box<dyn OutputSink>, limit: Limit) -> Self {
        let now = tokio::time::Instant::now();
        let (next, next_at) = match limit {
            Limit::After(timeout) => (Next::TimeOut, now + timeout),
            Limit::Never => (Next::Nothing, now),
        };
        Self {
            running,
            sink,
            decoder: Decoder::default(),
            kept: Kept::default(),
            begin: Instant::now(),
            ending: None,
            next,
            next_at,
        }
    }

    /// Goes on to the end.
    pub(super) async fn until_ended(mut self, mut stop: StopSignal) -> Ended {
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

    /// Goes on to the end, but no longer than `patience` while nobody asks it to stop.
    pub(super) async fn for_a_while(mut self, patience: Duration, stop: StopSignal) -> Waited {
        let until = tokio::time::Instant::now() + patience;
        let mut asked = stop.clone();
        loop {
            tokio::select! {
                event = self.running.next() => match event {
                    CommandEvent::Output(bytes) => self.output(&bytes),
                    CommandEvent::Ended(end) => return Waited::Ended(Box::new(self.ended(&end))),
                },
                _ = raised_above(&mut asked, StopLevel::Run) => {
                    return Waited::Ended(Box::new(self.until_ended(stop).await));
                }
                () = tokio::time::sleep_until(self.next_at), if self.next != Next::Nothing => self.escalate().await,
                () = tokio::time::sleep_until(until) => return Waited::Runs(Box::new(self)),
            }
        }
    }

    /// What the model sees of the output so far, and how much that is of.
    pub(super) fn so_far(&mut self) -> (String, Produced) {
        let text = self.kept.for_model();
        let produced = self.kept.produced(&text);
        (text, produced)
    }

    /// From now on its output goes to `sink`.
    pub(super) fn redirect(&mut self, sink: Box<dyn OutputSink>) {
        // What one sink holds back may be completed by what comes to the next.
        let held = self.sink.finish();
        self.sink = sink;
        self.push(&held);
    }

    /// When it was started.
    pub(super) fn begin(&self) -> Instant {
        self.begin
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
        let produced = self.kept.produced(&text);
        if text.is_empty() {
            text.push_str("(no output)");
        }
        if !text.ends_with('\n') {
            text.push('\n');
        }
        text.push_str(&last_line(outcome, end, self.begin.elapsed()));
        let mut ended = Ended::new(outcome, text);
        ended.produced = Some(produced);
        ended.duration_ms = u64::try_from(self.begin.elapsed().as_millis()).unwrap_or(u64::MAX);
        ended.whole = self.kept.whole();
        ended.cut_bytes = self.kept.dropped();
        ended.exit_code = match end {
            CommandEnd::Exited(code) => Some(*code),
            _ => None,
        };
        ended.met = self.running.met().clone();
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
}
