-- application_id 0x756e7374, user_version 12

-- index calls_by_run
CREATE INDEX calls_by_run ON calls (run, at);

-- index calls_by_time
CREATE INDEX calls_by_time ON calls (at);

-- index calls_failed
CREATE INDEX calls_failed ON calls (at) WHERE alone = 1 AND outcome IN ('failed', 'truncated');

-- index events_by_time
CREATE INDEX events_by_time ON events (at);

-- index events_failed
CREATE INDEX events_failed ON events (at, kind, run) WHERE event = 'attempt_failed';

-- index events_of_failed_calls
CREATE INDEX events_of_failed_calls ON events (run, seq) WHERE event = 'call_failed';

-- index events_of_roles
CREATE INDEX events_of_roles ON events (run, session) WHERE event = 'session_started';

-- index outbox_by_group
CREATE INDEX outbox_by_group ON outbox (grp, not_before);

-- index outbox_by_run
CREATE INDEX outbox_by_run ON outbox (run);

-- index outbox_due
CREATE INDEX outbox_due ON outbox (due) WHERE closed IS NULL;

-- index questions_answered
CREATE INDEX questions_answered ON questions (answered) WHERE answered IS NOT NULL;

-- index questions_by_id
CREATE INDEX questions_by_id ON questions (id);

-- index questions_open
CREATE INDEX questions_open ON questions (at) WHERE answered IS NULL;

-- index runs_by_kind
CREATE INDEX runs_by_kind ON runs (kind, started);

-- index runs_by_project
CREATE INDEX runs_by_project ON runs (project, started);

-- index runs_by_standing
CREATE INDEX runs_by_standing ON runs (project, status, started);

-- index runs_by_status
CREATE INDEX runs_by_status ON runs (status, started);

-- index runs_by_time
CREATE INDEX runs_by_time ON runs (started);

-- index spent_by_run
CREATE INDEX spent_by_run ON spent (run);

-- index told_by_hour
CREATE INDEX told_by_hour ON told (hour);

-- table calls
CREATE TABLE calls (
    id            INTEGER PRIMARY KEY AUTOINCREMENT,
    call          TEXT    NOT NULL,
    run           TEXT    NOT NULL,
    session       TEXT    NOT NULL,
    project       TEXT    NOT NULL,
    at            INTEGER NOT NULL, -- when the client asked, in milliseconds since the Unix epoch
    protocol      TEXT    NOT NULL,
    endpoint      TEXT    NOT NULL,
    upstream      TEXT    NOT NULL,
    asked_model   TEXT,
    model         TEXT,
    stream        INTEGER NOT NULL,
    outcome       TEXT    NOT NULL,
    status        INTEGER NOT NULL,
    kind          TEXT,
    attempts      INTEGER NOT NULL,
    waited_ms     INTEGER NOT NULL,
    first_byte_ms INTEGER NOT NULL,
    duration_ms   INTEGER NOT NULL,
    sent_bytes    INTEGER NOT NULL,
    input_tokens  INTEGER,
    cached_tokens INTEGER,
    output_tokens INTEGER,
    cost_nanos    INTEGER           -- billionths of a USD; none where the price is not known
, alone INTEGER NOT NULL DEFAULT 0, fingerprint TEXT, message TEXT) STRICT;

-- table daily
CREATE TABLE daily (
    hour        INTEGER NOT NULL,
    project     TEXT    NOT NULL,
    kind        TEXT    NOT NULL,
    model       TEXT    NOT NULL,
    strategy    TEXT    NOT NULL,
    outcome     TEXT    NOT NULL,
    count       INTEGER NOT NULL,
    duration_ms INTEGER NOT NULL,
    cost_nanos  INTEGER NOT NULL,
    b0  INTEGER NOT NULL,
    b1  INTEGER NOT NULL,
    b2  INTEGER NOT NULL,
    b3  INTEGER NOT NULL,
    b4  INTEGER NOT NULL,
    b5  INTEGER NOT NULL,
    b6  INTEGER NOT NULL,
    b7  INTEGER NOT NULL,
    b8  INTEGER NOT NULL,
    b9  INTEGER NOT NULL,
    b10 INTEGER NOT NULL,
    b11 INTEGER NOT NULL,
    PRIMARY KEY (hour, project, kind, model, strategy, outcome)
) STRICT, WITHOUT ROWID;

-- table events
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

-- table hourly
CREATE TABLE hourly (
    hour        INTEGER NOT NULL, -- hours since the Unix epoch
    project     TEXT    NOT NULL,
    kind        TEXT    NOT NULL,
    model       TEXT    NOT NULL,
    strategy    TEXT    NOT NULL,
    outcome     TEXT    NOT NULL,
    count       INTEGER NOT NULL,
    duration_ms INTEGER NOT NULL,
    cost_nanos  INTEGER NOT NULL, -- billionths of a USD: whole numbers add up the same in any order
    -- How many took less than 0.1, 0.3, 1, 3, 10, 30, 100, 300, 1000, 3000, 10000 seconds, and longer.
    b0  INTEGER NOT NULL,
    b1  INTEGER NOT NULL,
    b2  INTEGER NOT NULL,
    b3  INTEGER NOT NULL,
    b4  INTEGER NOT NULL,
    b5  INTEGER NOT NULL,
    b6  INTEGER NOT NULL,
    b7  INTEGER NOT NULL,
    b8  INTEGER NOT NULL,
    b9  INTEGER NOT NULL,
    b10 INTEGER NOT NULL,
    b11 INTEGER NOT NULL,
    PRIMARY KEY (hour, project, kind, model, strategy, outcome)
) STRICT, WITHOUT ROWID;

-- table leases
CREATE TABLE leases (
    run       TEXT    NOT NULL PRIMARY KEY,
    number    INTEGER NOT NULL,
    owner     TEXT,
    heartbeat INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- table notes
CREATE TABLE notes (
    name  TEXT NOT NULL PRIMARY KEY,
    value TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- table outbox
CREATE TABLE outbox (
    place      INTEGER PRIMARY KEY AUTOINCREMENT,
    id         TEXT    NOT NULL UNIQUE,    -- the run, the number of the event, and which of its messages
    run        TEXT    NOT NULL,
    occasion   TEXT    NOT NULL,
    target     TEXT    NOT NULL,           -- where to, as JSON, without secrets
    body       TEXT    NOT NULL,           -- what is told, as JSON
    grp        TEXT    NOT NULL,           -- messages of one group to one target are sent as one
    created    INTEGER NOT NULL,
    not_before INTEGER NOT NULL,           -- the end of the quiet time after the one before it
    due        INTEGER NOT NULL,           -- when it is tried next
    held_until INTEGER NOT NULL DEFAULT 0, -- until then one process has it alone
    attempts   INTEGER NOT NULL DEFAULT 0,
    last_error TEXT,
    closed     INTEGER,                    -- when it was delivered or given up
    delivered  INTEGER NOT NULL DEFAULT 0
) STRICT;

-- table projects
CREATE TABLE projects (
    project    TEXT    NOT NULL PRIMARY KEY,
    updated    INTEGER NOT NULL, -- when something last happened in it
    cost_nanos INTEGER NOT NULL  -- what its attempts cost, and its calls where nobody drives; billionths of a USD
) STRICT, WITHOUT ROWID;

-- table questions
CREATE TABLE questions (
    run      TEXT    NOT NULL,
    id       TEXT    NOT NULL,
    session  TEXT,
    project  TEXT    NOT NULL,
    at       INTEGER NOT NULL,
    hash     TEXT    NOT NULL,
    asked    TEXT    NOT NULL,
    answered INTEGER,
    answer   TEXT,
    PRIMARY KEY (run, id)
) STRICT, WITHOUT ROWID;

-- table runs
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

-- table sessions
CREATE TABLE sessions (
    session TEXT NOT NULL,
    run     TEXT NOT NULL,
    PRIMARY KEY (session, run)
) STRICT, WITHOUT ROWID;

-- table setting_changes
CREATE TABLE setting_changes (
    key     TEXT    NOT NULL,
    version INTEGER NOT NULL,
    at      INTEGER NOT NULL,
    author  TEXT    NOT NULL,
    before  TEXT,
    after   TEXT,
    PRIMARY KEY (key, version)
) STRICT, WITHOUT ROWID;

-- table settings
CREATE TABLE settings (
    key     TEXT    NOT NULL PRIMARY KEY,
    value   TEXT,
    version INTEGER NOT NULL,
    at      INTEGER NOT NULL,
    author  TEXT    NOT NULL
) STRICT, WITHOUT ROWID;

-- table spent
CREATE TABLE spent (
    hour          INTEGER NOT NULL, -- hours since the Unix epoch
    project       TEXT    NOT NULL,
    run           TEXT    NOT NULL,
    session       TEXT    NOT NULL,
    model         TEXT    NOT NULL,
    upstream      TEXT    NOT NULL,
    outcome       TEXT    NOT NULL,
    calls         INTEGER NOT NULL,
    tries         INTEGER NOT NULL,
    input_tokens  INTEGER NOT NULL,
    cached_tokens INTEGER NOT NULL,
    output_tokens INTEGER NOT NULL,
    cost_nanos    INTEGER NOT NULL,
    unpriced      INTEGER NOT NULL, -- how many of them used tokens whose price is not known
    PRIMARY KEY (hour, project, run, session, model, upstream, outcome)
) STRICT, WITHOUT ROWID;

-- table sqlite_sequence
CREATE TABLE sqlite_sequence(name,seq);

-- table told
CREATE TABLE told (
    run           TEXT    NOT NULL,
    seq           INTEGER NOT NULL, -- of the event that tells it
    session       TEXT    NOT NULL,
    began         INTEGER NOT NULL, -- in milliseconds since the Unix epoch
    ended         INTEGER NOT NULL,
    hour          INTEGER NOT NULL, -- of its end, in hours since the Unix epoch
    project       TEXT    NOT NULL,
    model         TEXT    NOT NULL,
    cost_nanos    INTEGER,          -- billionths of a USD; none where it was not told
    input_tokens  INTEGER,
    cached_tokens INTEGER,
    output_tokens INTEGER,
    PRIMARY KEY (run, seq)
) STRICT, WITHOUT ROWID;

-- table tries
CREATE TABLE tries (
    hour    INTEGER NOT NULL, -- hours since the Unix epoch
    scope   INTEGER NOT NULL,
    message INTEGER NOT NULL, -- 0 for what did not fail
    pattern INTEGER NOT NULL, -- 0 where the prompt is not known, and for what did not fail
    count   INTEGER NOT NULL,
    newest  INTEGER NOT NULL, -- when the last of them ended, in milliseconds since the Unix epoch
    PRIMARY KEY (hour, scope, message, pattern)
) STRICT, WITHOUT ROWID;

-- table tries_daily
CREATE TABLE tries_daily (
    hour    INTEGER NOT NULL,
    scope   INTEGER NOT NULL,
    message INTEGER NOT NULL,
    pattern INTEGER NOT NULL,
    count   INTEGER NOT NULL,
    newest  INTEGER NOT NULL,
    PRIMARY KEY (hour, scope, message, pattern)
) STRICT, WITHOUT ROWID;

-- table try_messages
CREATE TABLE try_messages (
    id          INTEGER PRIMARY KEY,
    fingerprint TEXT    NOT NULL UNIQUE,
    message     TEXT    NOT NULL, -- what was said the first time, with what varies masked
    kind        TEXT    NOT NULL
) STRICT;

-- table try_patterns
CREATE TABLE try_patterns (
    id       INTEGER PRIMARY KEY,
    role     TEXT    NOT NULL,
    template TEXT    NOT NULL,
    UNIQUE (role, template)
) STRICT;

-- table try_scopes
CREATE TABLE try_scopes (
    id      INTEGER PRIMARY KEY,
    project TEXT    NOT NULL,
    model   TEXT    NOT NULL,
    kind    TEXT    NOT NULL, -- `none` for what did not fail
    UNIQUE (project, model, kind)
) STRICT;

-- table upstreams
CREATE TABLE upstreams (
    url TEXT PRIMARY KEY,
    -- Before this nobody else may find out whether it is back, in milliseconds.
    next_probe INTEGER NOT NULL,
    -- When it was last seen to be back, in milliseconds.
    recovered INTEGER
, released INTEGER NOT NULL DEFAULT 0, last_release INTEGER) WITHOUT ROWID;

-- view costs
CREATE VIEW costs AS
    SELECT hour, project, run, session, model, upstream, outcome, calls, tries,
        input_tokens, cached_tokens, output_tokens, cost_nanos, unpriced
    FROM spent
    UNION ALL
    SELECT hour, project, run, session,
        coalesce(nullif(model, ''), (
            SELECT c.model FROM calls c WHERE c.run = told.run AND c.session = told.session
                AND c.at >= told.began AND c.at < told.ended AND c.model IS NOT NULL
            ORDER BY c.at DESC LIMIT 1
        ), ''),
        coalesce((
            SELECT c.upstream FROM calls c WHERE c.run = told.run AND c.session = told.session
                AND c.at >= told.began AND c.at < told.ended
            ORDER BY c.at DESC LIMIT 1
        ), ''),
        'told', 0, 0,
        coalesce(input_tokens, 0), coalesce(cached_tokens, 0), coalesce(output_tokens, 0), coalesce(cost_nanos, 0), 0
    FROM told
    UNION ALL
    SELECT (c.at - (c.at % 3600000 + 3600000) % 3600000) / 3600000, c.project, c.run, c.session, coalesce(c.model, ''),
        c.upstream, c.outcome, 0, 0,
        iif(told.input_tokens IS NULL, 0, -coalesce(c.input_tokens, 0)),
        iif(told.input_tokens IS NULL, 0, -coalesce(c.cached_tokens, 0)),
        iif(told.input_tokens IS NULL, 0, -coalesce(c.output_tokens, 0)),
        iif(told.cost_nanos IS NULL, 0, -coalesce(c.cost_nanos, 0)),
        -(told.cost_nanos IS NOT NULL AND c.cost_nanos IS NULL
            AND coalesce(c.input_tokens + c.cached_tokens + c.output_tokens, 0) > 0)
    FROM told JOIN calls c
        ON c.run = told.run AND c.session = told.session AND c.at >= told.began AND c.at < told.ended;
