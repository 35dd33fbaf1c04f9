//! Checks that an answer contains a unified diff.

use super::fenced_code::FencedText;

/// Returns the error of the diffs in an answer, or that there is no diff.
pub(super) fn check(text: &str) -> Option<String> {
    let fenced = FencedText::parse(text);
    let is_diff = |language: &str| ["diff", "patch"].contains(&language);
    let blocks = fenced.blocks.iter().filter(|block| is_diff(block.language));
    let mut bodies: Vec<&str> = blocks.map(|block| block.body).collect();
    if bodies.is_empty() {
        bodies.push(text);
    }
    let mut changes = 0;
    for body in bodies {
        match DiffParser::count_changes(body) {
            Ok(count) => changes += count,
            Err(problem) => return Some(format!("Invalid diff: {problem}")),
        }
    }
    (changes == 0).then(|| "Invalid diff: the output contains no unified diff".to_owned())
}

/// An error of a diff.
#[derive(Debug, thiserror::Error)]
enum DiffProblem {
    #[error("the hunk at line {0} precedes the `---` and `+++` lines")]
    NoFile(usize),
    #[error("invalid hunk header at line {0}")]
    Header(usize),
    #[error("the hunk at line {0} does not match the line counts in its header")]
    Count(usize),
}

/// The number of lines that a hunk still needs.
struct RemainingHunkLines {
    old: usize,
    new: usize,
}

/// Header lines of a change without hunks.
const HUNKLESS_HEADERS: [&str; 6] = [
    "rename to ",
    "copy to ",
    "new mode ",
    "deleted file mode ",
    "new file mode ",
    "GIT binary patch",
];

#[derive(Default)]
struct DiffParser {
    /// True if the last line was the `---` line of a file.
    after_old: bool,
    in_file: bool,
    /// True if there was a git header, which can describe changes without hunks.
    in_git: bool,
    changes: usize,
}

impl DiffParser {
    /// Returns the number of changes.
    fn count_changes(text: &str) -> Result<usize, DiffProblem> {
        let mut reader = Self::default();
        let mut lines = text.lines().enumerate().peekable();
        while let Some((at, line)) = lines.next() {
            if !line.starts_with("@@ ") {
                reader.parse_line_outside_hunk(line);
                continue;
            }
            if !reader.in_file {
                return Err(DiffProblem::NoFile(at + 1));
            }
            let mut left = parse_hunk_header(line).ok_or(DiffProblem::Header(at + 1))?;
            while left.old > 0 || left.new > 0 {
                let taken = lines.next().and_then(|(_, line)| left.consume_line(line));
                taken.ok_or(DiffProblem::Count(at + 1))?;
            }
            if lines.peek().is_some_and(|(_, line)| is_surplus(line)) {
                return Err(DiffProblem::Count(at + 1));
            }
            reader.changes += 1;
        }
        Ok(reader.changes)
    }

    /// Parses a line outside of hunks: part of a file header, or prose.
    fn parse_line_outside_hunk(&mut self, line: &str) {
        self.in_file |= self.after_old && line.starts_with("+++ ");
        self.after_old = line.starts_with("--- ");
        self.in_git |= line.starts_with("diff --git ");
        let tells = |start: &&str| line.starts_with(*start);
        self.changes += usize::from(self.in_git && HUNKLESS_HEADERS.iter().any(tells));
    }
}

impl RemainingHunkLines {
    /// Counts a line of a hunk; `None` if it does not match the hunk.
    fn consume_line(&mut self, line: &str) -> Option<()> {
        let (old, new) = match line.bytes().next() {
            Some(b'-') => (1, 0),
            Some(b'+') => (0, 1),
            Some(b'\\') => (0, 0),
            // Editors remove the space of an empty line.
            Some(b' ' | b'\t' | b'\r') | None => (1, 1),
            Some(_) => return None,
        };
        self.old = self.old.checked_sub(old)?;
        self.new = self.new.checked_sub(new)?;
        Some(())
    }
}

/// Returns true if a line right after a hunk seems to belong to it.
fn is_surplus(line: &str) -> bool {
    let is_changed = line.starts_with(['+', '-']);
    let is_header = line.starts_with("--- ") || line.starts_with("-- ") || line == "--";
    is_changed && !is_header
}

/// Parses the counts of `@@ -1,2 +3,4 @@`.
fn parse_hunk_header(line: &str) -> Option<RemainingHunkLines> {
    let (ranges, _) = line.strip_prefix("@@ -")?.split_once(" @@")?;
    let (old, new) = ranges.split_once(" +")?;
    Some(RemainingHunkLines {
        old: parse_line_count(old)?,
        new: parse_line_count(new)?,
    })
}

fn parse_line_count(range: &str) -> Option<usize> {
    let (start, count) = range.split_once(',').unwrap_or((range, "1"));
    start.parse::<usize>().ok()?;
    count.parse().ok()
}
