//! Measures unstuck against a baseline in the same run; `./bench` in the root of the repository runs it.
//!
//! The machine is never quiet, so every round measures each side once, and what counts is the ratio of the two.

mod baseline;
mod deciding;
mod diagnosing;
mod growing;
mod measure;
mod starting;
mod table;
mod texts;

use anyhow::Result;

fn main() -> Result<()> {
    if std::env::args().nth(1).as_deref() == Some(starting::COLD) {
        return starting::cold();
    }
    let mut table = table::Table::begin()?;
    diagnosing::measure(&mut table)?;
    growing::measure(&mut table)?;
    starting::measure(&mut table)?;
    deciding::measure(&mut table)
}
