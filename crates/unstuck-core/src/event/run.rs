//! Events about a run as a whole, and the ids of runs and sessions.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::pipeline::PipelineStarted;
use super::session::SessionSpec;
use crate::decision::Draw;
use crate::failure::Level;

/// The letters of ids: Crockford's, without those that are easily mistaken for another.
const LETTERS: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";

/// The id of a run: ten letters and digits, of which people type the first few.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RunId(String);

impl RunId {
    /// The id that chance gives.
    pub fn drawn(draw: Draw) -> Self {
        let letter = |place: u32| char::from(LETTERS[(draw.0 >> (place * 5)) as usize % 32]);
        Self((0..10).map(letter).collect())
    }

    /// The id that is written like this.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// It as a text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Its first letters, which people see.
    pub fn short(&self) -> &str {
        self.0.get(..6).unwrap_or(&self.0)
    }

    /// The id of its session of that number.
    pub fn session(&self, number: u32) -> SessionId {
        SessionId(format!("{}-{number}", self.0))
    }
}

impl fmt::Display for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

/// The id of a session: that of its run, and a number.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct SessionId(String);

impl SessionId {
    /// The id that is written like this.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// It as a text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// How a run began, with all that is needed to take it up again.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunStarted {
    /// The root folder of its project.
    pub project: String,
    /// What it does.
    #[serde(flatten)]
    pub work: Work,
}

/// What a run does.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Work {
    /// Roles that build on each other.
    Pipeline(Box<PipelineStarted>),
    /// One command, which is its only session.
    Command(Box<SessionSpec>),
}

impl RunStarted {
    /// Its only session, unless it is a pipeline.
    pub fn sole_session(&self) -> Option<&SessionSpec> {
        match &self.work {
            Work::Command(spec) => Some(spec),
            Work::Pipeline(_) => None,
        }
    }

    /// Its roles, if it is a pipeline.
    pub fn pipeline(&self) -> Option<&PipelineStarted> {
        match &self.work {
            Work::Pipeline(pipeline) => Some(pipeline),
            Work::Command(_) => None,
        }
    }

    /// The command line that began it.
    pub fn command(&self) -> &[String] {
        match &self.work {
            Work::Command(spec) => &spec.command,
            Work::Pipeline(pipeline) => &pipeline.command,
        }
    }

    /// The folder that it works in.
    pub fn cwd(&self) -> &str {
        match &self.work {
            Work::Command(spec) => &spec.cwd,
            Work::Pipeline(pipeline) => &pipeline.cwd,
        }
    }

    /// The id of the policy that counts where nothing else is said.
    pub fn policy(&self) -> &str {
        match &self.work {
            Work::Command(spec) => &spec.policy.id,
            Work::Pipeline(pipeline) => &pipeline.policy,
        }
    }

    /// Why it cannot be taken up again, if it cannot.
    pub fn unrepeatable(&self) -> Option<&str> {
        self.sole_session()?.unrepeatable.as_deref()
    }
}

/// A run was taken up again.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunResumed {
    /// Why it had stopped.
    pub after: String,
    /// The process that goes on with it.
    pub pid: u32,
    /// What a pipeline is from now on, where its configuration was changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pipeline: Option<Box<PipelineStarted>>,
    /// Roles whose outputs count no more and which are run again.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub restarted: Vec<String>,
}

impl RunResumed {
    /// A run that goes on as it was.
    pub fn as_it_was(after: impl Into<String>, pid: u32) -> Self {
        Self {
            after: after.into(),
            pid,
            pipeline: None,
            restarted: Vec::new(),
        }
    }
}

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// It did what it should at the first try.
    Succeeded,
    /// It did what it should after something had failed.
    Recovered,
    /// It failed, and that was passed on: the policy is off, or the failure is the agent's own to work on.
    Failed,
    /// A person has been asked, and nothing goes on without them.
    AwaitingHuman,
    /// A person stopped it.
    Interrupted,
}

impl Outcome {
    /// The name used on every wire.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Succeeded => "succeeded",
            Self::Recovered => "recovered",
            Self::Failed => "failed",
            Self::AwaitingHuman => "awaiting_human",
            Self::Interrupted => "interrupted",
        }
    }

    /// Whether the work was done.
    pub const fn is_success(self) -> bool {
        matches!(self, Self::Succeeded | Self::Recovered)
    }

    /// Whether there is something left to take up again.
    pub const fn is_resumable(self) -> bool {
        matches!(self, Self::AwaitingHuman | Self::Interrupted)
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// How a run came to its end, or to a stop.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunFinished {
    /// How it ended.
    pub outcome: Outcome,
    /// The exit code that the caller got.
    pub exit_code: i32,
    /// Why, in one sentence.
    pub reason: String,
    /// How many attempts there were.
    pub attempts: u32,
    /// How many of them were retries that had been decided on.
    pub retry_count: u32,
    /// The highest level that was reached.
    #[serde(default)]
    pub recovery_level: Option<Level>,
    /// What it cost, in USD, as far as is known.
    #[serde(default)]
    pub cost_usd: f64,
    /// How long it took, waits included, in milliseconds.
    pub duration_ms: u64,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decision::Dice;

    #[test]
    fn ids_are_short_to_read_and_hard_to_mistake() {
        let id = RunId::drawn(Dice::seeded(1).roll());
        assert_eq!(id.as_str().len(), 10);
        assert!(id.as_str().bytes().all(|letter| LETTERS.contains(&letter)));
        assert_eq!(id.short().len(), 6);
        assert_eq!(id.session(1).as_str(), format!("{id}-1"));
    }
}
