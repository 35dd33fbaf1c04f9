//! Measures unstuck against a baseline in the same run; `./bench` in the root of the repository runs it.
//!
//! The machine is never quiet, so every round measures each side once, and what counts is the ratio of the two.

mod asking;
mod baseline;
mod conducting;
mod confining;
mod deciding;
mod diagnosing;
mod gateway;
mod growing;
mod inbox;
mod load;
mod measure;
mod processes;
mod resources;
mod starting;
mod storing;
mod supervising;
mod table;
mod texts;
mod watching;

use std::process::ExitCode;

use anyhow::{Result, bail};

use table::Table;

fn main() -> Result<ExitCode> {
    let arguments: Vec<_> = std::env::args_os().collect();
    // It is its own reaper and its own sandbox.
    if let Some(code) = unstuck_repair::sandbox::called(&arguments) {
        return Ok(ExitCode::from(code));
    }
    if let Some(code) = unstuck_run::reaper::called(&arguments) {
        return Ok(ExitCode::from(code));
    }
    measure()?;
    Ok(ExitCode::SUCCESS)
}

/// Measures one thing and writes what it found into the table.
type Section = fn(&mut Table) -> Result<()>;

/// What can be measured, by the names that `./bench NAME…` takes; all of it where none is named.
const SECTIONS: [(&str, Section); 12] = [
    ("diagnosing", diagnosing::measure),
    ("growing", growing::measure),
    ("starting", starting::measure),
    ("deciding", deciding::measure),
    ("supervising", supervising::measure),
    ("storing", storing::measure),
    ("asking", asking::measure),
    ("watching", watching::measure),
    ("conducting", conducting::measure),
    ("confining", confining::measure),
    ("inbox", inbox::measure),
    ("gateway", gateway::measure),
];

fn measure() -> Result<()> {
    let named: Vec<String> = std::env::args().skip(1).collect();
    match named.first().map(String::as_str) {
        Some(starting::COLD) => return starting::cold(),
        Some(conducting::BARE) => return conducting::bare(),
        Some(processes::FORWARDER) => return gateway::bare(),
        _ => {}
    }
    let is_known = |name: &String| SECTIONS.iter().any(|(known, _)| known == name);
    if let Some(unknown) = named.iter().find(|name| !is_known(name)) {
        let names = SECTIONS.map(|(name, _)| name).join(", ");
        bail!("`{unknown}` cannot be measured, but these can: {names}");
    }
    let mut table = Table::begin()?;
    for (name, section) in SECTIONS {
        if named.is_empty() || named.iter().any(|named| named == name) {
            section(&mut table)?;
        }
    }
    Ok(())
}
