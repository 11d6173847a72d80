//! Tells people who do not look: when an approval waits, and when a long turn has ended, and nobody is there who would see it. By
//! the user's own program, and by `notify-send` where the desktop has one.
//!
//! It follows the log as a watching client does, and begins where the log ends: what waited before a start of the daemon was told
//! then. One thing is told after the other; an approval that is settled by then is not told at all.

mod told;

use crate::config::{Book, NotifySettings, When};
use crate::log::{EventLog, PAGE_ROWS, Row, SessionKey};
use crate::session::Registry;
use crate::target::{CommandEnd, CommandEvent, GuardPlan, Target};
use protocol::event::{Event, TurnOutcome};
use protocol::{ApprovalId, SessionId};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use told::Told;

/// What is worth telling.
const KINDS: [&str; 2] = ["approval.requested", "turn.completed"];

/// Time a program gets; then it is killed with all it started.
const LIMIT: Duration = Duration::from_secs(10);

/// The desktop's own program.
const DESKTOP: &str = "notify-send";

/// Follows the log and tells.
pub(crate) struct Notifier {
    pub(crate) registry: Registry,
    pub(crate) book: Arc<Book>,
    /// Where programs run: the root directory, with the listed part of the daemon's environment.
    pub(crate) target: Target,
    pub(crate) guard: GuardPlan,
}

impl Notifier {
    /// Until the log is closed.
    pub(crate) async fn run(self) {
        let log = self.registry.deps().log.clone();
        let mut committed = log.committed_pos();
        let mut cursor = log.head_pos();
        loop {
            let head = *committed.borrow_and_update();
            let rows = match log.after_pos(cursor, PAGE_ROWS, &KINDS).await {
                Ok(rows) => rows,
                Err(error) => {
                    tracing::warn!(%error, "nobody is told what happens from now on");
                    return;
                }
            };
            let more = !rows.is_empty();
            for (key, session, row) in rows {
                cursor = row.pos;
                self.look(&log, key, &SessionId(session), row).await;
            }
            if more {
                continue;
            }
            cursor = cursor.max(head);
            if committed.changed().await.is_err() {
                return;
            }
        }
    }

    async fn look(&self, log: &EventLog, key: SessionKey, session: &SessionId, row: Row) {
        let settings = self.book.now().notify.clone();
        let told = match Event::parse(&row.kind, &row.body) {
            Ok(Some(Event::ApprovalRequested(request))) => {
                self.approval(&settings, session, row.seq, &request.approval).await
            }
            Ok(Some(Event::TurnCompleted(turn))) if turn.outcome != TurnOutcome::Interrupted => {
                let begun = turn.turn.0.strip_prefix('t').and_then(|seq| seq.parse::<u64>().ok());
                let begun = match begun {
                    Some(seq) => log.read(key, seq.saturating_sub(1), 1).await.ok(),
                    None => None,
                };
                let begun = begun.and_then(|rows| rows.first().map(|row| row.at_ms));
                let took_ms = begun.and_then(|begun| u64::try_from(row.at_ms - begun).ok());
                self.turn(&settings, session, turn, took_ms.unwrap_or(0))
            }
            _ => None,
        };
        if let Some(told) = told {
            tokio::join!(self.by_program(&settings, &told), self.by_desktop(&settings, &told));
        }
    }

    async fn approval(
        &self,
        settings: &NotifySettings,
        session: &SessionId,
        seq: u64,
        id: &ApprovalId,
    ) -> Option<Told> {
        let handle = self.registry.living_one(session)?;
        let attended = handle.presence.can_answer() || self.registry.deps().answerers.can_answer();
        if attended && settings.when == When::Alone {
            return None;
        }
        let mut live = handle.live();
        // The log has an event a moment before its session shows it.
        while live.borrow_and_update().head.0 < seq {
            handle.changed(&mut live).await.ok()?;
        }
        let snapshot = Arc::clone(&live.borrow().snapshot);
        let view = snapshot.approvals.iter().find(|view| view.id == *id)?;
        Some(Told::Approval(Box::new(view.clone())))
    }

    fn turn(
        &self,
        settings: &NotifySettings,
        session: &SessionId,
        turn: protocol::event::TurnCompleted,
        took_ms: u64,
    ) -> Option<Told> {
        if !settings.attention.is_long(took_ms) {
            return None;
        }
        let handle = self.registry.living_one(session);
        // Whoever waits for the answer sees it come, a script too.
        let attended = handle
            .as_ref()
            .is_some_and(|handle| !handle.presence.clients().is_empty());
        if attended && settings.when == When::Alone {
            return None;
        }
        let snapshot = handle.map(|handle| Arc::clone(&handle.live().borrow().snapshot));
        Some(Told::turn(session, snapshot.as_deref(), turn, took_ms))
    }

    async fn by_program(&self, settings: &NotifySettings, told: &Told) {
        if settings.command.is_empty() {
            return;
        }
        let line = settings.command.iter().map(|word| at_home(word)).collect::<Vec<_>>();
        if let Err(reason) = self.start(&line, told.json().as_bytes()).await {
            tracing::warn!(
                program = line.first(),
                reason,
                "the notify command of the configuration"
            );
        }
    }

    async fn by_desktop(&self, settings: &NotifySettings, told: &Told) {
        if !settings.desktop || !self.has(DESKTOP) {
            return;
        }
        let (title, body) = told.text();
        let line = [DESKTOP, "--app-name=agentd", "--", &title, &body].map(str::to_owned);
        if let Err(reason) = self.start(&line, &[]).await {
            tracing::info!(reason, "notify-send");
        }
    }

    /// Whether a program of this name is on the path of what is started here.
    fn has(&self, program: &str) -> bool {
        let path = self.target.environment().get("PATH").map_or("", String::as_str);
        path.split(':')
            .map(Path::new)
            .any(|dir| dir.is_absolute() && dir.join(program).is_file())
    }

    async fn start(&self, line: &[String], input: &[u8]) -> Result<(), String> {
        let place = self.target.resolve("/").map_err(|error| error.to_string())?;
        let started = self.target.start_program(&self.guard, line, input, &place).await;
        let mut running = started.map_err(|error| format!("did not start: {error}"))?;
        let end = async {
            loop {
                // What it writes is nobody's, and read so that it does not wait.
                if let CommandEvent::Ended(end) = running.next().await {
                    return end;
                }
            }
        };
        match tokio::time::timeout(LIMIT, end).await {
            Ok(CommandEnd::Exited(0)) => Ok(()),
            Ok(CommandEnd::Exited(code)) => Err(format!("ended with exit code {code}")),
            Ok(CommandEnd::Signalled(signal)) => Err(format!("was ended by signal {signal}")),
            Ok(CommandEnd::Failed(reason)) => Err(format!("failed: {reason}")),
            Err(_) => Err(format!("was killed after {} s", LIMIT.as_secs())),
        }
    }
}

/// A word of the configuration with the home directory in place of `~/`.
fn at_home(word: &str) -> String {
    match (word.strip_prefix("~/"), protocol::place::home()) {
        (Some(rest), Ok(home)) => home.join(rest).display().to_string(),
        _ => word.to_owned(),
    }
}
