//! The runs of clients without a run of their own: their state and their end.

use std::collections::HashMap;
use std::time::Duration;

use unstuck_core::duration::{HumanDuration, to_millis};
use unstuck_core::event::{ApiCallOutcome, ApiCallRecord};
use unstuck_core::event::{RunFinished, RunOutcome};
use unstuck_core::money::known_cost;
use unstuck_core::{RunId, Timestamp};
use unstuck_store::LeaseToken;

/// The program name of such runs.
pub(super) const GATEWAY_PROGRAM: &str = "(gateway)";

/// The runs of clients without a run of their own.
#[derive(Debug, Default)]
pub(super) struct ClientRuns(HashMap<RunId, ClientRun>);

/// The state of one run.
#[derive(Debug)]
struct ClientRun {
    started: Timestamp,
    last_used: Timestamp,
    /// The outcome of its newest call whose client waited for it.
    last_outcome: Option<ApiCallOutcome>,
    /// True once something has failed.
    has_failed: bool,
    retries: u32,
    cost: f64,
    /// The number of calls with tokens of unknown price.
    unpriced: u64,
    is_over: bool,
    lease: Option<LeaseToken>,
}

impl ClientRuns {
    pub(super) fn begin(&mut self, run: RunId, at: Timestamp) {
        let talk = ClientRun {
            started: at,
            last_used: at,
            last_outcome: None,
            has_failed: false,
            retries: 0,
            cost: 0.0,
            unpriced: 0,
            is_over: false,
            lease: None,
        };
        self.0.insert(run, talk);
    }

    /// Records a call; returns true if its run had ended and is now resumed.
    pub(super) fn on_call(&mut self, call: &ApiCallRecord) -> bool {
        let Some(talk) = self.0.get_mut(&call.run) else {
            return false;
        };
        talk.last_used = talk.last_used.max(call.at);
        talk.retries = talk.retries.saturating_add(call.attempts.saturating_sub(1));
        talk.cost += call.cost_usd.unwrap_or(0.0);
        let has_used = call
            .tokens
            .is_some_and(|used| used.average_conversation() > 0);
        talk.unpriced += u64::from(call.cost_usd.is_none() && has_used);
        talk.has_failed |= call.kind.is_some();
        if call.outcome != ApiCallOutcome::Cancelled {
            talk.last_outcome = Some(call.outcome);
        }
        std::mem::take(&mut talk.is_over)
    }

    /// Ends all active runs.
    pub(super) fn end_all(&mut self, now: Timestamp, why: &str) -> Vec<(RunId, RunFinished)> {
        let open = self.0.iter_mut().filter(|(_, talk)| !talk.is_over);
        open.map(|(run, talk)| (run.clone(), talk.end(now, why.to_owned())))
            .collect()
    }

    /// Ends the runs whose clients were idle for that long.
    pub(super) fn end_idle(&mut self, now: Timestamp, idle: Duration) -> Vec<(RunId, RunFinished)> {
        let open = self.0.iter_mut().filter(|(_, talk)| !talk.is_over);
        let silent = open.filter(|(_, talk)| talk.last_used.after(idle) <= now);
        let why = format!("client idle for {}", HumanDuration(idle));
        silent
            .map(|(run, talk)| (run.clone(), talk.end(now, why.clone())))
            .collect()
    }

    /// Returns the active runs without a lease.
    pub(super) fn runs_without_lease(&self) -> Vec<RunId> {
        let open = self.0.iter().filter(|(_, talk)| !talk.is_over);
        let without = open.filter(|(_, talk)| talk.lease.is_none());
        without.map(|(run, _)| run.clone()).collect()
    }

    /// Adds the lease of a run.
    pub(super) fn add_lease(&mut self, lease: LeaseToken) {
        if let Some(talk) = self.0.get_mut(&lease.run) {
            talk.lease = Some(lease);
        }
    }

    /// Returns the leases to renew.
    pub(super) fn leases(&self) -> Vec<LeaseToken> {
        let open = self.0.values().filter(|talk| !talk.is_over);
        open.filter_map(|talk| talk.lease.clone()).collect()
    }

    /// Takes the lease of an ended run, to release it.
    pub(super) fn take_lease(&mut self, run: &RunId) -> Option<LeaseToken> {
        let talk = self.0.get_mut(run)?;
        talk.lease.take_if(|_| talk.is_over)
    }

    /// Returns true if the run began here.
    pub(super) fn contains(&self, run: &RunId) -> bool {
        self.0.contains_key(run)
    }
}

impl ClientRun {
    fn end(&mut self, now: Timestamp, why: String) -> RunFinished {
        self.is_over = true;
        let outcome = run_outcome(self.last_outcome, self.has_failed);
        RunFinished {
            outcome,
            exit_code: i32::from(!outcome.is_success()),
            reason: why,
            attempts: 0,
            retry_count: self.retries,
            recovery_level: None,
            cost_usd: known_cost(self.cost, self.unpriced),
            duration_ms: to_millis(now.since(self.started)),
        }
    }
}

/// Returns the outcome of a client's session, by its newest call.
pub(super) fn run_outcome(last: Option<ApiCallOutcome>, has_failed: bool) -> RunOutcome {
    match last {
        Some(last) if !last.is_success() => RunOutcome::Failed,
        _ if has_failed => RunOutcome::Recovered,
        _ => RunOutcome::Succeeded,
    }
}

#[cfg(test)]
mod tests {
    use unstuck_core::FailureKind;

    use super::*;

    const IDLE: Duration = Duration::from_secs(1800);

    fn minute(minute: i64) -> Timestamp {
        Timestamp::from_seconds(1_794_777_600 + minute * 60)
    }

    fn call(at: Timestamp, outcome: ApiCallOutcome) -> ApiCallRecord {
        ApiCallRecord {
            call: "c".into(),
            run: RunId::new("r"),
            session: RunId::new("r").session_id(1),
            at,
            protocol: "openai".into(),
            endpoint: "chat".into(),
            upstream: "first".into(),
            requested_model: None,
            model: None,
            is_stream: false,
            outcome,
            status: 200,
            kind: (outcome != ApiCallOutcome::Answered).then_some(FailureKind::Timeout),
            attempts: 2,
            waited_ms: 0,
            first_byte_ms: 0,
            duration_ms: 0,
            sent_bytes: 0,
            tokens: None,
            cost_usd: Some(0.5),
        }
    }

    #[test]
    fn idle_client_session_ends_and_can_resume() {
        let mut begun = ClientRuns::default();
        begun.begin(RunId::new("r"), minute(0));
        assert!(!begun.on_call(&call(minute(10), ApiCallOutcome::Answered)));
        assert_eq!(begun.end_idle(minute(39), IDLE), []);
        let ends = begun.end_idle(minute(40), IDLE);
        let end = &ends[0].1;
        assert_eq!(
            (end.outcome, end.cost_usd),
            (RunOutcome::Succeeded, Some(0.5))
        );
        assert_eq!(end.reason, "client idle for 30 min");
        assert_eq!(begun.end_idle(minute(99), IDLE), []);
        assert!(begun.on_call(&call(minute(100), ApiCallOutcome::Failed)));
        let ends = begun.end_all(minute(101), "the gateway stopped");
        assert_eq!(ends[0].1.outcome, RunOutcome::Failed);
    }

    #[test]
    fn session_outcome_is_that_of_its_newest_awaited_call() {
        let ended = |outcomes: &[ApiCallOutcome]| {
            let mut begun = ClientRuns::default();
            begun.begin(RunId::new("r"), minute(0));
            for outcome in outcomes {
                begun.on_call(&call(minute(1), *outcome));
            }
            begun.end_all(minute(2), "x")[0].1.outcome
        };
        use ApiCallOutcome::{Answered, Cancelled, Failed, Recovered, Truncated};
        assert_eq!(ended(&[]), RunOutcome::Succeeded);
        assert_eq!(ended(&[Answered]), RunOutcome::Succeeded);
        assert_eq!(ended(&[Failed, Answered]), RunOutcome::Recovered);
        assert_eq!(ended(&[Recovered, Answered]), RunOutcome::Recovered);
        assert_eq!(ended(&[Answered, Truncated, Cancelled]), RunOutcome::Failed);
    }
}
