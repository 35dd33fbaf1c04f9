//! Charts as SVG: readable by screen readers, colored by the stylesheet, without scripts.
//!
//! The drawing stretches to the available space; numbers and words are text next to it, so that they keep their size on
//! every screen.

mod axis;
mod bar_table;
mod inline_charts;

pub(crate) use axis::{Axis, Unit};
pub(crate) use bar_table::{BarRow, bar_table};
pub(crate) use inline_charts::{
    HeatCell, LastAttemptState, attempt_dots, gauge, heat_strip, share_bar, sparkline,
};

use maud::{Markup, html};

/// Width and height of the view box.
const VIEW_WIDTH: f64 = 1000.0;
const VIEW_HEIGHT: f64 = 300.0;

/// Maximum number of steps of the vertical axis.
const MAX_STEPS: u32 = 4;

/// The meaning of high values, which decides the color.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ChartTone {
    /// Neutral.
    Plain,
    /// High values are bad.
    Bad,
}

impl ChartTone {
    const fn class(self, plain: &'static str, bad: &'static str) -> &'static str {
        match self {
            Self::Plain => plain,
            Self::Bad => bad,
        }
    }
}

/// A data point.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ChartPoint {
    /// Label on the horizontal axis.
    pub(crate) label: String,
    /// Value; `None` if unknown.
    pub(crate) value: Option<f64>,
    /// Note about the value.
    pub(crate) note: String,
}

/// A series of values, usually over time.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ChartSeries<'a> {
    /// Element id, unique on the page.
    pub(crate) id: &'a str,
    /// Title.
    pub(crate) title: &'a str,
    /// Meaning of the labels.
    pub(crate) x_label: &'a str,
    /// Unit of the values.
    pub(crate) unit: Unit,
    /// Meaning of high values.
    pub(crate) tone: ChartTone,
    /// Data points.
    pub(crate) points: &'a [ChartPoint],
}

/// Renders a column chart.
pub(crate) fn column_chart(series: ChartSeries<'_>) -> Markup {
    let axis = series.axis();
    let wide = VIEW_WIDTH / series.points.len().max(1) as f64;
    let class = series.tone.class("mark", "mark is-bad");
    let drawing = html! {
        @for (at, point) in series.points.iter().enumerate() {
            @let high = point.value.map_or(0.0, |value| axis.fraction(value) * VIEW_HEIGHT);
            // Nonzero values must stay visible.
            @let high = match point.value { Some(value) if value > 0.0 => high.max(3.0), _ => high };
            rect class=(class) x=(format_coordinate(at as f64 * wide + wide * 0.12)) y=(format_coordinate(VIEW_HEIGHT - high))
                width=(format_coordinate(wide * 0.76)) height=(format_coordinate(high)) {
                title { (series.describe_point(point)) }
            }
        }
    };
    figure(series, axis, drawing)
}

/// Renders a line chart; the line is interrupted where values are unknown.
pub(crate) fn line_chart(series: ChartSeries<'_>) -> Markup {
    let axis = series.axis();
    let apart = VIEW_WIDTH / series.points.len().saturating_sub(1).max(1) as f64;
    let x = |at: usize| at as f64 * apart;
    let y = |value: f64| VIEW_HEIGHT - axis.fraction(value) * VIEW_HEIGHT;
    let drawing = html! {
        @for piece in known_segments(series.points) {
            @let from = x(piece.first().map_or(0, |(at, _)| *at));
            @let to = x(piece.last().map_or(0, |(at, _)| *at));
            @let path = piece.iter().map(|(at, value)| format!("{},{}", format_coordinate(x(*at)), format_coordinate(y(*value))))
                .collect::<Vec<_>>().join(" L");
            path class=(series.tone.class("under", "under is-bad"))
                d={ "M" (format_coordinate(from)) "," (format_coordinate(VIEW_HEIGHT)) " L" (path) " L" (format_coordinate(to)) "," (format_coordinate(VIEW_HEIGHT)) " Z" } {}
            // A value without neighbors is drawn as a point.
            @let alone = piece.len() == 1;
            path class={ (series.tone.class("curve", "curve is-bad")) @if alone { " is-point" } } d={ "M" (path) @if alone { " h0.01" } } {}
        }
        // Hover targets for each value.
        @for (at, point) in series.points.iter().enumerate() {
            rect x=(format_coordinate(x(at) - apart / 2.0)) y="0" width=(format_coordinate(apart)) height=(format_coordinate(VIEW_HEIGHT)) fill="transparent" {
                title { (series.describe_point(point)) }
            }
        }
    };
    figure(series, axis, drawing)
}

/// Splits the points into segments of consecutive known values.
fn known_segments(points: &[ChartPoint]) -> Vec<Vec<(usize, f64)>> {
    let mut pieces: Vec<Vec<(usize, f64)>> = Vec::new();
    let mut goes_on = false;
    for (at, point) in points.iter().enumerate() {
        match (point.value, pieces.last_mut()) {
            (Some(value), Some(piece)) if goes_on => piece.push((at, value)),
            (Some(value), _) => pieces.push(vec![(at, value)]),
            (None, _) => {}
        }
        goes_on = point.value.is_some();
    }
    pieces
}

impl ChartSeries<'_> {
    fn axis(&self) -> Axis {
        let values = self.points.iter().filter_map(|point| point.value);
        Axis::covering(values.fold(0.0, f64::max), self.unit, MAX_STEPS)
    }

    fn format_value(&self, point: &ChartPoint) -> String {
        point
            .value
            .map_or_else(|| "–".to_owned(), |value| self.unit.format(value))
    }

    fn describe_point(&self, point: &ChartPoint) -> String {
        let note = match point.note.as_str() {
            "" => String::new(),
            note => format!(" ({note})"),
        };
        format!("{}: {}{note}", point.label, self.format_value(point))
    }

    /// Returns the first, middle and last label; the middle one only for an odd number of points.
    fn x_labels(&self) -> Vec<&str> {
        let points = self.points;
        let middle = points
            .get(points.len() / 2)
            .filter(|_| points.len() % 2 == 1 && points.len() > 4);
        let all = [
            points.first(),
            middle,
            points.last().filter(|_| points.len() > 1),
        ];
        all.into_iter()
            .flatten()
            .map(|point| point.label.as_str())
            .collect()
    }
}

fn figure(series: ChartSeries<'_>, axis: Axis, drawing: Markup) -> Markup {
    let title = format!("{}-title", series.id);
    html! {
        figure class="chart" {
            figcaption { h3 id=(title) { (series.title) } }
            div class="plot" {
                div class="y" aria-hidden="true" {
                    @for mark in axis.marks() { span { (series.unit.format(mark)) } }
                }
                svg role="img" aria-labelledby=(title) viewBox={ "0 0 " (VIEW_WIDTH) " " (VIEW_HEIGHT) } preserveAspectRatio="none" {
                    @for mark in axis.marks() {
                        @let y = format_coordinate(VIEW_HEIGHT - axis.fraction(mark) * VIEW_HEIGHT);
                        line class="grid" x1="0" x2=(VIEW_WIDTH) y1=(y) y2=(y) {}
                    }
                    (drawing)
                }
                div class="x" aria-hidden="true" {
                    @for label in series.x_labels() { span { (label) } }
                }
            }
            (data_table(series))
        }
    }
}

fn data_table(series: ChartSeries<'_>) -> Markup {
    html! {
        details data-key={ "numbers-" (series.id) } {
            summary { "Numbers" span class="hidden-visually" { " of " (series.title) } }
            table class="table tight" {
                thead { tr { th scope="col" { (series.x_label) } th scope="col" class="number" { (series.title) } th scope="col" { "Details" } } }
                tbody {
                    @for point in series.points {
                        tr { th scope="row" { (point.label) } td class="number" { (series.format_value(point)) } td { (point.note) } }
                    }
                }
            }
        }
    }
}

/// Formats a coordinate as short as possible.
fn format_coordinate(value: f64) -> String {
    let text = format!("{value:.1}");
    text.strip_suffix(".0").map_or(text.clone(), str::to_owned)
}

#[cfg(test)]
mod tests;
