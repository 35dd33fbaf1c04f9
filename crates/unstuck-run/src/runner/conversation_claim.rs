//! Claims a conversation: only one attempt resumes it at a time, and none while another process continues it.
#![expect(
    clippy::disallowed_methods,
    reason = "files in the state directory, which agents cannot access"
)]

use std::collections::hash_map::DefaultHasher;
use std::fs::{self, File, TryLockError};
use std::hash::{Hash, Hasher};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};

use unstuck_core::Timestamp;
use unstuck_core::agent::Agent;

use super::session_event_log::SessionEventLog;
use super::session_runner::{InterruptedAttempt, SessionRunner, wait_for_stop};

/// Interval at which the conversation is checked.
const CONVERSATION_POLL_INTERVAL: Duration = Duration::from_millis(500);
/// A conversation without writes for this long is idle.
const IDLE_THRESHOLD: Duration = Duration::from_secs(60);
/// Writes this soon after an attempt belong to it.
const TRAILING_WRITE_WINDOW: Duration = Duration::from_secs(5);
/// Longest wait until another process is done with a conversation.
const CLAIM_TIMEOUT: Duration = Duration::from_secs(12 * 3600);

/// A conversation that only this process continues.
pub(super) struct ConversationClaim {
    /// Held until it is dropped.
    _lock: Option<File>,
    /// True if it was continued elsewhere since it stopped.
    pub(super) was_continued_elsewhere: bool,
}

impl SessionRunner<'_> {
    /// Waits until a conversation is free and claims it; returns `None` if the run is stopped meanwhile.
    pub(super) async fn claim_conversation(
        &mut self,
        log: &mut SessionEventLog<'_, '_>,
        conversation: Option<&str>,
    ) -> Option<ConversationClaim> {
        let free = ConversationClaim {
            _lock: None,
            was_continued_elsewhere: false,
        };
        let Some(conversation) = conversation else {
            return Some(free);
        };
        let spec = log.recovery().spec();
        let agent = self.agent_of(&spec.command, spec.agent.as_deref());
        let name = agent.map_or("agent", Agent::id).to_owned();
        let patterns = agent.map(|agent| agent.file().session.transcript.clone());
        let patterns = patterns.unwrap_or_default();
        let path = lock_path(self.state, &name, conversation);
        let (began, stopped_at) = (self.clock.timestamp(), log.recovery().idle_since());
        // The writes of a killed process cannot be told from those of others.
        let is_known = !log.recovery().was_interrupted();
        let mut is_told = false;
        let mut lock = None;
        let mut others = false;
        loop {
            if lock.is_none() {
                lock = match try_lock(&path) {
                    Ok(lock) => lock,
                    // Without such a file, other processes cannot be excluded.
                    Err(_) => return Some(free),
                };
            }
            let written = self
                .last_conversation_write(&patterns, conversation)
                .filter(|_| is_known);
            let moved = written.filter(|at| at.since(stopped_at) > TRAILING_WRITE_WINDOW);
            let now = self.clock.timestamp();
            let is_busy = lock.is_none() || moved.is_some_and(|at| now.since(at) < IDLE_THRESHOLD);
            others |= lock.is_none();
            if !is_busy || now.since(began) > CLAIM_TIMEOUT {
                return Some(ConversationClaim {
                    _lock: lock,
                    was_continued_elsewhere: others || moved.is_some(),
                });
            }
            if !is_told {
                is_told = true;
                self.reporter.note(&format!(
                    "conversation {conversation} is in use elsewhere; waiting until it is free (Ctrl-C to stop)"
                ));
            }
            tokio::select! {
                () = tokio::time::sleep(CONVERSATION_POLL_INTERVAL) => {}
                () = wait_for_stop(&mut self.stop) => {
                    self.note_interrupted(log, None::<InterruptedAttempt>);
                    return None;
                }
            }
        }
    }

    /// Returns the timestamp of the last write to a conversation, according to the agent's own files.
    fn last_conversation_write(
        &self,
        patterns: &[String],
        conversation: &str,
    ) -> Option<Timestamp> {
        let home = self.home?;
        let files = patterns.iter().flat_map(|pattern| {
            let pattern = pattern.replace("{id}", conversation);
            let below = pattern.strip_prefix("~/").map(str::to_owned);
            below.map_or_else(Vec::new, |below| files_matching(home, &below))
        });
        files.filter_map(|path| modified_at(&path)).max()
    }
}

fn lock_path(state: &Path, agent: &str, conversation: &str) -> PathBuf {
    let mut hasher = DefaultHasher::new();
    (agent, conversation).hash(&mut hasher);
    let name = format!("{agent}-{:016x}.lock", hasher.finish());
    state.join("conversations").join(name)
}

/// Takes a lock that ends with this process; `None` if another process holds it.
fn try_lock(path: &Path) -> io::Result<Option<File>> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    let file = File::options().create(true).append(true).open(path)?;
    match file.try_lock() {
        Ok(()) => Ok(Some(file)),
        Err(TryLockError::WouldBlock) => Ok(None),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

fn modified_at(path: &Path) -> Option<Timestamp> {
    let modified = fs::metadata(path).ok()?.modified().ok()?;
    let since = modified.duration_since(UNIX_EPOCH).ok()?;
    Some(Timestamp::from_seconds(0).after(since))
}

/// Returns the files below a directory whose paths match a pattern, in which `*` matches any part of a name.
fn files_matching(folder: &Path, pattern: &str) -> Vec<PathBuf> {
    let (first, rest) = match pattern.split_once('/') {
        Some((first, rest)) => (first, Some(rest)),
        None => (pattern, None),
    };
    let next: Vec<PathBuf> = if !first.contains('*') {
        vec![folder.join(first)]
    } else {
        let entries = fs::read_dir(folder).into_iter().flatten().flatten();
        let fits = |name: &str| matches_wildcard(name, first);
        let named = entries.filter(|entry| entry.file_name().to_str().is_some_and(fits));
        named.map(|entry| entry.path()).collect()
    };
    match rest {
        None => next.into_iter().filter(|path| path.is_file()).collect(),
        Some(rest) => next
            .iter()
            .flat_map(|folder| files_matching(folder, rest))
            .collect(),
    }
}

fn matches_wildcard(name: &str, pattern: &str) -> bool {
    let Some((before, after)) = pattern.split_once('*') else {
        return name == pattern;
    };
    let Some(rest) = name.strip_prefix(before) else {
        return false;
    };
    let mut ends = rest.char_indices().map(|(at, _)| at).chain([rest.len()]);
    ends.any(|at| matches_wildcard(&rest[at..], after))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn transcripts_are_found_by_pattern() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("sessions/2026/11/rollout-a-b-77-11.jsonl");
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, "").unwrap();
        let found = |pattern: &str| files_matching(home.path(), pattern);
        assert_eq!(found("sessions/*/*/rollout-*-77-11.jsonl"), [path]);
        assert!(found("sessions/*/*/rollout-*-77-12.jsonl").is_empty());
        assert!(found("sessions/*/rollout-*-77-11.jsonl").is_empty());
        assert!(found("nothing/*/x").is_empty());
    }

    #[test]
    fn conversation_has_one_claim_at_a_time() {
        let state = tempfile::tempdir().unwrap();
        let path = lock_path(state.path(), "claude", "11-22");
        let first = try_lock(&path).unwrap();
        assert!(first.is_some());
        assert!(try_lock(&path).unwrap().is_none());
        drop(first);
        assert!(try_lock(&path).unwrap().is_some());
        let other = lock_path(state.path(), "claude", "33-44");
        assert!(try_lock(&other).unwrap().is_some());
    }
}
