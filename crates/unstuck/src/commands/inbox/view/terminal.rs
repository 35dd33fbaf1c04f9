//! Terminal of the inbox view: raw mode, painting and restoring it in all cases.

use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, Ordering};

use anstream::adapter::strip_str;
use anstream::{AutoStream, ColorChoice};
use crossterm::cursor::{Hide, MoveTo, Show};
use crossterm::event::{DisableBracketedPaste, EnableBracketedPaste};
use crossterm::style::Print;
use crossterm::terminal::{
    Clear, ClearType, DisableLineWrap, EnableLineWrap, EnterAlternateScreen, LeaveAlternateScreen,
    disable_raw_mode, enable_raw_mode,
};
use crossterm::{execute, queue};

use crate::output::{self, ColorMode, TerminalSize};

/// Size used if the terminal does not report one.
const DEFAULT_SIZE: TerminalSize = TerminalSize {
    columns: 80,
    rows: 24,
};

/// True while the terminal is in raw mode.
static IS_RAW: AtomicBool = AtomicBool::new(false);

/// The terminal in raw mode; restored on drop and before a panic message is printed.
pub(super) struct RawTerminal {
    colors: bool,
    size: TerminalSize,
    painted: Vec<String>,
}

impl RawTerminal {
    pub(super) fn acquire(color: ColorMode) -> io::Result<Self> {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            restore_terminal();
            before(panic);
        }));
        let colors = match color {
            ColorMode::Auto => AutoStream::choice(&io::stdout()) != ColorChoice::Never,
            ColorMode::Always => true,
            ColorMode::Never => false,
        };
        enable_raw_mode()?;
        IS_RAW.store(true, Ordering::SeqCst);
        let terminal = Self {
            colors,
            size: size(),
            painted: Vec::new(),
        };
        execute!(
            io::stdout(),
            EnterAlternateScreen,
            EnableBracketedPaste,
            DisableLineWrap,
            Hide,
            Clear(ClearType::All)
        )?;
        Ok(terminal)
    }

    /// Returns the current size.
    pub(super) fn size(&self) -> TerminalSize {
        size()
    }

    /// Shows these lines; writes only those that changed.
    pub(super) fn paint(&mut self, lines: Vec<String>) -> io::Result<()> {
        let mut bytes = Vec::new();
        let size = size();
        if size != self.size {
            self.size = size;
            self.painted.clear();
            queue!(bytes, Clear(ClearType::All))?;
        }
        let count = lines.len().max(self.painted.len());
        for row in 0..count {
            let line = lines.get(row).map_or("", String::as_str);
            if self.painted.get(row).is_some_and(|painted| painted == line) {
                continue;
            }
            let at = MoveTo(0, u16::try_from(row).unwrap_or(u16::MAX));
            queue!(bytes, at, Clear(ClearType::UntilNewLine))?;
            if self.colors {
                queue!(bytes, Print(line))?
            } else {
                queue!(bytes, Print(strip_str(line)))?
            }
        }
        self.painted = lines;
        if !bytes.is_empty() {
            let mut out = io::stdout().lock();
            out.write_all(&bytes)?;
            out.flush()?;
        }
        Ok(())
    }
}

impl Drop for RawTerminal {
    fn drop(&mut self) {
        restore_terminal();
    }
}

fn size() -> TerminalSize {
    output::terminal_size(io::stdout())
        .filter(|size| size.rows > 0)
        .unwrap_or(DEFAULT_SIZE)
}

/// Restores the terminal; a failure is ignored because nothing can be done about it.
fn restore_terminal() {
    if IS_RAW.swap(false, Ordering::SeqCst) {
        let _ = execute!(
            io::stdout(),
            Show,
            EnableLineWrap,
            DisableBracketedPaste,
            LeaveAlternateScreen
        );
        let _ = disable_raw_mode();
    }
}
