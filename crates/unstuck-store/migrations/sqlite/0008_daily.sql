-- The same counts by day, under the first hour of each: whole days, however many, are read from here.
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
INSERT INTO daily SELECT hour - (hour % 24 + 24) % 24, project, kind, model, strategy, outcome,
    sum(count), sum(duration_ms), sum(cost_nanos),
    sum(b0), sum(b1), sum(b2), sum(b3), sum(b4), sum(b5), sum(b6), sum(b7), sum(b8), sum(b9), sum(b10), sum(b11)
    FROM hourly GROUP BY 1, 2, 3, 4, 5, 6;

CREATE TABLE tries_daily (
    hour    INTEGER NOT NULL,
    scope   INTEGER NOT NULL,
    message INTEGER NOT NULL,
    pattern INTEGER NOT NULL,
    count   INTEGER NOT NULL,
    newest  INTEGER NOT NULL,
    PRIMARY KEY (hour, scope, message, pattern)
) STRICT, WITHOUT ROWID;
INSERT INTO tries_daily SELECT hour - (hour % 24 + 24) % 24, scope, message, pattern, sum(count), max(newest)
    FROM tries GROUP BY 1, 2, 3, 4;
