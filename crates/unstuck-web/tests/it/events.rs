//! Tests of the event stream: no event is lost or repeated, wherever a client resumes.

use std::time::Duration;

use http_body_util::BodyExt;
use hyper::body::Incoming;
use serde_json::Value;
use unstuck_core::event::{EventRecord, RunOutcome};
use unstuck_store::RunEventBatch;
use unstuck_web::auth::PermissionScope;
use unstuck_web::model::EventResponse;

use crate::ground::{Asking, Ground, SECRET};
use crate::samples;

/// A client that follows a stream.
struct Follower {
    body: Incoming,
    text: String,
}

impl Follower {
    async fn new(ground: &Ground, path: &str, last: Option<u64>) -> Self {
        let asking = ground.ask("GET", path);
        Self::of(match last {
            Some(last) => asking.header("last-event-id", &last.to_string()),
            None => asking,
        })
        .await
    }

    async fn of(asking: Asking<'_>) -> Self {
        let asking = asking.header("accept", "text/event-stream");
        let response = asking.begin().await;
        assert_eq!(response.status(), 200);
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        Self {
            body: response.into_body(),
            text: String::new(),
        }
    }

    /// Returns the next event with its id; the initial message has no data.
    async fn next(&mut self) -> (u64, Option<Value>) {
        loop {
            if let Some((block, rest)) = self.text.split_once("\n\n") {
                let (block, rest) = (block.to_owned(), rest.to_owned());
                self.text = rest;
                let field = |name: &str| {
                    let mut lines = block.lines();
                    lines
                        .find_map(|line| line.strip_prefix(name))
                        .map(str::trim)
                };
                let Some(id) = field("id:") else {
                    continue;
                };
                let data = field("data:").map(|data| serde_json::from_str(data).unwrap());
                return (id.parse().unwrap(), data);
            }
            let frame = tokio::time::timeout(Duration::from_secs(20), self.body.frame());
            let frame = frame
                .await
                .expect("the stream goes on")
                .expect("it has not ended");
            let data = frame.unwrap().into_data().unwrap();
            self.text.push_str(std::str::from_utf8(&data).unwrap());
        }
    }

    /// Returns the next event with data.
    async fn event(&mut self) -> Value {
        loop {
            if let (_, Some(event)) = self.next().await {
                return event;
            }
        }
    }

    /// Returns true if the stream ends.
    async fn ends(mut self) -> bool {
        let end = async { while let Some(Ok(_)) = self.body.frame().await {} };
        tokio::time::timeout(Duration::from_secs(20), end)
            .await
            .is_ok()
    }
}

async fn begin(ground: &Ground, number: u32) {
    let run = samples::run(number);
    let append = RunEventBatch::new(
        run.clone(),
        samples::later(200),
        [samples::started(&run, "/p")],
    );
    ground.store.append(append).await.unwrap();
}

/// S4-31: retries and escalations appear in the event stream as they happen.
#[tokio::test]
async fn events_are_streamed_as_they_happen() {
    let ground = Ground::new().await;
    let mut follower = Follower::new(&ground, "/api/events", None).await;
    let (_, greeting) = follower.next().await;
    assert_eq!(greeting, None);
    ground.fill().await;
    let mut names = Vec::new();
    for _ in 0..16 {
        let event = follower.event().await;
        let state = event["state"].as_object().unwrap();
        let fields: Vec<_> = state.keys().collect();
        assert_eq!(fields, ["state", "reason", "until", "source", "next"]);
        let name = event["event"].as_str().unwrap();
        let expected = match name {
            "waiting_until" => "waiting",
            "recovery_escalated" => "awaiting_human",
            _ => "",
        };
        assert!(expected.is_empty() || state["state"] == expected, "{event}");
        names.push(name.to_owned());
    }
    // Pages contain the same, and so does a filtered stream that begins in the middle.
    let page = ground
        .ask("GET", "/api/events?names=waiting_until")
        .header("accept", "application/json");
    let page = page.send().await.json();
    assert_eq!(page["items"][0]["state"]["state"], "waiting", "{page}");
    let mut some = Follower::new(&ground, "/api/events?after=3&names=run_finished", None).await;
    let state = &some.event().await["state"];
    assert_ne!(state["state"], "running", "{state}");
    for name in [
        "attempt_failed",
        "decision_made",
        "waiting_until",
        "recovery_escalated",
        "model_escalated",
    ] {
        assert!(names.iter().any(|one| one == name), "{name}: {names:?}");
    }
}

#[tokio::test]
async fn client_resumes_after_the_last_event_it_received() {
    let ground = Ground::filled().await;
    let mut whole = Follower::new(&ground, "/api/events?after=0", None).await;
    let mut all = Vec::new();
    for _ in 0..16 {
        all.push(whole.event().await["id"].as_u64().unwrap());
    }
    let mut sorted = all.clone();
    sorted.sort_unstable();
    sorted.dedup();
    assert_eq!(all, sorted, "each comes once, in order");
    for (at, last) in all.iter().enumerate().take(15) {
        let mut again = Follower::new(&ground, "/api/events", Some(*last)).await;
        assert_eq!(again.event().await["id"].as_u64(), Some(all[at + 1]));
    }
}

/// A browser that is cut off before the first event resumes from the position in the initial message.
#[tokio::test]
async fn no_event_is_lost_between_two_connections() {
    let ground = Ground::filled().await;
    let mut first = Follower::new(&ground, "/api/events", None).await;
    let (id, _) = first.next().await;
    drop(first);
    begin(&ground, 7).await;
    let mut second = Follower::new(&ground, "/api/events", Some(id)).await;
    assert_eq!(second.event().await["run"], "r000000007");
}

#[tokio::test]
async fn stream_can_be_filtered_by_run_session_and_name() {
    let ground = Ground::filled().await;
    for (query, event) in [
        ("run=r000000002", "run_started"),
        (
            "session=r000000001-1&names=attempt_succeeded",
            "attempt_succeeded",
        ),
        ("names=recovery_escalated,run_finished", "run_finished"),
    ] {
        let path = format!("/api/events?after=0&{query}");
        let mut follower = Follower::new(&ground, &path, None).await;
        assert_eq!(follower.event().await["event"], event, "{query}");
    }
}

#[tokio::test]
async fn stream_contains_no_secret() {
    let ground = Ground::new().await;
    let run = samples::run(1);
    let events = vec![
        samples::started(&run, &format!("/home/{SECRET}")),
        samples::finished(RunOutcome::Failed),
    ];
    samples::write(&ground.store, &run, events).await;
    let mut follower = Follower::new(&ground, "/api/events?after=0", None).await;
    let event = follower.event().await.to_string();
    assert!(
        event.contains("[redacted:environment]") && !event.contains(SECRET),
        "{event}"
    );
}

#[tokio::test]
async fn streams_end_when_the_server_stops() {
    let ground = Ground::new().await;
    let follower = Follower::new(&ground, "/api/events", None).await;
    ground.web.close_streams();
    assert!(follower.ends().await);
}

#[tokio::test]
async fn many_followers_see_every_event_once_during_concurrent_writes() {
    let ground = Ground::new().await;
    let mut followers = Vec::new();
    for _ in 0..20 {
        let mut follower = Follower::new(&ground, "/api/events?after=0", None).await;
        follower.next().await;
        followers.push(follower);
    }
    for number in 1..=30 {
        begin(&ground, number).await;
    }
    for mut follower in followers {
        let mut seen = Vec::new();
        for _ in 0..30 {
            seen.push(follower.event().await["run"].as_str().unwrap().to_owned());
        }
        let expected: Vec<_> = (1..=30)
            .map(|number| samples::run(number).to_string())
            .collect();
        assert_eq!(seen, expected);
    }
}

#[tokio::test]
async fn events_are_available_as_pages() {
    let ground = Ground::filled().await;
    let page = |path: String| {
        let asking = ground
            .ask("GET", &path)
            .header("accept", "application/json");
        async move { asking.send().await.json() }
    };
    let mut seen = Vec::new();
    let mut after = "0".to_owned();
    loop {
        let page = page(format!("/api/events?limit=5&after={after}")).await;
        let items = page["items"].as_array().unwrap();
        seen.extend(items.iter().map(|one| one["id"].as_u64().unwrap()));
        match page["next"].as_str() {
            Some(next) => after = next.to_owned(),
            None => break,
        }
    }
    assert_eq!(seen.len(), 16);
    assert!(seen.is_sorted());
    let of_run = page("/api/events?run=r000000003".to_owned()).await;
    assert_eq!(of_run["items"].as_array().unwrap().len(), 3);
    assert_eq!(of_run["items"][0]["data"]["project"], "/home/me/blog");
    let wrong = ground
        .ask("GET", "/api/events")
        .header("last-event-id", "x")
        .send()
        .await;
    assert_eq!(wrong.status, 400);
}

#[tokio::test]
async fn stream_ends_when_the_token_is_revoked() {
    let ground = Ground::new().await;
    let token = ground.token(PermissionScope::Read);
    let mut signed = Follower::of(ground.ask("GET", "/api/events").token(&token)).await;
    let mut free = Follower::new(&ground, "/api/events", None).await;
    signed.next().await;
    free.next().await;
    ground.revoke_all();
    tokio::time::pause();
    tokio::time::advance(Duration::from_secs(16)).await;
    tokio::time::resume();
    assert!(signed.ends().await);
    begin(&ground, 1).await;
    assert_eq!(free.event().await["event"], "run_started");
}

/// W13: a browser that opens the events URL gets a page of events and not an endless stream.
#[tokio::test]
async fn browser_gets_events_as_json() {
    let ground = Ground::filled().await;
    let accept = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8";
    let asking = ground.ask("GET", "/api/events?run=r000000001");
    let reply = asking.header("accept", accept).send().await;
    assert_eq!(reply.header("content-type"), "application/json");
    assert_eq!(reply.json()["items"][0]["event"], "run_started");
}

/// An event of each kind, as it is stored.
const STORED: &str = include_str!("../../../unstuck-core/tests/golden/events-v2.jsonl");
/// Fields whose keys are data: kinds of failures, and the strategies of each.
const DATA: [&str; 1] = ["successRates"];

/// Adds the paths of all keys with an underscore.
fn find_snake_case(value: &Value, path: &str, found: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            for (key, value) in fields {
                let path = format!("{path}.{key}");
                if key.contains('_') {
                    found.push(path.clone());
                }
                if !DATA.contains(&&**key) {
                    find_snake_case(value, &path, found);
                }
            }
        }
        Value::Array(items) => {
            for item in items {
                find_snake_case(item, path, found);
            }
        }
        _ => {}
    }
}

#[test]
fn every_key_of_an_event_is_in_camel_case_unless_it_is_data() {
    let options = r#""options":{"grace_ms":1,"expect":{"not_empty":true},"project_settings":"a""#;
    let stored = STORED.replace(r#""options":{"tty":true"#, options);
    assert!(stored.contains("grace_ms"));
    let mut found = Vec::new();
    for line in stored.lines() {
        let recorded: EventRecord = serde_json::from_str(line).unwrap();
        let served = serde_json::to_value(EventResponse::from_record(1, &recorded, None)).unwrap();
        find_snake_case(&served, recorded.event.name(), &mut found);
    }
    assert_eq!(found, Vec::<String>::new());
}
