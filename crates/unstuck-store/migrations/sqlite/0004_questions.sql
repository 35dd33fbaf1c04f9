-- What people are asked, written with the events that ask and answer; the program fills it in from the events so far.
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
CREATE INDEX questions_open ON questions (at) WHERE answered IS NULL;
