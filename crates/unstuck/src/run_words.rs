//! What is said of a run wherever runs are shown: what it does, and how it stands.

use unstuck_core::episode::{RunView, Status};

use crate::output::{GREEN, RED, YELLOW};
use crate::show_text::{command_line, one_line};

/// What a run does, on one line: its command, or the task of its roles.
pub(crate) fn what(run: &RunView) -> String {
    let task = run.task.as_deref().map(|task| one_line(task, usize::MAX));
    match (task, run.roles) {
        (Some(task), _) if !task.is_empty() => format!("run: {task}"),
        (_, Some(1)) => "run (1 role)".to_owned(),
        (_, Some(roles)) => format!("run ({roles} roles)"),
        (_, None) => command_line(&run.command, usize::MAX),
    }
}

/// The colour of how a run or a session stands.
pub(crate) fn style(status: Status) -> anstyle::Style {
    match status {
        Status::Succeeded | Status::Recovered => GREEN,
        Status::Failed | Status::AwaitingHuman => RED,
        Status::Running | Status::Waiting | Status::Interrupted => YELLOW,
    }
}
