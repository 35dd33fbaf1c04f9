//! Filters stored output for a terminal: keeps text and colors, removes all other control sequences.
//!
//! Output of an agent must not set titles, write to the clipboard (OSC 52), create links, move the cursor or clear the
//! reader's screen.

use std::io::{self, Write};

/// Longer sequences are not colors.
const MAX_SEQUENCE: usize = 64;

/// Removes control sequences except plain colors, even if they are split across writes.
pub(crate) struct TerminalFilter<W: Write> {
    to: W,
    state: ParserState,
    /// True if a color was set and not reset yet.
    is_colored: bool,
}

/// State of the parser after the last byte.
#[derive(Debug, PartialEq, Eq)]
enum ParserState {
    Text,
    /// After a carriage return, which is kept only before a line end.
    Return,
    /// First of the two bytes of a non-ASCII character that may be a control character.
    Latin,
    Escape,
    /// After an escape with an intermediate byte; one more byte follows.
    Intermediate,
    /// After `ESC [`, with the bytes that followed.
    Sequence(Vec<u8>),
    /// A string for the terminal, terminated by a bell or `ESC \`.
    String,
    EscapeInString,
}

impl<W: Write> TerminalFilter<W> {
    pub(crate) fn new(to: W) -> Self {
        Self {
            to,
            state: ParserState::Text,
            is_colored: false,
        }
    }

    /// Resets colors that are still set.
    pub(crate) fn finish(&mut self) -> io::Result<()> {
        if std::mem::take(&mut self.is_colored) {
            self.to.write_all(b"\x1b[0m")?;
        }
        self.to.flush()
    }

    fn on_byte(&mut self, byte: u8, out: &mut Vec<u8>) {
        self.state = match (std::mem::replace(&mut self.state, ParserState::Text), byte) {
            (ParserState::String, 0x07) => ParserState::Text,
            (ParserState::String, 0x1b) => ParserState::EscapeInString,
            (ParserState::EscapeInString, b'\\') => ParserState::Text,
            (ParserState::EscapeInString, 0x1b) => ParserState::EscapeInString,
            (ParserState::String | ParserState::EscapeInString, _) => ParserState::String,
            (ParserState::Sequence(mut sequence), byte) => {
                sequence.push(byte);
                match byte {
                    0x20..=0x3f if sequence.len() < MAX_SEQUENCE => ParserState::Sequence(sequence),
                    b'm' if is_color(&sequence) => {
                        self.is_colored = !matches!(sequence.as_slice(), b"m" | b"0m");
                        out.extend_from_slice(b"\x1b[");
                        out.extend_from_slice(&sequence);
                        ParserState::Text
                    }
                    0x1b => ParserState::Escape,
                    // A line end terminates an unfinished sequence.
                    b'\n' => {
                        out.push(b'\n');
                        ParserState::Text
                    }
                    _ => ParserState::Text,
                }
            }
            (ParserState::Escape, b'[') => ParserState::Sequence(Vec::new()),
            (ParserState::Escape, b']' | b'P' | b'X' | b'^' | b'_') => ParserState::String,
            (ParserState::Escape | ParserState::Intermediate, 0x20..=0x2f) => {
                ParserState::Intermediate
            }
            (ParserState::Escape, 0x1b) => ParserState::Escape,
            (ParserState::Escape | ParserState::Intermediate, _) => ParserState::Text,
            (ParserState::Latin, 0x80..=0x9f) => ParserState::Text,
            (ParserState::Latin, byte) => {
                out.push(0xc2);
                self.on_text_byte(byte, out)
            }
            (ParserState::Return, b'\n') => {
                out.extend_from_slice(b"\r\n");
                ParserState::Text
            }
            (ParserState::Return, byte) => {
                // Overwritten text is shown above the text that replaced it.
                out.push(b'\n');
                self.on_text_byte(byte, out)
            }
            (ParserState::Text, byte) => self.on_text_byte(byte, out),
        };
    }

    fn on_text_byte(&mut self, byte: u8, out: &mut Vec<u8>) -> ParserState {
        match byte {
            0x1b => return ParserState::Escape,
            b'\r' => return ParserState::Return,
            0xc2 => return ParserState::Latin,
            b'\n' | b'\t' => out.push(byte),
            0x00..=0x1f | 0x7f => {}
            _ => out.push(byte),
        }
        ParserState::Text
    }
}

/// True if a sequence, without its `ESC [`, only sets colors.
fn is_color(sequence: &[u8]) -> bool {
    let numbers = sequence.strip_suffix(b"m").unwrap_or_default();
    let fits = |byte: &u8| byte.is_ascii_digit() || matches!(byte, b';' | b':');
    // Hidden text (8) is not allowed.
    let hides = |number: &[u8]| matches!(number, b"8" | b"08");
    let mut all = numbers.split(|byte| matches!(byte, b';' | b':'));
    numbers.iter().all(fits) && !all.any(hides)
}

impl<W: Write> Write for TerminalFilter<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut out = Vec::with_capacity(bytes.len());
        for byte in bytes {
            self.on_byte(*byte, &mut out);
        }
        self.to.write_all(&out)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn shown(pieces: &[&[u8]]) -> Vec<u8> {
        let mut out = Vec::new();
        let mut text = TerminalFilter::new(&mut out);
        for piece in pieces {
            text.write_all(piece).unwrap();
        }
        text.finish().unwrap();
        out
    }

    #[test]
    fn only_colors_and_text_remain() {
        for (text, expected) in [
            ("plain\ttext\r\nGröße €\n", "plain\ttext\r\nGröße €\n"),
            ("\x1b[1;31mred\x1b[0m", "\x1b[1;31mred\x1b[0m"),
            ("\x1b[38:5:1mred", "\x1b[38:5:1mred\x1b[0m"),
            ("\x1b]0;title\x07x", "x"),
            ("\x1b]52;c;cm0gLXJmIC8=\x1b\\x", "x"),
            ("\x1b]8;;http://evil\x1b\\link\x1b]8;;\x1b\\", "link"),
            ("a\x1b[2J\x1b[H\x1b[3Ab", "ab"),
            ("a\x1b[?1049hb\x1bcd\x1b(0e", "abde"),
            ("\x1bPq#0\x1b\\x\x1b_apc\x1b\\y", "xy"),
            ("a\u{9b}2Jb\u{9d}0;t\u{9c}c", "a2Jb0;tc"),
            ("10%\r20%\rdone\n", "10%\n20%\ndone\n"),
            ("a\x08\x00\x7f\x05b", "ab"),
            ("\x1b[8mhidden\x1b[0m", "hidden\x1b[0m"),
            ("\x1b[31", ""),
            ("\x1b[>4;1mx", "x"),
        ] {
            assert_eq!(
                String::from_utf8(shown(&[text.as_bytes()])).unwrap(),
                expected
            );
        }
    }

    proptest! {
        /// However the input is split, only colors reach the terminal.
        #[test]
        fn only_colors_pass(
            text in "(\x1b|\\[|\\]|[0-9;:?]|m|J|52|\u{9b}|\u{9d}|\x07|\\\\|\r|\n|é|x|P|\x08){0,60}",
            cut in 0_usize..60,
        ) {
            let bytes = text.as_bytes();
            let (left, right) = bytes.split_at(cut.min(bytes.len()));
            let out = shown(&[left, right]);
            prop_assert_eq!(&out, &shown(&[bytes]));
            let out = String::from_utf8_lossy(&out).into_owned();
            for part in out.split('\x1b').skip(1) {
                let end = part.find(|c: char| !"[0123456789;:".contains(c));
                prop_assert!(part.starts_with('[') && part.get(end.unwrap_or(0)..).is_some_and(|rest| rest.starts_with('m')), "{:?}", out);
            }
            let is_odd = |c: char| c.is_control() && !"\x1b\n\r\t".contains(c);
            prop_assert!(!out.contains(is_odd), "{:?}", out);
        }
    }
}
