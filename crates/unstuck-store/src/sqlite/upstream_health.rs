//! Stored upstream state; every change is part of a writer transaction.

use std::time::Duration;

use rusqlite::{Connection, OptionalExtension, params};
use unstuck_core::Timestamp;
use unstuck_core::duration::to_millis;

use crate::upstream_health::{CallRelease, ProbeClaimOutcome, UpstreamHealthChange};

const FIND: &str = "SELECT next_probe, recovered FROM upstreams WHERE url = ?1";

// A probe long after a recovery means that the upstream failed again: the next recovery begins with the first wave.
const TAKE: &str = "INSERT INTO upstreams (url, next_probe) VALUES (?1, ?2)
    ON CONFLICT (url) DO UPDATE SET next_probe = ?2,
        released = CASE WHEN ?3 - ifnull(recovered, 0) > ?4 THEN 0 ELSE released END";

const RELEASE: &str =
    "INSERT INTO upstreams (url, next_probe, released, last_release) VALUES (?1, 0, 1, ?2)
    ON CONFLICT (url) DO UPDATE SET last_release = ?2,
        released = CASE WHEN abs(?2 - ifnull(last_release, ?2)) < ?3 THEN released + 1 ELSE 1 END
    RETURNING released";

const RECOVERED: &str = "INSERT INTO upstreams (url, next_probe, recovered) VALUES (?1, ?2, ?2)
    ON CONFLICT (url) DO UPDATE SET next_probe = ?2, recovered = max(ifnull(recovered, 0), ?2)";

/// Within this time after a recovery, all processes see it and release their calls.
const RELEASE_TIME: Duration = Duration::from_secs(10);
/// Without a release for this long, the next one is in the first wave.
const RELEASE_GAP: Duration = Duration::from_secs(60);

/// Counts a released call and returns its position: 1 for the first since the upstream was down.
pub(super) fn count_release(
    connection: &Connection,
    release: &CallRelease,
) -> rusqlite::Result<u32> {
    let row = params![release.url, release.now.millis(), millis(RELEASE_GAP)];
    connection
        .prepare_cached(RELEASE)?
        .query_row(row, |row| row.get(0))
}

/// Applies a change.
pub(super) fn apply_change(
    connection: &Connection,
    change: &UpstreamHealthChange,
) -> rusqlite::Result<ProbeClaimOutcome> {
    match change {
        UpstreamHealthChange::ClaimProbe { url, now, every } => {
            let known = find(connection, url)?;
            let recovered = known.and_then(|(_, recovered)| recovered);
            let last = now.millis().saturating_add(millis(*every));
            // A clock that was wrong once must not block everybody.
            if let Some((next, _)) =
                known.filter(|(next, _)| (now.millis() + 1..=last).contains(next))
            {
                return Ok(ProbeClaimOutcome {
                    is_granted: false,
                    next: Timestamp::from_millis(next),
                    recovered,
                });
            }
            connection.prepare_cached(TAKE)?.execute(params![
                url,
                last,
                now.millis(),
                millis(RELEASE_TIME)
            ])?;
            Ok(ProbeClaimOutcome {
                is_granted: true,
                next: Timestamp::from_millis(last),
                recovered,
            })
        }
        UpstreamHealthChange::Recovered { url, at } => {
            let row = params![url, at.millis()];
            connection.prepare_cached(RECOVERED)?.execute(row)?;
            Ok(ProbeClaimOutcome {
                is_granted: true,
                next: *at,
                recovered: Some(*at),
            })
        }
    }
}

fn millis(time: Duration) -> i64 {
    i64::try_from(to_millis(time)).unwrap_or(i64::MAX)
}

/// Returns the time of the next probe and of the last recovery.
fn find(connection: &Connection, url: &str) -> rusqlite::Result<Option<(i64, Option<Timestamp>)>> {
    let mut statement = connection.prepare_cached(FIND)?;
    let row = |row: &rusqlite::Row<'_>| {
        let recovered: Option<i64> = row.get(1)?;
        Ok((row.get(0)?, recovered.map(Timestamp::from_millis)))
    };
    statement.query_row([url], row).optional()
}

/// Returns the last time the upstream was seen recovered.
pub(super) fn recovered_at(
    connection: &Connection,
    url: &str,
) -> rusqlite::Result<Option<Timestamp>> {
    Ok(find(connection, url)?.and_then(|(_, recovered)| recovered))
}
