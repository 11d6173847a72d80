//! What model calls may cost: a notice as a limit comes near, and the question whether to go on when it is reached. One yes is good
//! for the turn it was given in.

use super::Plan;
use protocol::event::{GoOnLimit, NoticeAdded, NoticeLevel};

/// Percent of a limit at which a person is told.
const NOTICE_PERCENT: f64 = 80.0;

/// Code of the notice that a session nears its limit.
pub(in crate::session) const COST_SESSION: &str = "cost_session";

/// Code of the notice that all sessions of a day near theirs.
pub(in crate::session) const COST_DAY: &str = "cost_day";

/// What may be spent, in US dollars, and what all sessions have spent today.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Budget {
    pub(crate) per_session: Option<f64>,
    pub(crate) per_day: Option<f64>,
    pub(crate) today: f64,
}

impl Plan<'_> {
    /// Asks whether the next model call may be made, if a limit is reached and nobody has said so in this turn; whether it asked.
    pub(super) fn asks_about_cost(&mut self) -> bool {
        let allowed = self.state.turn.as_ref().is_none_or(|turn| turn.cost_allowed);
        let Some(reason) = self.over_budget().filter(|_| !allowed) else {
            return false;
        };
        self.ask_to_go_on(GoOnLimit::Cost, reason);
        true
    }

    fn over_budget(&self) -> Option<String> {
        let Budget {
            per_session,
            per_day,
            today,
        } = self.context.budget;
        let own = self.state.cost.unwrap_or(0.0);
        let session = per_session
            .filter(|limit| own >= *limit)
            .map(|limit| format!("this session has cost ${own:.2} of its ${limit:.2}; go on?"));
        let day = per_day
            .filter(|limit| today >= *limit)
            .map(|limit| format!("all sessions have cost ${today:.2} of the day's ${limit:.2}; go on?"));
        session.or(day)
    }

    /// Says, once for each limit, that it comes near. `spent` is what the reply cost that is being recorded.
    pub(super) fn note_cost(&mut self, spent: Option<f64>) {
        let Budget {
            per_session,
            per_day,
            today,
        } = self.context.budget;
        let near = |cost: f64, limit: &f64| cost * 100.0 >= limit * NOTICE_PERCENT;
        let own = self.state.cost.unwrap_or(0.0);
        let session = per_session.filter(|limit| near(own, limit)).map(|limit| {
            let text = format!("this session nears its limit of ${limit:.2} (cost_per_session_usd in [limits])");
            (COST_SESSION, self.state.session_cost_noticed.clone(), text)
        });
        let today = today + spent.unwrap_or(0.0);
        let day = per_day.filter(|limit| near(today, limit)).map(|limit| {
            let date = self.context.at.to_string();
            let date = date.get(..10).unwrap_or_default();
            let text = format!("all sessions of {date} near the limit of ${limit:.2} (cost_per_day_usd in [limits])");
            (COST_DAY, self.state.day_cost_noticed.clone(), text)
        });
        for (code, said, text) in session.into_iter().chain(day) {
            if said.as_ref() != Some(&text) {
                self.emit(NoticeAdded {
                    code: code.to_owned(),
                    level: NoticeLevel::Warning,
                    text,
                });
            }
        }
    }
}
