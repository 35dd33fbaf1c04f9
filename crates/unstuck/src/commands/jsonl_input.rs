//! Processes one JSON object per line, shared by all commands with `--jsonl`.
#![expect(
    clippy::disallowed_methods,
    reason = "a file that the user names on the command line"
)]

use std::fs;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::Path;

use anyhow::{Context, Result};
use serde_json::{Map, Value};

use crate::output::Output;

/// Processes each line of a file or of standard input in order; an error in a line is reported in its place.
pub(crate) fn each_line(
    file: Option<&Path>,
    out: &mut Output,
    mut answer: impl FnMut(Value) -> Result<Value>,
) -> Result<()> {
    let input: Box<dyn Read> = match file.filter(|path| *path != Path::new("-")) {
        Some(path) => Box::new(
            fs::File::open(path).with_context(|| format!("cannot read {}", path.display()))?,
        ),
        None => Box::new(io::stdin()),
    };
    for (number, line) in (1_usize..).zip(BufReader::new(input).split(b'\n')) {
        let line = line.context("cannot read the input")?;
        if line.trim_ascii().is_empty() {
            continue;
        }
        let (id, answered) = answer_line(&line, &mut answer);
        let fields = match answered {
            Ok(Value::Object(fields)) => fields,
            Ok(other) => Map::from_iter([("answer".to_owned(), other)]),
            Err(error) => Map::from_iter([
                ("line".to_owned(), number.into()),
                ("error".to_owned(), format!("{error:#}").into()),
            ]),
        };
        let with_id = Value::Object(
            std::iter::once(("id".to_owned(), id))
                .chain(fields)
                .collect(),
        );
        writeln!(out, "{with_id}")?;
    }
    Ok(())
}

fn answer_line(
    line: &[u8],
    answer: &mut impl FnMut(Value) -> Result<Value>,
) -> (Value, Result<Value>) {
    let value: Value = match serde_json::from_str(&String::from_utf8_lossy(line)) {
        Ok(value) => value,
        Err(error) => return (Value::Null, Err(anyhow::anyhow!("not JSON: {error}"))),
    };
    let id = value.get("id").cloned().unwrap_or(Value::Null);
    (id, answer(value))
}
