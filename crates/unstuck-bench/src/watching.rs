//! What it costs to watch an agent while it writes.

use std::fmt::Write;

use anyhow::Result;
use serde_json::{Value, json};
use unstuck_core::agent::Agents;
use unstuck_core::stuck::{StuckLimits, Watcher};

use crate::measure::{ROUNDS, Samples, repeated};
use crate::table::{Table, Target};
use crate::texts::Author;

/// How much is written.
const SIZE: usize = 8 << 20;
/// How much comes at a time.
const PIECE: usize = 64 << 10;
/// How much longer than finding the line ends it may take to watch plain text.
const FAST: f64 = 20.0;

pub(crate) fn measure(table: &mut Table) -> Result<()> {
    table.section("8. Watching what an agent writes")?;
    let mut author = Author::seeded(7);
    let log = author.log(None, SIZE);
    let coloured = log.replace('\n', "\u{1b}[0m\n\u{1b}[32m");
    plain(table, "log", &log, Target::AtMost(FAST))?;
    let words = author.words(SIZE);
    plain(table, "random words", &words, Target::AtMost(FAST))?;
    plain(table, "log in colours", &coloured, Target::Open)?;
    let line = "QUJD".repeat(SIZE / 4);
    plain(table, "one line", &line, Target::Open)?;
    let rows = "0,0,0,0,0,0,0,0,0,0\n".repeat(SIZE / 20);
    plain(table, "equal rows of numbers", &rows, Target::Open)?;
    stream(table)
}

/// Plain text, against nothing but looking for the line ends.
fn plain(table: &mut Table, name: &str, text: &str, target: Target) -> Result<()> {
    let megabytes = text.len() as f64 / 1e6;
    let (mut ours, mut theirs) = (Samples::default(), Samples::default());
    for _ in 0..ROUNDS {
        ours.push(repeated(|| watch("", text)));
        theirs.push(repeated(|| longest_line(text.as_bytes())));
    }
    let speed = ours.map(|seconds| megabytes / seconds);
    table.row(name, &speed, "MB/s", Target::Open)?;
    table.row(
        "  unstuck ÷ finding the line ends",
        &ours.over(&theirs),
        "×",
        target,
    )
}

/// An agent's stream of JSON lines, against nothing but reading the JSON.
fn stream(table: &mut Table) -> Result<()> {
    let text = calls(SIZE)?;
    let megabytes = text.len() as f64 / 1e6;
    let (mut ours, mut theirs) = (Samples::default(), Samples::default());
    for _ in 0..ROUNDS {
        ours.push(repeated(|| watch("claude", &text)));
        theirs.push(repeated(|| read(&text)));
    }
    let speed = ours.map(|seconds| megabytes / seconds);
    table.row("stream of calls in JSON", &speed, "MB/s", Target::Open)?;
    table.row(
        "  unstuck ÷ reading the JSON",
        &ours.over(&theirs),
        "×",
        Target::AtMost(8.0),
    )
}

fn watch(agent: &str, text: &str) -> bool {
    let mut watcher = Watcher::new(&StuckLimits::default(), Agents::built_in().get(agent));
    for piece in text.as_bytes().chunks(PIECE) {
        watcher.stdout(piece);
    }
    watcher.verdict().is_some()
}

fn longest_line(text: &[u8]) -> usize {
    let mut from = 0;
    let lens = memchr::memchr_iter(b'\n', text).map(|end| end - std::mem::replace(&mut from, end));
    lens.max().unwrap_or(0)
}

fn read(text: &str) -> usize {
    let records = text.lines().map(serde_json::from_str::<Value>);
    records.filter(Result::is_ok).count()
}

/// Calls of an agent and their results of about 2 KB, all of them different.
fn calls(size: usize) -> Result<String> {
    let mut author = Author::seeded(8);
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
