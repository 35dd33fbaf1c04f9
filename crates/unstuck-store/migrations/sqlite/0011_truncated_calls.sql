-- The outcome of a call whose response ended early is called `truncated`.
UPDATE calls SET outcome = 'truncated' WHERE outcome = 'cut';
UPDATE spent SET outcome = 'truncated' WHERE outcome = 'cut';

DROP INDEX calls_failed;
CREATE INDEX calls_failed ON calls (at) WHERE alone = 1 AND outcome IN ('failed', 'truncated');
