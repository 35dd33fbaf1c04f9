//! Stored escalations and their filters.

use unstuck_core::Timestamp;
use unstuck_core::event::{EscalationOpened, EscalationResolved, RunId};

/// A stored escalation.
#[derive(Debug, Clone, PartialEq)]
pub struct EscalationRow {
    /// The run that needs input.
    pub run: RunId,
    /// The project root.
    pub project: String,
    /// The time the escalation was opened.
    pub at: Timestamp,
    /// The request.
    pub request: EscalationOpened,
    /// The answer, if there is one.
    pub closure: Option<EscalationClosure>,
}

/// The end of an escalation.
#[derive(Debug, Clone, PartialEq)]
pub struct EscalationClosure {
    /// The time it was closed.
    pub at: Timestamp,
    /// The answer; `None` if the escalation became obsolete because the run continued or ended.
    pub answer: Option<EscalationResolved>,
}

/// The status filter for escalations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum EscalationStatusFilter {
    /// Open escalations, newest first.
    #[default]
    Open,
    /// Answered or obsolete escalations, the most recently closed first.
    Closed,
    /// All escalations, newest first.
    Any,
}

/// A filter for escalations; matches all open ones by default.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct EscalationFilter {
    /// The run.
    pub run: Option<RunId>,
    /// The id prefix.
    pub prefix: Option<String>,
    /// The project root.
    pub project: Option<String>,
    /// The status.
    pub status: EscalationStatusFilter,
    /// The escalation after which the results start; an unknown id gives no results.
    pub after: Option<String>,
    /// The maximum number of results.
    pub limit: Option<usize>,
}

/// The escalation that events answer: they are written only if it is still open and unchanged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EscalationAnswerPrecondition {
    /// The escalation id.
    pub escalation: String,
    /// The hash the answer is bound to.
    pub hash: String,
}
