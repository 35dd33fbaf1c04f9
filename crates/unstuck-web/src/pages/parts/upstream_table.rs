//! The table of upstreams: circuit breaker state and remaining limits.

use std::time::Duration;

use maud::{Markup, html};
use unstuck_core::Timestamp;

use super::icon::Icon;
use super::{badge, money, run_tables, sanitized_text, time};
use crate::model::{RemainingQuotaResponse, UpstreamStatus};
use crate::pages::chart;

/// Renders the lanes as a table.
pub(crate) fn lane_table(all: &[UpstreamStatus], now: Timestamp) -> Markup {
    html! {
        div class="card flush" {
            table class="table folds" {
                caption class="hidden-visually" { "Upstreams and their remaining limits" }
                thead { tr {
                    th scope="col" { "Upstream" } th scope="col" { "State" } th scope="col" { "Remaining limits" }
                    th scope="col" class="number" { "In flight" } th scope="col" class="number" { "Succeeded" } th scope="col" class="number" { "Failed" } th scope="col" class="number" { "Mean duration" }
                } }
                tbody { @for lane in all { (lane_row(lane, now)) } }
            }
        }
    }
}

fn lane_row(lane: &UpstreamStatus, now: Timestamp) -> Markup {
    let counts = &lane.counts;
    html! {
        tr data-key={ "lane-" (lane.upstream) "-" (lane.model) } {
            th scope="row" { div class="title-cell" { span { (sanitized_text::one_line(&lane.upstream, 80)) } @if !lane.model.is_empty() { span { (run_tables::model_name(Some(&lane.model))) } } } }
            td data-name="State" { div { (lane_state(lane, now)) } }
            td data-name="Limits" { div { (lane_limits(lane, now)) } }
            td data-name="In flight" class="number" { (lane.in_flight) }
            td data-name="Succeeded" class="number" { (counts.answered) }
            td data-name="Failed" class="number" { div { (counts.failed) @if counts.rate_limited > 0 { div class="small dim" { (counts.rate_limited) " rate limited" } } } }
            td data-name="Mean duration" class="number" { @if lane.mean_duration_ms >= 1.0 { (time::duration(Duration::from_millis(lane.mean_duration_ms as u64))) } @else { "–" } }
        }
    }
}

/// Renders the state of a lane: the circuit breaker takes precedence over limits.
fn lane_state(lane: &UpstreamStatus, now: Timestamp) -> Markup {
    let cooling = lane.cool_down_until.filter(|until| *until > now);
    html! {
        @match (lane.breaker.state.as_str(), cooling) {
            ("open", _) => {
                (badge::badge("is-bad", Icon::Cross, "Down"))
                @if let Some(until) = lane.breaker.until { div class="small dim" { "next probe " (time::until(until, now)) } }
            }
            ("half_open", _) => { (badge::badge("is-wait", Icon::Clock, "Probing")) }
            (_, Some(until)) => {
                (badge::badge("is-wait", Icon::Clock, "Rate limited"))
                div class="small dim" { "available " (time::until(until, now)) }
            }
            _ => {
                @if lane.rate_per_second.is_some() { (badge::badge("is-wait", Icon::Clock, "Throttled")) } @else { (badge::badge("is-ok", Icon::Check, "Up")) }
                @if let Some(failures) = lane.breaker.failures.filter(|count| *count > 0) { div class="small dim" { (money::pluralize(failures.into(), "consecutive failure")) } }
            }
        }
        @if let Some(pace) = lane.rate_per_second { div class="small dim" { (format!("{pace:.1}")) " calls per second" } }
    }
}

fn lane_limits(lane: &UpstreamStatus, now: Timestamp) -> Markup {
    let windows = [
        ("requests", &lane.requests),
        ("tokens", &lane.tokens),
        ("input", &lane.input_tokens),
        ("output", &lane.output_tokens),
    ];
    let known: Vec<(&str, &RemainingQuotaResponse)> = windows
        .into_iter()
        .filter_map(|(name, window)| Some((name, window.as_ref()?)))
        .collect();
    html! {
        @if known.is_empty() && lane.subscription.is_none() { span class="dim" { "unknown" } }
        @for (name, window) in known {
            div class="small nowrap" title={ "resets at " (time::exact(window.reset)) } {
                @if let Some(limit) = window.limit { (chart::gauge(window.remaining as f64, limit as f64)) " " }
                (money::tokens(window.remaining)) @if let Some(limit) = window.limit { " of " (money::tokens(limit)) } " " span class="dim" { (name) }
            }
        }
        @if let Some(plan) = &lane.subscription {
            div class="small nowrap" { (chart::gauge(100.0 - plan.used_percent, 100.0)) " " (format!("{:.0}", 100.0 - plan.used_percent)) " % " span class="dim" { "of the subscription left" } @if plan.exhausted { span class="strong" { ", exhausted" } } }
            div class="small dim" { "subscription resets " (time::until(plan.reset, now)) }
        }
    }
}
