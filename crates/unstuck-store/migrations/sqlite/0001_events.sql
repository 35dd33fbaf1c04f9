-- What happened, and nothing else: rows are added, and only `prune` takes them away again.
CREATE TABLE events (
    id      INTEGER PRIMARY KEY AUTOINCREMENT, -- a place in the log that is never used twice
    run     TEXT    NOT NULL,
    seq     INTEGER NOT NULL,
    at      INTEGER NOT NULL,                  -- milliseconds since the Unix epoch
    v       INTEGER NOT NULL,
    event   TEXT    NOT NULL,
    session TEXT,
    kind    TEXT,
    payload TEXT    NOT NULL,
    UNIQUE (run, seq)
) STRICT;
CREATE INDEX events_by_time ON events (at);

-- Which runs a session has events in. An index on the events themselves would be written all over with each of them.
CREATE TABLE sessions (
    session TEXT NOT NULL,
    run     TEXT NOT NULL,
    PRIMARY KEY (session, run)
) STRICT, WITHOUT ROWID;

-- Each run at a glance: a fold of its events.
CREATE TABLE runs (
    id       TEXT    NOT NULL PRIMARY KEY,
    project  TEXT    NOT NULL,
    status   TEXT    NOT NULL,
    kind     TEXT,
    started  INTEGER NOT NULL,
    updated  INTEGER NOT NULL,
    finished INTEGER,
    view     TEXT    NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX runs_by_time ON runs (started);
CREATE INDEX runs_by_project ON runs (project, started);
CREATE INDEX runs_by_status ON runs (status, started);
CREATE INDEX runs_by_kind ON runs (kind, started);

-- Who drives which run. A released lease keeps its row: the number of the next one must be higher.
CREATE TABLE leases (
    run       TEXT    NOT NULL PRIMARY KEY,
    number    INTEGER NOT NULL,
    owner     TEXT,
    heartbeat INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE notes (
    name  TEXT NOT NULL PRIMARY KEY,
    value TEXT NOT NULL
) STRICT, WITHOUT ROWID;
