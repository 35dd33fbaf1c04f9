//! Output streams: results on standard output, everything else on standard error.

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

/// When to use colors; `auto` respects `NO_COLOR` and the terminal's capabilities
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum ColorMode {
    #[default]
    Auto,
    Always,
    Never,
}

impl ColorMode {
    pub(crate) fn choice(self) -> ColorChoice {
        match self {
            Self::Auto => ColorChoice::Auto,
            Self::Always => ColorChoice::Always,
            Self::Never => ColorChoice::Never,
        }
    }
}

/// Size of a terminal, in characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TerminalSize {
    pub(crate) columns: usize,
    pub(crate) rows: usize,
}

/// Returns the size of a terminal; none if it is not a terminal or the size is unknown.
pub(crate) fn terminal_size(of: impl AsFd) -> Option<TerminalSize> {
    let size = rustix::termios::tcgetwinsize(of).ok()?;
    let size = TerminalSize {
        columns: usize::from(size.ws_col),
        rows: usize::from(size.ws_row),
    };
    (size.columns > 0).then_some(size)
}

/// Returns the number of terminal columns; none if it is not a terminal.
pub(crate) fn terminal_columns(of: impl AsFd) -> Option<usize> {
    terminal_size(of).map(|size| size.columns)
}

/// Buffered standard output that strips colors unless they are enabled.
pub(crate) struct Output {
    writer: AutoStream<io::Stdout>,
    color: ColorMode,
    pending: Vec<u8>,
    has_written: bool,
}

/// Serializes a value to JSON with rounded costs.
fn json_with_rounded_costs(value: &impl Serialize) -> Result<serde_json::Value> {
    let mut value = serde_json::to_value(value)?;
    normalize_costs(&mut value);
    Ok(value)
}

impl Output {
    pub(crate) fn new(color: ColorMode) -> Self {
        Self {
            writer: AutoStream::new(io::stdout(), color.choice()),
            color,
            pending: Vec::new(),
            has_written: false,
        }
    }

    /// Returns the number of columns if standard output is a terminal.
    pub(crate) fn columns(&self) -> Option<usize> {
        terminal_columns(io::stdout())
    }

    /// Writes a value as pretty-printed JSON.
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

    /// True if standard output is a terminal.
    pub(crate) fn is_terminal(&self) -> bool {
        // A terminal of unknown size is still a terminal.
        self.color == ColorMode::Always || io::stdout().is_terminal()
    }

    /// True if at least part of a result was written.
    pub(crate) fn has_written(&self) -> bool {
        self.has_written
    }

    /// Writes bytes unchanged, including escape sequences.
    pub(crate) fn write_raw(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.flush()?;
        self.has_written = true;
        io::stdout().write_all(bytes)
    }

    /// Flushes buffered output.
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
