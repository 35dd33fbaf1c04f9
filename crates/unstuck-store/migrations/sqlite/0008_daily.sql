-- The same counts by day, under the first hour of each: whole days, however many, are read from here. The program fills them in.
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

CREATE TABLE tries_daily (
    hour    INTEGER NOT NULL,
    scope   INTEGER NOT NULL,
    message INTEGER NOT NULL,
    pattern INTEGER NOT NULL,
    count   INTEGER NOT NULL,
    newest  INTEGER NOT NULL,
    PRIMARY KEY (hour, scope, message, pattern)
) STRICT, WITHOUT ROWID;
