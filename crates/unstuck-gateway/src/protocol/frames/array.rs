//! The elements of a JSON array that comes in pieces.

/// Where in a JSON text the scan stands.
#[derive(Debug, Default)]
pub(super) struct ArrayScanner {
    depth: usize,
    /// The text is an array, whose elements are the frames; otherwise the whole is one.
    is_array: bool,
    in_string: bool,
    escaped: bool,
}

impl ArrayScanner {
    /// Where in the chunk an element, or the text, ends.
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
