-- What all processes that use an upstream share while it is down: who may ask it next, and when it was last seen to be back.
CREATE TABLE upstreams (
    url TEXT PRIMARY KEY,
    -- Before this nobody else may find out whether it is back, in milliseconds.
    next_probe INTEGER NOT NULL,
    -- When it was last seen to be back, in milliseconds.
    recovered INTEGER
) WITHOUT ROWID;
