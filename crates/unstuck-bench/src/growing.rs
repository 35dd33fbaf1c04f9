//! Whether more rules make a diagnosis slower.

use std::fmt::Write as _;

use anyhow::Result;
use unstuck_core::Classifier;
use unstuck_core::knowledge::{Knowledge, Overlay};

use crate::diagnosing::{diagnose_all, micros};
use crate::measure::{ROUNDS, Samples, repeated};
use crate::table::{Table, Target};
use crate::texts::{Author, USUAL};

const FURTHER_RULES: usize = 500;
const TEXTS: usize = 100;

pub(crate) fn measure(table: &mut Table) -> Result<()> {
    let overlay: Overlay = toml::from_str(&further_rules()?)?;
    let (few, many) = (
        Classifier::built_in(),
        Classifier::new(Knowledge::built_in().overlaid(overlay))?,
    );
    let rules = |classifier: &Classifier| -> usize {
        let files = classifier.knowledge().kinds.values();
        files.map(|file| file.rule.len()).sum()
    };
    let texts = Author::seeded(5).logs(TEXTS, USUAL);
    let (mut with_few, mut with_many) = (Samples::default(), Samples::default());
    diagnose_all(&many, &texts);
    for _ in 0..ROUNDS {
        with_few.push(repeated(|| diagnose_all(few, &texts)) / TEXTS as f64);
        with_many.push(repeated(|| diagnose_all(&many, &texts)) / TEXTS as f64);
    }
    table.section("3. Growth with the number of rules")?;
    let name = |classifier| format!("{} rules", rules(classifier));
    table.row(&name(few), &with_few.map(micros), "µs/text", Target::Open)?;
    table.row(
        &name(&many),
        &with_many.map(micros),
        "µs/text",
        Target::Open,
    )?;
    table.row(
        "more ÷ fewer rules",
        &with_many.over(&with_few),
        "×",
        Target::AtMost(1.5),
    )
}

/// Rules as a user might write them: every second one with a regular expression.
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
