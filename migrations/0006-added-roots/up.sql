-- Directories a session works in beside its project, as a JSON array of texts; nothing in a session that has none.
ALTER TABLE sessions ADD COLUMN added_roots TEXT;
