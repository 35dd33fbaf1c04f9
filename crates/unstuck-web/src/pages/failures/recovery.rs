//! What recovery came to: what helped, how long it took, and what it saved.

use std::time::Duration;

use maud::{Markup, html};

use super::FailuresPage;
use crate::pages::chart::{self, BarRow, ChartPoint, ChartSeries, Tone, Unit};
use crate::pages::parts::{money, text, time};

/// How often something helped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct StrategyOutcomes {
    /// What: a level or a strategy.
    pub(crate) name: String,
    /// How often it helped.
    pub(crate) helped: u64,
    /// How often it did not.
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

/// How long recovery took on one day.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct DailyRecoveryTime {
    /// The day.
    pub(crate) day: String,
    /// Half of all took no longer.
    pub(crate) median: Option<Duration>,
    /// Nine of ten took no longer.
    pub(crate) p90: Option<Duration>,
}

/// What recovery saved, as far as it can be said.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct RecoverySavings {
    /// Runs that failed at least once and ended well without a person.
    pub(crate) runs: u64,
    /// What those runs cost in all, in USD.
    pub(crate) cost_usd: f64,
}

impl RecoverySavings {
    /// A person's time, where each run would have had to be started again by hand.
    pub(crate) fn person_minutes(&self, each: f64) -> String {
        let minutes = self.runs as f64 * each;
        if minutes < 120.0 {
            format!("{minutes:.0} min")
        } else {
            format!("{:.1} h", minutes / 60.0)
        }
    }
}

/// What recovery came to.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct RecoverySummary {
    /// By level.
    pub(crate) levels: Vec<StrategyOutcomes>,
    /// By strategy.
    pub(crate) strategies: Vec<StrategyOutcomes>,
    /// By day.
    pub(crate) times: Vec<DailyRecoveryTime>,
    /// Over the whole time.
    pub(crate) median: Option<Duration>,
    /// Over the whole time: nine of ten took no longer.
    pub(crate) p90: Option<Duration>,
    /// What it saved.
    pub(crate) saved: RecoverySavings,
}

/// The median in short.
pub(super) fn short_time(recovery: &RecoverySummary) -> String {
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
                (outcome_table("What helped, by level", "Level", &recovery.levels))
                (outcome_table("What helped, by strategy", "Strategy", &recovery.strategies))
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
            name: html! { (text::one_line(&one.name, 80)) },
            value: one.share(),
            note: format!(
                "helped {} of {} times",
                one.helped,
                one.helped + one.not_helped
            ),
        })
        .collect();
    html! {
        section class="card" {
            h2 { (title) }
            @if rows.is_empty() { p class="dim" { "Nothing had to be recovered." } }
            @else { (chart::bar_table(title, [head, "Helped"], Unit::Share, Tone::Plain, &rows)) }
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
                    format!("nine of ten within {}", time::duration(time))
                }),
            }
        })
        .collect();
    html! {
        section class="card" {
            h2 { "Time to recovery" }
            @if points.iter().all(|point| point.value.is_none()) { p class="dim" { "Nothing had to be recovered." } }
            @else {
                (chart::column_chart(ChartSeries { id: "recovery-time", title: "Median by day", x_label: "Day (UTC)", unit: Unit::Seconds, tone: Tone::Plain, points: &points }))
                p class="small dim" { "Times are upper bounds: they are counted in classes."
                    @if let Some(most) = recovery.p90 { " Nine of ten recoveries took at most " (time::duration(most)) "." } }
            }
        }
    }
}

fn savings(view: &FailuresPage) -> Markup {
    let (saved, minutes) = (&view.recovery.saved, view.query.minutes());
    html! {
        section class="card stack" {
            h2 { "What it saved, as an estimate" }
            dl class="kv" {
                dt { "A person's time" }
                dd { span class="strong" { "≈ " (saved.person_minutes(minutes)) }
                    div class="small dim" { (money::pluralize(saved.runs, "run")) " that failed and ended well without a person × " (minutes) " minutes to notice each and start it again" } }
                dt { "Money" }
                dd { span class="strong" { "at most " (money::usd(saved.cost_usd)) }
                    div class="small dim" { "what these runs cost in all: started again from the beginning, at most that much would have been spent twice" } }
            }
            form class="row" method="get" action="/failures" {
                @for (name, value) in [("days", view.query.days().to_string()), ("project", view.query.project.clone()), ("model", view.query.model.clone()), ("kind", view.query.kind.clone())] {
                    input type="hidden" name=(name) value=(text::one_line(&value, 200));
                }
                label for="minutes" class="small" { "Minutes for a restart by hand" }
                input id="minutes" class="short" name="minutes" type="number" min="0" max="1440" step="1" value=(minutes);
                button type="submit" { "Count again" }
            }
        }
    }
}
