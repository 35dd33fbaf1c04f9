//! An escalation with its details and answer buttons.

use maud::{Markup, html};
use unstuck_core::Timestamp;

use super::controls::{Permissions, dialog_button};
use super::icon::Icon;
use super::{badge, evidence, money, sanitized_text, time};
use crate::model::{
    AnswerOption, EscalationAnswerChoice, EscalationResponse, PreviewedFile,
    RepairConfinementResponse, RepairPreview, UnapprovedSettingChange,
};

/// Renders an escalation as a card: what happened, which run, and a link to answer.
pub(crate) fn escalation_card(asked: &EscalationResponse, now: Timestamp) -> Markup {
    html! {
        article class="card needs stack" data-key={ "question-" (asked.id) } aria-labelledby={ "q-" (asked.id) } {
            (header(asked, now))
            (activity(asked))
            h3 id={ "q-" (asked.id) } { a href={ "/inbox/" (asked.id) } { (sanitized_text::one_line(&asked.reason, 240)) } }
            (evidence::evidence(&asked.evidence, None))
            @if let Some(command) = &asked.command { p { span class="label" { "Proposed: " } code { (sanitized_text::one_line(command, 240)) } } }
            p { a class="button primary" href={ "/inbox/" (asked.id) } { "Answer" span class="hidden-visually" { ": " (sanitized_text::one_line(&asked.reason, 80)) } } }
        }
    }
}

/// Renders the command or task that an escalation is about.
pub(crate) fn activity(asked: &EscalationResponse) -> Markup {
    html! {
        @if !asked.activity.trim().is_empty() { p class="doing" { code { (sanitized_text::one_line(&asked.activity, 160)) } } }
    }
}

fn header(asked: &EscalationResponse, now: Timestamp) -> Markup {
    html! {
        div class="row" {
            (match &asked.outcome {
                None => badge::badge("is-human", Icon::Person, badge::escalation_kind_label(&asked.escalation_kind)),
                Some(_) => badge::badge("is-gone", Icon::Check, "Answered"),
            })
            span class="tag" { (asked.kind) }
            span class="facts" {
                span { (sanitized_text::one_line(sanitized_text::directory_name(&asked.project), 60)) @if let Some(role) = &asked.role { " · " (sanitized_text::one_line(role, 60)) } }
                (time::ago(asked.created, now))
                @if let Some(deadline) = asked.deadline.as_ref().filter(|_| asked.outcome.is_none()) {
                    span { "default answer: " (answer_label(deadline.answer)) " " (time::until(deadline.at, now)) }
                }
            }
        }
    }
}

/// Renders all details of an escalation.
pub(crate) fn escalation_details(asked: &EscalationResponse, now: Timestamp) -> Markup {
    html! {
        div class="card stack" {
            (header(asked, now))
            dl class="kv" {
                dt { "Activity" } dd { (sanitized_text::one_line(&asked.activity, 600)) }
                dt { "Reason" } dd class="strong" { (sanitized_text::one_line(&asked.reason, 600)) }
                dt { "Where" } dd {
                    a href={ "/runs/" (asked.run) } { "run " (sanitized_text::one_line(&asked.run, 40)) }
                    @if let Some(session) = &asked.session { ", " a href={ "/sessions/" (session) } { "session" } }
                    span class="dim" { " in " (sanitized_text::one_line(&asked.project, 200)) }
                }
                @if let Some(command) = &asked.command { dt { "Proposed command" } dd { code { (sanitized_text::one_line(command, 1_000)) } } }
                @if let Some(proposed) = asked.proposed.as_ref().filter(|_| asked.command.is_none()) { dt { "Proposed" } dd { (sanitized_text::one_line(proposed, 400)) } }
                @if let Some(conditions) = &asked.conditions { (execution_conditions(conditions)) }
                @if let Some(reread) = &asked.reread { dt { "To continue" } dd { (reread.to_string()) } }
                @if let Some(cost) = &asked.cost {
                    dt { "Expected cost" } dd { (cost.usd.map_or_else(|| "unknown".to_owned(), money::signed_usd)) div class="small dim" { (sanitized_text::one_line(&cost.formula, 400)) } }
                }
            }
            (evidence::evidence(&asked.evidence, None))
            (changed_settings(&asked.settings))
            (evidence::prior_attempts(&asked.prior_attempts))
        }
    }
}

/// Renders the project settings that changed since the run began, by key.
fn changed_settings(changed: &[UnapprovedSettingChange]) -> Markup {
    let value = |text: &Option<String>| {
        text.as_deref().map_or("not set".to_owned(), |text| {
            sanitized_text::one_line(text, 1_000)
        })
    };
    html! {
        @if !changed.is_empty() {
            h3 { "Changed project settings" }
            dl class="kv" {
                @for one in changed {
                    dt { code { (sanitized_text::one_line(&one.key, 200)) } }
                    dd {
                        div { "before: " code { (value(&one.before)) } }
                        div { "now: " code { (value(&one.after)) } }
                    }
                }
            }
        }
    }
}

/// Renders the answer.
pub(crate) fn outcome(asked: &EscalationResponse, now: Timestamp) -> Markup {
    html! {
        @if let Some(answered) = &asked.outcome {
            div class="card stack" {
                p { (badge::badge("is-ok", Icon::Check, "Closed")) " "
                    @match &answered.resolution {
                        Some(how) => { (sanitized_text::one_line(&how.summary, 240)) }
                        None => { "The run continued or ended; an answer is no longer needed." }
                    }
                    " " span class="dim" { (time::ago(answered.at, now)) }
                }
                @if let Some(note) = answered.resolution.as_ref().map(|how| how.note.as_str()).filter(|note| !note.is_empty()) { blockquote class="evidence" { (sanitized_text::lines(note)) } }
            }
        }
    }
}

/// Renders the available answers with their effects.
pub(crate) fn answer_buttons(asked: &EscalationResponse, may: Permissions) -> Markup {
    let refused = may.answer_refusal();
    html! {
        form id="answer" class="card stack" data-api={ "/api/escalations/" (asked.id) "/answer" } data-done="Answered." data-base=(format!(r#"{{"hash":"{}"}}"#, safe_hash(asked))) {
            h2 { "Your answer" }
            div class="field" {
                label for="note" { "Message" }
                textarea id="note" name="note" rows="3" disabled[refused.is_some()] aria-describedby="note-hint" {}
                p id="note-hint" class="hint" { "With “Retry”, it is sent to the agent as additional instructions. With other answers, it is kept in the history." }
            }
            p class="says" role="alert" {}
            ul class="answers" {
                @for (at, offered) in asked.answers.iter().enumerate() { li { (answer_button(offered, at == 0, refused)) span class="small" { (sanitized_text::one_line(&offered.effect, 300)) } } }
            }
            @if let Some(refused) = refused { p class="small dim" { (refused) } }
        }
        @for offered in asked.answers.iter().filter(|one| !can_be_undone(one.answer)) { (confirmation(offered, refused)) }
    }
}

/// Returns true if the answer can be undone later.
const fn can_be_undone(answer: EscalationAnswerChoice) -> bool {
    !matches!(
        answer,
        EscalationAnswerChoice::Skip | EscalationAnswerChoice::Abort
    )
}

/// Renders the confirmation of an answer that cannot be undone.
fn confirmation(offered: &AnswerOption, refused: Option<&str>) -> Markup {
    let id = format!("confirm-{}", answer_wire_name(offered.answer));
    html! {
        dialog id=(id) aria-labelledby={ (id) "-title" } {
            div class="inside" {
                h2 id={ (id) "-title" } { (answer_label(offered.answer)) "?" }
                p { (sanitized_text::one_line(&offered.effect, 300)) ". This cannot be undone." }
                div class="actions" {
                    button type="button" class="plain" data-close { "Cancel" }
                    button type="submit" form="answer" class="danger" name="answer" value=(answer_wire_name(offered.answer)) data-done={ (answer_label(offered.answer)) ": sent." } disabled[refused.is_some()] title=[refused] { (answer_label(offered.answer)) }
                }
            }
        }
    }
}

/// Returns the hash with everything but letters and digits removed; a real hash has nothing else.
fn safe_hash(asked: &EscalationResponse) -> String {
    asked
        .hash
        .chars()
        .filter(char::is_ascii_alphanumeric)
        .collect()
}

fn answer_button(offered: &AnswerOption, likeliest: bool, refused: Option<&str>) -> Markup {
    let class = match (likeliest, offered.answer) {
        (true, _) => "primary",
        (false, EscalationAnswerChoice::Abort) => "danger",
        (false, _) => "",
    };
    if !can_be_undone(offered.answer) {
        let dialog = format!("confirm-{}", answer_wire_name(offered.answer));
        return dialog_button(class, &dialog, refused, answer_label(offered.answer));
    }
    html! {
        button type="submit" class=(class) name="answer" value=(answer_wire_name(offered.answer)) data-done={ (answer_label(offered.answer)) ": sent." } disabled[refused.is_some()] title=[refused] { (answer_label(offered.answer)) }
    }
}

/// Returns the button label of an answer.
pub(crate) const fn answer_label(answer: EscalationAnswerChoice) -> &'static str {
    match answer {
        EscalationAnswerChoice::Approve => "Approve",
        EscalationAnswerChoice::Reject => "Reject",
        EscalationAnswerChoice::Resolve => "Already fixed",
        EscalationAnswerChoice::Retry => "Retry",
        EscalationAnswerChoice::Escalate => "Use a stronger model",
        EscalationAnswerChoice::Skip => "Skip",
        EscalationAnswerChoice::Abort => "Abort the run",
    }
}

const fn answer_wire_name(answer: EscalationAnswerChoice) -> &'static str {
    match answer {
        EscalationAnswerChoice::Approve => "approve",
        EscalationAnswerChoice::Reject => "reject",
        EscalationAnswerChoice::Resolve => "resolve",
        EscalationAnswerChoice::Retry => "retry",
        EscalationAnswerChoice::Escalate => "escalate",
        EscalationAnswerChoice::Skip => "skip",
        EscalationAnswerChoice::Abort => "abort",
    }
}

/// Renders the preview of a proposed command.
pub(crate) fn preview(preview: &RepairPreview) -> Markup {
    html! {
        div class="stack" {
            p { code { (sanitized_text::one_line(&preview.command, 400)) } " "
                @match preview.exit_code {
                    Some(0) => { (badge::badge("is-ok", Icon::Check, "Succeeded on a copy")) }
                    Some(code) => { (badge::badge("is-bad", Icon::Cross, &format!("Exit code {code} on a copy"))) }
                    None => { (badge::badge("is-wait", Icon::Clock, "Did not finish")) }
                } }
            @for note in &preview.notes { p class="small dim" { (sanitized_text::one_line(note, 400)) } }
            @match (preview.exit_code, preview.files.is_empty()) {
                (Some(0), true) => { p class="dim" { "No files would change." } }
                (Some(0), false) => {}
                (_, is_empty) => {
                    p { "The command failed; the actual changes may differ."
                        @if !preview.network { " It ran without network access." } }
                    @if is_empty { p class="dim" { "No files were changed before it failed." } }
                }
            }
            @for file in &preview.files { (file_change(file)) }
            @if preview.more { p class="dim" { "More files would change than are shown." } }
            @if !preview.output.trim().is_empty() {
                details data-key="preview-output" { summary { "Output" } (sanitized_text::output("Command output", "preview", &preview.output)) }
            }
        }
    }
}

fn file_change(file: &PreviewedFile) -> Markup {
    html! {
        @let name = html! { span class="tag" { (sanitized_text::one_line(&file.change, 20)) } " " code { (sanitized_text::one_line(&file.path, 300)) } };
        @if file.diff.trim().is_empty() { p { (name) } }
        @else { details data-key={ "file-" (sanitized_text::one_line(&file.path, 200)) } { summary { (name) } (unified_diff(&file.diff)) } }
    }
}

/// Renders a unified diff with colored lines.
fn unified_diff(diff: &str) -> Markup {
    html! {
        div class="diff" tabindex="0" role="region" aria-label="Difference" {
            ol { @for line in sanitized_text::lines(diff).lines().take(400) {
                li class=[match line.as_bytes().first() { Some(b'+') => Some("is-added"), Some(b'-') => Some("is-removed"), Some(b'@') => Some("is-gap"), _ => None }] { (line) }
            } }
        }
    }
}

/// Renders the button that opens the preview, if there is one.
pub(crate) fn preview_button(asked: &EscalationResponse, may: Permissions) -> Markup {
    html! {
        @if asked.can_preview && asked.outcome.is_none() {
            @let hint = if asked.preview_needs_network { "Runs the command on a copy without network access, which it probably needs." } else { "Runs the command on a copy without network access." };
            div class="row" { (dialog_button("", "preview", may.answer_refusal(), "Preview file changes")) span class="small dim" { (hint) } }
            @if asked.preview_needs_network {
                div class="row" { (dialog_button("", "preview-network", may.answer_refusal(), "Preview with network access")) span class="small dim" { "Runs the command on a copy with network access; network effects are real." } }
            }
        }
    }
}

/// Renders the conditions under which a proposed command would run.
fn execution_conditions(conditions: &RepairConfinementResponse) -> Markup {
    let class = if conditions.sandbox == "full" {
        ""
    } else {
        "strong"
    };
    html! {
        dt { "Sandbox" } dd class=(class) { (sanitized_text::one_line(&conditions.sandbox, 20))
            @for missing in &conditions.missing { div class="small" { (sanitized_text::one_line(missing, 400)) } } }
        dt { "Network" } dd { (if conditions.network { "on" } else { "off" }) }
        dt { "Visible environment variables" } dd class="small" { (sanitized_text::one_line(&conditions.variables.join(", "), 2_000)) }
        @if !conditions.effects.is_empty() {
            dt { "Known effects on git" } dd { @for effect in &conditions.effects { div { (sanitized_text::one_line(effect, 400)) } } }
        }
    }
}
