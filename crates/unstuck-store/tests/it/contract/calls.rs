//! API calls: stored, queried, and summed up without a scan.

use unstuck_core::decision::TokenUsage;
use unstuck_core::event::{ApiCallOutcome, ApiCallRecord};
use unstuck_core::event::{Event, RunId, RunKind, RunOutcome};
use unstuck_core::{FailureKind, Timestamp};
use unstuck_store::{
    CallFilter, CostGroupBy, CostSummary, EventPayloadRedactor, MaintenanceReport, MaintenanceTask,
    RunFilter, SpendingQuery, Store, StoreOptions,
};

use super::Place;
use crate::samples::{
    START, append, attempt_started, called, end, failed, finished, interrupted, later, run,
    started, started_in, succeeded,
};
use unstuck_store::RunEventBatch;

async fn begun(store: &Store, run: &RunId, project: &str) {
    let began = append(run, [started_in(run, project)]);
    store.append(began).await.unwrap();
}

async fn sound(store: &Store) {
    let checked = store.maintain(MaintenanceTask::Check).await.unwrap();
    assert!(
        matches!(&checked, MaintenanceReport::Checked { findings, .. } if findings.is_empty()),
        "{checked:?}"
    );
}

async fn spending(store: &Store, by: CostGroupBy) -> Vec<(String, u64, f64)> {
    let query = SpendingQuery {
        group_by: by,
        ..SpendingQuery::default()
    };
    let lines = store.spending(&query).await.unwrap();
    let told = |line: CostSummary| (line.id, line.calls, line.cost_usd);
    lines.into_iter().map(told).collect()
}

pub(super) async fn calls_round_trip(place: &Place) {
    let store = place.open().await;
    begun(&store, &run(1), "/home/me/shop").await;
    begun(&store, &run(2), "/home/me/blog").await;
    let plain = called(&run(1), "a", 0);
    let troubled = ApiCallRecord {
        outcome: ApiCallOutcome::Failed,
        kind: Some(FailureKind::RateLimit),
        model: None,
        requested_model: None,
        tokens: None,
        cost_usd: None,
        status: 429,
        attempts: 3,
        ..called(&run(2), "b", 60)
    };
    let both = vec![plain.clone(), troubled.clone()];
    store.record_calls(both).await.unwrap();

    let found = |filter: CallFilter| {
        let store = store.clone();
        async move { store.calls(&filter).await.unwrap() }
    };
    let all = found(CallFilter::default()).await;
    assert_eq!(all[0].record, troubled, "the newest comes first");
    assert_eq!(all[1].record, plain);
    assert_eq!(all[1].project, "/home/me/shop");
    let one = |filter: CallFilter| async {
        let found = found(filter).await;
        assert_eq!(found.len(), 1);
        found[0].id.clone()
    };
    let by = CallFilter::default;
    let session = Some(run(2).session_id(1));
    assert_eq!(one(CallFilter { session, ..by() }).await, "b");
    let run = Some(run(1));
    assert_eq!(one(CallFilter { run, ..by() }).await, "a");
    let project = Some("/home/me/blog".into());
    assert_eq!(one(CallFilter { project, ..by() }).await, "b");
    let since = Some(later(1));
    assert_eq!(one(CallFilter { since, ..by() }).await, "b");
    let outcome = vec![ApiCallOutcome::Answered, ApiCallOutcome::Truncated];
    assert_eq!(one(CallFilter { outcome, ..by() }).await, "a");
    let limit = Some(1);
    assert_eq!(one(CallFilter { limit, ..by() }).await, "b");
    sound(&store).await;
}

/// Cost by session, run, project, day, model and upstream.
pub(super) async fn spending_is_grouped_and_filtered(place: &Place) {
    let store = place.open().await;
    begun(&store, &run(1), "/home/me/shop").await;
    begun(&store, &run(2), "/home/me/blog").await;
    let day = 86_400;
    let other = ApiCallRecord {
        model: Some("gpt-x".into()),
        upstream: "other".into(),
        cost_usd: None,
        ..called(&run(2), "c", day)
    };
    let recovered = ApiCallRecord {
        outcome: ApiCallOutcome::Recovered,
        attempts: 2,
        ..called(&run(1), "b", 1)
    };
    let calls = vec![called(&run(1), "a", 0), recovered, other];
    store.record_calls(calls).await.unwrap();

    let told = |id: &str, calls, cost| (id.to_owned(), calls, cost);
    let days = [told("2026-11-15", 2, 0.5), told("2026-11-16", 1, 0.0)];
    assert_eq!(spending(&store, CostGroupBy::Day).await, days);
    let projects = [told("/home/me/shop", 2, 0.5), told("/home/me/blog", 1, 0.0)];
    assert_eq!(spending(&store, CostGroupBy::Project).await, projects);
    let runs = [told(run(2).as_str(), 1, 0.0), told(run(1).as_str(), 2, 0.5)];
    assert_eq!(spending(&store, CostGroupBy::Run).await, runs);
    let sessions = spending(&store, CostGroupBy::Session).await;
    assert_eq!(sessions[1], told(run(1).session_id(1).as_str(), 2, 0.5));
    let models = [told("claude-sonnet-5-5", 2, 0.5), told("gpt-x", 1, 0.0)];
    assert_eq!(spending(&store, CostGroupBy::Model).await, models);
    let upstreams = spending(&store, CostGroupBy::Upstream).await;
    assert_eq!(upstreams[1], told("other", 1, 0.0));

    let query = SpendingQuery {
        group_by: CostGroupBy::Project,
        since: Some(later(day)),
        project: Some("/home/me/blog".into()),
        ..SpendingQuery::default()
    };
    let blog = &store.spending(&query).await.unwrap()[0];
    assert_eq!(
        (blog.unpriced, blog.input_tokens, blog.total_tokens()),
        (1, 1000, 4200)
    );
    let shop = store.run_cost(&run(1)).await.unwrap().unwrap();
    assert_eq!((shop.recovered, shop.tries, shop.unpriced), (1, 3, 0));
    assert_eq!(store.run_cost(&run(9)).await.unwrap(), None);
    sound(&store).await;
}

/// Usage reported by an agent is used for its attempt, and the calls of that attempt are not added.
pub(super) async fn run_cost_is_counted_once(place: &Place) {
    let store = place.open().await;
    let run = run(1);
    let at = |second: i64, events: Vec<unstuck_core::Event>| {
        RunEventBatch::new(run.clone(), later(second), events)
    };
    let silent = end(&run, 9_000, None, None);
    let telling = end(&run, 9_000, Some(2.0), None);
    let log = [
        at(0, vec![started(&run), attempt_started(&run, 1)]),
        at(10, vec![failed(silent, FailureKind::Timeout)]),
        at(20, vec![attempt_started(&run, 2)]),
        at(30, vec![succeeded(telling)]),
        at(40, vec![attempt_started(&run, 3)]),
        at(50, vec![interrupted(&run), attempt_started(&run, 3)]),
    ];
    for append in log {
        store.append(append).await.unwrap();
    }
    let calls = [5, 25, 45, 55].map(|second| called(&run, &second.to_string(), second));
    store.record_calls(calls.to_vec()).await.unwrap();
    let view = &store.runs(&RunFilter::default()).await.unwrap()[0];
    // The first, and the two of the third, are only reported by calls, at a quarter each.
    assert_eq!(view.cost_usd, 2.75);
    // The agent has reported no tokens.
    assert_eq!(view.tokens, 4 * 1200);
    // W4: the same figure by day, by model and in the run timeline.
    let day = spending(&store, CostGroupBy::Day).await;
    assert_eq!(day, [("2026-11-15".to_owned(), 4, 2.75)]);
    let models = spending(&store, CostGroupBy::Model).await;
    assert_eq!(models, [("claude-sonnet-5-5".to_owned(), 4, 2.75)]);
    let story = store.timeline(&run).await.unwrap().unwrap();
    assert_eq!(story.summary.cost_usd, 2.75);
    assert_eq!(story.sessions[0].cost_usd, 2.75);
    sound(&store).await;
}

/// N26: usage reported by an agent is used where the price of its calls is unknown; usage nobody knows is reported as
/// unknown.
pub(super) async fn unknown_price_is_unknown_until_the_agent_reports_the_cost(place: &Place) {
    let store = place.open().await;
    let run = run(1);
    let unpriced = |id: &str, second| ApiCallRecord {
        cost_usd: None,
        model: Some("inhouse".into()),
        ..called(&run, id, second)
    };
    let begun = vec![started(&run), attempt_started(&run, 1)];
    store.append(append(&run, begun)).await.unwrap();
    store.record_calls(vec![unpriced("a", 1)]).await.unwrap();
    let told = async || {
        let view = store.runs(&RunFilter::default()).await.unwrap().remove(0);
        (view.cost_usd, view.unpriced_count, view.model)
    };
    assert_eq!(told().await.0, 0.0);
    assert_eq!(told().await.1, 1, "unknown, and not free");
    let end = end(&run, 9_000, Some(0.0836), None);
    let ended = RunEventBatch::new(run.clone(), later(10), vec![succeeded(end)]);
    store.append(ended).await.unwrap();
    // A call is written shortly after the attempt that it belongs to.
    store.record_calls(vec![unpriced("b", 9)]).await.unwrap();
    let (cost, unknown, _) = told().await;
    assert_eq!((cost, unknown), (0.0836, 0));
    let query = SpendingQuery::default();
    let days = store.spending(&query).await.unwrap();
    assert_eq!((days[0].calls, days[0].unpriced), (2, 0));
    assert!((days[0].cost_usd - 0.0836).abs() < 1e-9);
    sound(&store).await;
    // The cost of a run remains when the run is deleted.
    let end = RunEventBatch::new(
        run.clone(),
        later(11),
        vec![finished(RunOutcome::Succeeded)],
    );
    store.append(end).await.unwrap();
    store
        .maintain(MaintenanceTask::Prune(later(60)))
        .await
        .unwrap();
    let days = store.spending(&query).await.unwrap();
    assert!((days[0].cost_usd - 0.0836).abs() < 1e-9, "{days:?}");
    assert_eq!(days[0].unpriced, 0);
}

/// W5: the model of a client, or of an agent without a configured model, is the one that answered its calls.
pub(super) async fn model_is_taken_from_calls(place: &Place) {
    let store = place.open().await;
    let mut began = started_in(&run(1), "");
    if let Event::RunStarted(started) = &mut began
        && let RunKind::Command(spec) = &mut started.kind
    {
        spec.model = None;
    }
    store.append(append(&run(1), [began])).await.unwrap();
    let side = ApiCallRecord {
        model: Some("claude-haiku-5-5".into()),
        tokens: None,
        ..called(&run(1), "b", 1)
    };
    let calls = vec![called(&run(1), "a", 0), side];
    store.record_calls(calls).await.unwrap();
    let story = store.timeline(&run(1)).await.unwrap().unwrap();
    let model = Some("claude-sonnet-5-5".to_owned());
    assert_eq!(story.sessions[0].model, model);
    let view = store.runs(&RunFilter::default()).await.unwrap().remove(0);
    assert_eq!(view.model, model);
}

/// A client's own session has no attempts; its cost comes from its calls.
pub(super) async fn client_session_cost_is_the_sum_of_its_calls(place: &Place) {
    let store = place.open().await;
    begun(&store, &run(1), "").await;
    store
        .record_calls(vec![called(&run(1), "a", 0)])
        .await
        .unwrap();
    let view = &store.runs(&RunFilter::default()).await.unwrap()[0];
    assert_eq!((view.cost_usd, view.tokens, view.attempts), (0.25, 1200, 0));
}

pub(super) async fn pruned_run_loses_its_calls_but_keeps_their_cost(place: &Place) {
    let store = place.open().await;
    for number in [1, 2] {
        begun(&store, &run(number), "/home/me/shop").await;
        store
            .record_calls(vec![called(&run(number), "a", 0)])
            .await
            .unwrap();
        let end = append(&run(number), [finished(RunOutcome::Succeeded)]);
        store.append(end).await.unwrap();
    }
    begun(&store, &run(3), "/home/me/shop").await;
    store
        .record_calls(vec![called(&run(3), "b", 0)])
        .await
        .unwrap();
    store
        .maintain(MaintenanceTask::Prune(later(60)))
        .await
        .unwrap();
    assert_eq!(store.calls(&CallFilter::default()).await.unwrap().len(), 1);
    let kept = [("/home/me/shop".to_owned(), 3, 0.75)];
    assert_eq!(spending(&store, CostGroupBy::Project).await, kept);
    assert_eq!(spending(&store, CostGroupBy::Run).await.len(), 1);
    sound(&store).await;
}

/// Client-supplied names can be anything.
pub(super) async fn names_are_truncated_and_redacted(place: &Place) {
    let redact = EventPayloadRedactor::new(|value| {
        let text = value
            .as_str()
            .unwrap_or_default()
            .replace("hunter2", "[REDACTED]");
        *value = text.into();
    });
    let options = StoreOptions {
        redact: Some(redact),
        ..StoreOptions::default()
    };
    let store = Store::open(&place.location(), options).await.unwrap();
    let odd = ApiCallRecord {
        requested_model: Some("hunter2".into()),
        model: Some("m".repeat(1_000_000)),
        tokens: Some(TokenUsage {
            input: u64::MAX,
            cached: u64::MAX,
            output: u64::MAX,
            requests: 1,
        }),
        waited_ms: u64::MAX,
        cost_usd: Some(f64::INFINITY),
        at: Timestamp::from_millis(-1),
        ..called(&run(1), "a", 0)
    };
    store.record_calls(vec![odd.clone(), odd]).await.unwrap();
    let kept = &store.calls(&CallFilter::default()).await.unwrap()[0].record;
    assert_eq!(kept.requested_model.as_deref(), Some("[REDACTED]"));
    assert_eq!(kept.model.as_ref().unwrap().len(), 200);
    let spent = store.run_cost(&run(1)).await.unwrap().unwrap();
    assert_eq!((spent.calls, spent.input_tokens), (2, 2 << 40));
    sound(&store).await;
    store.close().await.unwrap();
    let bytes = String::from_utf8_lossy(&place.bytes()).into_owned();
    assert!(!bytes.contains("hunter2"));
}

/// Calls are batched with other writes, and their run need not exist.
pub(super) async fn calls_of_many_runs_are_written_together(place: &Place) {
    let store = place.open().await;
    let many =
        (0..2_500).map(|number| called(&run(number % 7), &number.to_string(), i64::from(number)));
    let (calls, event) = tokio::join!(
        store.record_calls(many.collect()),
        store.append(append(&run(1), [started(&run(1))]))
    );
    calls.unwrap();
    event.unwrap();
    store.record_calls(Vec::new()).await.unwrap();
    let all = store.calls(&CallFilter::default()).await.unwrap();
    assert_eq!(all.len(), 2_500);
    assert_eq!(
        all[0].record.at,
        START.after(std::time::Duration::from_secs(2_499))
    );
    sound(&store).await;
}
