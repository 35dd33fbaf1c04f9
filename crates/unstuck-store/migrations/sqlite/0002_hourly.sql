-- Counts by the hour, written with the events that they count; the program fills them in from the events so far.
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
