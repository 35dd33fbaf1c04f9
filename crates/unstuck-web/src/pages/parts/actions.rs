//! Action buttons of a run or session, and their dialogs.

use maud::{Markup, html};
use unstuck_core::duration::HumanDuration;
use unstuck_core::views::RunStatus;

use super::controls::{Permissions, button, dialog, dialog_button};
use super::{money, run_tables, sanitized_text};
use crate::model::{
    ExtraCostEstimateResponse, RetryPromptResponse, RunSummaryResponse, SessionResponse,
};

/// Returns true if the session ended successfully.
const fn is_finished(it: &SessionResponse) -> bool {
    matches!(it.status, RunStatus::Succeeded | RunStatus::Recovered)
}

/// Returns why a session cannot be retried.
fn retry_refusal(it: &SessionResponse, may: Permissions) -> Option<&'static str> {
    match it.status {
        _ if it.gateway_client().is_some() => {
            Some("This session is a gateway client. Restart the client instead.")
        }
        RunStatus::Running | RunStatus::Waiting if it.supervised => {
            Some("Session is running. Stop it first or wait.")
        }
        _ if is_finished(it) && it.role.is_none() => {
            Some("Session has succeeded. Start a new run.")
        }
        _ => may.answer_refusal(),
    }
}

/// Returns why a session cannot be retried with options.
fn retry_options_refusal(it: &SessionResponse, may: Permissions) -> Option<&'static str> {
    if is_finished(it) && it.role.is_some() {
        Some("Session has succeeded. It can only be re-run unchanged.")
    } else {
        retry_refusal(it, may)
    }
}

/// Returns why the model of a session cannot be switched.
fn model_switch_refusal(it: &SessionResponse, may: Permissions) -> Option<&'static str> {
    if is_finished(it) {
        Some("Session has succeeded. There is nothing to continue.")
    } else {
        may.answer_refusal()
    }
}

/// Renders the buttons of a session.
pub(crate) fn session_buttons(it: &SessionResponse, may: Permissions) -> Markup {
    html! {
        div class="actions" {
            (dialog_button("", "retry-plain", retry_refusal(it, may), "Retry"))
            (dialog_button("", "retry", retry_options_refusal(it, may), "Retry with error context"))
            (dialog_button("", "escalate", model_switch_refusal(it, may), "Use a stronger model"))
            @if it.supervised && it.gateway_client().is_none() && is_active(it.status) { (dialog_button("danger", "stop", may.answer_refusal(), "Stop")) }
        }
    }
}

/// Renders the buttons of a run, including those of its session if there is only one.
pub(crate) fn run_buttons(
    run: &RunSummaryResponse,
    sessions: &[SessionResponse],
    may: Permissions,
) -> Markup {
    html! {
        div class="actions" {
            @if let [only] = sessions { a class="button" href={ "/sessions/" (only.id) } { "Retry, compare, switch model" } }
            @if run.supervised && run.gateway_client().is_none() && is_active(run.status) { (dialog_button("danger", "stop", may.answer_refusal(), "Stop")) }
        }
    }
}

const fn is_active(status: RunStatus) -> bool {
    matches!(
        status,
        RunStatus::Running | RunStatus::Waiting | RunStatus::AwaitingHuman
    )
}

/// Renders the dialogs of a session; computed content is loaded when they open.
pub(crate) fn session_dialogs(it: &SessionResponse, may: Permissions) -> Markup {
    html! {
        (dialog("retry", "Retry with error context", "retry-form"))
        (dialog("escalate", "Continue with a stronger model", "escalate-form"))
        dialog id="retry-plain" aria-labelledby="retry-plain-title" {
            form class="inside" data-api={ "/api/sessions/" (it.id) "/retry" } data-done="Retry started." {
                h2 id="retry-plain-title" { "Retry" }
                p { "Retries from where it failed, without changes. Earlier attempts are kept." }
                (retry_options(it, "plain"))
                p class="says" role="alert" {}
                (dialog_buttons("Retry", may.answer_refusal()))
            }
        }
        (stop_dialog(&it.run, may))
    }
}

fn retry_options(it: &SessionResponse, prefix: &str) -> Markup {
    html! {
        div class="fields" {
            div class="field" {
                label for={ (prefix) "-model" } { "Model" }
                input id={ (prefix) "-model" } name="model" data-type="optional" maxlength="200" placeholder=(sanitized_text::one_line(it.model.as_deref().unwrap_or("unchanged"), 80));
                p class="hint" { "Leave empty to keep the current model." }
            }
            div class="field" {
                label for={ (prefix) "-timeout" } { "Time limit" }
                input id={ (prefix) "-timeout" } name="timeout" data-type="optional" maxlength="40" placeholder=(it.timeout_ms.map_or_else(|| "unchanged".to_owned(), |ms| HumanDuration(std::time::Duration::from_millis(ms)).to_string()));
                p class="hint" { "For example, 20m." }
            }
        }
    }
}

fn dialog_buttons(does: &str, refused: Option<&str>) -> Markup {
    html! {
        div class="actions" {
            button type="button" class="plain" data-close { "Cancel" }
            (button("primary", "submit", refused, html! { (does) }))
        }
    }
}

/// Renders the form with the prompt of a retry, to read and edit.
pub(crate) fn retry_form(it: &SessionResponse, prompt: &RetryPromptResponse) -> Markup {
    html! {
        form class="stack" data-api={ "/api/sessions/" (it.id) "/retry" } data-base=r#"{"withContext":true}"# data-done="Retry started." {
            p class="small dim" {
                @if prompt.continues { "Continues the agent's conversation. This is sent as the next message." } @else { "Starts a new conversation with this prompt." }
            }
            div class="field" {
                label for="retry-prompt" { "Prompt to send" }
                textarea id="retry-prompt" name="prompt" rows="14" maxlength="400000" aria-describedby="retry-prompt-hint" { (prompt.prompt) }
                p id="retry-prompt-hint" class="hint" { "Contains the error, the failed output and an instruction to avoid the same mistake. Edit as needed." }
            }
            (retry_options(it, "retry"))
            p class="says" role="alert" {}
            (dialog_buttons("Send", None))
        }
    }
}

/// Renders the form of a model switch: both models, the cost and what is preserved.
pub(crate) fn model_switch_form(
    it: &SessionResponse,
    estimate: &ExtraCostEstimateResponse,
) -> Markup {
    html! {
        form class="stack" data-api={ "/api/sessions/" (it.id) "/escalate" } data-base=r#"{"confirm":true}"# data-done="The session continues with the stronger model." {
            dl class="kv" {
                dt { "From" } dd { (run_tables::model_name(estimate.from_model.as_deref().or(it.model.as_deref()))) }
                dt { "To" } dd { (run_tables::model_name(estimate.to_model.as_deref())) }
                dt { "Estimated cost" } dd { span class="strong" { (estimate.usd.map_or_else(|| "unknown".to_owned(), money::signed_usd)) } div class="small dim" { (sanitized_text::one_line(&estimate.formula, 400)) } }
                @if !estimate.preserved.is_empty() { dt { "Preserved" } dd { (sanitized_text::one_line(&estimate.preserved, 400)) } }
            }
            p class="says" role="alert" {}
            (dialog_buttons("Switch model", None))
        }
    }
}

/// Renders the confirmation before a run is stopped.
pub(crate) fn stop_dialog(run: &str, may: Permissions) -> Markup {
    html! {
        dialog id="stop" aria-labelledby="stop-title" {
            form class="inside" data-api={ "/api/runs/" (run) "/stop" } data-done="Stopping the run." {
                h2 id="stop-title" { "Stop this run?" }
                p { "Its processes are terminated. Progress is kept; to continue later, run " code { "unstuck resume " (sanitized_text::one_line(run, 40)) } "." }
                p class="says" role="alert" {}
                div class="actions" {
                    button type="button" class="plain" data-close { "Cancel" }
                    (button("danger", "submit", may.answer_refusal(), html! { "Stop" }))
                }
            }
        }
    }
}
