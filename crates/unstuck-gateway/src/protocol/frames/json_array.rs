//! The elements of a streamed JSON array.

/// The state of scanning a JSON text.
#[derive(Debug, Default)]
pub(super) struct ArrayScanner {
    depth: usize,
    /// If set, the text is an array whose elements are the frames; otherwise the whole text is one frame.
    is_array: bool,
    in_string: bool,
    escaped: bool,
}

impl ArrayScanner {
    /// Returns the position in the chunk where an element, or the text, ends.
    pub(super) fn end_in(&mut self, chunk: &[u8]) -> Option<usize> {
        let at = chunk.iter().position(|&byte| self.ends_at(byte))?;
        Some(at + 1)
    }

    fn ends_at(&mut self, byte: u8) -> bool {
        if self.in_string {
            self.in_string = self.escaped || byte != b'"';
            self.escaped = !self.escaped && byte == b'\\';
            return false;
        }
        match byte {
            b'"' => self.in_string = true,
            b'{' | b'[' => {
                if self.depth == 0 {
                    self.is_array = byte == b'[';
                }
                self.depth += 1;
            }
            b'}' | b']' => {
                self.depth = self.depth.saturating_sub(1);
                return self.depth == 0 || (self.depth == 1 && self.is_array);
            }
            _ => {}
        }
        false
    }
}
