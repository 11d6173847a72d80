//! From what a person types to a session.

use super::Api;
use crate::log::{Resolved, SessionRow};
use crate::session::{not_found, storage};
use protocol::{ErrorKind, RpcError, SessionId, short};

impl Api {
    /// The session that `text` names: a full id, a piece of one, a name, or `last` in the project of `root`.
    ///
    /// # Errors
    /// None or several; the message lists what there is.
    pub(super) async fn find(&self, text: &str, root: Option<&str>) -> Result<SessionRow, RpcError> {
        let log = &self.registry.deps().log;
        if text == "last" && root.is_none() {
            return Err(RpcError::new(
                ErrorKind::InvalidParams,
                "`last` is the last session of a project, and none was named",
            )
            .hint("call session.get with `cwd`, then use the id it answers"));
        }
        match log.resolve(text, root).await.map_err(|error| storage(&error))? {
            Resolved::One(row) => Ok(*row),
            Resolved::Ambiguous(rows) => {
                let ids: Vec<String> = rows.iter().map(|row| row.id.clone()).collect();
                Err(RpcError::new(
                    ErrorKind::SessionAmbiguous,
                    format!("{text} names {} sessions", rows.len()),
                )
                .hint(format!("type more of the id: {}", named(&rows)))
                .with("candidates", ids))
            }
            Resolved::None { elsewhere } if text == "last" => {
                let error = RpcError::new(ErrorKind::SessionNotFound, "this project has no session yet");
                Err(if elsewhere.is_empty() {
                    error.hint("start one: agentctl send \"…\"")
                } else {
                    error.hint(format!("the newest elsewhere: {}", named(&elsewhere)))
                })
            }
            Resolved::None { .. } => Err(not_found(text)),
        }
    }

    /// The id of the session that `text` names.
    ///
    /// # Errors
    /// As `find`.
    pub(super) async fn session_id(&self, text: &str) -> Result<SessionId, RpcError> {
        self.find(text, None).await.map(|row| SessionId(row.id))
    }
}

fn named(rows: &[SessionRow]) -> String {
    let one = |row: &SessionRow| {
        let name = row.name.as_deref().or(row.title.as_deref()).unwrap_or("untitled");
        format!("{} ({name}, in {})", short(&row.id), row.root_path)
    };
    rows.iter().map(one).collect::<Vec<_>>().join(", ")
}
