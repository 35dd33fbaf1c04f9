-- Processes that wait for the same upstream count the calls that its recovery releases, so that they resume in waves.
-- The number of calls released since it was last down.
ALTER TABLE upstreams ADD COLUMN released INTEGER NOT NULL DEFAULT 0;
-- When a call was last released, in milliseconds.
ALTER TABLE upstreams ADD COLUMN last_release INTEGER;
