//! Stored attempt counts, updated with every event and call.

use std::collections::HashMap;
use std::sync::Arc;

use rusqlite::{Connection, OptionalExtension, params, params_from_iter};
use unstuck_core::event::{ApiCallRecord, Event, RunId, SessionId};
use unstuck_core::views::{NormalizedPrompt, RunSummary};

use super::hourly_daily_tables::{self, ATTEMPT_TABLES};
use crate::attempt_stats::{self, AttemptCountKey, AttemptTally, CallFailure, EndedAttempt};

/// The maximum number of cached ids.
const MAX_CACHED_IDS: usize = 4096;

/// The upsert clause after `INSERT INTO` and the table name.
const UPSERT_COUNTS: &str = " (hour, scope, message, pattern, count, newest)
    VALUES (?1, ?2, ?3, ?4, ?5, ?6)
    ON CONFLICT DO UPDATE SET count = count + excluded.count, newest = max(newest, excluded.newest)";

const SELECT_COUNTS: &str =
    "SELECT hour, project, model, try_scopes.kind, coalesce(fingerprint, ''),
        coalesce(role, ''), coalesce(template, ''), count, newest
    FROM tries JOIN try_scopes ON try_scopes.id = scope
    LEFT JOIN try_messages ON try_messages.id = tries.message
    LEFT JOIN try_patterns ON try_patterns.id = pattern";

const SELECT_SESSION_STARTED: &str = "SELECT payload FROM events
    WHERE run = ?1 AND session = ?2 AND event = 'session_started' ORDER BY seq DESC LIMIT 1";

/// A table, and the function that maps an hour to its bucket in the table.
type CountTable = (&'static str, fn(i64) -> i64);

/// Attempt counts that are not yet written.
#[derive(Debug, Default)]
pub(super) struct PendingAttemptCounts {
    counts: HashMap<AttemptCountKey, AttemptTally>,
    /// The error messages by fingerprint.
    messages: HashMap<String, String>,
    ids: InternedIds,
}

/// The ids of interned texts.
#[derive(Debug, Default)]
struct InternedIds {
    scopes: HashMap<[String; 3], i64>,
    messages: HashMap<String, i64>,
    patterns: HashMap<Arc<NormalizedPrompt>, i64>,
}

impl PendingAttemptCounts {
    /// Counts an attempt of a run.
    pub(super) fn add_attempt(
        &mut self,
        attempt: &EndedAttempt<'_>,
        view: Option<&RunSummary>,
        pattern: Option<Arc<NormalizedPrompt>>,
    ) {
        let key = attempt.count_key(view, pattern);
        if let Some(failure) = attempt.failure {
            self.note_message(&key.fingerprint, || failure.masked_evidence());
        }
        self.counts
            .entry(key)
            .or_default()
            .add(attempt.ended_at_ms());
    }

    /// Counts a call of an unsupervised session.
    pub(super) fn add_call(
        &mut self,
        call: &ApiCallRecord,
        project: &str,
        fault: Option<&CallFailure>,
    ) {
        let Some(key) = attempt_stats::call_count_key(call, project, fault) else {
            return;
        };
        if let Some(fault) = fault {
            self.note_message(&key.fingerprint, || fault.message.clone());
        }
        self.counts.entry(key).or_default().add(call.at.millis());
    }

    fn note_message(&mut self, fingerprint: &str, message: impl FnOnce() -> String) {
        let is_known = self.ids.messages.contains_key(fingerprint);
        if !is_known && !self.messages.contains_key(fingerprint) {
            self.messages.insert(fingerprint.to_owned(), message());
        }
    }

    /// Writes the pending counts, by hour and by day.
    pub(super) fn flush(&mut self, connection: &Connection) -> rusqlite::Result<()> {
        let (hours, days) = (ATTEMPT_TABLES.by_hour, ATTEMPT_TABLES.by_day);
        self.flush_to(
            connection,
            &[(hours, |hour| hour), (days, hourly_daily_tables::day_start)],
        )
    }

    /// Writes the pending counts to a store without daily counts.
    pub(super) fn backfill(&mut self, connection: &Connection) -> rusqlite::Result<()> {
        self.flush_to(connection, &[(ATTEMPT_TABLES.by_hour, |hour| hour)])
    }

    fn flush_to(&mut self, connection: &Connection, tables: &[CountTable]) -> rusqlite::Result<()> {
        for (key, count) in self.counts.drain() {
            let scope = self.ids.scope_id(connection, &key)?;
            let message = self.ids.message_id(connection, &key, &self.messages)?;
            let pattern = self.ids.pattern_id(connection, key.pattern.as_ref())?;
            let (number, newest) = (count.count as i64, count.newest);
            for (table, begin) in tables {
                let sql = format!("INSERT INTO {table}{UPSERT_COUNTS}");
                let row = params![begin(key.hour), scope, message, pattern, number, newest];
                connection.prepare_cached(&sql)?.execute(row)?;
            }
        }
        self.messages.clear();
        self.ids.limit_size();
        Ok(())
    }

    /// Discards all state: the transaction failed, or another process has written.
    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }

    /// Returns whether the stored counts match; after pruning the stored ones may be higher.
    pub(super) fn match_stored(
        &self,
        connection: &Connection,
        pruned: bool,
    ) -> rusqlite::Result<bool> {
        let kept = load_counts(connection)?;
        let right = self.counts.iter().all(|(key, count)| {
            let is_right = |kept: &AttemptTally| {
                kept == count
                    || (pruned && kept.count >= count.count && kept.newest >= count.newest)
            };
            kept.get(&sql_key(key)).is_some_and(is_right)
        });
        Ok(right && (pruned || kept.len() == self.counts.len()))
    }
}

impl InternedIds {
    fn scope_id(
        &mut self,
        connection: &Connection,
        key: &AttemptCountKey,
    ) -> rusqlite::Result<i64> {
        let scope = [key.project.clone(), key.model.clone(), key.kind.to_owned()];
        if let Some(id) = self.scopes.get(&scope) {
            return Ok(*id);
        }
        let id = intern(
            connection,
            "SELECT id FROM try_scopes WHERE project = ?1 AND model = ?2 AND kind = ?3",
            "INSERT INTO try_scopes (project, model, kind) VALUES (?1, ?2, ?3) RETURNING id",
            &scope,
        )?;
        self.scopes.insert(scope, id);
        Ok(id)
    }

    fn message_id(
        &mut self,
        connection: &Connection,
        key: &AttemptCountKey,
        said: &HashMap<String, String>,
    ) -> rusqlite::Result<i64> {
        if key.fingerprint.is_empty() {
            return Ok(0);
        }
        if let Some(id) = self.messages.get(&key.fingerprint) {
            return Ok(*id);
        }
        let message = said.get(&key.fingerprint).cloned().unwrap_or_default();
        let id = intern(
            connection,
            "SELECT id FROM try_messages WHERE fingerprint = ?1",
            "INSERT INTO try_messages (fingerprint, message, kind) VALUES (?1, ?2, ?3) RETURNING id",
            &[key.fingerprint.clone(), message, key.kind.to_owned()],
        )?;
        self.messages.insert(key.fingerprint.clone(), id);
        Ok(id)
    }

    fn pattern_id(
        &mut self,
        connection: &Connection,
        pattern: Option<&Arc<NormalizedPrompt>>,
    ) -> rusqlite::Result<i64> {
        let Some(pattern) = pattern else {
            return Ok(0);
        };
        if let Some(id) = self.patterns.get(pattern) {
            return Ok(*id);
        }
        let id = intern(
            connection,
            "SELECT id FROM try_patterns WHERE role = ?1 AND template = ?2",
            "INSERT INTO try_patterns (role, template) VALUES (?1, ?2) RETURNING id",
            &[
                pattern.role.clone().unwrap_or_default(),
                pattern.template.clone(),
            ],
        )?;
        self.patterns.insert(Arc::clone(pattern), id);
        Ok(id)
    }

    fn limit_size(&mut self) {
        if self.scopes.len() + self.messages.len() + self.patterns.len() > MAX_CACHED_IDS {
            *self = Self::default();
        }
    }
}

/// Returns the id of a text, adding it if necessary.
fn intern(
    connection: &Connection,
    select: &str,
    insert: &str,
    texts: &[String],
) -> rusqlite::Result<i64> {
    let mut find = connection.prepare_cached(select)?;
    let known = texts.iter().take(find.parameter_count());
    let found = find.query_row(params_from_iter(known), |row| row.get(0));
    match found.optional()? {
        Some(id) => Ok(id),
        None => connection
            .prepare_cached(insert)?
            .query_row(params_from_iter(texts), |row| row.get(0)),
    }
}

/// Returns the prompt pattern of a session's role, if it has one.
pub(super) fn role_pattern(
    connection: &Connection,
    run: &RunId,
    session: &SessionId,
) -> rusqlite::Result<Option<NormalizedPrompt>> {
    let mut statement = connection.prepare_cached(SELECT_SESSION_STARTED)?;
    let row = params![run.as_str(), session.as_str()];
    let payload: Option<String> = statement.query_row(row, |row| row.get(0)).optional()?;
    let event = payload.and_then(|payload| serde_json::from_str(&payload).ok());
    Ok(event.and_then(|fields| match Event::from_value(fields) {
        Event::SessionStarted(started) => Some(NormalizedPrompt::from_role(&started)),
        _ => None,
    }))
}

fn load_counts(connection: &Connection) -> rusqlite::Result<HashMap<[String; 7], AttemptTally>> {
    let mut statement = connection.prepare(SELECT_COUNTS)?;
    let rows = statement.query_map([], |row| {
        let hour: i64 = row.get(0)?;
        let key = [
            hour.to_string(),
            row.get(1)?,
            row.get(2)?,
            row.get(3)?,
            row.get(4)?,
            row.get(5)?,
            row.get(6)?,
        ];
        let count = AttemptTally {
            count: row.get::<_, i64>(7)? as u64,
            newest: row.get(8)?,
        };
        Ok((key, count))
    })?;
    rows.collect()
}

fn sql_key(key: &AttemptCountKey) -> [String; 7] {
    let pattern = key.pattern.as_deref();
    let role = pattern.and_then(|pattern| pattern.role.clone());
    let template = pattern.map(|pattern| pattern.template.clone());
    [
        key.hour.to_string(),
        key.project.clone(),
        key.model.clone(),
        key.kind.to_owned(),
        key.fingerprint.clone(),
        role.unwrap_or_default(),
        template.unwrap_or_default(),
    ]
}
