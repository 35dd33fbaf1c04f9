//! The timeline of attempts with their outcomes and decisions.

use std::time::Duration;

use maud::{Markup, html};
use unstuck_core::{RecoveryLevel, Timestamp};

use super::icon::Icon;
use super::{badge, diff, evidence, money, run_tables, sanitized_text, time};
use crate::model::{
    AttemptResponse, AttemptTexts, Decision, DiagnosisResponse, FailedOrRecoveredCallResponse,
    ModelSwitchEntry, RepairResponse,
};

/// An attempt with its prompt and output, if loaded.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AttemptEntry<'a> {
    /// The attempt.
    pub(crate) attempt: &'a AttemptResponse,
    /// Its prompt and output.
    pub(crate) texts: Option<&'a AttemptTexts>,
    /// Prompt and output of the previous attempt of the same session.
    pub(crate) previous_texts: Option<&'a AttemptTexts>,
}

/// Renders the timeline, in order of the attempts' start.
pub(crate) fn timeline(all: &[AttemptEntry<'_>], with_roles: bool, now: Timestamp) -> Markup {
    html! {
        ol class="attempts" {
            @for told in all {
                li class="attempt" id={ "attempt-" (told.attempt.index) } data-key={ "attempt-" (told.attempt.id) } {
                    span class={ "dot " (tone(&told.attempt.outcome)) } aria-hidden="true" { (told.attempt.number) }
                    article class="card" aria-labelledby={ "attempt-" (told.attempt.index) "-title" } { (attempt_entry(*told, with_roles, now)) }
                }
            }
        }
    }
}

fn tone(outcome: &str) -> &'static str {
    match outcome {
        "succeeded" => "is-ok",
        "failed" => "is-bad",
        "running" => "is-busy",
        _ => "is-gone",
    }
}

fn attempt_entry(told: AttemptEntry<'_>, with_roles: bool, now: Timestamp) -> Markup {
    let attempt = told.attempt;
    html! {
        (attempt_header(attempt, with_roles, now))
        (recovered_failure(attempt))
        @if let Some(diagnosis) = &attempt.diagnosis { (diagnosis_line(diagnosis)) }
        @if !attempt.validation_errors.is_empty() {
            div { p class="label" { "Failed checks" }
                ul class="small" { @for error in &attempt.validation_errors { li { "· " (sanitized_text::one_line(error, 400)) } } } }
        }
        @if !attempt.calls.is_empty() { (api_calls(&attempt.id, &attempt.calls)) }
        @for repair in &attempt.repairs { (repair_block(repair)) }
        @if let Some(decision) = &attempt.decision { (decision_block(&attempt.id, decision)) }
        @for change in &attempt.model_changes { (model_switch(change)) }
        @if let Some(wait) = &attempt.wait {
            p class="small" {
                @if wait.until > now { span class="strong" { "Retrying " (time::until(wait.until, now)) } }
                @else { "Waited until " (time::date_time(wait.until)) }
                span class="dim" { " · " (sanitized_text::one_line(&wait.reason, 300)) @if wait.stated { " · server-stated time" } @if let Some(reread) = &wait.reread { " · then " (reread.to_string()) } }
            }
        }
        @if let Some(question) = &attempt.escalation {
            p { (badge::badge("is-human", Icon::Person, "Input requested")) " "
                a href={ "/inbox/" (question) } { "View request" }
                @if let Some(resolved) = &attempt.resolution {
                    span { " · " (sanitized_text::one_line(&resolved.summary, 200)) @if !resolved.note.is_empty() { ": " q { (sanitized_text::one_line(&resolved.note, 400)) } } }
                }
            }
        }
        (attempt_texts(told))
    }
}

fn attempt_header(attempt: &AttemptResponse, with_roles: bool, now: Timestamp) -> Markup {
    html! {
        header class="row" {
            h3 id={ "attempt-" (attempt.index) "-title" } {
                "Attempt " (attempt.number)
                @if let Some(role) = attempt.role.as_ref().filter(|_| with_roles) { " of " (sanitized_text::one_line(role, 60)) }
            }
            (badge::outcome_badge(&attempt.outcome))
            @if let Some(model) = &attempt.model { (run_tables::model_name(Some(model))) }
            span class="facts" {
                (time::ago(attempt.started, now))
                @match (attempt.duration_ms, attempt.ended) {
                    (Some(ms), _) => { span { "took " (time::duration(Duration::from_millis(ms))) } }
                    (None, None) => { span { "for " (time::since(attempt.started, now)) } }
                    (None, Some(_)) => {}
                }
                @if let Some(cost) = attempt.usage.cost_usd { span { (money::usd(cost)) } }
                @if let Some(tokens) = &attempt.usage.tokens {
                    span title={ (tokens.input) " input, " (tokens.cached) " cached, " (tokens.output) " output" } { (money::tokens(tokens.input + tokens.output)) " tokens" }
                }
                @if let Some(code) = attempt.exit_code.filter(|code| *code != 0) { span { "exit code " (code) } }
                @if let Some(signal) = attempt.signal { span { "signal " (signal) } }
                @if let Some(limit) = &attempt.limit { span { "reached its " (sanitized_text::one_line(&limit.replace('_', " "), 40)) } }
                @if attempt.interruptions > 0 { span { "interrupted " (money::pluralize(attempt.interruptions.into(), "time")) } }
            }
        }
    }
}

fn recovered_failure(attempt: &AttemptResponse) -> Markup {
    html! {
        @if let Some(answering) = &attempt.recovers_from {
            p class="small" { "Recovers from " code { (answering.kind) } ": " (level_label(answering.level))
                @if let Some(strategy) = &answering.strategy { ", " code { (sanitized_text::one_line(strategy, 80)) } } }
        }
        @if !attempt.changes.is_empty() {
            div class="small" { span class="label" { "Changed: " } @for (at, change) in attempt.changes.iter().enumerate() { @if at > 0 { "; " } (sanitized_text::one_line(change, 300)) } }
        }
    }
}

/// Returns the display name of a level.
pub(crate) const fn level_label(level: RecoveryLevel) -> &'static str {
    match level {
        RecoveryLevel::Same => "retry unchanged",
        RecoveryLevel::Alternative => "next strategy",
        RecoveryLevel::Clarify => "retry with instructions",
        RecoveryLevel::Escalate => "ask for input",
    }
}

fn diagnosis_line(diagnosis: &DiagnosisResponse) -> Markup {
    let sure = (f64::from(diagnosis.confidence) * 100.0).round();
    html! {
        div class="stack" {
            p { span class="tag" { (diagnosis.kind) } " " span class="strong" { (sanitized_text::one_line(&diagnosis.message, 400)) } }
            (evidence::evidence(&diagnosis.line, Some(&format!("rule {} · {} layer · confidence {sure}%", diagnosis.rule, diagnosis.layer))))
            @if !diagnosis.hint.is_empty() { p class="small dim" { (sanitized_text::one_line(&diagnosis.hint, 400)) } }
        }
    }
}

fn decision_block(id: &str, decision: &Decision) -> Markup {
    html! {
        div class="stack" {
            p { span class="label" { "Decision: " }
                @match decision.level { Some(level) => { (level_label(level)) } None => { "no recovery action" } }
                @if let Some(strategy) = &decision.strategy { ", " code { (sanitized_text::one_line(strategy, 80)) } }
                @if decision.attempt > 0 { span class="dim" { " (retry " (decision.attempt) @if decision.max_attempts > 0 { " of " (decision.max_attempts) } ")" } }
                @if let Some(ms) = decision.delay_ms.filter(|ms| *ms > 0) { span class="dim" { ", after " (time::duration(Duration::from_millis(ms))) } }
                @if let Some(cost) = decision.cost_usd { span class="dim" { ", about " (money::signed_usd(cost)) } }
            }
            p class="small dim" { (sanitized_text::one_line(&decision.reason, 500)) }
            @if !decision.skipped.is_empty() {
                details data-key={ "passed-" (id) } {
                    summary { "Skipped strategies" }
                    ul class="small" { @for one in &decision.skipped { li { code { (sanitized_text::one_line(&one.strategy, 80)) } ": " (sanitized_text::one_line(&one.reason, 300)) } } }
                }
            }
        }
    }
}

/// Renders a model switch as a line.
pub(crate) fn model_switch(change: &ModelSwitchEntry) -> Markup {
    let why = match change.reason.as_str() {
        "manual" => "chosen manually",
        "auto_after_retries" => "retries failed",
        "context_limit" => "context limit exceeded",
        other => other,
    };
    html! {
        p class="small" { span class="label" { "Model: " } (run_tables::model_name(Some(&change.from_model))) " → " (run_tables::model_name(Some(&change.to_model)))
            span class="dim" { " · " (sanitized_text::one_line(why, 120)) @if let Some(cost) = change.cost_estimate { " · about " (money::signed_usd(cost)) } " · " (time::date_time(change.timestamp)) } }
    }
}

/// Renders LLM API calls that needed recovery or failed.
pub(crate) fn api_calls(key: &str, all: &[FailedOrRecoveredCallResponse]) -> Markup {
    html! {
        details data-key={ "calls-" (key) } {
            summary { (money::pluralize(all.len() as u64, "API call")) " with failures" }
            ul class="stack small" {
                @for call in all {
                    li {
                        p { code { (sanitized_text::one_line(&call.id, 40)) } " "
                            span class="strong" { (sanitized_text::one_line(call.outcome.as_deref().unwrap_or("in progress"), 40)) }
                            @if let Some(status) = call.status { " · " (status) }
                            @if let Some(model) = &call.model { " · " (sanitized_text::one_line(model, 80)) }
                            @if let Some(ms) = call.duration_ms { " · " (time::duration(Duration::from_millis(ms))) }
                            @if let Some(cost) = call.cost_usd { " · " (money::usd(cost)) }
                        }
                        ol { @for failed in &call.api_attempts {
                            li class="dim" { "Attempt " (failed.number) " at " (sanitized_text::one_line(&failed.upstream, 60)) ": " code { (failed.kind) } ", "
                                (sanitized_text::one_line(&failed.message, 240)) ". " (sanitized_text::one_line(&failed.reason, 240))
                                @for passed in &failed.skipped_upstreams { " " (sanitized_text::one_line(passed, 240)) "." } }
                        } }
                    }
                }
            }
        }
    }
}

fn repair_block(repair: &RepairResponse) -> Markup {
    let said = match (repair.succeeded, repair.exit_code, repair.approved) {
        (true, ..) => ("is-ok", Icon::Check, "Repair succeeded"),
        (false, Some(_), _) => ("is-bad", Icon::Cross, "Repair did not help"),
        (false, None, true) => ("is-busy", Icon::Running, "Repair approved"),
        (false, None, false) => ("is-wait", Icon::Clock, "Repair proposed"),
    };
    html! {
        div class="stack" {
            p { (badge::badge(said.0, said.1, said.2)) " " code { (sanitized_text::one_line(&repair.command, 300)) } }
            p class="small dim" { (sanitized_text::one_line(&repair.root_cause, 300)) " " (sanitized_text::one_line(&repair.reason, 300))
                @if let Some(failed) = &repair.failed { " " (sanitized_text::one_line(failed, 300)) } }
            @if let Some(level) = repair.sandbox.as_deref().filter(|level| *level != "full") { p class="small strong" { "Sandbox: " (sanitized_text::one_line(level, 20)) } }
            @for trace in &repair.side_effects { p class="small" { (sanitized_text::one_line(trace, 600)) } }
            @if !repair.output.trim().is_empty() {
                details data-key={ "repair-" (repair.id) } { summary { "Repair output" } (sanitized_text::output("Repair output", &format!("repair-{}", repair.id), &repair.output)) }
            }
        }
    }
}

fn attempt_texts(told: AttemptEntry<'_>) -> Markup {
    let (attempt, texts) = (told.attempt, told.texts);
    let excerpt = attempt.excerpt.as_ref();
    let stdout = texts
        .map(|texts| texts.stdout.as_str())
        .or(excerpt.map(|one| one.stdout.as_str()))
        .unwrap_or_default();
    let stderr = texts
        .map(|texts| texts.stderr.as_str())
        .or(excerpt.map(|one| one.stderr.as_str()))
        .unwrap_or_default();
    let prompt = texts.and_then(|texts| texts.prompt.as_deref());
    let before = told
        .previous_texts
        .and_then(|texts| texts.prompt.as_deref());
    let changed = before.zip(prompt).and_then(|(before, prompt)| {
        diff::diff("Prompt changes since the previous attempt", before, prompt)
    });
    let key = |what: &str| format!("{what}-{}", attempt.id);
    html! {
        div class="stack" {
        @if let Some(changed) = changed {
            details data-key=(key("diff")) open { summary { "Prompt changes since the previous attempt" } (changed) }
        }
        @if let Some(prompt) = prompt {
            details data-key=(key("prompt")) { summary { "Prompt" } (sanitized_text::output("Prompt", &key("prompt"), prompt)) }
        }
        @if !stdout.trim().is_empty() {
            details data-key=(key("stdout")) { summary { "Output" @if texts.is_none_or(|texts| texts.truncated) { " (end)" } } (sanitized_text::output("Output", &key("stdout"), stdout)) }
        }
        @if !stderr.trim().is_empty() {
            details data-key=(key("stderr")) { summary { "Error output" } (sanitized_text::output("Error output", &key("stderr"), stderr)) }
        }
        details data-key=(key("command")) { summary { "Command" } (sanitized_text::output("Command", &key("command"), &sanitized_text::command_line(&attempt.command, 4_000))) }
        }
    }
}
