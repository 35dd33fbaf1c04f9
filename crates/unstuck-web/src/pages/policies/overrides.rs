//! Overrides for single kinds and tools: rows that can be added and removed.

use maud::{Markup, html};
use serde_json::Value;
use unstuck_core::{FailureKind, RetryPolicy};

use crate::pages::parts::sanitized_text;

/// Number fields of a row: key, label, minimum and step.
const NUMBER_FIELDS: [(&str, &str, &str, &str); 5] = [
    ("maxRetries", "Retries", "0", "1"),
    ("backoffBase", "First delay, in seconds", "0", "any"),
    ("backoffMultiplier", "Backoff multiplier", "0", "any"),
    ("maxBackoff", "Maximum delay, in seconds", "0", "any"),
    ("timeoutMultiplier", "Time limit multiplier", "0.1", "any"),
];

const CHOICE_FIELDS: [(&str, &str, &[&str]); 2] = [
    (
        "curve",
        "Backoff curve",
        &["exponential", "linear", "fixed"],
    ),
    (
        "jitter",
        "Jitter",
        &["none", "full", "equal", "decorrelated"],
    ),
];

/// Policy tables with rows, and what their keys mean.
const TABLES: [(&str, &str); 2] = [("kinds", "kind"), ("tools", "tool")];

/// Renders the overrides for kinds and tools; `wire` is the policy as JSON.
pub(super) fn override_tables(policy: &RetryPolicy, wire: &Value, refused: Option<&str>) -> Markup {
    let count = policy.kinds.len() + policy.tools.len();
    html! {
        details data-key="own" open[count > 0] {
            summary { "Overrides for single kinds and tools" @if count > 0 { " (" (count) ")" } }
            fieldset disabled[refused.is_some()] {
                legend class="hidden-visually" { "Overrides for single kinds and tools" }
                p class="small dim" { "Empty fields take the value of the policy." }
                @for (table, what) in TABLES {
                    div class="stack" data-rows=(table) {
                        @for (of, values) in wire[table].as_object().into_iter().flatten() { (override_row(table, of, values)) }
                    }
                    (add_row_control(table, what))
                }
            }
            template id="own-row" { (override_row("", "", &Value::Null)) }
        }
    }
}

fn override_row(table: &str, of: &str, values: &Value) -> Markup {
    let name = |key: &str| format!("{table}.{of}.{key}");
    html! {
        fieldset class="own" data-own=(table) data-of=(of) {
            legend { code { (sanitized_text::one_line(of, 80)) } }
            div class="fields" {
                @for (key, label, least, step) in NUMBER_FIELDS {
                    div class="field" { label for=(name(key)) { (label) }
                        input type="number" id=(name(key)) name=(name(key)) data-field=(key) data-type="number" min=(least) step=(step) value=[values[key].as_f64()]; }
                }
                @for (key, label, all) in CHOICE_FIELDS {
                    div class="field" { label for=(name(key)) { (label) }
                        select id=(name(key)) name=(name(key)) data-field=(key) data-type="optional" {
                            option value="" { "inherited" }
                            @for one in all { option value=(one) selected[values[key] == *one] { (one) } }
                        } }
                }
            }
            p { button type="button" class="plain" data-remove { "Remove" span class="hidden-visually" { " the overrides for " (sanitized_text::one_line(of, 80)) } } }
        }
    }
}

fn add_row_control(table: &str, what: &str) -> Markup {
    let (field, label) = (
        format!("add-{table}"),
        format!("Overrides for another {what}"),
    );
    html! {
        div class="filters" {
            div class="field" {
                label for=(field) { (label) }
                @if table == "kinds" {
                    select id=(field) { @for kind in FailureKind::ALL { option { (kind.name()) } } }
                } @else {
                    input id=(field) maxlength="80" placeholder="Bash";
                }
            }
            button type="button" data-add=(table) data-from=(field) { "Add" span class="hidden-visually" { " overrides for another " (what) } }
        }
    }
}

#[cfg(test)]
mod tests {
    use unstuck_core::decision::RetryPolicyOverride;

    use super::*;

    /// A field missing on the page could not be edited and would be lost on save.
    #[test]
    fn override_row_has_all_fields_of_a_kind() {
        let all = r#"{"kinds": {"timeout": {"maxRetries": 5, "backoffBase": 2, "backoffMultiplier": 3, "maxBackoff": 60,
            "curve": "linear", "jitter": "none", "timeoutMultiplier": 2}}}"#;
        let policy = RetryPolicy::from_json(all).unwrap();
        let RetryPolicyOverride {
            max_retries,
            backoff_base,
            backoff_multiplier,
            max_backoff,
            curve,
            jitter,
            timeout_multiplier,
        } = policy.kinds[&FailureKind::Timeout];
        assert!(max_retries.is_some() && backoff_base.is_some() && backoff_multiplier.is_some());
        assert!(max_backoff.is_some() && curve.is_some() && jitter.is_some());
        assert!(timeout_multiplier.is_some());
        let wire = serde_json::to_value(&policy).unwrap();
        let page = override_tables(&policy, &wire, None).into_string();
        for key in wire["kinds"]["timeout"].as_object().unwrap().keys() {
            assert!(
                page.contains(&format!("name=\"kinds.timeout.{key}\"")),
                "{key}: {page}"
            );
        }
        assert!(page.contains("value=\"60\"") && page.contains("value=\"linear\" selected"));
    }
}
