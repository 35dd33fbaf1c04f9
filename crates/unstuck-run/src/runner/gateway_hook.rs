//! Who stands between an agent and its LLM API while an attempt runs, and sees what the agent cannot tell.

use unstuck_core::agent::Agent;
use unstuck_core::event::{AttemptUsage, BudgetReached, LastCall};
use unstuck_core::loop_detection::LoopSignal;
use unstuck_core::money::ActiveBudget;
use unstuck_core::{Diagnosis, RetryPolicy, RunId, SessionId, Timestamp};

/// An attempt that is about to begin.
#[derive(Debug, Clone, Copy)]
pub struct AttemptInfo<'a> {
    /// The run that it belongs to.
    pub run: &'a RunId,
    /// The session.
    pub session: &'a SessionId,
    /// The root folder of the project.
    pub project: &'a str,
    /// The folder that it works in.
    pub cwd: &'a str,
    /// How far to go.
    pub policy: &'a RetryPolicy,
    /// The agent that the command is known to be.
    pub agent: Option<&'a Agent>,
    /// The command line.
    pub command: &'a [String],
    /// The variables that are set for it.
    pub env: &'a [(String, String)],
    /// Whether it is a role of a pipeline, whose agent is run without a person.
    pub is_role: bool,
    /// The budgets that hold while it runs.
    pub budgets: &'a [ActiveBudget],
}

/// Stands between agents and their APIs.
pub trait GoBetween {
    /// Stands between for one attempt; none where that is not needed, or cannot be.
    fn attach(&self, errand: &AttemptInfo<'_>) -> Option<Box<dyn GatewayAttachment>>;
}

/// Stands between for one attempt.
pub trait GatewayAttachment {
    /// The command line as it is to be run.
    fn command(&self) -> &[String];

    /// The variables that are set besides.
    fn variables(&self) -> &[(String, String)];

    /// What happened since this was asked last, one line each.
    fn drain_messages(&mut self) -> Vec<String>;

    /// Until when a call waits for its next try, if one does.
    fn call_retry_at(&self) -> Option<Timestamp>;

    /// What shows that the agent goes in circles, if something does and the attempt is to be ended for it.
    fn loop_signal(&self) -> Option<LoopSignal>;

    /// What the calls of this attempt have used so far, for those agents that do not tell.
    fn usage(&self) -> AttemptUsage;

    /// What the newest call failed of; none if it was answered.
    fn newest_failure(&self) -> Option<Diagnosis>;

    /// When a call of the session was last answered whole: progress, whatever the agent writes. None if none was.
    fn last_success(&self) -> Option<Timestamp>;

    /// Since when its calls have been failing, one after the other; none if the newest was answered.
    fn failing_since(&self) -> Option<Timestamp>;

    /// The agent's own id of its conversation, where its requests name one.
    fn conversation(&self) -> Option<String>;

    /// How the newest call of this attempt ended; none if there was none, or if nobody saw it.
    fn last_call(&self) -> Option<LastCall>;

    /// The budget that its calls are refused for, if they are.
    fn budget_reached(&self) -> Option<BudgetReached>;
}
