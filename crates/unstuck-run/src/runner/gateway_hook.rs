//! The hook that attaches the private gateway to an attempt, to observe its LLM API calls.

use unstuck_core::agent::Agent;
use unstuck_core::decision::CallWait;
use unstuck_core::event::{AttemptUsage, BudgetReached, LastApiCall};
use unstuck_core::loop_detection::LoopSignal;
use unstuck_core::money::ActiveUsageBudget;
use unstuck_core::{Diagnosis, RetryPolicy, RunId, SessionId, Timestamp};

/// An attempt that is about to begin.
#[derive(Debug, Clone, Copy)]
pub struct UpcomingAttemptInfo<'a> {
    /// Its run.
    pub run: &'a RunId,
    /// Its session.
    pub session: &'a SessionId,
    /// The root directory of the project.
    pub project: &'a str,
    /// Its working directory.
    pub cwd: &'a str,
    /// The retry policy.
    pub policy: &'a RetryPolicy,
    /// The agent that the command is recognized as.
    pub agent: Option<&'a Agent>,
    /// The command line.
    pub command: &'a [String],
    /// The environment variables that are set for it.
    pub env: &'a [(String, String)],
    /// True if it is a role of a pipeline, whose agent runs headless.
    pub is_role: bool,
    /// The budgets that apply while it runs.
    pub budgets: &'a [ActiveUsageBudget],
    /// True if it probes whether a failing API works again: the session is parked.
    pub is_probe: bool,
}

/// Attaches gateways to attempts.
pub trait GoBetween {
    /// Attaches a gateway to an attempt; `None` if it is not needed or not possible.
    fn attach(&self, errand: &UpcomingAttemptInfo<'_>) -> Option<Box<dyn GatewayAttachment>>;
}

/// A gateway attached to one attempt.
pub trait GatewayAttachment {
    /// Returns the command line to run.
    fn command(&self) -> &[String];

    /// Returns the additional environment variables.
    fn variables(&self) -> &[(String, String)];

    /// Returns the messages since the last call of this method, one line each.
    fn drain_messages(&mut self) -> Vec<String>;

    /// Returns the wait of the held API call that is due next, if one is held.
    fn held_call(&self) -> Option<CallWait>;

    /// Retries the held API calls at once, as a person requested.
    fn retry_held_calls(&self);

    /// Returns the loop signal for which the attempt is to be stopped, if there is one.
    fn loop_signal(&self) -> Option<LoopSignal>;

    /// Returns the usage of this attempt's API calls so far, for agents that do not report it.
    fn usage(&self) -> AttemptUsage;

    /// Returns the diagnosis of the newest API call; `None` if it succeeded.
    fn newest_failure(&self) -> Option<Diagnosis>;

    /// Returns the timestamp of the session's last complete response: progress, whatever the agent prints.
    fn last_success(&self) -> Option<Timestamp>;

    /// Returns the start of the current series of failed API calls; `None` if the newest succeeded.
    fn failing_since(&self) -> Option<Timestamp>;

    /// Returns the agent's own conversation id, if its requests contain one.
    fn conversation(&self) -> Option<String>;

    /// Returns the end of this attempt's newest API call; `None` if there was none or it was not observed.
    fn last_call(&self) -> Option<LastApiCall>;

    /// Returns the exhausted budget for which calls are refused, if there is one.
    fn budget_reached(&self) -> Option<BudgetReached>;
}
