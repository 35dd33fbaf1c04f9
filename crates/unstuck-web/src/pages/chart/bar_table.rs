//! Horizontal bar chart rendered as an accessible table.

use maud::{Markup, html};

use super::axis::Unit;
use super::{ChartTone, format_coordinate};

/// A row of the chart.
#[derive(Debug, Clone)]
pub(crate) struct BarRow {
    /// Label.
    pub(crate) name: Markup,
    /// Value.
    pub(crate) value: f64,
    /// Note about the value.
    pub(crate) note: String,
}

/// Renders a horizontal bar chart; the rows keep their order.
pub(crate) fn bar_table(
    caption: &str,
    heads: [&str; 2],
    unit: Unit,
    tone: ChartTone,
    all: &[BarRow],
) -> Markup {
    // Shares are relative to the total, counts to the greatest value.
    let top = match unit {
        Unit::Share => 1.0,
        _ => all
            .iter()
            .map(|row| row.value)
            .fold(f64::MIN_POSITIVE, f64::max),
    };
    let class = tone.class("mark", "mark is-bad");
    html! {
        table class="table tight" {
            caption class="hidden-visually" { (caption) }
            thead { tr {
                th scope="col" { (heads[0]) }
                th scope="col" class="number" { (heads[1]) }
                th scope="col" class="wide" { span class="hidden-visually" { "As a bar" } }
            } }
            tbody {
                @for row in all {
                    tr {
                        th scope="row" { (row.name) @if !row.note.is_empty() { div class="small dim" { (row.note) } } }
                        td class="number" { (unit.format(row.value)) }
                        td class="wide" {
                            svg class="bar" viewBox="0 0 100 10" preserveAspectRatio="none" aria-hidden="true" focusable="false" {
                                rect class="rail" width="100" height="10" rx="1" {}
                                rect class=(class) width=(format_coordinate((row.value / top).clamp(0.0, 1.0) * 100.0)) height="10" rx="1" {}
                            }
                        }
                    }
                }
            }
        }
    }
}
