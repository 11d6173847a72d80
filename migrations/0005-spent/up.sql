-- What model calls used, found without reading the rest of the log: sums over a session and over days.
CREATE INDEX spent ON events(session, at) WHERE kind IN ('step.completed', 'step.failed');
