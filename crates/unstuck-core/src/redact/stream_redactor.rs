//! Redacts a text that arrives in pieces: a secret split between two pieces is still found.

use super::pem::PemTracker;
use super::{Redactor, SecretSpan, insert_markers, wrapped_secrets};

/// Maximum length of an unfinished line before part of it is released.
const MAX_PENDING: usize = 64 << 10;
/// Length that is then retained, so that a secret at the cut is seen as a whole.
const LOOKAHEAD: usize = 8 << 10;
/// Length of released text that is kept, since the text before a secret may identify it.
const LOOKBEHIND: usize = 512;

/// Redacts a text that arrives in pieces, line by line.
///
/// ```
/// use unstuck_core::redact::Redactor;
///
/// let redactor = Redactor::new([]);
/// let mut stream = redactor.stream();
/// assert_eq!(stream.push(b"hello\npassword=hunt"), b"hello\n");
/// // It may continue on the next line.
/// assert_eq!(stream.push(b"er2\n"), b"");
/// assert_eq!(stream.finish(), b"password=[redacted:password]\n");
/// ```
#[derive(Debug)]
pub struct StreamRedactor<'r> {
    redactor: &'r Redactor,
    /// The unfinished line.
    pending: Vec<u8>,
    /// Number of its bytes already released.
    released: usize,
    /// If set, the rest of an oversized secret is being dropped.
    dropping: bool,
    pem: PemTracker,
}

impl<'r> StreamRedactor<'r> {
    pub(super) fn new(redactor: &'r Redactor) -> Self {
        Self {
            redactor,
            pending: Vec::new(),
            released: 0,
            dropping: false,
            pem: PemTracker::default(),
        }
    }

    /// Adds a piece and returns the text that is safe to show: all finished lines, except the last ones if they may be
    /// wrapped.
    pub fn push(&mut self, chunk: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        for piece in chunk.chunks(MAX_PENDING) {
            self.pending.extend_from_slice(piece);
            self.drop_rest();
            let is_end = |byte: &u8| matches!(byte, b'\n' | b'\r');
            if let Some(end) = self.pending.iter().rposition(is_end) {
                let rest = self.pending.split_off(end + 1);
                out.extend(self.take_safe_lines());
                self.pending.extend(rest);
            }
            if self.pending.len() > MAX_PENDING {
                out.extend(self.take_line_prefix());
            }
        }
        out
    }

    /// Returns the unfinished last line at the end of the text.
    pub fn finish(mut self) -> Vec<u8> {
        self.take_finished_lines()
    }

    /// Releases finished lines, except the last ones if a secret may be wrapped onto the next line. The retained lines
    /// exclude what is already known to be secret.
    fn take_safe_lines(&mut self) -> Vec<u8> {
        let open = wrapped_secrets::find_open_tail(&self.pending).filter(|_| self.released == 0);
        let is_short = |open: &wrapped_secrets::PossiblyWrappedTail| {
            self.pending.len() - open.line < LOOKAHEAD
        };
        let Some(open) = open.filter(is_short) else {
            return self.take_finished_lines();
        };
        let mut pem = self.pem.clone();
        let mut secrets = self.redactor.find_secrets(&self.pending, &mut pem);
        if secrets.is_empty() && !self.pem.is_inside() && !pem.is_inside() {
            let held = self.pending.split_off(open.line);
            return std::mem::replace(&mut self.pending, held);
        }
        let is_cut =
            |secret: &SecretSpan| secret.range.start < open.line && secret.range.end > open.line;
        if secrets.iter().any(is_cut) {
            return self.take_finished_lines();
        }
        // A possible prefix of a secret is searched again with its continuation.
        secrets.retain(|secret| secret.range.end <= open.start);
        let first = secrets.partition_point(|secret| secret.range.end <= open.line);
        let shown = insert_markers(&self.pending[..open.line], &secrets[..first]);
        let held = secrets_after(open.line, &secrets[first..]);
        self.pending = insert_markers(&self.pending[open.line..], &held);
        self.redactor
            .redact_continued(&shown, &mut self.pem)
            .into_owned()
    }

    /// Releases finished lines.
    fn take_finished_lines(&mut self) -> Vec<u8> {
        let lines = std::mem::take(&mut self.pending);
        let shown = std::mem::take(&mut self.released);
        if shown == 0 {
            let redactor = self.redactor;
            return redactor
                .redact_continued(&lines, &mut self.pem)
                .into_owned();
        }
        let secrets = self.redactor.find_secrets(&lines, &mut self.pem);
        let rest = secrets_after(shown, &secrets);
        self.redactor
            .redact_bytes(&insert_markers(&lines[shown..], &rest))
            .into_owned()
    }

    /// Releases the first part of a very long line.
    fn take_line_prefix(&mut self) -> Vec<u8> {
        let secrets = self
            .redactor
            .find_secrets(&self.pending, &mut self.pem.clone());
        let len = self.pending.len();
        let mut cut = len - LOOKAHEAD;
        if let Some(over) = secrets.iter().find(|secret| secret.range.contains(&cut)) {
            cut = over.range.start.max(self.released);
            if over.range.start <= self.released + LOOKBEHIND && over.range.end + 1 >= len {
                cut = len;
                self.dropping = true;
            }
        }
        let rest = secrets_after(self.released, &secrets);
        let rest: Vec<_> = rest
            .into_iter()
            .filter(|secret| secret.range.start < cut - self.released)
            .collect();
        let shown = insert_markers(&self.pending[self.released..cut], &rest);
        let kept = if self.dropping {
            cut
        } else {
            cut.saturating_sub(LOOKBEHIND)
        };
        self.pending.drain(..kept);
        self.released = cut - kept;
        self.redactor.redact_bytes(&shown).into_owned()
    }

    /// Drops the rest of a secret that was too long to be retained.
    fn drop_rest(&mut self) {
        if self.dropping {
            let is_end = |byte: &u8| byte.is_ascii_whitespace() || b"\"'`\\".contains(byte);
            let end = self.pending.iter().position(is_end);
            self.dropping = end.is_none();
            self.pending.drain(..end.unwrap_or(self.pending.len()));
        }
    }
}

/// Returns the secrets after a position, relative to it.
fn secrets_after(place: usize, secrets: &[SecretSpan]) -> Vec<SecretSpan> {
    let later = secrets.iter().filter(|secret| secret.range.end > place);
    let counted = later.map(|secret| SecretSpan {
        range: secret.range.start.saturating_sub(place)..secret.range.end - place,
        rank: secret.rank,
    });
    counted.collect()
}
