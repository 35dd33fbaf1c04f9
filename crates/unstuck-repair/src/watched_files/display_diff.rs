//! A diff of a file, sanitized for display.

use similar::TextDiff;
use unstuck_core::command_policy::sanitize;

/// Maximum number of displayed lines.
const MAX_LINES: usize = 80;

/// Returns the removed and added lines.
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
        lines.push(format!(
            "… {more} more {}",
            if more == 1 { "line" } else { "lines" }
        ));
    }
    lines.join("\n")
}
