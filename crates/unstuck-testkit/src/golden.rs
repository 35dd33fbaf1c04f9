//! Golden files: committed output that a test compares with what the program makes today.
//!
//! A test that differs from its file fails and shows the difference. `UPDATE_GOLDEN=1 cargo nextest run golden` writes
//! the files anew, so that the change is reviewed as a diff.
#![expect(
    clippy::disallowed_methods,
    reason = "the golden files of the repository"
)]

use std::path::Path;

use similar::TextDiff;

/// The environment variable that makes [`assert_golden`] write the file instead of comparing with it.
pub const UPDATE: &str = "UPDATE_GOLDEN";

/// Compares a text with the golden file at a path, byte by byte.
///
/// # Panics
///
/// If the file is missing or holds another text; the message is the difference.
#[track_caller]
pub fn assert_golden(path: &Path, made: &str) {
    if std::env::var_os(UPDATE).is_some_and(|value| value == "1") {
        let written = std::fs::write(path, made);
        assert!(written.is_ok(), "cannot write {}", path.display());
    } else {
        compare(path, made);
    }
}

#[track_caller]
fn compare(path: &Path, made: &str) {
    let recorded = std::fs::read_to_string(path).unwrap_or_default();
    assert!(
        recorded == made,
        "{} differs; if this is intended, rerun the test with {UPDATE}=1\n{}",
        path.display(),
        difference(&recorded, made),
    );
}

/// The lines that differ, with three lines around each change.
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
    fn a_difference_shows_the_changed_line_with_its_surroundings() {
        let told = difference("a\nb\nc\n", "a\nB\nc\n");
        assert!(told.contains("-b\n+B\n"), "{told}");
    }

    #[test]
    #[should_panic(expected = "differs")]
    fn another_text_than_the_recorded_one_fails() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/golden.rs");
        let source = include_str!("golden.rs");
        compare(&path, &source.replace("radius(3)", "radius(4)"));
    }

    #[test]
    #[should_panic(expected = "differs")]
    fn a_missing_file_fails() {
        compare(Path::new("/nowhere/at/all"), "text");
    }
}
