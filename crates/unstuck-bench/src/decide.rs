//! Measures the duration of a decision.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context, Result};
use unstuck_core::decision::{
    CurrentModel, DecisionInput, EpisodeRecoveryHistory, ModelCatalog, RetryRecord, SeededRng,
    TokenUsage, template,
};
use unstuck_core::knowledge::{RecoveryKnowledge, Strategy};
use unstuck_core::{
    Classifier, Diagnosis, Failure, FailureKind, RecoveryLevel, RetryPolicy, Timestamp, decide,
};

use crate::diagnose::now;
use crate::measure::{ROUNDS, Samples, time_repeated};
use crate::table::{FigureTable, FigureTarget};

/// Maximum nanoseconds per decision.
const MAX_NANOS: f64 = 2000.0;
/// Decisions between two clock readings.
const BATCH: u32 = 1000;

/// A failure with its recovery history.
struct DecisionFixture {
    diagnosis: Diagnosis,
    history: EpisodeRecoveryHistory,
    policy: RetryPolicy,
    strategies: BTreeMap<String, Strategy>,
    catalog: ModelCatalog,
}

pub(crate) fn measure(table: &mut FigureTable) -> Result<()> {
    let limited = Failure::api("anthropic")
        .with_status(429)
        .with_header("retry-after", "12");
    let too_long = Failure::api("anthropic")
        .with_status(400)
        .with_body("prompt is too long: 214331 tokens > 200000 maximum");
    let no_model = Failure::api("anthropic")
        .with_status(404)
        .with_body(r#"{"error":{"type":"not_found_error","message":"model: claude-x"}}"#);
    let cases = [
        (
            "rate limit, third retry",
            DecisionFixture::new(&limited, 2)?,
        ),
        (
            "systematic kind with its chain",
            DecisionFixture::new(&too_long, 0)?,
        ),
        ("model switch", DecisionFixture::new(&no_model, 0)?),
    ];
    table.section("5. Decision")?;
    for (name, world) in &cases {
        let made = decide(&world.situation(), SeededRng::seeded(1).next_draw());
        table.note(&format!("{name}: {}", made.reason))?;
    }
    let mut samples = <[Samples; 3]>::default();
    for _ in 0..ROUNDS {
        for ((_, world), samples) in cases.iter().zip(&mut samples) {
            samples.push(world.time_decision());
        }
    }
    for ((name, _), samples) in cases.iter().zip(&samples) {
        let nanos = samples.map(|seconds| seconds * 1e9);
        table.row(name, &nanos, "ns", FigureTarget::AtMost(MAX_NANOS))?;
        table.row(
            "  limit ÷ unstuck",
            &nanos.map(|value| MAX_NANOS / value),
            "×",
            FigureTarget::AtLeast(1.0),
        )?;
    }
    Ok(())
}

impl DecisionFixture {
    fn new(failure: &Failure, retries: u32) -> Result<Self> {
        let diagnosis = Classifier::built_in().diagnose(failure, &now());
        let started = Timestamp::from_seconds(1_769_999_900);
        let mut history = EpisodeRecoveryHistory::new(started);
        for _ in 0..retries {
            history.record(attempt(diagnosis.kind, started));
        }
        let strategies = RecoveryKnowledge::built_in().strategies();
        Ok(Self {
            diagnosis,
            history,
            policy: RetryPolicy {
                auto_switch_model: true,
                ..template("standard").context("template not found")?.clone()
            },
            strategies: strategies
                .map(|(id, strategy)| (id.to_owned(), strategy.clone()))
                .collect(),
            catalog: ModelCatalog::embedded(),
        })
    }

    fn situation(&self) -> DecisionInput<'_> {
        let knowledge = Classifier::built_in().knowledge().kind(self.diagnosis.kind);
        let model = CurrentModel {
            id: "claude-sonnet-5-5",
            catalog: &self.catalog,
            expected: TokenUsage {
                input: 100_000,
                cached: 0,
                output: 10_000,
                requests: 4,
            },
        };
        DecisionInput {
            model: Some(model),
            ..DecisionInput::new(
                &self.policy,
                &self.history,
                &self.diagnosis,
                knowledge,
                &self.strategies,
                now().at,
            )
        }
    }

    fn time_decision(&self) -> f64 {
        let (situation, mut dice) = (self.situation(), SeededRng::seeded(7));
        let batch = || {
            for _ in 0..BATCH {
                std::hint::black_box(decide(std::hint::black_box(&situation), dice.next_draw()));
            }
        };
        time_repeated(batch) / f64::from(BATCH)
    }
}

fn attempt(kind: FailureKind, at: Timestamp) -> RetryRecord {
    RetryRecord {
        kind,
        level: RecoveryLevel::Same,
        strategy: None,
        at,
        delay: Duration::from_secs(2),
        is_stated_reset: false,
        cost: 0.02,
        extra_cost: 0.0,
        is_time_bound: false,
        waited_for_network: false,
    }
}
