//! Questions to people: which wait, and what was answered.

use unstuck_core::Timestamp;
use unstuck_core::event::{EscalationOpened, EscalationResolved, RunId};

/// A question to a person.
#[derive(Debug, Clone, PartialEq)]
pub struct EscalationRow {
    /// The run that asks.
    pub run: RunId,
    /// The root folder of its project.
    pub project: String,
    /// When it was asked.
    pub at: Timestamp,
    /// What is asked.
    pub request: EscalationOpened,
    /// What was answered, if it was.
    pub closure: Option<EscalationClosure>,
}

/// What was answered.
#[derive(Debug, Clone, PartialEq)]
pub struct EscalationClosure {
    /// When.
    pub at: Timestamp,
    /// What; none where it has come to nothing because the run went on or ended.
    pub answer: Option<EscalationResolved>,
}

/// Whether questions wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum EscalationStatus {
    /// They wait for an answer; the newest comes first.
    #[default]
    Open,
    /// They were answered or came to nothing; the one that was answered last comes first.
    Closed,
    /// Whether they wait or not; the newest comes first.
    Any,
}

/// Which questions are asked for; all that wait by default.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct EscalationFilter {
    /// Those of this run.
    pub run: Option<RunId>,
    /// Those whose id begins like this.
    pub prefix: Option<String>,
    /// Those of this project.
    pub project: Option<String>,
    /// Those that wait, were answered, or both.
    pub status: EscalationStatus,
    /// Those behind the one with this id; none where there is no such question.
    pub after: Option<String>,
    /// So many at most.
    pub limit: Option<usize>,
}

/// The question that events answer: they are written only if it still waits, and is the one that was shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AnswerGuard {
    /// The id of the question.
    pub escalation: String,
    /// What the answer binds to.
    pub hash: String,
}
