-- What agents told that an attempt used. It counts in place of what the gateway saw of the same attempt.
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
CREATE INDEX told_by_hour ON told (hour);

-- The one figure of what was used: what the gateway saw, and what agents told in place of it.
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
