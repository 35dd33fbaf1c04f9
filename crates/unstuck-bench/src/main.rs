//! Measures unstuck against a baseline in the same run; `./bench` in the root of the repository runs it.
//!
//! The machine is never idle, so every round measures each side once, and the result is the ratio of the two.

mod dashboard;
mod decide;
mod diagnose;
mod gateway;
mod inbox;
mod load_client;
mod loop_detection;
mod measure;
mod pipeline;
mod process_fixture;
mod regex_baseline;
mod resources;
mod rule_count_scaling;
mod sandbox;
mod startup;
mod store;
mod supervise;
mod table;
mod texts;

use std::process::ExitCode;

use anyhow::{Result, bail};

use table::FigureTable;

fn main() -> Result<ExitCode> {
    let arguments: Vec<_> = std::env::args_os().collect();
    // This program is also its own reaper and sandbox.
    if let Some(code) = unstuck_repair::sandbox::run_if_called(&arguments) {
        return Ok(ExitCode::from(code));
    }
    if let Some(code) = unstuck_run::reaper::run_if_called(&arguments) {
        return Ok(ExitCode::from(code));
    }
    measure()?;
    Ok(ExitCode::SUCCESS)
}

/// A benchmark that writes its results into the table.
type Section = fn(&mut FigureTable) -> Result<()>;

/// The benchmarks by the names that `./bench NAME…` takes; without a name, all of them run.
const SECTIONS: [(&str, Section); 12] = [
    ("diagnosing", diagnose::measure),
    ("growing", rule_count_scaling::measure),
    ("starting", startup::measure),
    ("deciding", decide::measure),
    ("supervising", supervise::measure),
    ("storing", store::measure),
    ("asking", dashboard::measure),
    ("watching", loop_detection::measure),
    ("conducting", pipeline::measure),
    ("confining", sandbox::measure),
    ("inbox", inbox::measure),
    ("gateway", gateway::measure),
];

fn measure() -> Result<()> {
    let named: Vec<String> = std::env::args().skip(1).collect();
    match named.first().map(String::as_str) {
        Some(startup::COLD_ARG) => return startup::run_cold(),
        Some(pipeline::BASELINE_ARG) => return pipeline::run_baseline(),
        Some(process_fixture::FORWARDER) => return gateway::run_forwarder(),
        _ => {}
    }
    let is_known = |name: &String| SECTIONS.iter().any(|(known, _)| known == name);
    if let Some(unknown) = named.iter().find(|name| !is_known(name)) {
        let names = SECTIONS.map(|(name, _)| name).join(", ");
        bail!("unknown benchmark `{unknown}`; available: {names}");
    }
    let mut table = FigureTable::begin()?;
    for (name, section) in SECTIONS {
        if named.is_empty() || named.iter().any(|named| named == name) {
            section(&mut table)?;
        }
    }
    Ok(())
}
