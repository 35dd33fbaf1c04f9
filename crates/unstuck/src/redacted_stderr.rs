//! Messages of unstuck itself on standard error. There is no other way there, so that no secret that an upstream, a tool or a file
//! has told gets onto a screen, into a journal or into the log of a CI job.

use std::borrow::Cow;
use std::io::{self, IsTerminal, Write};
use std::sync::OnceLock;

use anstream::{AutoStream, ColorChoice};
use unstuck_core::redact::Redactor;

use crate::environment;
use crate::output::Color;

/// Longer lines are not kept together.
const MAX_BUFFERED: usize = 1 << 20;

/// A text without secrets.
pub(crate) fn redacted(text: &str) -> Cow<'_, str> {
    redactor().redact(text)
}

fn redactor() -> &'static Redactor {
    static REDACTOR: OnceLock<Redactor> = OnceLock::new();
    REDACTOR.get_or_init(environment::redactor)
}

/// Whether a person reads messages as they come.
pub(crate) fn is_terminal() -> bool {
    stderr().is_terminal()
}

#[expect(
    clippy::disallowed_methods,
    reason = "all messages come by here, without secrets"
)]
fn stderr() -> io::Stderr {
    io::stderr()
}

/// Standard error, without secrets: line by line, or as far as is flushed.
pub(crate) struct RedactedStderr {
    to: StderrTarget,
    pending: Vec<u8>,
}

enum StderrTarget {
    Styled(AutoStream<io::Stderr>),
    Raw(io::Stderr),
}

impl RedactedStderr {
    /// With colours where they are wanted.
    pub(crate) fn new(color: Color) -> Self {
        Self::with_target(StderrTarget::Styled(AutoStream::new(
            stderr(),
            color.choice(),
        )))
    }

    /// With colours where the terminal can show them.
    pub(crate) fn auto() -> Self {
        Self::new(Color::Auto)
    }

    /// With all that moves the cursor.
    pub(crate) fn raw() -> Self {
        Self::with_target(StderrTarget::Raw(stderr()))
    }

    /// Whether colours are shown.
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
        // Nothing can be done if nobody reads it.
        let _ = self.flush();
    }
}
