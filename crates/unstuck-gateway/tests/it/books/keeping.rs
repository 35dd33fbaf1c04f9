//! The content of the store after calls.

use std::sync::Arc;
use std::time::Duration;

use unstuck_core::event::ApiCallOutcome;
use unstuck_core::views::{RunStatus, RunTimeline};
use unstuck_core::{Event, FailureKind, RetryPolicy, RunId, Timestamp};
use unstuck_gateway::GatewayRecorder;
use unstuck_store::{CallFilter, RunFilter, SpendingQuery};

use super::{Place, Said, books, called, chat, gateway, opened, sound, until};

const PASSES: &str = "[[step]]\nserver_error = {}\n\n[[step]]\nanswer = { text = \"Done\", input_tokens = 100, output_tokens = 10 }\ntimes = \"always\"\n";

/// S4-31: failures and retries are in the events of the session; a client has a run of its own, which ends with the
/// gateway.
#[tokio::test]
async fn client_calls_become_a_separate_run() {
    let place = Place::new();
    let store = opened(&place.location()).await;
    let said = Said::default();
    let books = books(&store, &said);
    let (gateway, _server) = gateway(PASSES, &books).await;
    assert_eq!(chat(&gateway, "sk-mykey", "hello").await, 200);
    assert_eq!(chat(&gateway, "sk-mykey", "hello again").await, 200);
    books.flush().await;

    let calls = store.calls(&CallFilter::default()).await.unwrap();
    let outcomes: Vec<_> = calls.iter().map(|call| call.record.outcome).collect();
    assert_eq!(
        outcomes,
        [ApiCallOutcome::Answered, ApiCallOutcome::Recovered]
    );
    assert_eq!(calls[1].record.attempts, 2);
    assert_eq!(calls[1].project, "/home/me/shop");
    let run = &store.runs(&RunFilter::default()).await.unwrap()[0];
    assert_eq!(run.command, ["(gateway)", "codex_cli_rs/1.2.3"]);
    assert_eq!(run.agent.as_deref(), Some("codex"));
    assert_eq!(
        (run.status, run.kind),
        (RunStatus::Running, Some(FailureKind::ServerError))
    );
    assert_eq!(store.leases().await.unwrap().len(), 1);

    gateway.stop().await;
    books.close().await;
    let run = &store.runs(&RunFilter::default()).await.unwrap()[0];
    assert_eq!(run.status, RunStatus::Recovered);
    assert_eq!(run.reason.as_deref(), Some("the gateway stopped"));
    assert!(store.leases().await.unwrap().is_empty());
    let events = store.load(&run.id).await.unwrap();
    let names: Vec<_> = events.iter().map(|one| one.event.name()).collect();
    let wanted = [
        "run_started",
        "call_failed",
        "call_resumed",
        "call_finished",
        "run_finished",
    ];
    assert_eq!(names, wanted);
    let timeline = RunTimeline::from_events(&events).unwrap();
    assert_eq!(
        timeline.calls[0].failed_attempts[0].kind,
        FailureKind::ServerError
    );
    assert!(timeline.run.unrepeatable_reason().is_some());
    assert_eq!(*said.lock().unwrap(), [""; 0]);
    sound(&store).await;
}

/// Prompts and keys are not stored, and secrets in an error are redacted.
#[tokio::test]
async fn secrets_and_prompts_are_not_stored() {
    let key = "sk-proj-Zx8vQ2mN4kL7pR1tY5wB9cD3fG6hJ0sA";
    let script = format!(
        "[[step]]\nstatus = {{ code = 401, message = \"Incorrect API key provided: {key}\" }}\ntimes = \"always\"\n"
    );
    let place = Place::new();
    let store = opened(&place.location()).await;
    let books = books(&store, &Said::default());
    let (gateway, _server) = gateway(&script, &books).await;
    assert_eq!(chat(&gateway, key, "a secret prompt").await, 401);
    gateway.stop().await;
    books.close().await;
    let run = &store.runs(&RunFilter::default()).await.unwrap()[0];
    let events = store.load(&run.id).await.unwrap();
    let is_failed = |event: &Event| matches!(event, Event::CallFailed(_));
    assert!(events.iter().any(|one| is_failed(&one.event)));
    store.close().await.unwrap();
    let text = place.text();
    assert!(text.contains("Incorrect API key provided"), "it is told");
    assert!(
        !text.contains("Zx8vQ2mN4kL7pR1tY5wB9c"),
        "the key is on disk"
    );
    assert!(!text.contains("secret prompt"), "the prompt is on disk");
}

#[tokio::test]
async fn records_are_on_disk_within_a_second() {
    let place = Place::new();
    let store = opened(&place.location()).await;
    let books = books(&store, &Said::default());
    let run = RunId::new("r1");
    for number in 0..100 {
        books.record_call(called(&run, number, Timestamp::from_seconds(1_794_777_609)));
    }
    let all = async || store.calls(&CallFilter::default()).await.unwrap().len() == 100;
    assert!(until(Duration::from_secs(1), all).await);
    sound(&store).await;
}

/// A store that does not keep up blocks nobody: the oldest records are dropped, with one warning.
#[tokio::test]
async fn failing_store_blocks_nothing_and_is_reported_once() {
    let place = Place::new();
    let store = opened(&place.location()).await;
    let said = Said::default();
    let books = books(&store, &said);
    store.clone().close().await.unwrap();
    let run = RunId::new("r1");
    for number in 0..20_500 {
        books.record_call(called(&run, number, Timestamp::from_seconds(1_794_777_609)));
    }
    books.flush().await;
    books.flush().await;
    assert_eq!(books.dropped_count(), 500);
    let once = said.lock().unwrap().clone();
    assert_eq!(once.len(), 1, "{once:?}");
    assert!(
        once[0].contains("cannot write records of API calls"),
        "{once:?}"
    );
    books.close().await;
    let told = said.lock().unwrap().clone();
    assert!(
        told[1].starts_with("20500 records of API calls"),
        "{told:?}"
    );
}

/// A killed gateway cannot end its sessions; the next one does.
#[tokio::test]
async fn next_gateway_ends_sessions_of_a_killed_one() {
    let place = Place::new();
    let store = opened(&place.location()).await;
    let killed = books(&store, &Said::default());
    let setup = killed.begin_session("mine", None, &RetryPolicy::default());
    killed.record_call(called(
        &setup.run,
        1,
        Timestamp::from_seconds(1_794_777_609),
    ));
    killed.flush().await;
    drop(Arc::into_inner(killed));
    // Its lease expires after fifteen seconds; here it is released, which looks the same to others.
    for lease in store.leases().await.unwrap() {
        store.release(&lease.token).await.unwrap();
    }
    let next = books(&store, &Said::default());
    next.end_orphaned_runs().await;
    let runs = store.runs(&RunFilter::default()).await.unwrap();
    assert_eq!(runs[0].status, RunStatus::Succeeded);
    let open = next.begin_session("mine", None, &RetryPolicy::default());
    next.flush().await;
    next.end_orphaned_runs().await;
    let runs = store.runs(&RunFilter::default()).await.unwrap();
    let own = runs.iter().find(|run| run.id == open.run).unwrap();
    assert_eq!(own.status, RunStatus::Running);
    sound(&store).await;
}

#[tokio::test]
async fn spending_is_summed_up_on_write() {
    let place = Place::new();
    let store = opened(&place.location()).await;
    let books = books(&store, &Said::default());
    let setup = books.begin_session("mine", Some("my-tool/2"), &RetryPolicy::default());
    assert_eq!(setup.name, "mine");
    for number in 0..1_500 {
        books.record_call(called(
            &setup.run,
            number,
            Timestamp::from_seconds(1_794_777_609),
        ));
    }
    books.close().await;
    let lines = store.spending(&SpendingQuery::default()).await.unwrap();
    assert_eq!((lines.len(), lines[0].calls), (1, 1_500));
    assert!((lines[0].cost_usd - 1.5).abs() < 1e-9);
    let run = &store.runs(&RunFilter::default()).await.unwrap()[0];
    assert_eq!(run.command, ["(gateway)", "mine"]);
    assert_eq!(run.status, RunStatus::Succeeded);
}
