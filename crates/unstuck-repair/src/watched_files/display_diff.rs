//! What changed in a file, shown so that nothing in it can do anything to whoever reads it.

use similar::TextDiff;
use unstuck_core::command_policy::sanitize;

/// How many lines of a difference are shown.
const MAX_LINES: usize = 80;

/// The lines that went and came.
pub(super) fn display_diff(old: &str, new: &str) -> String {
    let diff = TextDiff::from_lines(old, new);
    let mut lines = Vec::new();
    let mut more = 0;
    for hunk in diff.unified_diff().context_radius(2).iter_hunks() {
        for change in hunk.iter_changes() {
            if lines.len() == MAX_LINES {
                more += 1;
                continue;
            }
            let text = change.value().trim_end_matches('\n');
            lines.push(format!("{}{}", change.tag(), sanitize(text)));
        }
    }
    if more > 0 {
        lines.push(format!("… and {more} lines more"));
    }
    lines.join("\n")
}
