//! Measures the cost of loop detection on agent output.

use std::fmt::Write;

use anyhow::Result;
use serde_json::{Value, json};
use unstuck_core::agent::Agents;
use unstuck_core::loop_detection::{AgentLoopLimits, LoopDetector};

use crate::measure::{ROUNDS, Samples, time_repeated};
use crate::table::{FigureTable, FigureTarget};
use crate::texts::TextGenerator;

/// Total bytes written.
const SIZE: usize = 8 << 20;
/// Bytes per write.
const CHUNK: usize = 64 << 10;
/// Maximum cost on plain text, compared with finding line ends.
const MAX_RATIO: f64 = 20.0;

pub(crate) fn measure(table: &mut FigureTable) -> Result<()> {
    table.section("8. Loop detection on agent output")?;
    let mut author = TextGenerator::from_seed(7);
    let log = author.log(None, SIZE);
    let coloured = log.replace('\n', "\u{1b}[0m\n\u{1b}[32m");
    measure_plain(table, "log", &log, FigureTarget::AtMost(MAX_RATIO))?;
    let words = author.words(SIZE);
    measure_plain(
        table,
        "random words",
        &words,
        FigureTarget::AtMost(MAX_RATIO),
    )?;
    measure_plain(table, "colored log", &coloured, FigureTarget::None)?;
    let line = "QUJD".repeat(SIZE / 4);
    measure_plain(table, "one line", &line, FigureTarget::None)?;
    let rows = "0,0,0,0,0,0,0,0,0,0\n".repeat(SIZE / 20);
    measure_plain(
        table,
        "identical rows of numbers",
        &rows,
        FigureTarget::None,
    )?;
    measure_stream(table)
}

/// Measures plain text, against only finding the line ends.
fn measure_plain(
    table: &mut FigureTable,
    name: &str,
    text: &str,
    target: FigureTarget,
) -> Result<()> {
    let megabytes = text.len() as f64 / 1e6;
    let (mut ours, mut theirs) = (Samples::default(), Samples::default());
    for _ in 0..ROUNDS {
        ours.push(time_repeated(|| watch_text("", text)));
        theirs.push(time_repeated(|| longest_line(text.as_bytes())));
    }
    let speed = ours.map(|seconds| megabytes / seconds);
    table.row(name, &speed, "MB/s", FigureTarget::None)?;
    table.row(
        "  unstuck ÷ finding the line ends",
        &ours.ratio_to(&theirs),
        "×",
        target,
    )
}

/// Measures an agent's JSON stream, against only parsing the JSON.
fn measure_stream(table: &mut FigureTable) -> Result<()> {
    let text = sample_calls(SIZE)?;
    let megabytes = text.len() as f64 / 1e6;
    let (mut ours, mut theirs) = (Samples::default(), Samples::default());
    for _ in 0..ROUNDS {
        ours.push(time_repeated(|| watch_text("claude", &text)));
        theirs.push(time_repeated(|| count_json_lines(&text)));
    }
    let speed = ours.map(|seconds| megabytes / seconds);
    table.row(
        "JSON stream of tool calls",
        &speed,
        "MB/s",
        FigureTarget::None,
    )?;
    table.row(
        "  unstuck ÷ parsing the JSON",
        &ours.ratio_to(&theirs),
        "×",
        FigureTarget::AtMost(8.0),
    )
}

fn watch_text(agent: &str, text: &str) -> bool {
    let mut watcher = LoopDetector::new(&AgentLoopLimits::default(), Agents::built_in().get(agent));
    for piece in text.as_bytes().chunks(CHUNK) {
        watcher.push_stdout(piece);
    }
    watcher.signal().is_some()
}

fn longest_line(text: &[u8]) -> usize {
    let mut from = 0;
    let lens = memchr::memchr_iter(b'\n', text).map(|end| end - std::mem::replace(&mut from, end));
    lens.max().unwrap_or(0)
}

fn count_json_lines(text: &str) -> usize {
    let records = text.lines().map(serde_json::from_str::<Value>);
    records.filter(Result::is_ok).count()
}

/// Returns agent calls and results of about 2 KB, all different.
fn sample_calls(size: usize) -> Result<String> {
    let mut author = TextGenerator::from_seed(8);
    let mut text = String::with_capacity(size + 4096);
    let mut number = 0;
    while text.len() < size {
        number += 1;
        let call = json!({"type": "assistant", "message": {"content": [
            {"type": "tool_use", "id": number.to_string(), "name": "Read", "input": {"file_path": format!("src/{number}.rs")}}]}});
        let result = json!({"type": "user", "message": {"content": [
            {"type": "tool_result", "tool_use_id": number.to_string(), "content": author.log(None, 2048), "is_error": false}]}});
        writeln!(text, "{call}\n{result}")?;
    }
    Ok(text)
}
