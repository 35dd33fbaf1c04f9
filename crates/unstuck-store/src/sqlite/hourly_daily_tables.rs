//! Hourly and daily count tables, and the choice between them for a query.

use rusqlite::Connection;
use unstuck_core::Timestamp;

use crate::rollup;

/// A pair of hourly and daily count tables.
#[derive(Debug, Clone, Copy)]
pub(super) struct CountTables {
    pub(super) by_hour: &'static str,
    pub(super) by_day: &'static str,
    /// The columns after the hour, as sums over a day.
    sum_columns: &'static str,
    key_columns: &'static str,
}

/// The counts of event outcomes.
pub(super) const OUTCOME_TABLES: CountTables = CountTables {
    by_hour: "hourly",
    by_day: "daily",
    sum_columns: "project, kind, model, strategy, outcome, sum(count), sum(duration_ms), sum(cost_nanos),
        sum(b0), sum(b1), sum(b2), sum(b3), sum(b4), sum(b5), sum(b6), sum(b7), sum(b8), sum(b9), sum(b10), sum(b11)",
    key_columns: "1, 2, 3, 4, 5, 6",
};

/// The counts of attempts, by message and prompt.
pub(super) const ATTEMPT_TABLES: CountTables = CountTables {
    by_hour: "tries",
    by_day: "tries_daily",
    sum_columns: "scope, message, pattern, sum(count), max(newest)",
    key_columns: "1, 2, 3, 4",
};

impl CountTables {
    /// Returns the table for a time range: daily counts for whole days, else hourly ones.
    pub(super) fn table_for(
        self,
        since: Option<Timestamp>,
        until: Option<Timestamp>,
    ) -> &'static str {
        let is_whole =
            |at: Option<Timestamp>| at.is_none_or(|at| rollup::hour_number(at) % 24 == 0);
        if is_whole(since) && is_whole(until) {
            self.by_day
        } else {
            self.by_hour
        }
    }

    /// Returns whether the daily counts are the sums of the hourly ones.
    pub(super) fn are_consistent(self, connection: &Connection) -> rusqlite::Result<bool> {
        let computed = self.select_daily_sums();
        let stored = format!("SELECT * FROM {}", self.by_day);
        let differs = format!(
            "SELECT EXISTS ({computed} EXCEPT {stored}) OR EXISTS ({stored} EXCEPT {computed})"
        );
        let differs: bool = connection.query_row(&differs, [], |row| row.get(0))?;
        Ok(!differs)
    }

    /// Fills the daily counts from the hourly ones.
    fn fill_daily(self, connection: &Connection) -> rusqlite::Result<()> {
        let sums = self.select_daily_sums();
        connection.execute(&format!("INSERT INTO {} {sums}", self.by_day), [])?;
        Ok(())
    }

    /// Returns the query that sums up the hourly counts by day.
    fn select_daily_sums(self) -> String {
        let Self {
            by_hour,
            sum_columns: sums,
            key_columns: keys,
            ..
        } = self;
        format!("SELECT hour - (hour % 24 + 24) % 24, {sums} FROM {by_hour} GROUP BY {keys}")
    }
}

/// Backfills the daily counts.
pub(super) fn backfill_daily(connection: &Connection) -> rusqlite::Result<()> {
    OUTCOME_TABLES.fill_daily(connection)?;
    ATTEMPT_TABLES.fill_daily(connection)
}

/// Returns the first hour of the day that contains an hour.
pub(super) const fn day_start(hour: i64) -> i64 {
    hour.div_euclid(24) * 24
}
