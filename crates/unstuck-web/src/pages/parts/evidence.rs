//! The evidence of a diagnosis: the line and the rule that matched it.

use maud::{Markup, html};

use super::sanitized_text;
use crate::model::PriorAttempt;

/// Renders a line and the rule that matched it.
pub(crate) fn evidence(line: &str, by: Option<&str>) -> Markup {
    html! {
        @if !line.trim().is_empty() {
            div class="evidence" {
                q { (sanitized_text::one_line(line, 600)) }
                @if let Some(by) = by { span class="small dim" { (sanitized_text::one_line(by, 200)) } }
            }
        }
    }
}

/// Renders the strategies that were tried, and why they did not help.
pub(crate) fn prior_attempts(all: &[PriorAttempt]) -> Markup {
    html! {
        @if !all.is_empty() {
            div {
                p class="label" { "Previous attempts" }
                ol class="small" {
                    @for one in all { li { (sanitized_text::one_line(&one.action, 300)) span class="dim" { " – " (sanitized_text::one_line(&one.failure_reason, 300)) } } }
                }
            }
        }
    }
}
