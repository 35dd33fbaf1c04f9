//! Failure analytics and the failure list.

use unstuck_core::event::{ApiCallOutcome, ApiCallRecord, AttemptEnd, Event, RunId, RunOutcome};
use unstuck_core::{FailureAnalytics, FailureKind, Timestamp};
use unstuck_store::{
    EventPayloadRedactor, FailureQuery, FailureRow, MaintenanceReport, MaintenanceTask,
    RecoveryStatisticsQuery, RunEventBatch, Store, StoreOptions,
};

use super::Place;
use crate::samples::{
    answering, append, attempt_started, builder_started, call_failed, called, end, failed,
    failed_saying, finished, later, pipeline_started, run, started, started_in, succeeded,
};

async fn sound(store: &Store) {
    let checked = store.maintain(MaintenanceTask::Check).await.unwrap();
    assert!(
        matches!(&checked, MaintenanceReport::Checked { findings, .. } if findings.is_empty()),
        "{checked:?}"
    );
}

async fn happen(store: &Store, run: &RunId, second: i64, event: Event) {
    let append = RunEventBatch::new(run.clone(), later(second), [event]);
    store.append(append).await.unwrap();
}

async fn told(store: &Store, query: FailureQuery) -> FailureAnalytics {
    store.failure_analytics(&query).await.unwrap()
}

async fn lines(store: &Store, query: FailureQuery) -> Vec<FailureRow> {
    let page = store.failure_page(&query, None, 100).await.unwrap();
    assert_eq!(page.next, None);
    page.failures
}

fn by(run: &RunId, model: &str) -> AttemptEnd {
    AttemptEnd {
        model: Some(model.into()),
        ..end(run, 10, None, None)
    }
}

const DAY: i64 = 86_400;

/// Daily counts agree with hourly ones, and half a day only includes its hours.
pub(crate) async fn daily_counts_match_hourly_counts(place: &Place) {
    let store = place.open().await;
    history(&store).await;
    let again = AttemptEnd {
        cause: Some(answering(FailureKind::Timeout, None)),
        ..by(&run(2), "haiku")
    };
    happen(
        &store,
        &run(2),
        DAY + 2,
        failed(again.clone(), FailureKind::Timeout),
    )
    .await;
    happen(&store, &run(2), DAY + 3, succeeded(again)).await;
    // Not a whole day: it must be read hour by hour.
    let by_hour = |days| {
        let at = later(days * DAY).millis();
        Some(Timestamp::from_millis(at - at % 86_400_000 + 3_600_000))
    };
    let (days, hours) = (FailureQuery::default(), |since| FailureQuery {
        since,
        until: by_hour(30),
        ..FailureQuery::default()
    });
    let all = told(&store, days).await;
    assert_eq!(all.total_failures, 5);
    assert_eq!(told(&store, hours(None)).await, all);
    assert_eq!(told(&store, hours(by_hour(-1))).await, all);
    assert_eq!(told(&store, hours(by_hour(2))).await.total_failures, 0);
    let recoveries = RecoveryStatisticsQuery::default();
    let cut = RecoveryStatisticsQuery {
        until: by_hour(30),
        ..RecoveryStatisticsQuery::default()
    };
    let report = store.recovery_report(&recoveries).await.unwrap();
    assert_eq!(store.recovery_report(&cut).await.unwrap(), report);
    assert_eq!(report.total.recoveries, 1);
}

/// Two projects, two models, two days.
async fn history(store: &Store) {
    let (shop, blog) = (run(1), run(2));
    happen(store, &shop, 0, started_in(&shop, "/home/me/shop")).await;
    happen(store, &blog, 0, started_in(&blog, "/home/me/blog")).await;
    let limited = |number: u32| format!("API Error: 429 slow down, request req_{number:05}");
    for number in 0..3 {
        let event = failed_saying(by(&shop, "opus"), FailureKind::RateLimit, &limited(number));
        happen(store, &shop, i64::from(number), event).await;
    }
    happen(store, &shop, 4, succeeded(by(&shop, "opus"))).await;
    let slow = failed_saying(by(&blog, "haiku"), FailureKind::Timeout, "it took 30 s");
    happen(store, &blog, DAY, slow).await;
    happen(store, &blog, DAY + 1, succeeded(by(&blog, "haiku"))).await;
}

/// S4-22, S4-30: failures by kind, model, project, prompt, message and day, with filters.
pub(super) async fn failures_are_grouped_and_filtered(place: &Place) {
    let store = place.open().await;
    history(&store).await;
    let all = told(&store, FailureQuery::default()).await;
    let json = serde_json::to_value(&all).unwrap();
    assert_eq!(
        json,
        serde_json::json!({
            "totalFailures": 4,
            "totalAttempts": 6,
            "byErrorType": {"rate_limit": 3, "timeout": 1},
            "byModel": {"opus": 3, "haiku": 1},
            "byProject": {"/home/me/shop": 3, "/home/me/blog": 1},
            "byPromptPattern": [{"role": null, "template": "fix the tests", "count": 4}],
            "topErrorMessages": [
                {
                    "message": "API Error: <n> slow down, request <id>", "count": 3, "errorType": "rate_limit",
                    "fingerprint": "rate_limit:43", "lastSeen": later(2).to_string(),
                },
                {
                    "message": "it took <n> s", "count": 1, "errorType": "timeout",
                    "fingerprint": "timeout:12", "lastSeen": later(DAY).to_string(),
                },
            ],
            "failureRateByDay": {"2026-11-15": 0.75, "2026-11-16": 0.5},
            "byDay": {
                "2026-11-15": {"failures": 3, "attempts": 4},
                "2026-11-16": {"failures": 1, "attempts": 2},
            },
        })
    );
    let ask = FailureQuery::default;
    let totals = |told: FailureAnalytics| (told.total_failures, told.total_attempts);
    let project = Some("/home/me/blog".into());
    let blog = told(&store, FailureQuery { project, ..ask() }).await;
    assert_eq!(totals(blog), (1, 2));
    let model = Some("opus".into());
    let opus = told(&store, FailureQuery { model, ..ask() }).await;
    assert_eq!(totals(opus), (3, 4));
    let kind = Some(FailureKind::Timeout);
    let slow = told(&store, FailureQuery { kind, ..ask() }).await;
    assert_eq!(slow.top_error_messages.len(), 1);
    assert_eq!(slow.failure_rate_by_day["2026-11-15"], 0.0);
    assert_eq!(totals(slow), (1, 6), "the rate is that of all attempts");
    let since = Some(later(DAY));
    let new = told(&store, FailureQuery { since, ..ask() }).await;
    assert_eq!(totals(new), (1, 2));
    let until = Some(later(DAY));
    let old = told(&store, FailureQuery { until, ..ask() }).await;
    assert_eq!(totals(old), (3, 4));
    let top = Some(1);
    let most = told(&store, FailureQuery { top, ..ask() }).await;
    assert_eq!(most.top_error_messages.len(), 1);
    sound(&store).await;
}

pub(super) async fn aggregates_and_list_cover_the_same_hours(place: &Place) {
    let store = place.open().await;
    history(&store).await;
    let ask = FailureQuery::default;
    for query in [
        ask(),
        FailureQuery {
            project: Some("/home/me/shop".into()),
            ..ask()
        },
        FailureQuery {
            model: Some("haiku".into()),
            ..ask()
        },
        FailureQuery {
            kind: Some(FailureKind::RateLimit),
            ..ask()
        },
        FailureQuery {
            since: Some(later(1)),
            until: Some(later(DAY)),
            ..ask()
        },
        FailureQuery {
            since: Some(later(3600)),
            ..ask()
        },
    ] {
        let together = told(&store, query.clone()).await.total_failures;
        let single = lines(&store, query.clone()).await;
        assert_eq!(single.len() as u64, together, "{query:?}");
    }
    let newest = &lines(&store, ask()).await[0];
    assert_eq!((newest.at, newest.kind), (later(DAY), FailureKind::Timeout));
    assert_eq!((&*newest.project, newest.attempt), ("/home/me/blog", 1));
    assert_eq!(newest.message, "it took <n> s");
    assert_eq!(newest.model.as_deref(), Some("haiku"));
}

/// The process that writes the failure has not seen the start of the role.
pub(super) async fn role_failure_has_the_prompt_pattern(place: &Place) {
    let (one, other) = (place.open().await, place.open().await);
    let run = run(1);
    let fails = || failed(end(&run, 10, None, None), FailureKind::Timeout);
    happen(&one, &run, 0, pipeline_started("/home/me/shop")).await;
    happen(&one, &run, 1, builder_started(&run, "Build {{ task }}")).await;
    happen(&other, &run, 2, fails()).await;
    happen(&one, &run, 3, fails()).await;
    happen(&one, &run, 4, builder_started(&run, "Build it well")).await;
    happen(&one, &run, 5, fails()).await;
    let told = told(&other, FailureQuery::default()).await;
    let patterns = told.by_prompt_pattern.iter();
    let patterns: Vec<_> = patterns
        .map(|one| {
            (
                one.pattern.role.as_deref(),
                &*one.pattern.template,
                one.count,
            )
        })
        .collect();
    assert_eq!(
        patterns,
        [
            (Some("builder"), "Build {{ task }}", 2),
            (Some("builder"), "Build it well", 1)
        ]
    );
    sound(&one).await;
}

/// When a call of a supervised run fails permanently, its attempt reports it.
pub(super) async fn unsupervised_failed_call_is_counted(place: &Place) {
    let (store, gateway) = (place.open().await, place.open().await);
    let (client, driven) = (run(1), run(2));
    happen(&store, &client, 0, started_in(&client, "")).await;
    happen(&store, &driven, 0, started(&driven)).await;
    happen(&store, &driven, 0, attempt_started(&driven, 1)).await;
    for run in [&client, &driven] {
        let line = "429: try again in 7 s";
        happen(&store, run, 1, call_failed(run, "b", "429: once")).await;
        happen(&store, run, 1, call_failed(run, "a", line)).await;
        let ended = |call: &str, outcome, kind| ApiCallRecord {
            outcome,
            kind,
            ..called(run, call, 2)
        };
        let limited = Some(FailureKind::RateLimit);
        let calls = vec![
            ended("a", ApiCallOutcome::Failed, limited),
            ended("b", ApiCallOutcome::Recovered, limited),
            ended("c", ApiCallOutcome::Cancelled, limited),
            ended("d", ApiCallOutcome::Refused, None),
            ended("e", ApiCallOutcome::Answered, None),
            ended("f", ApiCallOutcome::Truncated, None),
        ];
        gateway.record_calls(calls).await.unwrap();
    }
    let together = told(&store, FailureQuery::default()).await;
    assert_eq!((together.total_failures, together.total_attempts), (2, 4));
    assert_eq!(together.by_error_type["rate_limit"], 1);
    assert_eq!(together.by_prompt_pattern, []);
    let messages = together.top_error_messages.iter();
    let messages: Vec<_> = messages.map(|one| &*one.message).collect();
    assert_eq!(messages, ["<n>: try again in <n> s", "unknown"]);
    let single = lines(&store, FailureQuery::default()).await;
    let calls: Vec<_> = single.iter().map(|one| one.call.as_deref()).collect();
    assert_eq!(calls, [Some("f"), Some("a")]);
    assert_eq!(single[1].fingerprint, "rate_limit:c");
    assert_eq!(single[0].kind, FailureKind::Unknown);
    sound(&store).await;
}

pub(super) async fn failure_pages_are_stable(place: &Place) {
    let store = place.open().await;
    let (driven, client) = (run(1), run(2));
    happen(&store, &driven, 0, started(&driven)).await;
    happen(&store, &client, 0, started_in(&client, "")).await;
    let fails = |number| {
        let mut end = end(&driven, 10, None, None);
        end.number = number;
        failed(end, FailureKind::Timeout)
    };
    // Three entries with the same timestamp from each source, and one before.
    happen(&store, &driven, 1, fails(1)).await;
    let calls = ["a", "b", "c"].map(|call| ApiCallRecord {
        outcome: ApiCallOutcome::Failed,
        ..called(&client, call, 2)
    });
    store.record_calls(calls.to_vec()).await.unwrap();
    for number in 2..5 {
        happen(&store, &driven, 2, fails(number)).await;
    }
    let name = |line: &FailureRow| match &line.call {
        Some(call) => call.clone(),
        None => line.attempt.to_string(),
    };
    for size in 1..9 {
        let (mut seen, mut after) = (Vec::new(), None);
        loop {
            let query = FailureQuery::default();
            let page = store.failure_page(&query, after, size).await.unwrap();
            seen.extend(page.failures.iter().map(name));
            // Later entries are newer and do not appear on later pages.
            happen(&store, &driven, 3 + size as i64, fails(99)).await;
            let Some(next) = page.next else {
                break;
            };
            after = Some(next.to_string().parse().unwrap());
        }
        let old: Vec<_> = seen.iter().filter(|one| *one != "99").collect();
        assert_eq!(old, ["4", "3", "2", "c", "b", "a", "1"]);
    }
}

pub(super) async fn failure_analytics_survive_pruning(place: &Place) {
    let store = place.open().await;
    for number in [1, 2] {
        let run = run(number);
        let fails = failed(end(&run, 10, None, None), FailureKind::Timeout);
        let end = finished(RunOutcome::Failed);
        let append = append(&run, [started(&run), fails, end]);
        store.append(append).await.unwrap();
    }
    let before = told(&store, FailureQuery::default()).await;
    store
        .maintain(MaintenanceTask::Prune(later(60)))
        .await
        .unwrap();
    assert_eq!(told(&store, FailureQuery::default()).await, before);
    assert_eq!(lines(&store, FailureQuery::default()).await, []);
    sound(&store).await;
}

pub(super) async fn secrets_are_in_no_message_and_no_prompt(place: &Place) {
    let redact = EventPayloadRedactor::new(|value| {
        let text = value.to_string().replace("hunter2", "[REDACTED]");
        *value = serde_json::from_str(&text).unwrap();
    });
    let options = StoreOptions {
        redact: Some(redact),
        ..StoreOptions::default()
    };
    let store = Store::open(&place.location(), options).await.unwrap();
    let run = run(1);
    happen(&store, &run, 0, pipeline_started("/home/me/shop")).await;
    happen(&store, &run, 1, builder_started(&run, "Say hunter2 aloud")).await;
    let says = failed_saying(end(&run, 1, None, None), FailureKind::Timeout, "no hunter2");
    happen(&store, &run, 2, says).await;
    let told = told(&store, FailureQuery::default()).await;
    let prompt = &told.by_prompt_pattern[0].pattern.template;
    assert_eq!(prompt, "Say [REDACTED] aloud");
    assert_eq!(told.top_error_messages[0].message, "no [REDACTED]");
    store.close().await.unwrap();
    let bytes = String::from_utf8_lossy(&place.bytes()).into_owned();
    assert!(!bytes.contains("hunter2"));
}
