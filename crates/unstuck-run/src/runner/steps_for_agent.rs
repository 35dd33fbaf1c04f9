//! Strategies that consist of tool calls: the agent gets them as a list of steps.

use unstuck_core::event::{AttemptFailed, SessionSpec};
use unstuck_core::knowledge::RecoveryKnowledge;
use unstuck_core::recovery_plan::{RecoveryPlanRequest, plan};
use unstuck_core::session_state::NextAttempt;
use unstuck_core::{Failure, FailureLayer};

use super::run_request::RunAttemptOptions;

/// Steps of the supervisor itself, which an agent cannot perform.
const SUPERVISOR_STEPS: [&str; 4] = ["ask_user", "wait", "retry", "repair"];

/// Returns the steps of an attempt's strategy as a list; `None` if it has no tool calls.
pub(super) fn strategy_steps(
    playbook: &RecoveryKnowledge,
    spec: &SessionSpec,
    options: &RunAttemptOptions,
    failed: &AttemptFailed,
    next: &NextAttempt,
) -> Option<String> {
    let strategy = next.cause.as_ref()?.strategy.as_deref()?;
    let diagnosis = &failed.diagnosis;
    if !matches!(diagnosis.layer, FailureLayer::Tool | FailureLayer::Infra) {
        return None;
    }
    let command = options
        .check
        .clone()
        .unwrap_or_else(|| spec.command.join(" "));
    let failure = Failure {
        command: Some(command),
        exit_code: failed.end.exit_code,
        stderr: Some(diagnosis.evidence.line.as_str().into()),
        ..Failure::new(diagnosis.layer)
    };
    let request = RecoveryPlanRequest {
        root: Some(spec.cwd.clone()),
        ..RecoveryPlanRequest::new(playbook, &failure, diagnosis)
    };
    let known = playbook.strategy(strategy)?;
    if known.requires_human || !known.changes.is_empty() {
        return None;
    }
    let planned = plan(&request)
        .into_iter()
        .find(|one| one.strategy == strategy);
    let told: Vec<_> = planned
        .iter()
        .flat_map(|planned| &planned.steps)
        .filter(|step| !SUPERVISOR_STEPS.contains(&step.tool.as_str()))
        .map(|step| {
            match step
                .args
                .get("command")
                .and_then(|command| command.as_str())
            {
                Some(command) => format!("- {}: `{command}`", step.action),
                None => format!("- {}", step.action),
            }
        })
        .collect();
    Some(if told.is_empty() {
        // Without steps, the title of the strategy is enough for an agent.
        format!("- {}", known.title)
    } else {
        told.join("\n")
    })
}
