-- Every call of an LLM API through the gateway; they are written a moment later, many at once.
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
) STRICT;
CREATE INDEX calls_by_run ON calls (run, at);
CREATE INDEX calls_by_time ON calls (at);

-- What the calls used, by the hour, written with them. Rows of runs that were pruned have no run and no session any more.
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
CREATE INDEX spent_by_run ON spent (run);
