-- What failed, counted by the hour and written with the events and calls that it counts, so that nobody has to scan
-- them; the program fills it in from those so far. Texts stand apart, each once: the counts are numbers alone.
CREATE TABLE try_scopes (
    id      INTEGER PRIMARY KEY,
    project TEXT    NOT NULL,
    model   TEXT    NOT NULL,
    kind    TEXT    NOT NULL, -- `none` for what did not fail
    UNIQUE (project, model, kind)
) STRICT;
CREATE TABLE try_messages (
    id          INTEGER PRIMARY KEY,
    fingerprint TEXT    NOT NULL UNIQUE,
    message     TEXT    NOT NULL, -- what was said the first time, with what varies masked
    kind        TEXT    NOT NULL
) STRICT;
CREATE TABLE try_patterns (
    id       INTEGER PRIMARY KEY,
    role     TEXT    NOT NULL,
    template TEXT    NOT NULL,
    UNIQUE (role, template)
) STRICT;
CREATE TABLE tries (
    hour    INTEGER NOT NULL, -- hours since the Unix epoch
    scope   INTEGER NOT NULL,
    message INTEGER NOT NULL, -- 0 for what did not fail
    pattern INTEGER NOT NULL, -- 0 where the prompt is not known, and for what did not fail
    count   INTEGER NOT NULL,
    newest  INTEGER NOT NULL, -- when the last of them ended, in milliseconds since the Unix epoch
    PRIMARY KEY (hour, scope, message, pattern)
) STRICT, WITHOUT ROWID;

-- Calls of sessions that nobody drives count as tries of their own; what failed about them is told by their events.
ALTER TABLE calls ADD COLUMN alone INTEGER NOT NULL DEFAULT 0;
ALTER TABLE calls ADD COLUMN fingerprint TEXT;
ALTER TABLE calls ADD COLUMN message TEXT;
CREATE INDEX calls_failed ON calls (at) WHERE alone = 1 AND outcome IN ('failed', 'cut');

-- With all that is asked about single failures, so that those of others are passed over without being read.
CREATE INDEX events_failed ON events (at, kind, run) WHERE event = 'attempt_failed';
CREATE INDEX events_of_failed_calls ON events (run, seq) WHERE event = 'call_failed';
CREATE INDEX events_of_roles ON events (run, session) WHERE event = 'session_started';

-- What people have set over REST or in the dashboard, as JSON. What was taken away keeps its row: the next version must
-- be a higher one.
CREATE TABLE settings (
    key     TEXT    NOT NULL PRIMARY KEY,
    value   TEXT,
    version INTEGER NOT NULL,
    at      INTEGER NOT NULL,
    author  TEXT    NOT NULL
) STRICT, WITHOUT ROWID;

-- Every change of them: who, when, from what to what.
CREATE TABLE setting_changes (
    key     TEXT    NOT NULL,
    version INTEGER NOT NULL,
    at      INTEGER NOT NULL,
    author  TEXT    NOT NULL,
    before  TEXT,
    after   TEXT,
    PRIMARY KEY (key, version)
) STRICT, WITHOUT ROWID;

-- Each project at a glance, written with its events and calls; its runs are counted by the index.
CREATE TABLE projects (
    project    TEXT    NOT NULL PRIMARY KEY,
    updated    INTEGER NOT NULL, -- when something last happened in it
    cost_nanos INTEGER NOT NULL  -- what its attempts cost, and its calls where nobody drives; billionths of a USD
) STRICT, WITHOUT ROWID;
CREATE INDEX runs_by_standing ON runs (project, status, started);
