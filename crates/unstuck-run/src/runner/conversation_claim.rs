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

use unstuck_core::agent::Agent;
use unstuck_core::decision::{EscalationReason, WaitPurpose};
use unstuck_core::duration::HumanDuration;
use unstuck_core::event::{EscalationKind, WaitStarted};
use unstuck_core::{FailureKind, Timestamp};

use super::error::RunError;
use super::escalation_draft::EscalationDraft;
use super::reporter::SessionWait;
use super::run_lease::wait_until_lost;
use super::session_event_log::SessionEventLog;
use super::session_runner::{InterruptedAttempt, SessionRunner, wait_for_stop};

/// Interval at which the conversation is checked.
const CONVERSATION_POLL_INTERVAL: Duration = Duration::from_millis(500);
/// A conversation without writes for this long is idle.
const IDLE_THRESHOLD: Duration = Duration::from_secs(60);
/// Writes this soon after an attempt belong to it.
const TRAILING_WRITE_WINDOW: Duration = Duration::from_secs(5);
/// Longest wait until another process is done with a conversation, unless the policy's `maxElapsed` is shorter.
const CLAIM_TIMEOUT: Duration = Duration::from_secs(12 * 3600);

/// A conversation that only this process continues.
pub(super) struct ConversationClaim {
    /// Held until it is dropped.
    _lock: Option<File>,
    /// True if it was continued elsewhere since it stopped.
    pub(super) was_continued_elsewhere: bool,
}

impl ConversationClaim {
    /// Returns the claim of an attempt that excludes nobody.
    fn unlocked() -> Self {
        Self {
            _lock: None,
            was_continued_elsewhere: false,
        }
    }
}

/// The wait for a conversation.
struct ClaimWait {
    until: Timestamp,
    /// The time when it was last reported in a log.
    told: Timestamp,
}

/// A conversation that is to be continued, and what shows if it is in use.
struct ClaimedConversation {
    id: String,
    lock: PathBuf,
    /// The paths of the agent's own files, as patterns.
    transcripts: Vec<String>,
    /// The time when this session last used it.
    stopped_at: Timestamp,
    /// False if the last writes may be those of this session's killed process, which cannot be told from others.
    are_writes_known: bool,
}

impl SessionRunner<'_> {
    /// Waits until a conversation is free and claims it. Returns `None` if it is not claimed: the run is stopped, or a
    /// human has to decide because the wait took too long.
    pub(super) async fn claim_conversation(
        &mut self,
        log: &mut SessionEventLog<'_, '_>,
        conversation: Option<&str>,
    ) -> Result<Option<ConversationClaim>, RunError> {
        let Some(id) = conversation else {
            return Ok(Some(ConversationClaim::unlocked()));
        };
        let wanted = self.claimed_conversation(log, id);
        let (mut lock, mut others) = (None, false);
        let mut wait: Option<ClaimWait> = None;
        loop {
            if lock.is_none() {
                lock = match try_lock(&wanted.lock) {
                    Ok(lock) => lock,
                    Err(error) => {
                        self.reporter.warn(&format!(
                            "cannot lock conversation {id}: {error}; nothing prevents another process from continuing it"
                        ));
                        return Ok(Some(ConversationClaim::unlocked()));
                    }
                };
            }
            let moved = self.last_write_of_others(&wanted);
            let now = self.clock.timestamp();
            let is_busy = lock.is_none() || moved.is_some_and(|at| now.since(at) < IDLE_THRESHOLD);
            others |= lock.is_none();
            if !is_busy {
                return Ok(Some(ConversationClaim {
                    _lock: lock,
                    was_continued_elsewhere: others || moved.is_some(),
                }));
            }
            let wait = match &mut wait {
                Some(wait) => wait,
                None => wait.insert(self.begin_claim_wait(log, id).await?),
            };
            if now >= wait.until {
                self.escalate_claim_timeout(log, id);
                return Ok(None);
            }
            self.report_claim_wait(log, wait, now);
            let left = wait.until.since(now).min(CONVERSATION_POLL_INTERVAL);
            tokio::select! {
                () = tokio::time::sleep(left) => {}
                () = wait_for_stop(&mut self.stop) => {
                    self.note_interrupted(log, None::<InterruptedAttempt>);
                    return Ok(None);
                }
                () = wait_until_lost(log.journal().takeover_signal()) => {
                    return Err(RunError::TakenOver { run: log.recovery().id().clone() });
                }
            }
        }
    }

    fn claimed_conversation(&self, log: &SessionEventLog<'_, '_>, id: &str) -> ClaimedConversation {
        let recovery = log.recovery();
        let spec = recovery.spec();
        let agent = self.agent_of(&spec.command, spec.agent.as_deref());
        let name = agent.map_or("agent", Agent::id);
        let transcripts = agent.map(|agent| agent.file().session.transcript.clone());
        ClaimedConversation {
            id: id.to_owned(),
            lock: lock_path(self.state, name, id),
            transcripts: transcripts.unwrap_or_default(),
            stopped_at: recovery.idle_since(),
            are_writes_known: !recovery.was_interrupted(),
        }
    }

    /// Returns the time of the last write to a conversation by somebody else since it stopped.
    fn last_write_of_others(&self, wanted: &ClaimedConversation) -> Option<Timestamp> {
        if !wanted.are_writes_known {
            return None;
        }
        self.last_conversation_write(&wanted.transcripts, &wanted.id)
            .filter(|at| at.since(wanted.stopped_at) > TRAILING_WRITE_WINDOW)
    }

    /// Records and reports that the session waits for its conversation.
    async fn begin_claim_wait(
        &mut self,
        log: &mut SessionEventLog<'_, '_>,
        id: &str,
    ) -> Result<ClaimWait, RunError> {
        let now = self.clock.timestamp();
        let until = now.after(claim_timeout(log));
        let wait = WaitStarted {
            session: Some(log.recovery().spec().session.clone()),
            until,
            reason: format!("conversation {id} is in use elsewhere; waiting until it is free"),
            is_stated: false,
            source: None,
            wait_purpose: WaitPurpose::Conversation,
            give_up_at: Some(until),
            reread: None,
        };
        self.reporter.note(&format!(
            "{}, for at most {} (Ctrl-C or `unstuck stop {}` to stop)",
            wait.reason,
            HumanDuration(until.since(now)),
            log.recovery().id().short()
        ));
        log.note(now, wait);
        self.flush(log).await?;
        Ok(ClaimWait { until, told: now })
    }

    /// Shows the wait on a live display, or from time to time in a log.
    fn report_claim_wait(
        &mut self,
        log: &SessionEventLog<'_, '_>,
        claim_wait: &mut ClaimWait,
        now: Timestamp,
    ) {
        let wait = SessionWait::for_conversation(claim_wait.until, now);
        if self.reporter.is_live() {
            self.reporter.on_waiting(&wait, log.recovery());
        } else if now.since(claim_wait.told) >= self.heartbeat {
            claim_wait.told = now;
            self.reporter.on_still_waiting(&wait, log.recovery());
        }
    }

    /// Leaves a conversation that is never free to a human: without its lock, it is not continued.
    fn escalate_claim_timeout(&mut self, log: &mut SessionEventLog<'_, '_>, id: &str) {
        let kind = FailureKind::LockHeld;
        let reason = format!(
            "{kind}: conversation {id} was in use elsewhere for {}; end the other process before you retry",
            HumanDuration(claim_timeout(log))
        );
        let asking = EscalationDraft::without_failure(
            EscalationKind::Hiccup,
            EscalationReason::MaxElapsed,
            reason,
        );
        self.escalate(log, EscalationDraft { kind, ..asking });
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

/// Returns the longest wait for a conversation.
fn claim_timeout(log: &SessionEventLog<'_, '_>) -> Duration {
    let max_elapsed = log.recovery().spec().policy.max_elapsed;
    max_elapsed.map_or(CLAIM_TIMEOUT, |limit| limit.min(CLAIM_TIMEOUT))
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
