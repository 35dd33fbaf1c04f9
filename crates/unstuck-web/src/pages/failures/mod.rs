//! Failures page: counts by kind, place and day, and what recovery saved.

mod recovery_statistics;

pub(crate) use recovery_statistics::{
    DailyRecoveryTime, RecoverySavings, RecoveryStatistics, StrategyOutcomes,
};

use std::collections::BTreeMap;

use maud::{Markup, html};
use serde::Deserialize;
use unstuck_core::{FailureKind, Timestamp};

use super::chart::{self, BarRow, ChartPoint, ChartSeries, ChartTone, HeatCell, Unit};
use super::layout::{self, NavItem, PageFrame};
use super::parts::sanitized_text::percent_encoded;
use super::parts::{empty_state, money, sanitized_text, time};
use crate::model::ProjectResponse;

/// Query parameters of the page.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct FailuresPageQuery {
    /// Number of past days.
    pub(crate) days: String,
    /// Filter by project id.
    pub(crate) project: String,
    /// Filter by model.
    pub(crate) model: String,
    /// Filter by kind.
    pub(crate) kind: String,
    /// Minutes that a manual restart takes.
    pub(crate) minutes: String,
    /// Parts of the page to render.
    pub(crate) part: Option<String>,
}

impl FailuresPageQuery {
    /// Returns the number of past days; the default is 14.
    pub(crate) fn days(&self) -> u16 {
        self.days
            .parse()
            .ok()
            .filter(|days| (1..=366).contains(days))
            .unwrap_or(14)
    }

    /// Returns the start of the first day (UTC).
    pub(crate) fn since(&self, now: Timestamp) -> String {
        let back = std::time::Duration::from_secs(u64::from(self.days() - 1) * 86_400);
        let mut first = now.before(back).to_string();
        first.truncate(10);
        format!("{first}T00:00:00Z")
    }

    /// Returns the minutes a human takes to notice a failure and restart; the default is 5.
    pub(crate) fn minutes(&self) -> f64 {
        let minutes = self.minutes.parse().ok();
        minutes
            .filter(|minutes| (0.0..=1440.0).contains(minutes))
            .unwrap_or(5.0)
    }
}

/// Attempts of one day.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct DailyAttempts {
    /// Number of failed attempts.
    pub(crate) failed: u64,
    /// Number of attempts.
    pub(crate) tries: u64,
}

/// A recurring failure message.
#[derive(Debug, Clone)]
pub(crate) struct RecurringFailure {
    /// Message with variable parts masked.
    pub(crate) message: String,
    /// Number of occurrences.
    pub(crate) count: u64,
    /// Kind of failure.
    pub(crate) kind: String,
    /// Fingerprint that identifies the same failure.
    pub(crate) fingerprint: String,
    /// Time of the last occurrence.
    pub(crate) last_seen: Timestamp,
}

/// Data of the page.
#[derive(Debug, Clone)]
pub(crate) struct FailuresPage {
    /// Common page frame.
    pub(crate) frame: PageFrame,
    /// Query parameters.
    pub(crate) query: FailuresPageQuery,
    /// Projects to choose from.
    pub(crate) projects: Vec<ProjectResponse>,
    /// Attempts by UTC day, such as `2026-11-16`; days without attempts may be missing.
    pub(crate) days: BTreeMap<String, DailyAttempts>,
    /// Failures by kind, the most frequent first.
    pub(crate) kinds: Vec<(String, u64)>,
    /// Failures by model, the most frequent first.
    pub(crate) models: Vec<(String, u64)>,
    /// Failures by project, the most frequent first.
    pub(crate) by_project: Vec<(String, u64)>,
    /// Failures by prompt: role, masked template and count.
    pub(crate) prompts: Vec<(String, String, u64)>,
    /// Most common messages.
    pub(crate) messages: Vec<RecurringFailure>,
    /// Recovery statistics.
    pub(crate) recovery: RecoveryStatistics,
}

/// Renders the page.
pub(crate) fn page(view: &FailuresPage) -> Markup {
    let body = html! {
        div class="page-head" { div class="titles" { h1 { "Failures" } } (exports(view)) }
        (filters(view))
        (content(view))
    };
    layout::page(&view.frame, NavItem::Failures, "Failures", body)
}

/// Renders one part of the page.
pub(crate) fn part(view: &FailuresPage, name: &str) -> Option<Markup> {
    (name == "told").then(|| content(view))
}

fn exports(view: &FailuresPage) -> Markup {
    let query = api_query(view);
    html! {
        div class="actions" {
            a class="button" href={ "/api/analytics/failures/export?format=csv" (query) } download { "Export CSV" }
            a class="button" href={ "/api/analytics/failures/export?format=jsonl" (query) } download { "Export JSON lines" }
        }
    }
}

/// Returns the equivalent query of the API.
fn api_query(view: &FailuresPage) -> String {
    let since = view.query.since(view.frame.now);
    let mut query = format!("&since={}", percent_encoded(&since));
    for (name, value) in [
        ("project", &view.query.project),
        ("model", &view.query.model),
        ("kind", &view.query.kind),
    ] {
        if !value.is_empty() {
            query.push_str(&format!("&{name}={}", percent_encoded(value)));
        }
    }
    query
}

fn filters(view: &FailuresPage) -> Markup {
    let asked = &view.query;
    html! {
        form class="filters card" method="get" action="/failures" role="search" aria-label="Filter failures" {
            div class="field" { label for="days" { "Time" }
                select id="days" name="days" {
                    @for (days, name) in [(1, "Today (UTC)"), (7, "7 days"), (14, "14 days"), (30, "30 days"), (90, "90 days")] {
                        option value=(days) selected[asked.days() == days] { (name) }
                    }
                } }
            div class="field" { label for="project" { "Project" }
                select id="project" name="project" {
                    option value="" { "All" }
                    @for one in &view.projects { option value=(one.id) selected[asked.project == one.id] { (sanitized_text::one_line(&one.name, 60)) } }
                } }
            div class="field" { label for="kind" { "Kind" }
                select id="kind" name="kind" {
                    option value="" { "All" }
                    @for kind in FailureKind::ALL { option value=(kind.name()) selected[asked.kind == kind.name()] { (kind.name()) } }
                } }
            div class="field" { label for="model" { "Model" }
                input id="model" name="model" maxlength="200" value=(sanitized_text::one_line(&asked.model, 200)) list="models" placeholder="All";
                datalist id="models" { @for (model, _) in view.models.iter().filter(|(model, _)| !model.is_empty()) { option value=(sanitized_text::one_line(model, 200)) {} } }
            }
            button type="submit" { "Show" }
        }
    }
}

fn content(view: &FailuresPage) -> Markup {
    let failed: u64 = view.days.values().map(|day| day.failed).sum();
    let tries: u64 = view.days.values().map(|day| day.tries).sum();
    html! {
        div data-part="told" data-about="attempt_failed attempt_succeeded call_finished run_finished" {
            @if tries == 0 && failed == 0 {
                section { (empty_state::empty_state("No attempts in this period.", "Choose a longer period, or run something with unstuck:", Some("unstuck exec -- claude -p 'fix the failing tests'"))) }
            } @else {
                (summary_figures(view, failed, tries))
                (day_charts(view))
                div class="two" {
                    (count_table("By kind", "Kind", view.kinds.iter().map(|(kind, count)| (html! { a href={ "/failures?days=" (view.query.days()) "&project=" (percent_encoded(&view.query.project)) "&model=" (percent_encoded(&view.query.model)) "&kind=" (percent_encoded(kind)) } { code { (sanitized_text::one_line(kind, 60)) } } }, *count))))
                    (count_table("By model", "Model", view.models.iter().map(|(model, count)| (model_name(model), *count))))
                    (count_table("By project", "Project", view.by_project.iter().map(|(root, count)| (html! { span title=(sanitized_text::one_line(root, 300)) { (sanitized_text::one_line(sanitized_text::directory_name(root), 80)) } }, *count))))
                    (count_table("By prompt pattern", "Role and prompt", view.prompts.iter().map(|(role, template, count)| (html! {
                        @if !role.is_empty() { span class="strong" { (sanitized_text::one_line(role, 60)) } " " } span class="small mono" { (sanitized_text::one_line(template, 160)) }
                    }, *count))))
                }
                (message_table(view))
                (recovery_statistics::section(view))
            }
        }
    }
}

fn model_name(model: &str) -> Markup {
    html! { @if model.is_empty() { span class="dim" { "unknown" } } @else { (sanitized_text::one_line(model, 100)) } }
}

fn summary_figures(view: &FailuresPage, failed: u64, tries: u64) -> Markup {
    let rate = if tries > 0 {
        failed as f64 / tries as f64
    } else {
        0.0
    };
    let saved = &view.recovery.saved;
    html! {
        section aria-label="Summary" {
            div class="tiles" {
                div class="card tile" { span class="big" { (failed) } span class="name" { "failed of " (money::pluralize(tries, "attempt")) } }
                div class="card tile" { span class="big" { (Unit::Share.format(rate)) } span class="name" { "failure rate" } }
                div class="card tile" { span class="big" { (saved.runs) } span class="name" { "runs recovered" } }
                div class="card tile" { span class="big" { (recovery_statistics::short_time(&view.recovery)) } span class="name" { "median time to recovery" } }
                div class="card tile" { span class="big" { "≈ " (saved.human_minutes(view.query.minutes())) } span class="name" { "of manual work saved" } }
            }
        }
    }
}

/// Returns every day of the period, including days without attempts.
fn all_days(view: &FailuresPage) -> Vec<(String, DailyAttempts)> {
    let count = u64::from(view.query.days());
    let day = |back: u64| {
        let at = view
            .frame
            .now
            .before(std::time::Duration::from_secs(back * 86_400));
        at.to_string().chars().take(10).collect::<String>()
    };
    (0..count)
        .rev()
        .map(|back| {
            let name = day(back);
            let counts = view.days.get(&name).copied().unwrap_or_default();
            (name, counts)
        })
        .collect()
}

fn day_charts(view: &FailuresPage) -> Markup {
    let days = all_days(view);
    let rates: Vec<_> = days
        .iter()
        .map(|(name, day)| ChartPoint {
            label: short_day(name),
            value: (day.tries > 0).then(|| day.failed as f64 / day.tries as f64),
            note: format!("{} of {}", day.failed, day.tries),
        })
        .collect();
    let counts: Vec<_> = days
        .iter()
        .map(|(name, day)| ChartPoint {
            label: short_day(name),
            value: Some(day.failed as f64),
            note: format!("of {}", money::pluralize(day.tries, "attempt")),
        })
        .collect();
    let cells: Vec<_> = days
        .iter()
        .map(|(name, day)| HeatCell {
            label: format!(
                "{}: {} of {} failed",
                short_day(name),
                day.failed,
                day.tries
            ),
            share: (day.tries > 0).then(|| day.failed as f64 / day.tries as f64),
        })
        .collect();
    html! {
        section aria-label="By day" {
            div class="two" {
                div class="card" { (chart::column_chart(ChartSeries { id: "count", title: "Failures by day", x_label: "Day (UTC)", unit: Unit::Count, tone: ChartTone::Bad, points: &counts })) }
                div class="card stack" {
                    (chart::line_chart(ChartSeries { id: "rate", title: "Failure rate by day", x_label: "Day (UTC)", unit: Unit::Share, tone: ChartTone::Bad, points: &rates }))
                    (chart::heat_strip("Failure rate by day; darker is higher", &cells))
                }
            }
        }
    }
}

/// Formats a day for a chart label: `2026-11-16` is "Nov 16".
fn short_day(day: &str) -> String {
    const MONTHS: [&str; 12] = [
        "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
    ];
    let mut parts = day
        .split('-')
        .skip(1)
        .map(|part| part.parse::<usize>().ok());
    match (parts.next().flatten(), parts.next().flatten()) {
        (Some(month @ 1..=12), Some(day)) => format!("{} {day}", MONTHS[month - 1]),
        _ => day.to_owned(),
    }
}

fn count_table(title: &str, head: &str, all: impl Iterator<Item = (Markup, u64)>) -> Markup {
    let rows: Vec<_> = all
        .take(12)
        .map(|(name, count)| BarRow {
            name,
            value: count as f64,
            note: String::new(),
        })
        .collect();
    html! {
        section class="card" {
            h2 { (title) }
            @if rows.is_empty() { p class="dim" { "No data." } }
            @else { (chart::bar_table(title, [head, "Failures"], Unit::Count, ChartTone::Plain, &rows)) }
        }
    }
}

fn message_table(view: &FailuresPage) -> Markup {
    html! {
        section aria-labelledby="messages-title" {
            div class="section-head" { h2 id="messages-title" { "Most common messages" } span class="dim small" { "grouped, with numbers and paths masked" } }
            div class="card flush" { table class="table folds" {
                caption class="hidden-visually" { "Most common messages" }
                thead { tr { th scope="col" { "Message" } th scope="col" { "Kind" } th scope="col" class="number" { "Count" } th scope="col" class="number" { "Last seen" } } }
                tbody { @for one in &view.messages {
                    tr {
                        th scope="row" { span class="mono" { (sanitized_text::one_line(&one.message, 300)) } }
                        td data-name="Kind" { span class="tag" title={ "fingerprint " (sanitized_text::one_line(&one.fingerprint, 80)) } { (sanitized_text::one_line(&one.kind, 60)) } }
                        td data-name="Count" class="number" { (one.count) }
                        td data-name="Last seen" class="number" { (time::ago(one.last_seen, view.frame.now)) }
                    }
                } }
            } }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_are_short() {
        assert_eq!(
            [short_day("2026-11-06"), short_day("soon")],
            ["Nov 6", "soon"]
        );
    }

    #[test]
    fn invalid_query_values_use_the_defaults() {
        let asked = FailuresPageQuery {
            days: "-3".into(),
            minutes: "NaN".into(),
            ..FailuresPageQuery::default()
        };
        assert_eq!((asked.days(), asked.minutes()), (14, 5.0));
    }
}
