//! Real failures stored outside the repository; without them the group `corpus` is not run.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Deserialize;
use unstuck_core::{Diagnosis, FailureInputRecord, FailureKind};

/// Minimum share of correct results in percent, slightly below the measured one.
struct Least {
    kinds: usize,
    /// For texts that are not failures.
    none: usize,
    waits: usize,
}

const FILES: [(&str, Least); 4] = [
    ("api-agent.dev.jsonl", least(98, 100, 100)),
    ("api-agent.dev2.jsonl", least(92, 100, 100)),
    ("tool-infra.dev.jsonl", least(99, 100, 100)),
    ("tool-infra.dev2.jsonl", least(92, 100, 100)),
];

const fn least(kinds: usize, none: usize, waits: usize) -> Least {
    Least { kinds, none, waits }
}

#[derive(Deserialize)]
struct Labelled {
    #[serde(flatten)]
    case: FailureInputRecord,
    expected: FailureKind,
    #[serde(default)]
    also: Vec<FailureKind>,
    retry_after_s: Option<f64>,
}

/// The number of correct results, and the wrong ones.
#[derive(Default)]
struct Tally {
    right: usize,
    wrong: Vec<String>,
}

impl Tally {
    fn add(&mut self, is_right: bool, problem: impl FnOnce() -> String) {
        if is_right {
            self.right += 1;
        } else {
            self.wrong.push(problem());
        }
    }

    fn all(&self) -> usize {
        self.right + self.wrong.len()
    }

    fn is_at_least(&self, percent: usize) -> bool {
        self.right * 100 >= percent * self.all()
    }
}

/// Returns the labelled cases of a file in the corpus beside the repository.
fn labelled(file: &str) -> Vec<Labelled> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/corpus/v2");
    let text = std::fs::read_to_string(folder.join(file)).unwrap();
    let cases = text.lines().map(|line| serde_json::from_str(line).unwrap());
    cases.collect()
}

fn waits_right(stated: f64, read: &Diagnosis) -> bool {
    read.retry_after
        .is_some_and(|wait| (wait.as_secs_f64() - stated).abs() <= (0.05 * stated).max(1.0))
}

/// The results for one file.
#[derive(Default)]
struct Measured {
    kinds: BTreeMap<FailureKind, Tally>,
    waits: Tally,
}

impl Measured {
    fn add(&mut self, labelled: Labelled) {
        let id = labelled.case.id.clone().unwrap_or_default();
        let read = super::diagnose(&labelled.case.into_failure());
        let expected = labelled.expected;
        let is_right = read.kind == expected || labelled.also.contains(&read.kind);
        self.kinds.entry(expected).or_default().add(is_right, || {
            format!(
                "{id}: {expected}, got {} by {}",
                read.kind, read.evidence.rule
            )
        });
        if let Some(stated) = labelled.retry_after_s {
            self.waits.add(waits_right(stated, &read), || {
                format!("{id}: stated {stated} s, got {:?}", read.retry_after)
            });
        }
    }

    fn total(&self) -> Tally {
        let mut total = Tally::default();
        for tally in self.kinds.values() {
            total.right += tally.right;
            total.wrong.extend_from_slice(&tally.wrong);
        }
        total
    }
}

#[test]
fn real_failures_are_classified() {
    for (file, least) in FILES {
        let mut measured = Measured::default();
        for labelled in labelled(file) {
            measured.add(labelled);
        }
        let total = measured.total();
        let report = total.wrong.join("\n");
        println!("{file}: {} of {} right\n{report}", total.right, total.all());
        assert!(
            total.is_at_least(least.kinds),
            "{file}: {} of {}",
            total.right,
            total.all()
        );
        let none = &measured.kinds[&FailureKind::None];
        assert!(none.is_at_least(least.none), "{file}: {:#?}", none.wrong);
        let waits = &measured.waits;
        assert!(waits.is_at_least(least.waits), "{file}: {:#?}", waits.wrong);
    }
}
