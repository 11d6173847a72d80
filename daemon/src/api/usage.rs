//! `session.usage`: what model calls used, summed up from the log.

use super::Api;
use super::client::Client;
use crate::log::{self, SessionKey, SpentBy};
use crate::session::storage;
use protocol::method::{DaySpent, ModelSpent, SessionSpent, Spent, TurnSpent, UsageAnswer, UsageParams};
use protocol::{Event, RpcError, SessionId, Time};
use std::sync::Arc;

/// Turns of one session that are listed.
const TURNS: usize = 50;

pub(super) async fn usage(api: Arc<Api>, _: Arc<Client>, params: UsageParams) -> Result<UsageAnswer, RpcError> {
    let row = match params.session {
        Some(text) => Some(api.find(&text, None).await?),
        None => None,
    };
    let key = row.as_ref().map(|row| row.key);
    let (sessions, turns) = match key {
        Some(key) => (Vec::new(), turns(&api, key).await?),
        None => (sessions(&api).await?, Vec::new()),
    };
    let mut total = sums(&api, key, SpentBy::Nothing).await?;
    Ok(UsageAnswer {
        session: row.map(|row| SessionId(row.id)),
        total: total.pop().map(|(_, spent)| spent).unwrap_or_default(),
        days: named(sums(&api, key, SpentBy::Day).await?, |day, spent| DaySpent {
            day,
            spent,
        }),
        models: named(sums(&api, key, SpentBy::Model).await?, by_model),
        sessions,
        turns,
    })
}

/// The sums with their names; what has none is left out.
fn named<T>(sums: Vec<(String, Spent)>, make: impl Fn(String, Spent) -> T) -> Vec<T> {
    sums.into_iter()
        .filter(|(name, _)| !name.is_empty())
        .map(|(name, spent)| make(name, spent))
        .collect()
}

fn by_model(name: String, spent: Spent) -> ModelSpent {
    let (profile, model) = name.split_once(' ').unwrap_or((&name, ""));
    ModelSpent {
        profile: profile.to_owned(),
        model: model.to_owned(),
        spent,
    }
}

async fn sums(api: &Api, session: Option<SessionKey>, by: SpentBy) -> Result<Vec<(String, Spent)>, RpcError> {
    let sums = api
        .registry
        .deps()
        .log
        .spent(session, by)
        .await
        .map_err(|error| storage(&error))?;
    let told = |sum: log::Spent| {
        let log::Spent {
            group,
            calls,
            failed,
            usage,
            cost,
            unpriced,
        } = sum;
        (
            group,
            Spent {
                calls,
                failed,
                usage,
                cost,
                unpriced,
            },
        )
    };
    Ok(sums.into_iter().map(told).collect())
}

async fn sessions(api: &Api) -> Result<Vec<SessionSpent>, RpcError> {
    let mut sessions = Vec::new();
    for (id, spent) in sums(api, None, SpentBy::Session).await? {
        let row = api
            .registry
            .deps()
            .log
            .session(&id)
            .await
            .map_err(|error| storage(&error))?;
        let (name, title) = row.map_or((None, None), |row| (row.name, row.title));
        sessions.push(SessionSpent {
            session: SessionId(id),
            name,
            title,
            spent,
        });
    }
    Ok(sessions)
}

/// The session's last turns, the newest first.
async fn turns(api: &Api, session: SessionKey) -> Result<Vec<TurnSpent>, RpcError> {
    let rows = api
        .registry
        .deps()
        .log
        .last_of_kind(session, "turn.completed", TURNS)
        .await
        .map_err(|error| storage(&error))?;
    let turn = |row: log::Row| match Event::parse(&row.kind, &row.body) {
        Ok(Some(Event::TurnCompleted(turn))) => Some(TurnSpent {
            turn: turn.turn,
            at: Time(row.at_ms),
            outcome: turn.outcome,
            steps: turn.steps,
            usage: turn.usage,
            cost: turn.cost,
        }),
        _ => None,
    };
    Ok(rows.into_iter().filter_map(turn).collect())
}
