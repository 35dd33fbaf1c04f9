//! Tests of whole plans and prompts.

mod chains;
mod choice;
mod harm;
mod laws;
mod missing;
mod prompts;
mod refused;
mod slow;

use std::time::Duration;

use crate::diagnosis::{Diagnosis, Evidence};
use crate::failure::{Failure, FailureKind, FailureLayer};
use crate::knowledge::RecoveryKnowledge;
use crate::recovery_plan::{PlannedStrategy, RecoveryPlanRequest, plan};

/// Creates a diagnosis as the classifier would.
fn diagnosis(kind: FailureKind, layer: FailureLayer, line: &str) -> Diagnosis {
    Diagnosis {
        kind,
        layer,
        level: None,
        confidence: 1.0,
        retry_after: None,
        retry_after_source: None,
        evidence: Evidence {
            rule: "test".into(),
            line: line.into(),
        },
        fingerprint: String::new(),
        message: String::new(),
        hint: String::new(),
        truncated: false,
    }
}

/// A failure to plan for.
struct Case {
    recovery_knowledge: RecoveryKnowledge,
    failure: Failure,
    diagnosis: Diagnosis,
    args: Option<serde_json::Value>,
}

impl Case {
    fn new(kind: FailureKind, failure: Failure, line: &str) -> Self {
        Self {
            recovery_knowledge: RecoveryKnowledge::built_in().clone(),
            diagnosis: diagnosis(kind, failure.layer, line),
            failure: failure.with_stderr(line),
            args: None,
        }
    }

    /// Creates a failed shell command of an agent whose shell tool is `run_bash`.
    fn shell(kind: FailureKind, command: &str, line: &str) -> Self {
        Self::new(kind, Failure::tool("run_bash").with_command(command), line)
    }

    /// Creates a failed call of another tool.
    fn tool(kind: FailureKind, name: &str, args: serde_json::Value, line: &str) -> Self {
        Self {
            args: Some(args),
            ..Self::new(kind, Failure::tool(name), line)
        }
    }

    fn after(mut self, seconds: u64) -> Self {
        self.diagnosis.retry_after = Some(Duration::from_secs(seconds));
        self
    }

    fn plan(&self) -> Vec<PlannedStrategy> {
        self.plan_with(|_| {})
    }

    fn plan_with(&self, set: impl FnOnce(&mut RecoveryPlanRequest<'_>)) -> Vec<PlannedStrategy> {
        let mut request =
            RecoveryPlanRequest::new(&self.recovery_knowledge, &self.failure, &self.diagnosis);
        request.args = self.args.as_ref();
        set(&mut request);
        plan(&request)
    }
}

fn words(list: &[&str]) -> Vec<String> {
    list.iter().map(|word| (*word).to_owned()).collect()
}

fn ids(plan: &[PlannedStrategy]) -> Vec<&str> {
    plan.iter().map(|one| one.strategy.as_str()).collect()
}

fn strategy<'a>(plan: &'a [PlannedStrategy], id: &str) -> &'a PlannedStrategy {
    let found = plan.iter().find(|one| one.strategy == id);
    found.unwrap_or_else(|| panic!("no {id} in {:?}", ids(plan)))
}

/// Returns the shell commands of a strategy's steps.
fn scripts<'a>(plan: &'a [PlannedStrategy], id: &str) -> Vec<&'a str> {
    let steps = strategy(plan, id).steps.iter();
    steps
        .filter_map(|step| step.args.get("script")?.as_str())
        .collect()
}

/// Creates a failed clone on a machine without git.
fn clone(url: &str) -> Case {
    let command = format!("git clone {url}");
    Case::shell(
        FailureKind::CommandNotFound,
        &command,
        "bash: git: command not found",
    )
}
