//! Looking at a session that does not live: what its log says, without an actor and so without anything going on because somebody
//! looked.

use super::clock::SessionClock;
use super::deps::Deps;
use super::details::{Details, Parked, snapshot};
use super::open::{folded, project};
use crate::log::SessionRow;
use protocol::frame::Snapshot;
use protocol::{RpcError, SessionId};

/// The session as it stands in the store. A turn that is open there is one of an earlier life.
///
/// # Errors
/// A log that cannot be read.
pub(super) async fn look(deps: &Deps, row: &SessionRow) -> Result<Snapshot, RpcError> {
    let state = folded(&deps.log, row.key).await?;
    let details = Details::load(&deps.log, row.key, &state)
        .await
        .map_err(|error| super::actor::storage(&error))?;
    let parked = if state.turn.is_some() { Parked::Yes } else { Parked::No };
    let project = project(deps, &state.root).await.unwrap_or_default();
    let sandbox = deps.standing.sandbox(&project);
    let now = SessionClock::new(deps.clocks, state.at).now();
    let session = SessionId(row.id.clone());
    Ok(snapshot(&session, &state, &details, parked, &sandbox, now))
}
