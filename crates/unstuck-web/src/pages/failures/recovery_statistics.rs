//! Recovery statistics: what helped, how long it took and what it saved.

use std::time::Duration;

use maud::{Markup, html};

use super::FailuresPage;
use crate::pages::chart::{self, BarRow, ChartPoint, ChartSeries, ChartTone, Unit};
use crate::pages::parts::{money, sanitized_text, time};

/// How often a level or strategy helped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct StrategyOutcomes {
    /// Level or strategy.
    pub(crate) name: String,
    /// Number of successes.
    pub(crate) helped: u64,
    /// Number of failures.
    pub(crate) not_helped: u64,
}

impl StrategyOutcomes {
    fn share(&self) -> f64 {
        let all = self.helped + self.not_helped;
        if all > 0 {
            self.helped as f64 / all as f64
        } else {
            0.0
        }
    }
}

/// The duration of recoveries on one day.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct DailyRecoveryTime {
    /// Day.
    pub(crate) day: String,
    /// Median.
    pub(crate) median: Option<Duration>,
    /// 90th percentile.
    pub(crate) p90: Option<Duration>,
}

/// Known savings by recovery.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct RecoverySavings {
    /// Runs that failed at least once and succeeded without human input.
    pub(crate) runs: u64,
    /// Total cost of those runs in USD.
    pub(crate) cost_usd: f64,
}

impl RecoverySavings {
    /// Returns the time saved if a human had restarted each run.
    pub(crate) fn human_minutes(&self, each: f64) -> String {
        let minutes = self.runs as f64 * each;
        if minutes < 120.0 {
            format!("{minutes:.0} min")
        } else {
            format!("{:.1} h", minutes / 60.0)
        }
    }
}

/// Recovery statistics of the page.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct RecoveryStatistics {
    /// Outcomes by level.
    pub(crate) levels: Vec<StrategyOutcomes>,
    /// Outcomes by strategy.
    pub(crate) strategies: Vec<StrategyOutcomes>,
    /// Durations by day.
    pub(crate) times: Vec<DailyRecoveryTime>,
    /// Median of the whole period.
    pub(crate) median: Option<Duration>,
    /// 90th percentile of the whole period.
    pub(crate) p90: Option<Duration>,
    /// Savings.
    pub(crate) saved: RecoverySavings,
}

/// Formats the median.
pub(super) fn short_time(recovery: &RecoveryStatistics) -> String {
    recovery.median.map_or_else(
        || "–".to_owned(),
        |time| format!("≤ {}", time::duration(time)),
    )
}

pub(super) fn section(view: &FailuresPage) -> Markup {
    let recovery = &view.recovery;
    html! {
        section aria-labelledby="recovery-title" {
            div class="section-head" { h2 id="recovery-title" { "Recovery" } }
            div class="two" {
                (outcome_table("Success rate by level", "Level", &recovery.levels))
                (outcome_table("Success rate by strategy", "Strategy", &recovery.strategies))
                (recovery_time_chart(view))
                (savings(view))
            }
        }
    }
}

fn outcome_table(title: &str, head: &str, all: &[StrategyOutcomes]) -> Markup {
    let rows: Vec<_> = all
        .iter()
        .take(12)
        .map(|one| BarRow {
            name: html! { (sanitized_text::one_line(&one.name, 80)) },
            value: one.share(),
            note: format!(
                "{} of {} succeeded",
                one.helped,
                one.helped + one.not_helped
            ),
        })
        .collect();
    html! {
        section class="card" {
            h2 { (title) }
            @if rows.is_empty() { p class="dim" { "No recoveries." } }
            @else { (chart::bar_table(title, [head, "Success rate"], Unit::Share, ChartTone::Plain, &rows)) }
        }
    }
}

fn recovery_time_chart(view: &FailuresPage) -> Markup {
    let recovery = &view.recovery;
    let days = super::all_days(view).into_iter();
    let points: Vec<_> = days
        .map(|(day, _)| {
            let told = recovery.times.iter().find(|one| one.day == day);
            let most = told.and_then(|one| one.p90);
            ChartPoint {
                label: super::short_day(&day),
                value: told
                    .and_then(|one| one.median)
                    .map(|time| time.as_secs_f64()),
                note: most.map_or_else(String::new, |time| {
                    format!("90% within {}", time::duration(time))
                }),
            }
        })
        .collect();
    html! {
        section class="card" {
            h2 { "Time to recovery" }
            @if points.iter().all(|point| point.value.is_none()) { p class="dim" { "No recoveries." } }
            @else {
                (chart::column_chart(ChartSeries { id: "recovery-time", title: "Median by day", x_label: "Day (UTC)", unit: Unit::Seconds, tone: ChartTone::Plain, points: &points }))
                p class="small dim" { "Times are upper bounds of histogram buckets."
                    @if let Some(most) = recovery.p90 { " 90% of recoveries took at most " (time::duration(most)) "." } }
            }
        }
    }
}

fn savings(view: &FailuresPage) -> Markup {
    let (saved, minutes) = (&view.recovery.saved, view.query.minutes());
    html! {
        section class="card stack" {
            h2 { "Estimated savings" }
            dl class="kv" {
                dt { "Manual work" }
                dd { span class="strong" { "≈ " (saved.human_minutes(minutes)) }
                    div class="small dim" { (money::pluralize(saved.runs, "run")) " that recovered without human input × " (minutes) " minutes per manual restart (estimate)" } }
                dt { "Money" }
                dd { span class="strong" { "at most " (money::usd(saved.cost_usd)) }
                    div class="small dim" { "total cost of these runs: restarts from scratch would have spent at most this much again" } }
            }
            form class="row" method="get" action="/failures" {
                @for (name, value) in [("days", view.query.days().to_string()), ("project", view.query.project.clone()), ("model", view.query.model.clone()), ("kind", view.query.kind.clone())] {
                    input type="hidden" name=(name) value=(sanitized_text::one_line(&value, 200));
                }
                label for="minutes" class="small" { "Minutes per manual restart" }
                input id="minutes" class="short" name="minutes" type="number" min="0" max="1440" step="1" value=(minutes);
                button type="submit" { "Recalculate" }
            }
        }
    }
}
