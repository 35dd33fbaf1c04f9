//! Small charts within a line of text or a tile.

use maud::{Markup, html};

use super::format_coordinate;

/// Renders a line chart without axes; its title describes the data.
pub(crate) fn sparkline(title: &str, values: &[f64]) -> Markup {
    let greatest = values.iter().copied().fold(f64::MIN_POSITIVE, f64::max);
    let apart = 100.0 / values.len().saturating_sub(1).max(1) as f64;
    let points: Vec<_> = values
        .iter()
        .enumerate()
        .map(|(at, value)| {
            let high = (value / greatest).clamp(0.0, 1.0) * 26.0;
            format!(
                "{},{}",
                format_coordinate(at as f64 * apart),
                format_coordinate(28.0 - high)
            )
        })
        .collect();
    html! {
        svg class="spark" role="img" aria-label=(title) viewBox="0 0 100 30" preserveAspectRatio="none" {
            title { (title) }
            @if points.len() > 1 {
                path class="under is-bad" d={ "M0,30 L" (points.join(" L")) " L100,30 Z" } {}
                path class="curve is-bad" d={ "M" (points.join(" L")) } {}
            }
        }
    }
}

/// A cell of a heat strip, usually one hour.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct HeatCell {
    /// Label.
    pub(crate) label: String,
    /// Share from 0 to 1; `None` if there is no data.
    pub(crate) share: Option<f64>,
}

/// Renders a strip of cells; darker means more.
pub(crate) fn heat_strip(title: &str, cells: &[HeatCell]) -> Markup {
    let class = |share: Option<f64>| match share {
        Some(share) if share > 0.5 => "h4",
        Some(share) if share > 0.25 => "h3",
        Some(share) if share > 0.1 => "h2",
        Some(share) if share > 0.0 => "h1",
        _ => "none",
    };
    html! {
        svg class="heat" role="img" aria-label=(title) viewBox={ "0 0 " (cells.len().max(1) * 10) " 10" } preserveAspectRatio="none" {
            @for (at, cell) in cells.iter().enumerate() {
                rect class=(class(cell.share)) x=(at * 10) y="0" width="8.5" height="10" rx="1" { title { (cell.label) } }
            }
        }
    }
}

/// Renders a used share as a short bar; the text next to it states the same.
pub(crate) fn share_bar(part: f64) -> Markup {
    bar(part, part > 0.9)
}

/// Renders a remaining quota as a short bar; the text next to it states the same.
pub(crate) fn gauge(left: f64, of: f64) -> Markup {
    bar(left / of, left < of * 0.1)
}

fn bar(part: f64, bad: bool) -> Markup {
    let part = if part.is_finite() {
        part.clamp(0.0, 1.0)
    } else {
        0.0
    };
    let class = if bad { "mark is-bad" } else { "mark" };
    html! {
        svg class="share" viewBox="0 0 100 10" preserveAspectRatio="none" aria-hidden="true" focusable="false" {
            rect class="rail" width="100" height="10" rx="3" {}
            rect class=(class) width=(format_coordinate(part * 100.0)) height="10" rx="3" {}
        }
    }
}

/// The state of the last attempt; all earlier ones failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LastAttemptState {
    /// Running.
    UnderWay,
    /// Succeeded.
    Worked,
    /// Failed.
    Failed,
}

impl LastAttemptState {
    const fn class(self) -> &'static str {
        match self {
            Self::UnderWay => "now",
            Self::Worked => "worked",
            Self::Failed => "done",
        }
    }
}

/// Renders the attempts made and still allowed as dots; the text next to it states the same.
pub(crate) fn attempt_dots(made: u32, most: Option<u32>, last: LastAttemptState) -> Markup {
    let all = most.unwrap_or(made).max(made).min(12);
    let class = |n: u32| match n {
        n if n == made => last.class(),
        n if n < made => "done",
        _ => "left",
    };
    html! {
        span class="tries" aria-hidden="true" {
            svg viewBox={ "0 0 " (all.max(1) * 12) " 8" } width=(all.max(1) * 12) height="8" focusable="false" {
                @for n in 1..=all { rect class=(class(n)) x=((n - 1) * 12) width="9" height="8" rx="2" {} }
            }
        }
    }
}
