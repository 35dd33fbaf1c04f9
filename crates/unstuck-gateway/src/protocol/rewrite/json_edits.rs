//! Edits of JSON bytes that leave all else untouched.

use std::ops::Range;

use bytes::{Bytes, BytesMut};
use serde_json::value::RawValue;

use crate::protocol::json::span_in;

/// Edits of a body, in the order of their positions.
#[derive(Debug)]
pub(super) struct JsonEdits<'a> {
    body: &'a [u8],
    edits: Vec<(Range<usize>, String)>,
}

impl<'a> JsonEdits<'a> {
    pub(super) fn new(body: &'a [u8]) -> Self {
        Self {
            body,
            edits: Vec::new(),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.edits.is_empty()
    }

    /// Replaces a value that was parsed from the body.
    pub(super) fn replace(&mut self, value: &RawValue, text: String) -> Option<()> {
        self.edits.push((span_in(self.body, value)?, text));
        Some(())
    }

    /// Appends an element to an array that was parsed from the body.
    pub(super) fn append(&mut self, array: &RawValue, element: &str) -> Option<()> {
        let place = span_in(self.body, array)?;
        let inner = array.get().strip_prefix('[')?.strip_suffix(']')?;
        let filled = inner.trim_end_matches([' ', '\t', '\n', '\r']);
        let at = place.start + 1 + filled.len();
        let comma = if filled.is_empty() { "" } else { "," };
        self.edits.push((at..at, format!("{comma}{element}")));
        Some(())
    }

    /// Inserts an element before another one that was parsed from an array in the body.
    pub(super) fn insert_before(&mut self, next: &RawValue, element: &str) -> Option<()> {
        let at = span_in(self.body, next)?.start;
        self.edits.push((at..at, format!("{element},")));
        Some(())
    }

    /// Inserts a member at the beginning of an object that was parsed from the body.
    pub(super) fn prepend_member(&mut self, object: &RawValue, member: &str) -> Option<()> {
        let place = span_in(self.body, object)?;
        let inner = object.get().strip_prefix('{')?;
        let rest = inner.trim_start_matches([' ', '\t', '\n', '\r']);
        let comma = if rest.starts_with('}') { "" } else { "," };
        let at = place.start + 1;
        self.edits.push((at..at, format!("{member}{comma}")));
        Some(())
    }

    /// Extends a string that was parsed from the body.
    pub(super) fn extend_string(&mut self, string: &RawValue, escaped: &str) -> Option<()> {
        let at = span_in(self.body, string)?.end.checked_sub(1)?;
        self.edits.push((at..at, escaped.to_owned()));
        Some(())
    }

    /// Returns the edited body.
    pub(super) fn apply(mut self) -> Option<Bytes> {
        self.edits.sort_by_key(|(place, _)| place.start);
        let more: usize = self.edits.iter().map(|(_, text)| text.len()).sum();
        let mut edited = BytesMut::with_capacity(self.body.len() + more);
        let mut at = 0;
        for (place, text) in &self.edits {
            edited.extend_from_slice(self.body.get(at..place.start)?);
            edited.extend_from_slice(text.as_bytes());
            at = place.end;
        }
        edited.extend_from_slice(self.body.get(at..)?);
        Some(edited.freeze())
    }
}
