//! Prints the output of an attempt: as raw bytes, or in whole lines with a prefix.

use std::collections::BTreeMap;
use std::io::{self, BufRead, BufReader, IsTerminal, Read, Seek, SeekFrom, Write};
use std::path::PathBuf;

use anyhow::{Context, Result};

use super::LogFile;
use crate::output::Output;
use crate::redacted_stderr;
use crate::terminal_filter::TerminalFilter;

/// Number of bytes already printed of each file.
pub(super) type PrintedBytes = BTreeMap<PathBuf, u64>;

/// Longer lines are printed in pieces.
const MAX_LINE: u64 = 64 * 1024;

/// Prints the part of a file that was not printed yet.
pub(super) fn print_new(
    file: &LogFile,
    name: Option<&str>,
    raw: bool,
    printed: &mut PrintedBytes,
    out: &mut Output,
) -> Result<()> {
    let from = printed.entry(file.path.clone()).or_insert(0);
    // An interrupted attempt is re-run and truncates its files.
    if *from > file.bytes {
        *from = 0;
    }
    if *from == file.bytes {
        return Ok(());
    }
    let opened = unstuck_files::open_named(&file.path);
    let mut source = opened.with_context(|| format!("cannot read {}", file.path.display()))?;
    source.seek(SeekFrom::Start(*from))?;
    let mut source = source.take(file.bytes - *from);
    let is_terminal = match file.stream {
        "stdout" => io::stdout().is_terminal(),
        _ => redacted_stderr::is_terminal(),
    };
    let is_exact = raw || !is_terminal;
    let to: &mut dyn Write = match file.stream {
        "stdout" if is_exact => &mut RawStdout(out),
        "stdout" => out,
        _ => &mut stderr(),
    };
    if is_exact {
        *from += copy_output(&mut source, name, file.is_open, to)?;
    } else {
        let mut text = TerminalFilter::new(to);
        *from += copy_output(&mut source, name, file.is_open, &mut text)?;
        text.finish()?;
    }
    Ok(())
}

/// Standard output as raw bytes, regardless of the color setting.
struct RawStdout<'a>(&'a mut Output);

impl Write for RawStdout<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write_raw(bytes)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "the output was redacted when it was stored"
)]
fn stderr() -> io::Stderr {
    io::stderr()
}

fn copy_output(
    source: &mut impl Read,
    name: Option<&str>,
    open: bool,
    to: &mut (impl Write + ?Sized),
) -> io::Result<u64> {
    match name {
        None => io::copy(source, to),
        Some(name) => copy_prefixed(&mut BufReader::new(source), name, open, to),
    }
}

/// Prints whole lines with a prefix, and returns the number of source bytes printed.
///
/// An unfinished last line is kept for later unless no more output follows.
fn copy_prefixed(
    source: &mut impl BufRead,
    name: &str,
    open: bool,
    to: &mut (impl Write + ?Sized),
) -> io::Result<u64> {
    let mut taken = 0;
    let mut line = Vec::new();
    loop {
        line.clear();
        let read = source
            .by_ref()
            .take(MAX_LINE)
            .read_until(b'\n', &mut line)?;
        let whole = line.ends_with(b"\n") || read as u64 == MAX_LINE;
        if read == 0 || (open && !whole) {
            return Ok(taken);
        }
        taken += read as u64;
        let text = line.strip_suffix(b"\n").unwrap_or(&line);
        write!(to, "{name}| ")?;
        to.write_all(text)?;
        to.write_all(b"\n")?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(text: &str, open: bool) -> (String, u64) {
        let mut to = Vec::new();
        let taken = copy_prefixed(&mut text.as_bytes(), "tester", open, &mut to).unwrap();
        (String::from_utf8(to).unwrap(), taken)
    }

    #[test]
    fn unfinished_line_waits_while_more_may_follow() {
        assert_eq!(told("one\ntw", true), ("tester| one\n".into(), 4));
        assert_eq!(told("tw", true), (String::new(), 0));
        assert_eq!(told("two", false), ("tester| two\n".into(), 3));
    }

    #[test]
    fn overlong_line_is_printed_in_pieces() {
        let (text, taken) = told(&"x".repeat(100_000), true);
        assert_eq!((text.lines().count(), taken), (1, MAX_LINE));
    }
}
