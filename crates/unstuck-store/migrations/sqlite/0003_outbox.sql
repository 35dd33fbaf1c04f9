-- Messages to people, written with the events that they tell of, so that none is lost in between.
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
CREATE INDEX outbox_due ON outbox (due) WHERE closed IS NULL;
CREATE INDEX outbox_by_group ON outbox (grp, not_before);
CREATE INDEX outbox_by_run ON outbox (run);
