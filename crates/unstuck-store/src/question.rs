//! Questions to people: which wait, and what was answered.

use unstuck_core::Timestamp;
use unstuck_core::event::{RecoveryEscalated, RecoveryResolved, RunId};

/// A question to a person.
#[derive(Debug, Clone, PartialEq)]
pub struct Question {
    /// The run that asks.
    pub run: RunId,
    /// The root folder of its project.
    pub project: String,
    /// When it was asked.
    pub at: Timestamp,
    /// What is asked.
    pub asked: RecoveryEscalated,
    /// What was answered, if it was.
    pub answered: Option<Answered>,
}

/// What was answered.
#[derive(Debug, Clone, PartialEq)]
pub struct Answered {
    /// When.
    pub at: Timestamp,
    /// What; none where it has come to nothing because the run went on or ended.
    pub answer: Option<RecoveryResolved>,
}

/// Whether questions wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Standing {
    /// They wait for an answer; the newest comes first.
    #[default]
    Waiting,
    /// They were answered or came to nothing; the one that was answered last comes first.
    Answered,
    /// Whether they wait or not; the newest comes first.
    Any,
}

/// Which questions are asked for; all that wait by default.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct QuestionFilter {
    /// Those of this run.
    pub run: Option<RunId>,
    /// Those whose id begins like this.
    pub prefix: Option<String>,
    /// Those of this project.
    pub project: Option<String>,
    /// Those that wait, were answered, or both.
    pub standing: Standing,
    /// Those behind the one with this id; none where there is no such question.
    pub after: Option<String>,
    /// So many at most.
    pub limit: Option<usize>,
}

/// The question that events answer: they are written only if it still waits, and is the one that was shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answers {
    /// The id of the question.
    pub question: String,
    /// What the answer binds to.
    pub hash: String,
}
