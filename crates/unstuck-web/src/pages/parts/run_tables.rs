//! Tables of sessions and runs with one line each, shown as cards on a phone.

use maud::{Markup, html};
use unstuck_core::views::RunStatus;
use unstuck_core::{RunId, Timestamp};

use super::{badge, money, sanitized_text, time};
use crate::model::{RunSummaryResponse, SessionResponse};
use crate::pages::chart::{self, LastAttemptState};

/// Maximum length of a command or task in a line.
const MAX_TITLE: usize = 110;

/// Renders a table of sessions.
pub(crate) fn session_table(caption: &str, all: &[SessionResponse], now: Timestamp) -> Markup {
    html! {
        div class="card flush" {
            table class="table folds lined" {
                caption class="hidden-visually" { (caption) }
                thead { tr {
                    th scope="col" { "Status" } th scope="col" { "Session" } th scope="col" { "Model" }
                    th scope="col" { "Attempt" } th scope="col" class="number" { "Cost" } th scope="col" class="number" { "Started" }
                } }
                tbody {
                    @for session in all {
                        tr data-key={ "session-" (session.id) } {
                            td { (status_with_hint(session.status, &session.run)) }
                            td { (title(session, now)) }
                            td data-name="Model" { (model_name(session.model.as_deref())) }
                            td data-name="Attempt" { (attempt_count(session)) }
                            td data-name="Cost" class="number" { (money::cost(session.cost_usd, session.unknown_price)) }
                            td data-name="Started" class="number" { (time::ago(session.started, now)) }
                        }
                    }
                }
            }
        }
    }
}

fn title(session: &SessionResponse, now: Timestamp) -> Markup {
    html! {
        div class="title-cell" {
            a href={ "/sessions/" (session.id) } { (session_title(session)) }
            span class="small dim" {
                (sanitized_text::one_line(sanitized_text::directory_name(&session.project), 60))
                @if let Some(agent) = &session.agent { " · " (sanitized_text::one_line(agent, 40)) }
            }
            (wait_reason(session.until, session.reason.as_deref(), session.status, now))
        }
    }
}

/// Returns the title of a session: its role, else its command.
pub(crate) fn session_title(session: &SessionResponse) -> String {
    match &session.role {
        Some(role) => {
            let role = sanitized_text::one_line(role, 60);
            match (session.iteration, session.instance) {
                (Some(iteration), _) if iteration > 1 => format!("{role}, iteration {iteration}"),
                _ => role,
            }
        }
        None if session.gateway_client().is_some() => client_title(session.gateway_client()),
        None if session.command.is_empty() => {
            format!("Session {}", sanitized_text::one_line(&session.id, 40))
        }
        None => sanitized_text::command_line(&session.command, MAX_TITLE),
    }
}

fn client_title(name: Option<&str>) -> String {
    let name = sanitized_text::one_line(name.unwrap_or_default(), 80);
    format!("Calls from {name}")
}

/// Renders the reason for the status: what the session waits for and how long, or why it ended.
pub(crate) fn wait_reason(
    until: Option<Timestamp>,
    reason: Option<&str>,
    status: RunStatus,
    now: Timestamp,
) -> Markup {
    let reason = reason.map(|reason| sanitized_text::one_line(reason, 200));
    html! {
        @match (status, until) {
            (RunStatus::Waiting, Some(until)) => {
                span class="small" { span class="strong" { "Retrying " (time::until(until, now)) } @if let Some(reason) = reason { span class="dim" { " · " (reason) } } }
            }
            // The outcome of an earlier attempt does not describe the running one.
            (RunStatus::Succeeded | RunStatus::Running, _) => {}
            _ => { @if let Some(reason) = reason { span class="small dim" { (reason) } } }
        }
    }
}

/// Renders the number of the attempt, and of how many.
pub(crate) fn attempt_count(session: &SessionResponse) -> Markup {
    let last = match session.status {
        RunStatus::Running => LastAttemptState::UnderWay,
        RunStatus::Succeeded | RunStatus::Recovered => LastAttemptState::Worked,
        _ => LastAttemptState::Failed,
    };
    html! {
        @if session.gateway_client().is_some() { span class="dim" { "–" } }
        @else { span class="nowrap" {
            @match session.max_attempts {
                Some(most) if most >= session.attempt_count => { (session.attempt_count) " of " (most) " " }
                _ => { (session.attempt_count) " " }
            }
            @if session.attempt_count > 1 || session.max_attempts.is_some_and(|most| most > 1) {
                (chart::attempt_dots(session.attempt_count, session.max_attempts, last))
            }
        } }
    }
}

/// Renders the name of a model.
pub(crate) fn model_name(name: Option<&str>) -> Markup {
    html! {
        @match name {
            Some(name) => span class="tag" { (sanitized_text::one_line(name, 80)) },
            None => span class="dim" { "–" },
        }
    }
}

/// Renders the status of a run or its session, with a hint after a crash.
pub(crate) fn status_with_hint(status: RunStatus, run: &str) -> Markup {
    html! {
        (badge::status_badge(status))
        @if status == RunStatus::Crashed {
            div class="small dim" { "Supervising process is gone. Resume: " code { "unstuck resume " (sanitized_text::one_line(RunId::new(run).short(), 40)) } }
        }
    }
}

/// Renders a note that a table is incomplete.
pub(crate) fn truncation_note(shown: usize, all: usize) -> Markup {
    html! {
        @if shown < all { p class="small dim" { "Showing " (shown) " of " (all) " runs. " a href="/runs" { "All runs" } } }
    }
}

/// Renders a table of runs.
pub(crate) fn run_table(caption: &str, all: &[RunSummaryResponse], now: Timestamp) -> Markup {
    html! {
        div class="card flush" {
            table class="table folds lined" {
                caption class="hidden-visually" { (caption) }
                thead { tr {
                    th scope="col" { "Status" } th scope="col" { "Run" } th scope="col" { "Model" }
                    th scope="col" class="number" { "Attempts" } th scope="col" class="number" { "Cost" } th scope="col" class="number" { "Started" }
                } }
                tbody {
                    @for run in all {
                        tr data-key={ "run-" (run.id) } {
                            td { (status_with_hint(run.status, &run.id)) }
                            td {
                                div class="title-cell" {
                                    a href={ "/runs/" (run.id) } { (run_title(run)) }
                                    span class="small dim" {
                                        (sanitized_text::one_line(sanitized_text::directory_name(&run.project), 60))
                                        @if let Some(kind) = run.kind.filter(|_| run.status != RunStatus::Succeeded) { " · " code { (kind) } }
                                        @if let Some(roles) = run.roles { " · " (money::pluralize(roles as u64, "role")) }
                                    }
                                    (wait_reason(run.until, run.reason.as_deref(), run.status, now))
                                }
                            }
                            td data-name="Model" { (model_name(run.model.as_deref())) }
                            td data-name="Attempts" class="number" { (run.attempt_count) }
                            td data-name="Cost" class="number" { (money::cost(run.cost_usd, run.unknown_price)) }
                            td data-name="Started" class="number" { (time::ago(run.started, now)) }
                        }
                    }
                }
            }
        }
    }
}

/// Returns the title of a run: its task, else its command.
pub(crate) fn run_title(run: &RunSummaryResponse) -> String {
    match &run.task {
        Some(task) => sanitized_text::one_line(task, MAX_TITLE),
        None if run.gateway_client().is_some() => client_title(run.gateway_client()),
        None if run.command.is_empty() => format!("Run {}", sanitized_text::one_line(&run.id, 40)),
        None => sanitized_text::command_line(&run.command, MAX_TITLE),
    }
}
