//! Events about a run as a whole.

use serde::{Deserialize, Serialize};

use super::pipeline::RecordedPipelineSettings;
use super::session::{RoleInstance, SessionSpec};

/// A run started; contains everything needed to resume it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunStarted {
    /// The project root.
    pub project: String,
    /// The commit checked out at the start: later commits by agents are not accepted by anybody. Empty if there was
    /// none, absent in a log of an older version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub head: Option<String>,
    /// The kind of run.
    #[serde(flatten)]
    pub kind: RunKind,
}

/// The kind of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum RunKind {
    /// A pipeline of roles.
    Pipeline(Box<RecordedPipelineSettings>),
    /// A single command, which is the only session.
    Command(Box<SessionSpec>),
}

impl RunStarted {
    /// Returns the only session, unless it is a pipeline.
    pub fn sole_session(&self) -> Option<&SessionSpec> {
        match &self.kind {
            RunKind::Command(spec) => Some(spec),
            RunKind::Pipeline(_) => None,
        }
    }

    /// Returns the pipeline, if it is one.
    pub fn pipeline(&self) -> Option<&RecordedPipelineSettings> {
        match &self.kind {
            RunKind::Pipeline(pipeline) => Some(pipeline),
            RunKind::Command(_) => None,
        }
    }

    /// Returns the number of parallel instances of a role.
    pub fn instances(&self, part: Option<&RoleInstance>) -> u32 {
        let roles = self.pipeline().map_or(&[][..], |plan| &plan.roles);
        let role = roles
            .iter()
            .find(|role| part.is_some_and(|part| part.role == role.id));
        role.map_or(1, |role| role.instances)
    }

    /// Returns the command line that started it.
    pub fn command(&self) -> &[String] {
        match &self.kind {
            RunKind::Command(spec) => &spec.command,
            RunKind::Pipeline(pipeline) => &pipeline.command,
        }
    }

    /// Returns the working directory.
    pub fn cwd(&self) -> &str {
        match &self.kind {
            RunKind::Command(spec) => &spec.cwd,
            RunKind::Pipeline(pipeline) => &pipeline.cwd,
        }
    }

    /// Returns the id of the default policy.
    pub fn policy(&self) -> &str {
        match &self.kind {
            RunKind::Command(spec) => &spec.policy.id,
            RunKind::Pipeline(pipeline) => &pipeline.policy,
        }
    }

    /// Returns the reason why it cannot be resumed, if it cannot.
    pub fn unrepeatable_reason(&self) -> Option<&str> {
        self.sole_session()?.unrepeatable_reason.as_deref()
    }
}

/// A run was resumed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunResumed {
    /// The reason why it had stopped.
    #[serde(rename = "stop_reason", alias = "after")]
    pub stop_reason: String,
    /// The process that continues it.
    pub pid: u32,
    /// The new pipeline settings, if the configuration changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pipeline: Option<Box<RecordedPipelineSettings>>,
    /// Roles whose outputs are invalid and that are run again.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub restarted: Vec<String>,
    /// The requested time to keep retrying, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keep_trying_ms: Option<u64>,
    /// The hash of the project files that a single command now depends on, if a human accepted their changes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project_settings: Option<String>,
}

impl RunResumed {
    /// Creates a resumption without changes.
    pub fn unchanged(after: impl Into<String>, pid: u32) -> Self {
        Self {
            stop_reason: after.into(),
            pid,
            pipeline: None,
            restarted: Vec::new(),
            keep_trying_ms: None,
            project_settings: None,
        }
    }
}
