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
const LONGEST: usize = 1 << 20;

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
pub(crate) struct Messages {
    to: Target,
    pending: Vec<u8>,
}

enum Target {
    Styled(AutoStream<io::Stderr>),
    Exact(io::Stderr),
}

impl Messages {
    /// With colours where they are wanted.
    pub(crate) fn new(color: Color) -> Self {
        Self::to(Target::Styled(AutoStream::new(stderr(), color.choice())))
    }

    /// With colours where the terminal can show them.
    pub(crate) fn auto() -> Self {
        Self::new(Color::Auto)
    }

    /// With all that moves the cursor.
    pub(crate) fn exact() -> Self {
        Self::to(Target::Exact(stderr()))
    }

    /// Whether colours are shown.
    pub(crate) fn has_colors(&self) -> bool {
        match &self.to {
            Target::Styled(to) => to.current_choice() != ColorChoice::Never,
            Target::Exact(_) => true,
        }
    }

    fn to(to: Target) -> Self {
        Self {
            to,
            pending: Vec::new(),
        }
    }

    fn let_through(&mut self, length: usize) -> io::Result<()> {
        let rest = self.pending.split_off(length);
        let shown = std::mem::replace(&mut self.pending, rest);
        let shown = redactor().redact_bytes(&shown);
        match &mut self.to {
            Target::Styled(to) => to.write_all(&shown),
            Target::Exact(to) => to.write_all(&shown),
        }
    }
}

impl Write for Messages {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.pending.extend_from_slice(bytes);
        let end = self.pending.iter().rposition(|byte| *byte == b'\n');
        if let Some(end) = end {
            self.let_through(end + 1)?;
        } else if self.pending.len() > LONGEST {
            self.let_through(self.pending.len())?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.let_through(self.pending.len())?;
        match &mut self.to {
            Target::Styled(to) => to.flush(),
            Target::Exact(to) => to.flush(),
        }
    }
}

impl Drop for Messages {
    fn drop(&mut self) {
        // Nothing can be done if nobody reads it.
        let _ = self.flush();
    }
}
