//! Ways out that are made of tool calls: they are told to the agent, which carries them out as it sees fit.

use unstuck_core::event::{AttemptFailed, SessionSpec};
use unstuck_core::knowledge::Playbook;
use unstuck_core::planner::{PlanRequest, plan};
use unstuck_core::session_state::NextAttempt;
use unstuck_core::{Failure, Layer};

use super::run_request::AttemptOptions;

/// Steps that are the supervisor's own, and nothing for an agent to do.
const SUPERVISOR_STEPS: [&str; 4] = ["ask_user", "wait", "retry", "repair"];

/// The steps of the strategy that an attempt follows, as a list; none if it is no way of tool calls.
pub(super) fn strategy_steps(
    playbook: &Playbook,
    spec: &SessionSpec,
    options: &AttemptOptions,
    failed: &AttemptFailed,
    next: &NextAttempt,
) -> Option<String> {
    let strategy = next.cause.as_ref()?.strategy.as_deref()?;
    let diagnosis = &failed.diagnosis;
    if !matches!(diagnosis.layer, Layer::Tool | Layer::Infra) {
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
    let request = PlanRequest {
        root: Some(spec.cwd.clone()),
        ..PlanRequest::new(playbook, &failure, diagnosis)
    };
    let known = playbook.strategy(strategy)?;
    if known.asks_person || !known.changes.is_empty() {
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
        // Without steps, the title of the strategy tells an agent enough.
        format!("- {}", known.title)
    } else {
        told.join("\n")
    })
}
