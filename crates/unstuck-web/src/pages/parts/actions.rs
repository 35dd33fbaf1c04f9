//! Action buttons of a run or session, and their dialogs.

use maud::{Markup, html};
use unstuck_core::duration::HumanDuration;
use unstuck_core::views::RunStatus;

use super::controls::{Permissions, button, dialog, dialog_button};
use super::{money, run_tables, text};
use crate::model::{CostEstimateResponse, RetryPrompt, Run, SessionResponse};

/// Returns true if the session ended successfully.
const fn is_finished(it: &SessionResponse) -> bool {
    matches!(it.status, RunStatus::Succeeded | RunStatus::Recovered)
}

/// Returns why a session cannot be retried.
fn retry_refusal(it: &SessionResponse, may: Permissions) -> Option<&'static str> {
    match it.status {
        _ if it.gateway_client().is_some() => {
            Some("It only uses the gateway. Start it again where it was started.")
        }
        RunStatus::Running | RunStatus::Waiting if it.driven => {
            Some("It is at work. Stop it first, or wait.")
        }
        _ if is_finished(it) && it.role.is_none() => Some("It is done. Start it anew."),
        _ => may.answer_refusal(),
    }
}

/// Returns why a session cannot be retried with options.
fn retry_options_refusal(it: &SessionResponse, may: Permissions) -> Option<&'static str> {
    if is_finished(it) && it.role.is_some() {
        Some("It is done, and is only run again as it is.")
    } else {
        retry_refusal(it, may)
    }
}

/// Returns why the model of a session cannot be switched.
fn model_switch_refusal(it: &SessionResponse, may: Permissions) -> Option<&'static str> {
    if is_finished(it) {
        Some("It is done. There is nothing to go on with.")
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
            (dialog_button("", "escalate", model_switch_refusal(it, may), "Stronger model"))
            @if it.driven && it.gateway_client().is_none() && is_active(it.status) { (dialog_button("danger", "stop", may.answer_refusal(), "Stop")) }
        }
    }
}

/// Renders the buttons of a run, including those of its session if there is only one.
pub(crate) fn run_buttons(run: &Run, sessions: &[SessionResponse], may: Permissions) -> Markup {
    html! {
        div class="actions" {
            @if let [only] = sessions { a class="button" href={ "/sessions/" (only.id) } { "Retry, compare, escalate" } }
            @if run.driven && run.gateway_client().is_none() && is_active(run.status) { (dialog_button("danger", "stop", may.answer_refusal(), "Stop")) }
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
        (dialog("escalate", "Go on with a stronger model", "escalate-form"))
        dialog id="retry-plain" aria-labelledby="retry-plain-title" {
            form class="inside" data-api={ "/api/sessions/" (it.id) "/retry" } data-done="The retry has begun." {
                h2 id="retry-plain-title" { "Retry" }
                p { "The same again, from where it failed. The attempts before are kept." }
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
                input id={ (prefix) "-model" } name="model" data-type="optional" maxlength="200" placeholder=(text::one_line(it.model.as_deref().unwrap_or("as before"), 80));
                p class="hint" { "Leave it empty to keep it." }
            }
            div class="field" {
                label for={ (prefix) "-timeout" } { "May take" }
                input id={ (prefix) "-timeout" } name="timeout" data-type="optional" maxlength="40" placeholder=(it.timeout_ms.map_or_else(|| "as before".to_owned(), |ms| HumanDuration(std::time::Duration::from_millis(ms)).to_string()));
                p class="hint" { "Such as 20m." }
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
pub(crate) fn retry_form(it: &SessionResponse, prompt: &RetryPrompt) -> Markup {
    html! {
        form class="stack" data-api={ "/api/sessions/" (it.id) "/retry" } data-base=r#"{"withContext":true}"# data-done="The retry has begun." {
            p class="small dim" {
                @if prompt.continues { "The agent's conversation goes on; this is sent as the next message." } @else { "A new conversation begins with this." }
            }
            div class="field" {
                label for="retry-prompt" { "What will be sent" }
                textarea id="retry-prompt" name="prompt" rows="14" maxlength="400000" aria-describedby="retry-prompt-hint" { (prompt.prompt) }
                p id="retry-prompt-hint" class="hint" { "The error, the output that failed and the instruction to avoid the same mistake. Change what you like." }
            }
            (retry_options(it, "retry"))
            p class="says" role="alert" {}
            (dialog_buttons("Send", None))
        }
    }
}

/// Renders the form of a model switch: both models, the cost and what is preserved.
pub(crate) fn model_switch_form(it: &SessionResponse, estimate: &CostEstimateResponse) -> Markup {
    html! {
        form class="stack" data-api={ "/api/sessions/" (it.id) "/escalate" } data-base=r#"{"confirm":true}"# data-done="The session goes on with the stronger model." {
            dl class="kv" {
                dt { "From" } dd { (run_tables::model_name(estimate.from_model.as_deref().or(it.model.as_deref()))) }
                dt { "To" } dd { (run_tables::model_name(estimate.to_model.as_deref())) }
                dt { "Estimated cost" } dd { span class="strong" { (estimate.usd.map_or_else(|| "not known".to_owned(), money::signed_usd)) } div class="small dim" { (text::one_line(&estimate.formula, 400)) } }
                @if !estimate.preserved.is_empty() { dt { "What is kept" } dd { (text::one_line(&estimate.preserved, 400)) } }
            }
            p class="says" role="alert" {}
            (dialog_buttons("Go on with it", None))
        }
    }
}

/// Renders the confirmation before a run is stopped.
pub(crate) fn stop_dialog(run: &str, may: Permissions) -> Markup {
    html! {
        dialog id="stop" aria-labelledby="stop-title" {
            form class="inside" data-api={ "/api/runs/" (run) "/stop" } data-done="The run stops." {
                h2 id="stop-title" { "Stop this run?" }
                p { "Its processes are ended now. What it did is kept; " code { "unstuck resume " (text::one_line(run, 40)) } " takes it up again." }
                p class="says" role="alert" {}
                div class="actions" {
                    button type="button" class="plain" data-close { "Cancel" }
                    (button("danger", "submit", may.answer_refusal(), html! { "Stop" }))
                }
            }
        }
    }
}
