//! How long a diagnosis takes: usual texts, unfamiliar ones, large ones.

use anyhow::Result;
use unstuck_core::knowledge::Knowledge;
use unstuck_core::{Classifier, Diagnosis, Failure, Kind, Now, Timestamp};

use crate::baseline::Loop;
use crate::measure::{ROUNDS, Samples, once, repeated};
use crate::table::{Table, Target};
use crate::texts::{Author, USUAL, failed};

const USUAL_TEXTS: usize = 100;
const UNFAMILIAR_TEXTS: usize = 1000;

/// The moment at which every failure happens.
pub(crate) fn now() -> Now {
    Now::utc(Timestamp::from_seconds(1_770_000_000))
}

/// Diagnoses all, so that the compiler cannot leave out the work.
pub(crate) fn diagnose_all(classifier: &Classifier, failures: &[Failure]) -> usize {
    let now = now();
    let diagnoses = failures
        .iter()
        .map(|failure| classifier.diagnose(failure, &now));
    diagnoses.filter(is_recognised).count()
}

pub(crate) fn measure(table: &mut Table) -> Result<()> {
    let baseline = Loop::of(Knowledge::built_in());
    usual(table, &baseline)?;
    unfamiliar(table)?;
    large(table, &baseline)
}

fn is_recognised(diagnosis: &Diagnosis) -> bool {
    !matches!(diagnosis.kind, Kind::Unknown | Kind::None)
}

fn match_all(baseline: &Loop, failures: &[Failure]) -> usize {
    let texts = failures
        .iter()
        .filter_map(|failure| failure.stderr.as_ref());
    texts.map(|text| baseline.matches(text.bytes())).sum()
}

fn usual(table: &mut Table, baseline: &Loop) -> Result<()> {
    let classifier = Classifier::built_in();
    let texts = Author::seeded(1).logs(USUAL_TEXTS, USUAL);
    let (with_error, without): (Vec<_>, Vec<_>) = texts
        .iter()
        .cloned()
        .enumerate()
        .partition(|(number, _)| number % 10 < 7);
    let recognised = |some: Vec<(usize, Failure)>| {
        let failures: Vec<_> = some.into_iter().map(|(_, failure)| failure).collect();
        format!(
            "{} of {}",
            diagnose_all(classifier, &failures),
            failures.len()
        )
    };
    table.section("1. Diagnosing a text of 2 KB")?;
    table.note(&format!(
        "recognised: {} texts with an error line, {} without; the loop has {} expressions, {} left out",
        recognised(with_error),
        recognised(without),
        baseline.len(),
        baseline.left_out,
    ))?;
    match_all(baseline, &texts);
    let (mut ours, mut theirs) = (Samples::default(), Samples::default());
    for _ in 0..ROUNDS {
        ours.push(repeated(|| diagnose_all(classifier, &texts)) / USUAL_TEXTS as f64);
        theirs.push(repeated(|| match_all(baseline, &texts)) / USUAL_TEXTS as f64);
    }
    table.row("unstuck", &ours.map(micros), "µs/text", Target::Open)?;
    table.row(
        "loop over the same expressions",
        &theirs.map(micros),
        "µs/text",
        Target::Open,
    )?;
    table.row(
        "loop ÷ unstuck",
        &theirs.over(&ours),
        "×",
        Target::AtLeast(8.0),
    )
}

/// Every round reads texts that nobody has seen before.
fn unfamiliar(table: &mut Table) -> Result<()> {
    let classifier = Classifier::built_in();
    let familiar = Author::seeded(1).logs(USUAL_TEXTS, USUAL);
    let (mut known, mut new, mut again) =
        (Samples::default(), Samples::default(), Samples::default());
    for round in 0..ROUNDS {
        let mut author = Author::seeded(1000 + round);
        let texts: Vec<_> = (0..UNFAMILIAR_TEXTS)
            .map(|_| failed(author.words(USUAL)))
            .collect();
        known.push(repeated(|| diagnose_all(classifier, &familiar)) / USUAL_TEXTS as f64);
        new.push(once(|| diagnose_all(classifier, &texts)) / UNFAMILIAR_TEXTS as f64);
        again.push(once(|| diagnose_all(classifier, &texts)) / UNFAMILIAR_TEXTS as f64);
    }
    table.section("2. Unfamiliar and large texts")?;
    table.row(
        "1000 new texts of random words, 2 KB",
        &new.map(micros),
        "µs/text",
        Target::Open,
    )?;
    // The first ratio also tells apart what the texts say; the second only whether they were read before.
    table.row(
        "new texts ÷ known logs",
        &new.over(&known),
        "×",
        Target::AtMost(1.5),
    )?;
    table.row(
        "new texts ÷ the same once more",
        &new.over(&again),
        "×",
        Target::AtMost(1.5),
    )
}

fn large(table: &mut Table, baseline: &Loop) -> Result<()> {
    let mut author = Author::seeded(3);
    let sizes = [("100 KB", 100 << 10), ("1 MB", 1 << 20)];
    for (name, size) in sizes {
        let error = Some(crate::texts::one_line());
        large_text(
            table,
            baseline,
            &format!("log of {name}"),
            author.log(error, size),
        )?;
        large_text(
            table,
            baseline,
            &format!("random words, {name}"),
            author.words(size),
        )?;
    }
    large_text(
        table,
        baseline,
        "nothing but errors, 1 MB",
        author.errors(1 << 20),
    )
}

fn large_text(table: &mut Table, baseline: &Loop, name: &str, text: String) -> Result<()> {
    let classifier = Classifier::built_in();
    let megabytes = text.len() as f64 / 1e6;
    let failures = [failed(text)];
    diagnose_all(classifier, &failures);
    let (mut ours, mut theirs) = (Samples::default(), Samples::default());
    for _ in 0..ROUNDS {
        ours.push(repeated(|| diagnose_all(classifier, &failures)));
        theirs.push(once(|| match_all(baseline, &failures)));
    }
    let speed = ours.map(|seconds| megabytes / seconds);
    table.row(name, &speed, "MB/s", Target::Open)?;
    table.row("  loop ÷ unstuck", &theirs.over(&ours), "×", Target::Open)
}

pub(crate) fn micros(seconds: f64) -> f64 {
    seconds * 1e6
}
