-- One row a session: what lists show, where its log stands, and the fold of its log up to `state_seq`.
-- `head` is the seq of its last event, `changed_pos` the pos of that event. `root` is the topmost ancestor (itself for a
-- session without parent), `root_path` the directory of the project. Times are milliseconds since 1970, UTC.
-- The state comes last because it is large: lists never read the pages it spills to.
CREATE TABLE sessions(
  n INTEGER PRIMARY KEY,
  id TEXT NOT NULL UNIQUE,
  name TEXT,
  root INTEGER NOT NULL,
  parent INTEGER,
  phase TEXT NOT NULL,
  head INTEGER NOT NULL,
  changed_pos INTEGER NOT NULL,
  queued INTEGER NOT NULL DEFAULT 0,
  title TEXT,
  model TEXT,
  mode TEXT,
  outcome TEXT,
  root_path TEXT NOT NULL,
  cwd TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL,
  ephemeral INTEGER NOT NULL DEFAULT 0,
  archived INTEGER NOT NULL DEFAULT 0,
  deleted_at INTEGER,
  state_seq INTEGER,
  state_version INTEGER,
  state BLOB
);
-- A name is free again once the session that had it is deleted.
CREATE UNIQUE INDEX names ON sessions(name) WHERE name IS NOT NULL AND deleted_at IS NULL;
CREATE INDEX sessions_by_use ON sessions(changed_pos);
CREATE INDEX sessions_by_parent ON sessions(parent) WHERE parent IS NOT NULL;

-- The log. `body` is the JSON of the event's data alone, `private` what only the daemon reads.
CREATE TABLE events(
  pos INTEGER PRIMARY KEY AUTOINCREMENT,
  session INTEGER NOT NULL,
  seq INTEGER NOT NULL,
  at INTEGER NOT NULL,
  kind TEXT NOT NULL,
  body TEXT NOT NULL,
  private BLOB,
  UNIQUE(session, seq)
);
-- An input is accepted once for ever.
CREATE UNIQUE INDEX inputs ON events(session, body->>'input_id') WHERE kind = 'input.accepted';

-- Written to find out whether the disk takes writes again.
CREATE TABLE probe(n INTEGER PRIMARY KEY, writes INTEGER NOT NULL);
