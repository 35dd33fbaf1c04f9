//! A block at the bottom of a terminal that is redrawn in place, below permanent lines.

use std::fmt::Write as _;
use std::io::Write;

use anstream::adapter::strip_str;

use crate::output::ColorMode;
use crate::redacted_stderr::{RedactedStderr, redacted};
use crate::sanitized_text::visible_width;

/// Writes permanent lines, and below them a block that is redrawn.
#[derive(Debug)]
pub(super) struct TerminalRegion<W: Write> {
    to: W,
    colors: bool,
    /// Widths of the currently drawn lines of the block.
    drawn: Vec<usize>,
}

impl TerminalRegion<RedactedStderr> {
    pub(super) fn stderr(color: ColorMode) -> Self {
        Self::new(
            RedactedStderr::raw(),
            RedactedStderr::new(color).has_colors(),
        )
    }
}

impl<W: Write> TerminalRegion<W> {
    fn new(to: W, colors: bool) -> Self {
        Self {
            to,
            colors,
            drawn: Vec::new(),
        }
    }

    /// Writes permanent lines and the block below them in one write, to avoid flicker.
    pub(super) fn show(&mut self, lines: &[String], block: &[String], columns: usize) {
        let mut text = self.cursor_to_top(columns);
        let erase = if self.drawn.is_empty() { "" } else { "\x1b[K" };
        for line in lines.iter().flat_map(|line| line.lines()) {
            let _ = writeln!(text, "{}{erase}", self.styled(&redacted(line)));
        }
        for line in block {
            let _ = writeln!(text, "{}\x1b[K", self.styled(line));
        }
        if !self.drawn.is_empty() {
            text.push_str("\x1b[J");
        }
        self.drawn = block.iter().map(|line| visible_width(line)).collect();
        // The run continues even if standard error is closed.
        let _ = self.to.write_all(text.as_bytes());
        let _ = self.to.flush();
    }

    /// Clears the block.
    pub(super) fn clear(&mut self, columns: usize) {
        if !self.drawn.is_empty() {
            self.show(&[], &[], columns);
        }
    }

    /// Returns the sequence that moves the cursor to the first line of the block, even if the terminal has become
    /// narrower.
    fn cursor_to_top(&self, columns: usize) -> String {
        let rows = |width: &usize| width.div_ceil(columns.max(1)).max(1);
        match self.drawn.iter().map(rows).sum::<usize>() {
            0 => String::new(),
            up => format!("\r\x1b[{up}A"),
        }
    }

    fn styled(&self, line: &str) -> String {
        if self.colors {
            line.to_owned()
        } else {
            strip_str(line).to_string()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::DIM;

    /// Minimal terminal emulator: returns the screen after the written bytes.
    fn screen(written: &[u8], columns: usize) -> Vec<String> {
        let text = std::str::from_utf8(written).unwrap();
        let (mut rows, mut row, mut column) = (vec![Vec::new()], 0_usize, 0_usize);
        let mut chars = text.chars();
        while let Some(c) = chars.next() {
            match c {
                '\n' => (row, column) = (row + 1, 0),
                '\r' => column = 0,
                '\x1b' => {
                    let code: String = chars.by_ref().skip(1).take_while_inclusive_letter();
                    match code.split_at(code.len() - 1) {
                        (up, "A") => row -= up.parse::<usize>().unwrap(),
                        ("", "K") => rows[row].truncate(column),
                        ("", "J") => {
                            rows[row].truncate(column);
                            rows.truncate(row + 1);
                        }
                        (_, "m") => {}
                        other => panic!("not known: {other:?}"),
                    }
                }
                c => {
                    if column == columns {
                        (row, column) = (row + 1, 0);
                    }
                    while rows.len() <= row {
                        rows.push(Vec::new());
                    }
                    let written = &mut rows[row];
                    written.resize((column + 1).max(written.len()), ' ');
                    written[column] = c;
                    column += 1;
                }
            }
            while rows.len() <= row {
                rows.push(Vec::new());
            }
        }
        rows.into_iter()
            .map(|row| row.into_iter().collect())
            .collect()
    }

    trait UpToLetter {
        fn take_while_inclusive_letter(self) -> String;
    }

    impl<I: Iterator<Item = char>> UpToLetter for I {
        fn take_while_inclusive_letter(self) -> String {
            let mut code = String::new();
            for c in self {
                code.push(c);
                if c.is_ascii_alphabetic() {
                    break;
                }
            }
            code
        }
    }

    fn texts(lines: &[&str]) -> Vec<String> {
        lines.iter().map(|line| (*line).to_owned()).collect()
    }

    #[test]
    fn lines_stay_above_a_redrawn_block() {
        let mut canvas = TerminalRegion::new(Vec::new(), true);
        canvas.show(&[], &texts(&["a is at work", "total 1"]), 80);
        canvas.show(&texts(&["a → done"]), &texts(&["b"]), 80);
        assert_eq!(screen(&canvas.to, 80), ["a → done", "b", ""]);
        canvas.show(&[], &texts(&["b", "c", "total 2"]), 80);
        assert_eq!(
            screen(&canvas.to, 80),
            ["a → done", "b", "c", "total 2", ""]
        );
        canvas.show(&texts(&["end"]), &[], 80);
        canvas.clear(80);
        assert_eq!(screen(&canvas.to, 80), ["a → done", "end", ""]);
    }

    #[test]
    fn plain_text_is_written_without_block_and_colors() {
        let mut canvas = TerminalRegion::new(Vec::new(), false);
        canvas.show(&[format!("{DIM}one{DIM:#}")], &[], 80);
        canvas.clear(80);
        assert_eq!(canvas.to, b"one\n");
    }

    #[test]
    fn narrowed_terminal_leaves_no_remains() {
        let mut canvas = TerminalRegion::new(Vec::new(), true);
        canvas.show(&texts(&["first"]), &[], 10);
        // At the narrower width, the ten characters take two rows.
        canvas.show(&[], &texts(&["0123456789"]), 10);
        canvas.show(&[], &texts(&["0123"]), 5);
        let ups = String::from_utf8(canvas.to).unwrap();
        assert!(ups.contains("\x1b[2A"), "{ups:?}");
    }
}
