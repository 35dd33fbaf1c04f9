//! What people decide about sessions, and what other gateways spend, taken over while a gateway runs.

use std::time::Duration;

use unstuck_core::decision::EscalationReason;
use unstuck_core::event::{ModelEscalated, RecoveryResolved};
use unstuck_core::{Event, Timestamp};
use unstuck_gateway::Gateway;
use unstuck_store::{EventFilter, Order, Position, SpendingQuery, SpentBy, Store};

use crate::clock;

/// How often is looked.
const LOOK: Duration = Duration::from_millis(800);
const DAY_MS: i64 = 86_400_000;

/// Takes over what people decide, for as long as it is awaited.
pub(crate) async fn follow(gateway: &Gateway, store: &Store) {
    let mut after = newest(store).await;
    loop {
        count_spent(gateway, store).await;
        tokio::time::sleep(LOOK).await;
        let filter = EventFilter {
            after: Some(after),
            ..decided()
        };
        // A store that is busy is looked at again.
        let Ok(page) = store.events(&filter).await else {
            continue;
        };
        after = page.last;
        for recorded in page.events {
            match recorded.event {
                Event::ModelEscalated(moved) => take_over(gateway, &moved),
                Event::RecoveryResolved(resolved) => answered(gateway, &resolved),
                _ => {}
            }
        }
    }
}

/// What people decide.
fn decided() -> EventFilter {
    EventFilter {
        names: vec!["model_escalated".to_owned(), "recovery_resolved".to_owned()],
        ..EventFilter::default()
    }
}

async fn newest(store: &Store) -> Position {
    let filter = EventFilter {
        order: Order::NewestFirst,
        limit: Some(1),
        ..decided()
    };
    let page = store.events(&filter).await;
    page.map_or(Position::default(), |page| page.last)
}

fn take_over(gateway: &Gateway, moved: &ModelEscalated) {
    let change = &moved.change;
    // What was decided by itself has been done by whoever decided it.
    if change.reason != EscalationReason::Manual {
        return;
    }
    let meant = |session: &unstuck_gateway::Session| {
        Some(&session.setup().session) == moved.session.as_ref()
    };
    for session in gateway.sessions().iter().filter(|one| meant(one)) {
        session.moved(&change.from_model, &change.to_model);
    }
}

fn answered(gateway: &Gateway, resolved: &RecoveryResolved) {
    if let (Some(session), Some(answer)) = (&resolved.session, resolved.answer()) {
        gateway.answered(session, answer, resolved.raises_budget());
    }
}

/// Takes over what all gateways of this store have spent today, where that matters.
pub(crate) async fn count_spent(gateway: &Gateway, store: &Store) {
    if gateway.budgets().day.is_none() {
        return;
    }
    let now = clock::now().at.millis();
    let query = SpendingQuery {
        by: SpentBy::Day,
        since: Some(Timestamp::from_millis(now - now.rem_euclid(DAY_MS))),
        until: None,
        project: None,
    };
    if let Ok(days) = store.spending(&query).await {
        gateway.spent_today(days.iter().map(|day| day.cost_usd).sum());
    }
}
