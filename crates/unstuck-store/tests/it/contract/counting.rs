//! Hourly counts and learned success rates.

use std::collections::BTreeMap;

use proptest::prelude::*;
use unstuck_core::decision::StrategyOutcomeTally;
use unstuck_core::event::{Event, RunOutcome};
use unstuck_core::{FailureKind, Timestamp};
use unstuck_store::{
    CountedQuantity, MaintenanceReport, MaintenanceTask, RecoveryStatisticsQuery, RunEventBatch,
    StatisticsDimension, StatsQuery, StatsRow, Store,
};

use super::Place;
use crate::samples::{
    START, answering, append, end, failed, finished, interrupted, later, run, started_in, succeeded,
};

pub(crate) async fn successful_strategies_are_learned(place: &Place) {
    let store = place.open().await;
    let run = run(1);
    let tried = |kind| end(&run, 50, None, Some(answering(kind, Some("simplify"))));
    let same = end(
        &run,
        50,
        None,
        Some(answering(FailureKind::RateLimit, None)),
    );
    let events = [
        started_in(&run, "/p"),
        succeeded(tried(FailureKind::Timeout)),
        failed(tried(FailureKind::Timeout), FailureKind::RateLimit),
        failed(tried(FailureKind::Timeout), FailureKind::Timeout),
        failed(same, FailureKind::RateLimit),
        succeeded(end(&run, 50, None, None)),
    ];
    store.append(append(&run, events)).await.unwrap();
    let odds = store.success_rates(START).await.unwrap();
    let tally = |worked, failed| StrategyOutcomeTally { worked, failed };
    assert_eq!(
        odds.counts_for(FailureKind::Timeout, "simplify"),
        tally(2, 1)
    );
    assert_eq!(odds.counts_for(FailureKind::RateLimit, "same"), tally(0, 1));

    let much_later = Timestamp::from_millis(START.millis() + 91 * 86_400_000);
    let forgotten = store.success_rates(much_later).await.unwrap();
    assert_eq!(
        forgotten.counts_for(FailureKind::Timeout, "simplify"),
        tally(0, 0)
    );
}

pub(crate) async fn statistics_are_grouped_and_filtered(place: &Place) {
    let store = place.open().await;
    let run = run(1);
    let events = [
        started_in(&run, "/p"),
        failed(end(&run, 250, Some(0.25), None), FailureKind::RateLimit),
        failed(end(&run, 50, Some(0.5), None), FailureKind::RateLimit),
        succeeded(end(&run, 2_000, None, None)),
        finished(RunOutcome::Recovered),
    ];
    store.append(append(&run, events)).await.unwrap();
    let by_kind = StatsQuery {
        group_by: vec![
            StatisticsDimension::Day,
            StatisticsDimension::Kind,
            StatisticsDimension::Outcome,
        ],
        ..StatsQuery::default()
    };
    let lines = store.stats(&by_kind).await.unwrap();
    let told = |line: &StatsRow| {
        (
            line.kind.clone().unwrap(),
            line.count,
            line.duration_ms,
            line.cost_usd,
        )
    };
    assert_eq!(
        lines.iter().map(told).collect::<Vec<_>>(),
        [
            ("none".into(), 1, 2_000, 0.0),
            ("rate_limit".into(), 2, 300, 0.75)
        ]
    );
    assert_eq!(lines[1].histogram[..3], [1, 1, 0]);
    assert_eq!(lines[0].from.unwrap().to_string(), "2026-11-15T00:00:00Z");

    let runs = StatsQuery {
        metric: CountedQuantity::Runs,
        group_by: vec![StatisticsDimension::Outcome],
        ..StatsQuery::default()
    };
    let lines = store.stats(&runs).await.unwrap();
    assert_eq!(lines[0].outcome.as_deref(), Some("run_recovered"));
    assert_eq!((lines[0].count, lines[0].cost_usd), (1, 0.5));

    let nothing = StatsQuery {
        project: Some("/other".into()),
        ..StatsQuery::default()
    };
    assert_eq!(store.stats(&nothing).await.unwrap(), []);
}

pub(crate) async fn recoveries_are_grouped_by_level_strategy_and_day(place: &Place) {
    let store = place.open().await;
    let day = 86_400;
    for (number, second, took) in [(1, 0, 2), (2, day, 20), (3, day, 20)] {
        let run = run(number);
        let again = |strategy| {
            let answer = answering(FailureKind::Timeout, strategy);
            end(&run, 50, None, Some(answer))
        };
        let began = [
            started_in(&run, "/p"),
            failed(end(&run, 50, None, None), FailureKind::Timeout),
        ];
        let log = [
            (second, began.to_vec()),
            (second + 1, vec![failed(again(None), FailureKind::Timeout)]),
            (
                second + took,
                vec![
                    succeeded(again(Some("simplify"))),
                    finished(RunOutcome::Recovered),
                ],
            ),
        ];
        for (second, events) in log {
            let append = RunEventBatch::new(run.clone(), later(second), events);
            store.append(append).await.unwrap();
        }
    }
    let (run, fails) = (run(4), RunOutcome::Failed);
    let never = failed(end(&run, 50, None, None), FailureKind::RateLimit);
    let events = [started_in(&run, "/q"), never, finished(fails)];
    store.append(append(&run, events)).await.unwrap();

    let report = store
        .recovery_report(&RecoveryStatisticsQuery::default())
        .await
        .unwrap();
    assert_eq!(
        serde_json::to_value(&report).unwrap(),
        serde_json::json!({
            "byLevel": [
                {"name": "alternative", "helped": 3, "didNotHelp": 0},
                {"name": "same", "helped": 0, "didNotHelp": 3},
            ],
            "byStrategy": [
                {"name": "same", "helped": 0, "didNotHelp": 3},
                {"name": "simplify", "helped": 3, "didNotHelp": 0},
            ],
            "byDay": {
                "2026-11-15": {
                    "recoveries": 1, "medianMs": 3_000, "p90Ms": 3_000, "runsSaved": 1, "runsFailed": 1
                },
                "2026-11-16": {
                    "recoveries": 2, "medianMs": 30_000, "p90Ms": 30_000, "runsSaved": 2, "runsFailed": 0
                },
            },
            "recoveries": 3,
            "medianMs": 30_000,
            "p90Ms": 30_000,
            "runsSaved": 3,
            "runsFailed": 1,
        })
    );
    let query = RecoveryStatisticsQuery {
        project: Some("/q".into()),
        ..RecoveryStatisticsQuery::default()
    };
    let other = store.recovery_report(&query).await.unwrap();
    assert_eq!((other.total.recoveries, other.total.runs_failed), (0, 1));
}

/// An event of one of a few runs, written by one of a few connections.
#[derive(Debug, Clone)]
struct Step {
    run: u32,
    store: usize,
    hour: i64,
    what: What,
}

#[derive(Debug, Clone)]
enum What {
    Ended {
        failure: Option<FailureKind>,
        answering: Option<(FailureKind, Option<&'static str>)>,
        duration_ms: u64,
        cents: u32,
    },
    Interrupted,
    Finished(RunOutcome),
}

fn kinds() -> impl Strategy<Value = FailureKind> {
    proptest::sample::select(vec![
        FailureKind::RateLimit,
        FailureKind::Timeout,
        FailureKind::Stuck,
    ])
}

fn whats() -> impl Strategy<Value = What> {
    let strategies = proptest::sample::select(vec![None, Some("simplify"), Some("next_model")]);
    let ended = (
        proptest::option::of(kinds()),
        proptest::option::of((kinds(), strategies)),
        0_u64..40_000_000,
        0_u32..500,
    );
    let outcomes = vec![
        RunOutcome::Succeeded,
        RunOutcome::Failed,
        RunOutcome::AwaitingHuman,
    ];
    prop_oneof![
        4 => ended.prop_map(|(failure, answering, duration_ms, cents)| What::Ended {
            failure, answering, duration_ms, cents,
        }),
        1 => Just(What::Interrupted),
        1 => proptest::sample::select(outcomes).prop_map(What::Finished),
    ]
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = (0_u32..3, 0_usize..3, 0_i64..3, whats());
    let step = step.prop_map(|(run, store, hour, what)| Step {
        run,
        store,
        hour,
        what,
    });
    proptest::collection::vec(step, 1..40)
}

/// The counts by hour, project, kind, strategy and outcome: number, duration, cost, histogram.
type Counts = BTreeMap<(i64, String, String, String, String), (u64, u64, i64, [u64; 12])>;

/// Counts the intended events independently of the stored ones.
fn count_by_hand(steps: &[Step]) -> Counts {
    let mut counts = Counts::new();
    let mut newest: BTreeMap<u32, &str> = BTreeMap::new();
    let mut failing: BTreeMap<u32, i64> = BTreeMap::new();
    for step in steps {
        let mut count = |kind: &str, strategy: &str, outcome: String, ms: u64, nanos: i64| {
            let key = (
                step.hour,
                project(step.run),
                kind.into(),
                strategy.into(),
                outcome,
            );
            let (number, duration, cost, buckets) = counts.entry(key).or_default();
            (*number, *duration, *cost) = (*number + 1, *duration + ms, *cost + nanos);
            let bounds = [0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1e3, 3e3, 1e4];
            let bucket = bounds
                .iter()
                .filter(|bound| ms as f64 >= **bound * 1000.0)
                .count();
            buckets[bucket] += 1;
        };
        match &step.what {
            What::Ended {
                failure,
                answering,
                duration_ms: ms,
                cents,
            } => {
                let nanos = i64::from(*cents) * 10_000_000;
                let outcome = if failure.is_some() {
                    "failed"
                } else {
                    "succeeded"
                };
                count(
                    failure.map_or("none", FailureKind::name),
                    "",
                    outcome.into(),
                    *ms,
                    nanos,
                );
                if let Some((kind, strategy)) = answering {
                    let helped = if *failure == Some(*kind) {
                        "did_not_help"
                    } else {
                        "helped"
                    };
                    count(
                        kind.name(),
                        strategy.unwrap_or("same"),
                        helped.into(),
                        *ms,
                        nanos,
                    );
                }
                let since = match failure {
                    Some(_) => {
                        failing.entry(step.run).or_insert(step.hour);
                        None
                    }
                    None => failing.remove(&step.run),
                };
                if let (Some(since), Some((kind, strategy))) = (since, answering) {
                    let ms = (step.hour - since).max(0) as u64 * 3_600_000;
                    let strategy = strategy.unwrap_or("same");
                    count(kind.name(), strategy, "recovered".into(), ms, 0);
                }
                if let Some(kind) = failure {
                    newest.insert(step.run, kind.name());
                }
            }
            What::Interrupted => count("none", "", "interrupted".into(), 0, 0),
            What::Finished(outcome) => {
                let kind = newest.get(&step.run).copied().unwrap_or("none");
                count(kind, "", format!("run_{outcome}"), 12_000, 500_000_000);
            }
        }
    }
    counts
}

fn project(run: u32) -> String {
    format!("/p{}", run % 2)
}

fn event(step: &Step) -> Event {
    let run = run(step.run);
    match &step.what {
        What::Ended {
            failure,
            answering: answered,
            duration_ms,
            cents,
        } => {
            let answer = answered.map(|(kind, strategy)| answering(kind, strategy));
            let end = end(&run, *duration_ms, Some(f64::from(*cents) / 100.0), answer);
            match failure {
                Some(kind) => failed(end, *kind),
                None => succeeded(end),
            }
        }
        What::Interrupted => interrupted(&run),
        What::Finished(outcome) => finished(*outcome),
    }
}

fn at(hour: i64) -> Timestamp {
    Timestamp::from_millis((498_549 + hour) * 3_600_000 + 5)
}

async fn counted(store: &Store) -> Counts {
    let mut counts = Counts::new();
    for counted in [
        CountedQuantity::Attempts,
        CountedQuantity::Answers,
        CountedQuantity::Recoveries,
        CountedQuantity::Runs,
    ] {
        use StatisticsDimension::{Hour, Kind, Outcome, Project, Strategy};
        let query = StatsQuery {
            metric: counted,
            group_by: vec![Hour, Project, Kind, Strategy, Outcome],
            ..StatsQuery::default()
        };
        for line in store.stats(&query).await.unwrap() {
            let hour = line.from.unwrap().millis() / 3_600_000 - 498_549;
            let texts = [line.project, line.kind, line.strategy, line.outcome];
            let [project, kind, strategy, outcome] = texts.map(Option::unwrap);
            let nanos = (line.cost_usd * 1e9).round() as i64;
            let cell = (line.count, line.duration_ms, nanos, line.histogram);
            counts.insert((hour, project, kind, strategy, outcome), cell);
        }
    }
    counts
}

async fn count(steps: Vec<Step>) {
    let place = Place::new();
    let stores = [place.open().await, place.open().await, place.open().await];
    for number in 0..3 {
        let run = run(number);
        let begin = append(&run, [started_in(&run, &project(number))]);
        stores[0].append(begin).await.unwrap();
    }
    for step in &steps {
        let append = RunEventBatch::new(run(step.run), at(step.hour), [event(step)]);
        stores[step.store].append(append).await.unwrap();
    }
    assert_eq!(counted(&stores[1]).await, count_by_hand(&steps));
    let MaintenanceReport::Checked { findings, .. } =
        stores[2].maintain(MaintenanceTask::Check).await.unwrap()
    else {
        panic!("a check reports what it checked");
    };
    assert_eq!(findings, []);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn hourly_counts_match_a_full_recount(steps in steps()) {
        super::wait(count(steps));
    }
}
