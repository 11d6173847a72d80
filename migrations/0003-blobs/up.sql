-- Large outputs, each once, by the SHA-256 of their bytes. `codec` 0: stored as they are.
CREATE TABLE blobs(hash BLOB PRIMARY KEY, bytes INTEGER NOT NULL, codec INTEGER NOT NULL, data BLOB NOT NULL);
-- A blob lives as long as a session refers to it.
CREATE TABLE blob_refs(
  session INTEGER NOT NULL REFERENCES sessions(n) ON DELETE CASCADE,
  hash BLOB NOT NULL,
  PRIMARY KEY(session, hash)
) WITHOUT ROWID;
CREATE INDEX blob_refs_by_hash ON blob_refs(hash);
