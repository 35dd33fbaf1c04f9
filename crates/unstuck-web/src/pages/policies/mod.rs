//! Policies page: the default retry policy and those of projects.

mod overrides;

use maud::{Markup, html};
use serde::Deserialize;
use serde_json::{Value, json};
use unstuck_core::failure::Category;
use unstuck_core::knowledge::{AttemptChange, RecoveryKnowledge};
use unstuck_core::{FailureKind, RetryPolicy};

use super::layout::{self, NavItem, PageFrame};
use super::parts::controls::{button, dialog_button};
use super::parts::{empty_state, money, sanitized_text, time};
use crate::model::{EffectiveRetryPolicy, PolicyOrigin, ProjectResponse};

/// Query parameters of the page.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct PoliciesPageQuery {
    /// Project id; empty for the default.
    pub(crate) project: String,
    /// Parts of the page to render.
    pub(crate) part: Option<String>,
    /// Unsaved policy of the form, as JSON; nothing is saved.
    pub(crate) policy: Option<String>,
}

/// Data of the page.
#[derive(Debug, Clone)]
pub(crate) struct PoliciesPage {
    /// Common page frame.
    pub(crate) frame: PageFrame,
    /// Projects to choose from.
    pub(crate) projects: Vec<ProjectResponse>,
    /// Project whose policy is shown; `None` for the default.
    pub(crate) project: Option<ProjectResponse>,
    /// Effective policy.
    pub(crate) effective: EffectiveRetryPolicy,
    /// Unsaved policy of the form if it differs, or the reason why it is invalid.
    pub(crate) draft: Option<Result<RetryPolicy, String>>,
    /// Policy templates.
    pub(crate) templates: Vec<RetryPolicy>,
}

/// Renders the page.
pub(crate) fn page(view: &PoliciesPage) -> Markup {
    let body = html! {
        div class="page-head" { div class="titles" { h1 { "Policies" } p class="dim" { "Limits of automatic recovery before your input is needed." } } }
        (project_selector(view))
        (form(view))
        (reset_control(view))
        (templates(view))
    };
    layout::page(&view.frame, NavItem::Policies, "Policies", body)
}

/// Renders one part of the page; concurrent changes are detected on save.
pub(crate) fn part(view: &PoliciesPage, name: &str) -> Option<Markup> {
    match name {
        "words" => Some(policy_summary(view)),
        "taking-away" => Some(reset_control(view)),
        _ => None,
    }
}

/// Renders the summary of the policy, or of the unsaved form.
fn policy_summary(view: &PoliciesPage) -> Markup {
    let (policy, tag) = match &view.draft {
        None => (&view.effective.policy, origin_label(&view.effective)),
        Some(Ok(draft)) => (draft, "not saved yet"),
        Some(Err(why)) => return invalid_policy(why),
    };
    let mut known = view.templates.iter();
    let template = known.find(|one| one.id == policy.id && one.name == policy.name);
    let is_changed = template.is_some_and(|one| one != policy);
    html! {
        div class="stack" data-part="words" data-about="config_reloaded" {
            div class="row" {
                h2 id="policy-title" {
                    @if policy.enabled { (sanitized_text::one_line(&policy.name, 80)) @if is_changed { ", changed" } }
                    @else { "Off" }
                }
                span class="tag" { (tag) }
            }
            // The description of a template applies only to its own values.
            @if policy.enabled && !is_changed && !policy.description.is_empty() { p class="dim" { (sanitized_text::one_line(&policy.description, 300)) } }
            p { (describe_policy(policy)) }
        }
    }
}

/// Renders the reason why the form cannot be saved, without a summary.
fn invalid_policy(why: &str) -> Markup {
    html! {
        div class="stack" data-part="words" data-about="config_reloaded" {
            div class="row" { h2 id="policy-title" { "Invalid" } span class="tag" { "not saved yet" } }
            p class="says is-bad" { (sanitized_text::one_line(why, 300)) }
        }
    }
}

fn project_selector(view: &PoliciesPage) -> Markup {
    let chosen = view.project.as_ref().map(|project| project.id.as_str());
    html! {
        section class="stack" aria-label="Policy scope" {
            nav class="row" aria-label="Policy scope" {
                a class={ "button" @if chosen.is_none() { " primary" } } href="/policies" aria-current=[chosen.is_none().then_some("true")] { "Default" }
                @for project in view.projects.iter().take(12) {
                    @let here = chosen == Some(project.id.as_str());
                    a class={ "button" @if here { " primary" } } href={ "/policies?project=" (project.id) } aria-current=[here.then_some("true")] title=(sanitized_text::one_line(&project.root, 300)) { (sanitized_text::one_line(&project.name, 40)) }
                }
            }
            @if view.projects.is_empty() { p class="small dim" { "Projects appear here after their first run." } }
        }
    }
}

/// A field of the form.
struct PolicyField {
    name: &'static str,
    label: &'static str,
    hint: &'static str,
    /// Minimum and step; `None` if the field is not a number.
    range: Option<(&'static str, &'static str)>,
}

const NUMBER_FIELDS: [PolicyField; 7] = [
    PolicyField {
        name: "maxRetries",
        label: "Retries",
        hint: "After the first attempt: 3 retries are 4 attempts in total. Ignored for transient failures if \"Retry without progress for\" is set.",
        range: Some(("0", "1")),
    },
    PolicyField {
        name: "backoffBase",
        label: "First delay, in seconds",
        hint: "Before the first retry. Not used by the linear curve.",
        range: Some(("0", "any")),
    },
    PolicyField {
        name: "backoffMultiplier",
        label: "Backoff multiplier",
        hint: "2 doubles the delay each time. Linear curve: seconds added each time.",
        range: Some(("0", "any")),
    },
    PolicyField {
        name: "maxBackoff",
        label: "Maximum delay, in seconds",
        hint: "A reset time stated by the server takes precedence.",
        range: Some(("0", "any")),
    },
    PolicyField {
        name: "escalateAfterRetries",
        label: "Retries before a stronger model",
        hint: "Failed retries before the model is switched.",
        range: Some(("0", "1")),
    },
    PolicyField {
        name: "maxCost",
        label: "Session budget, in USD",
        hint: "You are asked when it is spent. Empty: no limit.",
        range: Some(("0", "any")),
    },
    PolicyField {
        name: "confirmAbove",
        label: "Confirm extra model cost above, in USD",
        hint: "0: always ask. Empty: never ask.",
        range: Some(("0", "any")),
    },
];

const DURATION_FIELDS: [PolicyField; 3] = [
    PolicyField {
        name: "giveUpAfter",
        label: "Retry without progress for",
        hint: "For transient failures, for example 30m. Empty: the number of retries applies.",
        range: None,
    },
    PolicyField {
        name: "maxElapsed",
        label: "Maximum recovery time",
        hint: "For example, 6h. Empty: no limit.",
        range: None,
    },
    PolicyField {
        name: "maxWait",
        label: "Longest stated wait",
        hint: "Waits up to this long without approval, for example 5h. Empty: no limit.",
        range: None,
    },
];

fn form(view: &PoliciesPage) -> Markup {
    let refused = view.frame.permissions.change_refusal();
    let wire = serde_json::to_value(&view.effective.policy).unwrap_or_default();
    html! {
        section aria-labelledby="policy-title" {
            form id="policy" class="card stack" data-api=(api_path(view)) data-method="PUT" data-etag=(view.effective.etag()) data-base=(base_json(&wire)) data-done="Saved. Applies to new runs and from the next API call." {
                (policy_summary(view))
                fieldset disabled[refused.is_some()] {
                    legend class="hidden-visually" { "Values" }
                    label class="check" { input type="checkbox" name="enabled" checked[view.effective.policy.enabled]; span { "Enable recovery" span class="hint dim small" { " – if off, all failures are passed through" } } }
                    label class="check" { input type="checkbox" name="autoEscalate" checked[view.effective.policy.auto_switch_model]; span { "Switch to a stronger model automatically" span class="hint dim small" { " – within the cost limits" } } }
                    div class="fields" {
                        @for field in NUMBER_FIELDS { (input(&field, &wire, "number")) }
                        @for field in DURATION_FIELDS { (input(&field, &wire, "optional")) }
                        (choice("curve", "Backoff curve", &["exponential", "linear", "fixed"], &wire))
                        (choice("jitter", "Jitter", &["none", "full", "equal", "decorrelated"], &wire))
                    }
                }
                (retryable_kinds(&view.effective.policy, refused))
                (overrides::override_tables(&view.effective.policy, &wire, refused))
                p class="says" role="alert" {}
                div class="row" { (button("primary", "submit", refused, html! { "Save" })) @if let Some(refused) = refused { span class="small dim" { (refused) } } }
            }
        }
    }
}

/// Returns the API path of the policy.
fn api_path(view: &PoliciesPage) -> String {
    match &view.project {
        Some(project) => format!("/api/projects/{}/retry-policy", project.id),
        None => "/api/retry-policy".to_owned(),
    }
}

/// Renders the control that resets the policy to its default.
fn reset_control(view: &PoliciesPage) -> Markup {
    let refused = view.frame.permissions.change_refusal();
    let (page, counts) = match &view.project {
        Some(project) => (
            format!("/policies?project={}", project.id),
            "Restores the policy of the project configuration, or else the default policy.",
        ),
        None => (
            "/policies".to_owned(),
            "Restores the configured policy, or else the built-in one.",
        ),
    };
    html! {
        div data-part="taking-away" data-about="config_reloaded" {
            @if view.effective.origin == PolicyOrigin::Set {
                p class="row" { (dialog_button("", "take-away", refused, "Reset policy")) span class="small dim" { (counts) } }
                dialog id="take-away" aria-labelledby="take-away-title" {
                    form class="inside" data-api=(api_path(view)) data-method="DELETE" data-etag=(view.effective.etag()) data-goto=(page) {
                        h2 id="take-away-title" { "Reset policy?" }
                        p { (counts) " The values set here are deleted." }
                        p class="says" role="alert" {}
                        div class="actions" {
                            button type="button" class="plain" data-close { "Cancel" }
                            (button("danger", "submit", refused, html! { "Reset" }))
                        }
                    }
                }
            }
        }
    }
}

/// Fields outside the form are sent back unchanged; null values are left out.
fn base_json(wire: &Value) -> String {
    let mut base = json!({});
    if let (Some(base), Some(all)) = (base.as_object_mut(), wire.as_object()) {
        for name in ["id", "name", "description"] {
            base.extend(all.get(name).map(|value| (name.to_owned(), value.clone())));
        }
        for field in NUMBER_FIELDS.iter().chain(&DURATION_FIELDS) {
            if all.get(field.name).is_some_and(Value::is_null)
                || field.range.is_none()
                || ["maxCost", "confirmAbove"].contains(&field.name)
            {
                base.insert(field.name.to_owned(), Value::Null);
            }
        }
    }
    base.to_string()
}

fn field_value(wire: &Value, name: &str) -> String {
    match &wire[name] {
        Value::Null => String::new(),
        Value::String(text) => sanitized_text::one_line(text, 60),
        Value::Number(number) => number.as_f64().unwrap_or_default().to_string(),
        other => other.to_string(),
    }
}

fn input(field: &PolicyField, wire: &Value, wanted: &str) -> Markup {
    let hint = format!("{}-hint", field.name);
    let (least, step) = field.range.unwrap_or_default();
    let optional = ["maxCost", "confirmAbove"].contains(&field.name) || field.range.is_none();
    html! {
        div class="field" {
            label for=(field.name) { (field.label) }
            @if field.range.is_some() {
                input id=(field.name) name=(field.name) type="number" min=(least) step=(step) required[!optional] data-type=(wanted) value=(field_value(wire, field.name)) aria-describedby=(hint);
            } @else {
                input id=(field.name) name=(field.name) data-type=(wanted) pattern=r"\s*(\d+(\.\d+)?\s*(ms|s|m|min|h|d)\s*)+" maxlength="40" value=(field_value(wire, field.name)) aria-describedby=(hint);
            }
            p id=(hint) class="hint" { (field.hint) }
        }
    }
}

fn choice(name: &str, label: &str, all: &[&str], wire: &Value) -> Markup {
    html! {
        div class="field" { label for=(name) { (label) }
            select id=(name) name=(name) { @for one in all { option value=(one) selected[wire[name] == *one] { (one) } } } }
    }
}

fn retryable_kinds(policy: &RetryPolicy, refused: Option<&str>) -> Markup {
    let transient = FailureKind::ALL
        .iter()
        .filter(|kind| kind.category() == Category::Transient);
    html! {
        fieldset disabled[refused.is_some()] {
            legend { "Failures to retry unchanged" }
            p class="small dim" { "None selected: all. Other kinds go directly to their next strategy." }
            div class="row" {
                @for kind in transient {
                    label class="check" { input type="checkbox" name="retryableErrors" data-type="item" value=(kind.name()) checked[policy.retryable_errors.contains(kind)]; code { (kind.name()) } }
                }
            }
        }
    }
}

fn origin_label(kept: &EffectiveRetryPolicy) -> &'static str {
    match kept.origin {
        PolicyOrigin::Set => "set here",
        PolicyOrigin::Configured => "configured",
        PolicyOrigin::BuiltIn => "built-in",
        PolicyOrigin::Default => "default policy",
    }
}

/// Describes a policy in a few sentences, as [`unstuck_core::decide`] applies it.
fn describe_policy(policy: &RetryPolicy) -> String {
    if !policy.enabled {
        return "Recovery is off: all failures are passed through.".to_owned();
    }
    let model = describe_model_switch(policy);
    let attempts = money::pluralize(u64::from(policy.max_retries) + 1, "attempt");
    if let Some(time) = policy.give_up_after {
        let (time, waits) = (time::duration(time), first_waits(policy, 5));
        return format!(
            "Transient failures are retried for up to {time} without progress, with delays of about {waits} and so on; \
             other failures get up to {attempts}. {model}"
        );
    }
    match policy.max_retries {
        0 => format!("One attempt, no retries. {model}"),
        most => format!(
            "Up to {attempts}, with delays of about {}{}; lower limits of single kinds take precedence. {model}",
            first_waits(policy, most.min(5)),
            if most > 5 { " and so on" } else { "" }
        ),
    }
}

/// Formats the first delays without jitter.
fn first_waits(policy: &RetryPolicy, count: u32) -> String {
    let backoff = policy.backoff();
    let waits = (1..=count).map(|n| time::duration(backoff.curve_delay(n)));
    waits.collect::<Vec<_>>().join(", ")
}

/// Describes when the model is switched, and for which kinds of failure.
fn describe_model_switch(policy: &RetryPolicy) -> String {
    if !policy.auto_switch_model {
        return "The model is switched only on request.".to_owned();
    }
    let kinds = kinds_with_model_switch();
    let few: Vec<_> = kinds.iter().take(4).map(|kind| kind.name()).collect();
    let more = match kinds.len().saturating_sub(few.len()) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!(
        "After {} failed {}, the session switches to a stronger model if that can help ({}{more}).",
        policy.switch_model_after_retries,
        if policy.switch_model_after_retries == 1 {
            "retry"
        } else {
            "retries"
        },
        few.join(", ")
    )
}

/// Returns the kinds of failure whose strategies include a model switch.
fn kinds_with_model_switch() -> Vec<FailureKind> {
    let playbook = RecoveryKnowledge::built_in();
    let changes = |id: &str| {
        let strategy = playbook.strategy(id);
        strategy.is_some_and(|one| {
            one.changes
                .iter()
                .any(|one| matches!(one, AttemptChange::Model(_)))
        })
    };
    let has_way = |kind: &FailureKind| {
        let known = playbook.kind(*kind);
        known.is_some_and(|known| known.chain.iter().any(|link| changes(&link.strategy)))
    };
    FailureKind::ALL.iter().copied().filter(has_way).collect()
}

fn templates(view: &PoliciesPage) -> Markup {
    html! {
        section aria-labelledby="templates-title" {
            div class="section-head" { h2 id="templates-title" { "Templates" } span class="dim small" { "fill in the form above; nothing is saved until you click Save" } }
            @if view.templates.is_empty() { (empty_state::empty_state("No templates.", "Define templates in the configuration, and list them:", Some("unstuck policy list"))) }
            div class="two" {
                @for policy in &view.templates {
                    article class="card stack" {
                        h3 { (sanitized_text::one_line(&policy.name, 80)) }
                        @if !policy.description.is_empty() { p class="small" { (sanitized_text::one_line(&policy.description, 300)) } }
                        p class="small dim" { (describe_policy(policy)) }
                        p { button type="button" data-form="policy" data-fill=(serde_json::to_string(policy).unwrap_or_default()) { "Use" span class="hidden-visually" { " " (sanitized_text::one_line(&policy.name, 80)) } } }
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn policy_is_described_in_one_sentence() {
        let policy = RetryPolicy::default();
        assert!(
            describe_policy(&policy).starts_with("Transient failures are retried for up to 30 min"),
            "{}",
            describe_policy(&policy)
        );
        let standard = unstuck_core::decision::template("standard").unwrap();
        assert!(
            describe_policy(standard)
                .starts_with("Up to 4 attempts, with delays of about 1 s, 2 s, 4 s;"),
            "{}",
            describe_policy(standard)
        );
        let off = RetryPolicy {
            enabled: false,
            ..RetryPolicy::default()
        };
        assert_eq!(
            describe_policy(&off),
            "Recovery is off: all failures are passed through."
        );
    }

    #[test]
    fn every_form_field_exists_in_the_policy() {
        let wire = serde_json::to_value(RetryPolicy::default()).unwrap();
        for name in NUMBER_FIELDS
            .iter()
            .chain(&DURATION_FIELDS)
            .map(|field| field.name)
            .chain([
                "curve",
                "jitter",
                "enabled",
                "autoEscalate",
                "retryableErrors",
            ])
        {
            assert!(wire.get(name).is_some(), "{name}: {wire}");
        }
    }

    /// W17: the delays follow the policy's curve, and the model switch follows the decision rules.
    #[test]
    fn policy_description_matches_the_decisions() {
        let template = |id| unstuck_core::decision::template(id).unwrap();
        let pipeline = describe_policy(template("pipeline"));
        assert!(
            pipeline.contains("delays of about 1 s, 2 s, 3 s;"),
            "{pipeline}"
        );
        let critical = describe_policy(template("critical"));
        assert!(
            critical.contains("After 2 failed retries, the session switches to a stronger model")
        );
        let kinds = kinds_with_model_switch();
        assert!(!kinds.is_empty() && kinds.len() < FailureKind::ALL.len());
        assert!(critical.contains(kinds[0].name()), "{critical}");
    }
}
