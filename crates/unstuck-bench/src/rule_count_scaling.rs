//! Measures if more rules make a diagnosis slower.

use std::fmt::Write as _;

use anyhow::Result;
use unstuck_core::Classifier;
use unstuck_core::knowledge::{DiagnosisKnowledge, KnowledgeOverlay};

use crate::diagnose::{diagnose_all, micros};
use crate::measure::{ROUNDS, Samples, time_repeated};
use crate::table::{FigureTable, FigureTarget};
use crate::texts::{TextGenerator, USUAL_SIZE};

const FURTHER_RULES: usize = 500;
const TEXTS: usize = 100;

pub(crate) fn measure(table: &mut FigureTable) -> Result<()> {
    let overlay: KnowledgeOverlay = toml::from_str(&further_rules()?)?;
    let (few, many) = (
        Classifier::built_in(),
        Classifier::new(DiagnosisKnowledge::built_in().with_overlay(overlay))?,
    );
    let rules = |classifier: &Classifier| -> usize {
        let files = classifier.knowledge().kinds.values();
        files.map(|file| file.rule.len()).sum()
    };
    let texts = TextGenerator::from_seed(5).logs(TEXTS, USUAL_SIZE);
    let (mut with_few, mut with_many) = (Samples::default(), Samples::default());
    diagnose_all(&many, &texts);
    for _ in 0..ROUNDS {
        with_few.push(time_repeated(|| diagnose_all(few, &texts)) / TEXTS as f64);
        with_many.push(time_repeated(|| diagnose_all(&many, &texts)) / TEXTS as f64);
    }
    table.section("3. Scaling with the number of rules")?;
    let name = |classifier| format!("{} rules", rules(classifier));
    table.row(
        &name(few),
        &with_few.map(micros),
        "µs/text",
        FigureTarget::None,
    )?;
    table.row(
        &name(&many),
        &with_many.map(micros),
        "µs/text",
        FigureTarget::None,
    )?;
    table.row(
        "more ÷ fewer rules",
        &with_many.ratio_to(&with_few),
        "×",
        FigureTarget::AtMost(1.5),
    )
}

/// Returns rules as a user might write them: every second one with a regular expression.
fn further_rules() -> Result<String> {
    let mut config = String::new();
    for number in 0..FURTHER_RULES {
        let pattern = if number % 2 == 0 {
            format!("service {number} refused the order")
        } else {
            format!(r"/job-{number}: (lost|dropped) after \d+ tries/")
        };
        write!(
            config,
            "[[kinds.server_error.rule]]\nid = \"further_{number}\"\nany = ['{pattern}']\n"
        )?;
    }
    Ok(config)
}
