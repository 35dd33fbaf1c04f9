//! Events about a run as a whole.

use serde::{Deserialize, Serialize};

use super::pipeline::PipelineStarted;
use super::session::{RoleInstance, SessionSpec};

/// How a run began, with all that is needed to take it up again.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunStarted {
    /// The root folder of its project.
    pub project: String,
    /// The commit that was checked out when it began: what agents commit later, nobody has accepted. Empty where there
    /// was none, absent in a log of an older version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub head: Option<String>,
    /// What it does.
    #[serde(flatten)]
    pub kind: RunKind,
}

/// What a run does.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum RunKind {
    /// Roles that build on each other.
    Pipeline(Box<PipelineStarted>),
    /// One command, which is its only session.
    Command(Box<SessionSpec>),
}

impl RunStarted {
    /// Its only session, unless it is a pipeline.
    pub fn sole_session(&self) -> Option<&SessionSpec> {
        match &self.kind {
            RunKind::Command(spec) => Some(spec),
            RunKind::Pipeline(_) => None,
        }
    }

    /// Its roles, if it is a pipeline.
    pub fn pipeline(&self) -> Option<&PipelineStarted> {
        match &self.kind {
            RunKind::Pipeline(pipeline) => Some(pipeline),
            RunKind::Command(_) => None,
        }
    }

    /// How many play the role of a part at the same time.
    pub fn instances(&self, part: Option<&RoleInstance>) -> u32 {
        let roles = self.pipeline().map_or(&[][..], |plan| &plan.roles);
        let role = roles
            .iter()
            .find(|role| part.is_some_and(|part| part.role == role.id));
        role.map_or(1, |role| role.instances)
    }

    /// The command line that began it.
    pub fn command(&self) -> &[String] {
        match &self.kind {
            RunKind::Command(spec) => &spec.command,
            RunKind::Pipeline(pipeline) => &pipeline.command,
        }
    }

    /// The folder that it works in.
    pub fn cwd(&self) -> &str {
        match &self.kind {
            RunKind::Command(spec) => &spec.cwd,
            RunKind::Pipeline(pipeline) => &pipeline.cwd,
        }
    }

    /// The id of the policy that counts where nothing else is said.
    pub fn policy(&self) -> &str {
        match &self.kind {
            RunKind::Command(spec) => &spec.policy.id,
            RunKind::Pipeline(pipeline) => &pipeline.policy,
        }
    }

    /// Why it cannot be taken up again, if it cannot.
    pub fn unrepeatable_reason(&self) -> Option<&str> {
        self.sole_session()?.unrepeatable_reason.as_deref()
    }
}

/// A run was taken up again.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunResumed {
    /// Why it had stopped.
    #[serde(rename = "after")]
    pub stop_reason: String,
    /// The process that goes on with it.
    pub pid: u32,
    /// What a pipeline is from now on, where its configuration was changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pipeline: Option<Box<PipelineStarted>>,
    /// Roles whose outputs count no more and which are run again.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub restarted: Vec<String>,
    /// How long a person wants it to be tried from now on, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keep_trying_ms: Option<u64>,
    /// The hash of what a single command goes by of the project's own files from now on, where a person has accepted them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project_settings: Option<String>,
}

impl RunResumed {
    /// A run that goes on as it was.
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
