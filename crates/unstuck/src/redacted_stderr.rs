//! Redacted standard error. All messages of unstuck go through here, so that secrets from upstreams, tools or files
//! never reach a terminal, a journal or a CI log.

use std::borrow::Cow;
use std::io::{self, IsTerminal, Write};
use std::sync::OnceLock;

use anstream::{AutoStream, ColorChoice};
use unstuck_core::redact::Redactor;

use crate::environment_variables;
use crate::output::ColorMode;

/// Size limit for buffering an unfinished line; longer lines are redacted in pieces.
const MAX_BUFFERED: usize = 1 << 20;

/// Redacts secrets in a text.
pub(crate) fn redacted(text: &str) -> Cow<'_, str> {
    redactor().redact(text)
}

fn redactor() -> &'static Redactor {
    static REDACTOR: OnceLock<Redactor> = OnceLock::new();
    REDACTOR.get_or_init(environment_variables::redactor)
}

/// True if standard error is a terminal.
pub(crate) fn is_terminal() -> bool {
    stderr().is_terminal()
}

#[expect(
    clippy::disallowed_methods,
    reason = "the only writer of messages; it redacts secrets"
)]
fn stderr() -> io::Stderr {
    io::stderr()
}

/// Standard error with secrets redacted, line by line or up to each flush.
pub(crate) struct RedactedStderr {
    to: StderrTarget,
    pending: Vec<u8>,
}

enum StderrTarget {
    Styled(AutoStream<io::Stderr>),
    Raw(io::Stderr),
}

impl RedactedStderr {
    /// Creates a writer with colors as configured.
    pub(crate) fn new(color: ColorMode) -> Self {
        Self::with_target(StderrTarget::Styled(AutoStream::new(
            stderr(),
            color.choice(),
        )))
    }

    /// Creates a writer with colors if the terminal supports them.
    pub(crate) fn auto() -> Self {
        Self::new(ColorMode::Auto)
    }

    /// Creates a writer that keeps cursor-control sequences.
    pub(crate) fn raw() -> Self {
        Self::with_target(StderrTarget::Raw(stderr()))
    }

    /// True if colors are shown.
    pub(crate) fn has_colors(&self) -> bool {
        match &self.to {
            StderrTarget::Styled(to) => to.current_choice() != ColorChoice::Never,
            StderrTarget::Raw(_) => true,
        }
    }

    fn with_target(to: StderrTarget) -> Self {
        Self {
            to,
            pending: Vec::new(),
        }
    }

    fn flush_redacted(&mut self, length: usize) -> io::Result<()> {
        let rest = self.pending.split_off(length);
        let shown = std::mem::replace(&mut self.pending, rest);
        let shown = redactor().redact_bytes(&shown);
        match &mut self.to {
            StderrTarget::Styled(to) => to.write_all(&shown),
            StderrTarget::Raw(to) => to.write_all(&shown),
        }
    }
}

impl Write for RedactedStderr {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.pending.extend_from_slice(bytes);
        let end = self.pending.iter().rposition(|byte| *byte == b'\n');
        if let Some(end) = end {
            self.flush_redacted(end + 1)?;
        } else if self.pending.len() > MAX_BUFFERED {
            self.flush_redacted(self.pending.len())?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.flush_redacted(self.pending.len())?;
        match &mut self.to {
            StderrTarget::Styled(to) => to.flush(),
            StderrTarget::Raw(to) => to.flush(),
        }
    }
}

impl Drop for RedactedStderr {
    fn drop(&mut self) {
        // If standard error is closed, nothing is left to try.
        let _ = self.flush();
    }
}
