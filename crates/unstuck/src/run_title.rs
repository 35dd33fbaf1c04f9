//! Renders the one-line title of a run, and returns the style of its status.

use unstuck_core::views::{RunStatus, RunSummary};

use crate::output::{GREEN, RED, YELLOW};
use crate::sanitized_text::{command_line, one_line};

/// Placeholder command for a session of a gateway client.
const GATEWAY_COMMAND: &str = "(gateway)";

/// True if a run is a gateway client's own session, not started here.
pub(crate) fn is_gateway_client(run: &RunSummary) -> bool {
    run.command
        .first()
        .is_some_and(|word| word == GATEWAY_COMMAND)
}

/// Returns the title of a run in one line: its command, or the task of its roles.
pub(crate) fn run_title(run: &RunSummary) -> String {
    if is_gateway_client(run) {
        let client = run.command.get(1).map_or("", String::as_str);
        return format!("gateway: {}", one_line(client, usize::MAX));
    }
    let task = run.task.as_deref().map(|task| one_line(task, usize::MAX));
    match (task, run.roles) {
        (Some(task), _) if !task.is_empty() => format!("run: {task}"),
        (_, Some(1)) => "run (1 role)".to_owned(),
        (_, Some(roles)) => format!("run ({roles} roles)"),
        (_, None) => command_line(&run.command, usize::MAX),
    }
}

/// Returns the color for a status.
pub(crate) fn status_style(status: RunStatus) -> anstyle::Style {
    match status {
        RunStatus::Succeeded | RunStatus::Recovered => GREEN,
        RunStatus::Failed | RunStatus::AwaitingHuman | RunStatus::Crashed => RED,
        RunStatus::Running | RunStatus::Waiting | RunStatus::Interrupted => YELLOW,
    }
}
