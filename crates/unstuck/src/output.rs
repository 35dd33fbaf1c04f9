//! Where results go: data to standard output, everything else to standard error.

use std::io::{self, IsTerminal, Write};
use std::os::fd::AsFd;

use anstream::{AutoStream, ColorChoice};
use anstyle::{AnsiColor, Style};
use anyhow::Result;
use clap::ValueEnum;
use serde::Serialize;
use unstuck_core::money::normalize_costs;

pub(crate) const BOLD: Style = Style::new().bold();
pub(crate) const DIM: Style = Style::new().dimmed();
pub(crate) const RED: Style = AnsiColor::Red.on_default().bold();
pub(crate) const GREEN: Style = AnsiColor::Green.on_default().bold();
pub(crate) const YELLOW: Style = AnsiColor::Yellow.on_default().bold();

/// When to use colours; `auto` respects `NO_COLOR` and what the terminal can do.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Color {
    /// On a terminal
    #[default]
    Auto,
    /// Everywhere
    Always,
    /// Nowhere
    Never,
}

impl Color {
    pub(crate) fn choice(self) -> ColorChoice {
        match self {
            Self::Auto => ColorChoice::Auto,
            Self::Always => ColorChoice::Always,
            Self::Never => ColorChoice::Never,
        }
    }
}

/// How large a terminal is, in characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TerminalSize {
    pub(crate) columns: usize,
    pub(crate) rows: usize,
}

/// How large a terminal is; none for what is not a terminal, or does not tell.
pub(crate) fn terminal_size(of: impl AsFd) -> Option<TerminalSize> {
    let size = rustix::termios::tcgetwinsize(of).ok()?;
    let size = TerminalSize {
        columns: usize::from(size.ws_col),
        rows: usize::from(size.ws_row),
    };
    (size.columns > 0).then_some(size)
}

/// How many columns a terminal has; none for what is not a terminal.
pub(crate) fn terminal_columns(of: impl AsFd) -> Option<usize> {
    terminal_size(of).map(|size| size.columns)
}

/// Standard output, written in large pieces, without colours where they are not wanted.
pub(crate) struct Output {
    writer: AutoStream<io::Stdout>,
    color: Color,
    pending: Vec<u8>,
    has_written: bool,
}

/// A value as JSON whose costs are fit to be told.
fn json_with_rounded_costs(value: &impl Serialize) -> Result<serde_json::Value> {
    let mut value = serde_json::to_value(value)?;
    normalize_costs(&mut value);
    Ok(value)
}

impl Output {
    pub(crate) fn new(color: Color) -> Self {
        Self {
            writer: AutoStream::new(io::stdout(), color.choice()),
            color,
            pending: Vec::new(),
            has_written: false,
        }
    }

    /// How many columns there are, where a person reads it.
    pub(crate) fn columns(&self) -> Option<usize> {
        terminal_columns(io::stdout())
    }

    /// Writes a value as JSON for machines.
    pub(crate) fn write_json(&mut self, value: &impl Serialize) -> Result<()> {
        serde_json::to_writer_pretty(&mut *self, &json_with_rounded_costs(value)?)?;
        writeln!(self)?;
        Ok(())
    }

    /// Writes a value as JSON on one line.
    pub(crate) fn write_json_line(&mut self, value: &impl Serialize) -> Result<()> {
        serde_json::to_writer(&mut *self, &json_with_rounded_costs(value)?)?;
        writeln!(self)?;
        Ok(())
    }

    /// Whether a person reads it, as far as that can be known.
    pub(crate) fn is_terminal(&self) -> bool {
        // A terminal that does not tell its size is one all the same.
        self.color == Color::Always || io::stdout().is_terminal()
    }

    /// Returns whether a result was written, in part or whole.
    pub(crate) fn has_written(&self) -> bool {
        self.has_written
    }

    /// Writes bytes exactly as they are, also what looks like a colour.
    pub(crate) fn write_raw(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.flush()?;
        self.has_written = true;
        io::stdout().write_all(bytes)
    }

    /// Writes all that is still to be written.
    pub(crate) fn finish(&mut self) -> Result<()> {
        self.flush()?;
        Ok(())
    }
}

impl Write for Output {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        self.has_written = true;
        self.pending.extend_from_slice(buffer);
        if self.pending.len() > 1 << 16 {
            self.flush()?;
        }
        Ok(buffer.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.writer.write_all(&std::mem::take(&mut self.pending))?;
        self.writer.flush()
    }
}
