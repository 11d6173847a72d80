-- The approvals of all sessions, a projection of their `approval.requested` and `approval.resolved` events.
-- `path` lists the ids from the root session down to the session itself, separated by `/`.
CREATE TABLE approvals(
  id TEXT PRIMARY KEY,
  session INTEGER NOT NULL REFERENCES sessions(n) ON DELETE CASCADE,
  root INTEGER NOT NULL,
  path TEXT NOT NULL,
  requested_pos INTEGER NOT NULL,
  resolved_pos INTEGER
);
CREATE INDEX approvals_by_session ON approvals(session);
CREATE INDEX approvals_waiting ON approvals(root) WHERE resolved_pos IS NULL;
