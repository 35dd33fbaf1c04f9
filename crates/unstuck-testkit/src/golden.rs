//! Golden files: committed output that tests compare with the current output.
//!
//! On a mismatch the test fails and prints the diff. `UPDATE_GOLDEN=1 cargo nextest run golden` rewrites the files, so
//! that the change is reviewed as a diff.

use std::path::Path;

use similar::TextDiff;

/// The environment variable that makes [`assert_golden`] rewrite the file instead of comparing.
pub const UPDATE: &str = "UPDATE_GOLDEN";

/// Asserts that a text equals the golden file at a path, byte by byte.
///
/// # Panics
///
/// If the file is missing or differs; the message contains the diff.
#[track_caller]
pub fn assert_golden(path: &Path, made: &str) {
    let asked = std::env::var_os(UPDATE).is_some_and(|value| value == "1");
    if asked {
        let written = std::fs::write(path, made);
        assert!(written.is_ok(), "{} cannot be written", path.display());
        return;
    }
    let recorded = std::fs::read_to_string(path).unwrap_or_default();
    assert!(
        recorded == made,
        "{} differs; if that is meant, run the test again with {UPDATE}=1\n{}",
        path.display(),
        difference(&recorded, made),
    );
}

/// Returns the differing lines, with three lines of context around each change.
fn difference(recorded: &str, made: &str) -> String {
    TextDiff::from_lines(recorded, made)
        .unified_diff()
        .context_radius(3)
        .header("recorded", "made")
        .to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn diff_shows_changed_lines_with_context() {
        let told = difference("a\nb\nc\n", "a\nB\nc\n");
        assert!(told.contains("-b\n+B\n"), "{told}");
    }

    #[test]
    #[should_panic(expected = "differs")]
    fn different_text_fails() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/golden.rs");
        let source = include_str!("golden.rs");
        assert_golden(&path, &source.replace("radius(3)", "radius(4)"));
    }

    #[test]
    #[should_panic(expected = "differs")]
    fn missing_file_fails() {
        assert_golden(Path::new("/nowhere/at/all"), "text");
    }
}
