//! The counts of tries in the file: added to with every event and call.

use std::collections::HashMap;
use std::sync::Arc;

use rusqlite::{Connection, OptionalExtension, params, params_from_iter};
use unstuck_core::episode::{PromptPattern, RunView};
use unstuck_core::event::{CallRecord, Event, RunId, SessionId};

use super::daily::{self, TRIES};
use crate::tried::{self, Attempt, Count, Fault, Key};

/// So many ids are kept in memory at most.
const KEPT: usize = 4096;

/// Behind `INSERT INTO` and the name of a table.
const ADD: &str = " (hour, scope, message, pattern, count, newest)
    VALUES (?1, ?2, ?3, ?4, ?5, ?6)
    ON CONFLICT DO UPDATE SET count = count + excluded.count, newest = max(newest, excluded.newest)";

const ALL: &str = "SELECT hour, project, model, try_scopes.kind, coalesce(fingerprint, ''),
        coalesce(role, ''), coalesce(template, ''), count, newest
    FROM tries JOIN try_scopes ON try_scopes.id = scope
    LEFT JOIN try_messages ON try_messages.id = tries.message
    LEFT JOIN try_patterns ON try_patterns.id = pattern";

const ROLE: &str = "SELECT payload FROM events
    WHERE run = ?1 AND session = ?2 AND event = 'session_started' ORDER BY seq DESC LIMIT 1";

/// A table, and the hour under which it counts an hour.
type Table = (&'static str, fn(i64) -> i64);

/// Tries that were counted, not yet written.
#[derive(Debug, Default)]
pub(super) struct Tries {
    counts: HashMap<Key, Count>,
    /// What was said under the fingerprints of these counts.
    said: HashMap<String, String>,
    ids: Ids,
}

/// The numbers that stand for texts in the file.
#[derive(Debug, Default)]
struct Ids {
    scopes: HashMap<[String; 3], i64>,
    messages: HashMap<String, i64>,
    patterns: HashMap<Arc<PromptPattern>, i64>,
}

impl Tries {
    /// Counts an attempt of a run.
    pub(super) fn attempt(
        &mut self,
        attempt: &Attempt<'_>,
        view: Option<&RunView>,
        pattern: Option<Arc<PromptPattern>>,
    ) {
        let key = attempt.key(view, pattern);
        if let Some(failure) = attempt.failure {
            self.say(&key.fingerprint, || failure.said());
        }
        self.counts.entry(key).or_default().add(attempt.at());
    }

    /// Counts a call of a session that nobody drives.
    pub(super) fn call(&mut self, call: &CallRecord, project: &str, fault: Option<&Fault>) {
        let Some(key) = tried::key_of_call(call, project, fault) else {
            return;
        };
        if let Some(fault) = fault {
            self.say(&key.fingerprint, || fault.message.clone());
        }
        self.counts.entry(key).or_default().add(call.at.millis());
    }

    fn say(&mut self, fingerprint: &str, message: impl FnOnce() -> String) {
        let is_known = self.ids.messages.contains_key(fingerprint);
        if !is_known && !self.said.contains_key(fingerprint) {
            self.said.insert(fingerprint.to_owned(), message());
        }
    }

    /// Writes what was counted since the last time, by hour and by day.
    pub(super) fn flush(&mut self, connection: &Connection) -> rusqlite::Result<()> {
        let (hours, days) = (TRIES.by_hour, TRIES.by_day);
        self.flush_to(connection, &[(hours, |hour| hour), (days, daily::day)])
    }

    /// The same in a store that does not count by day yet.
    pub(super) fn fill(&mut self, connection: &Connection) -> rusqlite::Result<()> {
        self.flush_to(connection, &[(TRIES.by_hour, |hour| hour)])
    }

    fn flush_to(&mut self, connection: &Connection, tables: &[Table]) -> rusqlite::Result<()> {
        for (key, count) in self.counts.drain() {
            let scope = self.ids.scope(connection, &key)?;
            let message = self.ids.message(connection, &key, &self.said)?;
            let pattern = self.ids.pattern(connection, key.pattern.as_ref())?;
            let (number, newest) = (count.count as i64, count.newest);
            for (table, begin) in tables {
                let sql = format!("INSERT INTO {table}{ADD}");
                let row = params![begin(key.hour), scope, message, pattern, number, newest];
                connection.prepare_cached(&sql)?.execute(row)?;
            }
        }
        self.said.clear();
        self.ids.stay_small();
        Ok(())
    }

    /// Forgets everything: the transaction has failed, or others have written.
    pub(super) fn forget(&mut self) {
        *self = Self::default();
    }

    /// Whether these are the counts that the file has; where runs were deleted, those may be higher.
    pub(super) fn are_kept(&self, connection: &Connection, pruned: bool) -> rusqlite::Result<bool> {
        let kept = all(connection)?;
        let right = self.counts.iter().all(|(key, count)| {
            let is_right = |kept: &Count| {
                kept == count
                    || (pruned && kept.count >= count.count && kept.newest >= count.newest)
            };
            kept.get(&as_kept(key)).is_some_and(is_right)
        });
        Ok(right && (pruned || kept.len() == self.counts.len()))
    }
}

impl Ids {
    fn scope(&mut self, connection: &Connection, key: &Key) -> rusqlite::Result<i64> {
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

    fn message(
        &mut self,
        connection: &Connection,
        key: &Key,
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

    fn pattern(
        &mut self,
        connection: &Connection,
        pattern: Option<&Arc<PromptPattern>>,
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

    fn stay_small(&mut self) {
        if self.scopes.len() + self.messages.len() + self.patterns.len() > KEPT {
            *self = Self::default();
        }
    }
}

/// The number that stands for texts; they get one if they have none.
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

/// The prompt of a session's role, if it plays one.
pub(super) fn role(
    connection: &Connection,
    run: &RunId,
    session: &SessionId,
) -> rusqlite::Result<Option<PromptPattern>> {
    let mut statement = connection.prepare_cached(ROLE)?;
    let row = params![run.as_str(), session.as_str()];
    let payload: Option<String> = statement.query_row(row, |row| row.get(0)).optional()?;
    let event = payload.and_then(|payload| serde_json::from_str(&payload).ok());
    Ok(event.and_then(|fields| match Event::from_value(fields) {
        Event::SessionStarted(started) => Some(PromptPattern::of_role(&started)),
        _ => None,
    }))
}

fn all(connection: &Connection) -> rusqlite::Result<HashMap<[String; 7], Count>> {
    let mut statement = connection.prepare(ALL)?;
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
        let count = Count {
            count: row.get::<_, i64>(7)? as u64,
            newest: row.get(8)?,
        };
        Ok((key, count))
    })?;
    rows.collect()
}

fn as_kept(key: &Key) -> [String; 7] {
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
