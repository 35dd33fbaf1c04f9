//! Measures the duration of a diagnosis: typical, unseen, and large texts.

use anyhow::Result;
use unstuck_core::knowledge::DiagnosisKnowledge;
use unstuck_core::{Classifier, ClockReading, Diagnosis, Failure, FailureKind, Timestamp};

use crate::measure::{ROUNDS, Samples, time_once, time_repeated};
use crate::regex_baseline::RegexLoop;
use crate::table::{FigureTable, FigureTarget};
use crate::texts::{TextGenerator, USUAL_SIZE, failed};

const USUAL_TEXTS: usize = 100;
const UNFAMILIAR_TEXTS: usize = 1000;

/// Returns the fixed timestamp of every failure.
pub(crate) fn now() -> ClockReading {
    ClockReading::utc(Timestamp::from_seconds(1_770_000_000))
}

/// Diagnoses all failures; the compiler cannot optimize the work away.
pub(crate) fn diagnose_all(classifier: &Classifier, failures: &[Failure]) -> usize {
    let now = now();
    let diagnoses = failures
        .iter()
        .map(|failure| classifier.diagnose(failure, &now));
    diagnoses.filter(is_recognised).count()
}

pub(crate) fn measure(table: &mut FigureTable) -> Result<()> {
    let baseline = RegexLoop::from_knowledge(DiagnosisKnowledge::built_in());
    measure_usual(table, &baseline)?;
    measure_unfamiliar(table)?;
    measure_large(table, &baseline)
}

fn is_recognised(diagnosis: &Diagnosis) -> bool {
    !matches!(diagnosis.kind, FailureKind::Unknown | FailureKind::None)
}

fn match_all(baseline: &RegexLoop, failures: &[Failure]) -> usize {
    let texts = failures
        .iter()
        .filter_map(|failure| failure.stderr.as_ref());
    texts.map(|text| baseline.count_matches(text.bytes())).sum()
}

fn measure_usual(table: &mut FigureTable, baseline: &RegexLoop) -> Result<()> {
    let classifier = Classifier::built_in();
    let texts = TextGenerator::from_seed(1).logs(USUAL_TEXTS, USUAL_SIZE);
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
    table.section("1. Diagnosis of 2 KB texts")?;
    table.note(&format!(
        "recognized: {} texts with an error line, {} without; the loop has {} expressions, {} skipped",
        recognised(with_error),
        recognised(without),
        baseline.len(),
        baseline.skipped,
    ))?;
    match_all(baseline, &texts);
    let (mut ours, mut theirs) = (Samples::default(), Samples::default());
    for _ in 0..ROUNDS {
        ours.push(time_repeated(|| diagnose_all(classifier, &texts)) / USUAL_TEXTS as f64);
        theirs.push(time_repeated(|| match_all(baseline, &texts)) / USUAL_TEXTS as f64);
    }
    table.row("unstuck", &ours.map(micros), "µs/text", FigureTarget::None)?;
    table.row(
        "loop over the same expressions",
        &theirs.map(micros),
        "µs/text",
        FigureTarget::None,
    )?;
    table.row(
        "loop ÷ unstuck",
        &theirs.ratio_to(&ours),
        "×",
        FigureTarget::AtLeast(8.0),
    )
}

/// Every round reads texts that were not seen before.
fn measure_unfamiliar(table: &mut FigureTable) -> Result<()> {
    let classifier = Classifier::built_in();
    let familiar = TextGenerator::from_seed(1).logs(USUAL_TEXTS, USUAL_SIZE);
    let (mut known, mut new, mut again) =
        (Samples::default(), Samples::default(), Samples::default());
    for round in 0..ROUNDS {
        let mut author = TextGenerator::from_seed(1000 + round);
        let texts: Vec<_> = (0..UNFAMILIAR_TEXTS)
            .map(|_| failed(author.words(USUAL_SIZE)))
            .collect();
        known.push(time_repeated(|| diagnose_all(classifier, &familiar)) / USUAL_TEXTS as f64);
        new.push(time_once(|| diagnose_all(classifier, &texts)) / UNFAMILIAR_TEXTS as f64);
        again.push(time_once(|| diagnose_all(classifier, &texts)) / UNFAMILIAR_TEXTS as f64);
    }
    table.section("2. Unseen and large texts")?;
    table.row(
        "1000 new texts of random words, 2 KB",
        &new.map(micros),
        "µs/text",
        FigureTarget::None,
    )?;
    // The first ratio also differs by content; the second only by whether the texts were read before.
    table.row(
        "new texts ÷ known logs",
        &new.ratio_to(&known),
        "×",
        FigureTarget::AtMost(1.5),
    )?;
    table.row(
        "new texts ÷ same texts repeated",
        &new.ratio_to(&again),
        "×",
        FigureTarget::AtMost(1.5),
    )
}

fn measure_large(table: &mut FigureTable, baseline: &RegexLoop) -> Result<()> {
    let mut author = TextGenerator::from_seed(3);
    let sizes = [("100 KB", 100 << 10), ("1 MB", 1 << 20)];
    for (name, size) in sizes {
        let error = Some(crate::texts::one_line());
        large_text(
            table,
            baseline,
            &format!("log, {name}"),
            author.log(error, size),
        )?;
        large_text(
            table,
            baseline,
            &format!("random words, {name}"),
            author.words(size),
        )?;
    }
    large_text(table, baseline, "errors only, 1 MB", author.errors(1 << 20))
}

fn large_text(
    table: &mut FigureTable,
    baseline: &RegexLoop,
    name: &str,
    text: String,
) -> Result<()> {
    let classifier = Classifier::built_in();
    let megabytes = text.len() as f64 / 1e6;
    let failures = [failed(text)];
    diagnose_all(classifier, &failures);
    let (mut ours, mut theirs) = (Samples::default(), Samples::default());
    for _ in 0..ROUNDS {
        ours.push(time_repeated(|| diagnose_all(classifier, &failures)));
        theirs.push(time_once(|| match_all(baseline, &failures)));
    }
    let speed = ours.map(|seconds| megabytes / seconds);
    table.row(name, &speed, "MB/s", FigureTarget::None)?;
    table.row(
        "  loop ÷ unstuck",
        &theirs.ratio_to(&ours),
        "×",
        FigureTarget::None,
    )
}

pub(crate) fn micros(seconds: f64) -> f64 {
    seconds * 1e6
}
