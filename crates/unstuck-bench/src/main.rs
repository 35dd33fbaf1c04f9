//! Measures unstuck against a baseline in the same run; `./bench` in the root of the repository runs it.
//!
//! The machine is never quiet, so every round measures each side once, and what counts is the ratio of the two.

mod baseline;
mod deciding;
mod diagnosing;
mod growing;
mod measure;
mod starting;
mod storing;
mod supervising;
mod table;
mod texts;
mod watching;

use std::process::ExitCode;

use anyhow::Result;

fn main() -> Result<ExitCode> {
    let arguments: Vec<_> = std::env::args_os().collect();
    // It is its own reaper.
    if let Some(code) = unstuck_run::reaper::called(&arguments) {
        return Ok(ExitCode::from(code));
    }
    measure()?;
    Ok(ExitCode::SUCCESS)
}

fn measure() -> Result<()> {
    if std::env::args().nth(1).as_deref() == Some(starting::COLD) {
        return starting::cold();
    }
    let mut table = table::Table::begin()?;
    diagnosing::measure(&mut table)?;
    growing::measure(&mut table)?;
    starting::measure(&mut table)?;
    deciding::measure(&mut table)?;
    supervising::measure(&mut table)?;
    storing::measure(&mut table)?;
    watching::measure(&mut table)
}
