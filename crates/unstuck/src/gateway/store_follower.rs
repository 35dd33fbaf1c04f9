//! Follows the store while a gateway runs, to apply human decisions and the spending of other gateways.

use std::time::Duration;

use unstuck_core::Event;
use unstuck_core::EventRecord;
use unstuck_core::decision::ModelSwitchReason;
use unstuck_core::event::{EarlyWaitEndCause, EscalationResolved, ModelSwitched, WaitEnded};
use unstuck_gateway::Gateway;
use unstuck_store::{
    CostGroupBy, CostSummary, EventFilter, EventLogOffset, EventOrder, SpendingQuery, Store,
};

use crate::clock;

/// Interval for polling the store.
const POLL_INTERVAL: Duration = Duration::from_millis(800);

/// Applies human decisions from the store until dropped.
pub(crate) async fn follow_decisions(gateway: &Gateway, store: &Store) {
    let mut after = newest_offset(store).await;
    loop {
        follow_spending(gateway, store).await;
        tokio::time::sleep(POLL_INTERVAL).await;
        let filter = EventFilter {
            after: Some(after),
            ..decision_filter()
        };
        // A busy store is polled again.
        let Ok(page) = store.events(&filter).await else {
            continue;
        };
        after = page.last;
        for recorded in page.events {
            match &recorded.event {
                Event::ModelSwitched(moved) => apply_model_switch(gateway, moved),
                Event::EscalationResolved(resolved) => apply_answer(gateway, resolved),
                Event::WaitEnded(ended) => retry_held_calls(gateway, &recorded, ended),
                _ => {}
            }
        }
    }
}

/// Returns the filter for events with human decisions.
fn decision_filter() -> EventFilter {
    EventFilter {
        names: ["model_escalated", "recovery_resolved", "wait_ended"]
            .map(str::to_owned)
            .into(),
        ..EventFilter::default()
    }
}

async fn newest_offset(store: &Store) -> EventLogOffset {
    let filter = EventFilter {
        order: EventOrder::NewestFirst,
        limit: Some(1),
        ..decision_filter()
    };
    let page = store.events(&filter).await;
    page.map_or(EventLogOffset::default(), |page| page.last)
}

fn apply_model_switch(gateway: &Gateway, moved: &ModelSwitched) {
    let change = &moved.switch;
    // Automatic answers have already been applied by their author.
    if change.reason != ModelSwitchReason::Manual {
        return;
    }
    let meant = |session: &unstuck_gateway::GatewaySession| {
        Some(&session.setup().session) == moved.session.as_ref()
    };
    for session in gateway.sessions().iter().filter(|one| meant(one)) {
        session.switch_model(&change.from_model, &change.to_model);
    }
}

/// Retries the held calls of the session whose wait a person has ended.
fn retry_held_calls(gateway: &Gateway, recorded: &EventRecord, ended: &WaitEnded) {
    if ended.by != EarlyWaitEndCause::Person {
        return;
    }
    for session in gateway.sessions() {
        let setup = session.setup();
        let is_meant = ended.session.as_ref().is_none_or(|of| *of == setup.session);
        if is_meant && setup.run == recorded.run {
            session.retry_held_calls(recorded.at);
        }
    }
}

fn apply_answer(gateway: &Gateway, resolved: &EscalationResolved) {
    if let (Some(session), Some(answer)) = (&resolved.session, resolved.answer()) {
        gateway.apply_answer(session, answer, resolved.raises_budget());
    }
}

/// Applies today's usage of all processes of this store if a daily budget is set.
pub(crate) async fn follow_spending(gateway: &Gateway, store: &Store) {
    if !gateway.has_day_budget() {
        return;
    }
    let now = clock::now().at;
    let query = SpendingQuery {
        group_by: CostGroupBy::Day,
        since: Some(now.start_of_day()),
        until: None,
        project: None,
    };
    if let Ok(days) = store.spending(&query).await {
        let usd = days.iter().map(|day| day.cost_usd).sum();
        let tokens = days.iter().map(CostSummary::new_tokens).sum();
        gateway.raise_usage_today(usd, tokens, now);
    }
}
