//! The timeline of attempts with their outcomes and decisions.

use std::time::Duration;

use maud::{Markup, html};
use unstuck_core::{Level, Timestamp};

use super::icon::Icon;
use super::{badge, diff, evidence, money, run_tables, text, time};
use crate::model::{
    ApiCall, AttemptResponse, AttemptTexts, Decision, DiagnosisResponse, ModelSwitchResponse,
    Repair,
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
            div { p class="label" { "What the checks found" }
                ul class="small" { @for error in &attempt.validation_errors { li { "· " (text::one_line(error, 400)) } } } }
        }
        @if !attempt.calls.is_empty() { (api_calls(&attempt.id, &attempt.calls)) }
        @for repair in &attempt.repairs { (repair_block(repair)) }
        @if let Some(decision) = &attempt.decision { (decision_block(&attempt.id, decision)) }
        @for change in &attempt.model_changes { (model_switch(change)) }
        @if let Some(wait) = &attempt.wait {
            p class="small" {
                @if wait.until > now { span class="strong" { "Waits: goes on " (time::until(wait.until, now)) } }
                @else { "Waited until " (time::date_time(wait.until)) }
                span class="dim" { " · " (text::one_line(&wait.reason, 300)) @if wait.stated { " · the server said when" } @if let Some(reread) = &wait.reread { " · then " (reread.to_string()) } }
            }
        }
        @if let Some(question) = &attempt.escalation {
            p { (badge::badge("is-human", Icon::Person, "Asked a person")) " "
                a href={ "/inbox/" (question) } { "See the question" }
                @if let Some(resolved) = &attempt.resolution {
                    span { " · " (text::one_line(&resolved.summary, 200)) @if !resolved.note.is_empty() { ": " q { (text::one_line(&resolved.note, 400)) } } }
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
                @if let Some(role) = attempt.role.as_ref().filter(|_| with_roles) { " of " (text::one_line(role, 60)) }
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
                    span title={ (tokens.input) " new, " (tokens.cached) " kept, " (tokens.output) " written" } { (money::tokens(tokens.input + tokens.output)) " tokens" }
                }
                @if let Some(code) = attempt.exit_code.filter(|code| *code != 0) { span { "exit code " (code) } }
                @if let Some(signal) = attempt.signal { span { "signal " (signal) } }
                @if let Some(limit) = &attempt.limit { span { "ran into its " (text::one_line(&limit.replace('_', " "), 40)) } }
                @if attempt.interruptions > 0 { span { "cut off " (money::pluralize(attempt.interruptions.into(), "time")) } }
            }
        }
    }
}

fn recovered_failure(attempt: &AttemptResponse) -> Markup {
    html! {
        @if let Some(answering) = &attempt.recovers_from {
            p class="small" { "An answer to " code { (answering.kind) } ": " (level_label(answering.level))
                @if let Some(strategy) = &answering.strategy { ", " code { (text::one_line(strategy, 80)) } } }
        }
        @if !attempt.changes.is_empty() {
            div class="small" { span class="label" { "Changed: " } @for (at, change) in attempt.changes.iter().enumerate() { @if at > 0 { "; " } (text::one_line(change, 300)) } }
        }
    }
}

/// Returns the display name of a level.
pub(crate) const fn level_label(level: Level) -> &'static str {
    match level {
        Level::Same => "the same again",
        Level::Alternative => "another way",
        Level::Clarify => "with a person's words",
        Level::Escalate => "a person",
    }
}

fn diagnosis_line(diagnosis: &DiagnosisResponse) -> Markup {
    let sure = (f64::from(diagnosis.confidence) * 100.0).round();
    html! {
        div class="stack" {
            p { span class="tag" { (diagnosis.kind) } " " span class="strong" { (text::one_line(&diagnosis.message, 400)) } }
            (evidence::evidence(&diagnosis.line, Some(&format!("rule {} · {} layer · {sure} % sure", diagnosis.rule, diagnosis.layer))))
            @if !diagnosis.hint.is_empty() { p class="small dim" { (text::one_line(&diagnosis.hint, 400)) } }
        }
    }
}

fn decision_block(id: &str, decision: &Decision) -> Markup {
    html! {
        div class="stack" {
            p { span class="label" { "Decided: " }
                @match decision.level { Some(level) => { (level_label(level)) } None => { "nothing is ours to do" } }
                @if let Some(strategy) = &decision.strategy { ", " code { (text::one_line(strategy, 80)) } }
                @if decision.attempt > 0 { span class="dim" { " (retry " (decision.attempt) @if decision.max_attempts > 0 { " of " (decision.max_attempts) } ")" } }
                @if let Some(ms) = decision.delay_ms.filter(|ms| *ms > 0) { span class="dim" { ", after " (time::duration(Duration::from_millis(ms))) } }
                @if let Some(cost) = decision.cost_usd { span class="dim" { ", about " (money::signed_usd(cost)) } }
            }
            p class="small dim" { (text::one_line(&decision.reason, 500)) }
            @if !decision.skipped.is_empty() {
                details data-key={ "passed-" (id) } {
                    summary { "What was passed over" }
                    ul class="small" { @for one in &decision.skipped { li { code { (text::one_line(&one.strategy, 80)) } ": " (text::one_line(&one.why, 300)) } } }
                }
            }
        }
    }
}

/// Renders a model switch as a line.
pub(crate) fn model_switch(change: &ModelSwitchResponse) -> Markup {
    let why = match change.reason.as_str() {
        "manual" => "a person chose it",
        "auto_after_retries" => "retries did not help",
        "context_limit" => "the context was too long",
        other => other,
    };
    html! {
        p class="small" { span class="label" { "Model: " } (run_tables::model_name(Some(&change.from_model))) " → " (run_tables::model_name(Some(&change.to_model)))
            span class="dim" { " · " (text::one_line(why, 120)) @if let Some(cost) = change.cost_estimate { " · about " (money::signed_usd(cost)) } " · " (time::date_time(change.timestamp)) } }
    }
}

/// Renders LLM API calls that needed recovery or failed.
pub(crate) fn api_calls(key: &str, all: &[ApiCall]) -> Markup {
    html! {
        details data-key={ "calls-" (key) } {
            summary { (money::pluralize(all.len() as u64, "API call")) " with trouble" }
            ul class="stack small" {
                @for call in all {
                    li {
                        p { code { (text::one_line(&call.id, 40)) } " "
                            span class="strong" { (text::one_line(call.outcome.as_deref().unwrap_or("goes on"), 40)) }
                            @if let Some(status) = call.status { " · " (status) }
                            @if let Some(model) = &call.model { " · " (text::one_line(model, 80)) }
                            @if let Some(ms) = call.duration_ms { " · " (time::duration(Duration::from_millis(ms))) }
                            @if let Some(cost) = call.cost_usd { " · " (money::usd(cost)) }
                        }
                        ol { @for failed in &call.api_attempts {
                            li class="dim" { "Try " (failed.number) " at " (text::one_line(&failed.upstream, 60)) ": " code { (failed.kind) } ", "
                                (text::one_line(&failed.message, 240)) ". " (text::one_line(&failed.reason, 240))
                                @for passed in &failed.skipped_upstreams { " " (text::one_line(passed, 240)) "." } }
                        } }
                    }
                }
            }
        }
    }
}

fn repair_block(repair: &Repair) -> Markup {
    let said = match (repair.succeeded, repair.exit_code, repair.approved) {
        (true, ..) => ("is-ok", Icon::Check, "Repair helped"),
        (false, Some(_), _) => ("is-bad", Icon::Cross, "Repair did not help"),
        (false, None, true) => ("is-busy", Icon::Running, "Repair allowed"),
        (false, None, false) => ("is-wait", Icon::Clock, "Repair proposed"),
    };
    html! {
        div class="stack" {
            p { (badge::badge(said.0, said.1, said.2)) " " code { (text::one_line(&repair.command, 300)) } }
            p class="small dim" { (text::one_line(&repair.root_cause, 300)) " " (text::one_line(&repair.reason, 300))
                @if let Some(failed) = &repair.failed { " " (text::one_line(failed, 300)) } }
            @if let Some(level) = repair.sandbox.as_deref().filter(|level| *level != "full") { p class="small strong" { "Sandbox: " (text::one_line(level, 20)) } }
            @for trace in &repair.traces { p class="small" { (text::one_line(trace, 600)) } }
            @if !repair.output.trim().is_empty() {
                details data-key={ "repair-" (repair.id) } { summary { "What the repair wrote" } (text::output("What the repair wrote", &format!("repair-{}", repair.id), &repair.output)) }
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
        diff::diff(
            "How the prompt differs from the attempt before",
            before,
            prompt,
        )
    });
    let key = |what: &str| format!("{what}-{}", attempt.id);
    html! {
        div class="stack" {
        @if let Some(changed) = changed {
            details data-key=(key("diff")) open { summary { "Prompt, compared with the attempt before" } (changed) }
        }
        @if let Some(prompt) = prompt {
            details data-key=(key("prompt")) { summary { "Prompt" } (text::output("Prompt", &key("prompt"), prompt)) }
        }
        @if !stdout.trim().is_empty() {
            details data-key=(key("stdout")) { summary { "Output" @if texts.is_none_or(|texts| texts.cut) { ", the end of it" } } (text::output("Output", &key("stdout"), stdout)) }
        }
        @if !stderr.trim().is_empty() {
            details data-key=(key("stderr")) { summary { "Error output" } (text::output("Error output", &key("stderr"), stderr)) }
        }
        details data-key=(key("command")) { summary { "Command" } (text::output("Command", &key("command"), &text::command_line(&attempt.command, 4_000))) }
        }
    }
}
