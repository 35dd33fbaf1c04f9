//! Sections that an answer must have.

use super::fenced_code::{FencedText, strip_single_fence};

/// Returns an error for each missing section.
pub(super) fn missing_sections(sections: &[String], text: &str) -> Vec<String> {
    if sections.is_empty() {
        return Vec::new();
    }
    let fenced = FencedText::parse(strip_single_fence(text));
    let lines: Vec<String> = fenced
        .outside
        .iter()
        .map(|line| normalize_line(line))
        .collect();
    let is_missing = |section: &&String| !has_section(section, &lines);
    let errors = sections.iter().filter(is_missing);
    errors
        .map(|section| format!("Missing section: {}", section.trim()))
        .collect()
}

/// Returns true if a section is among these lines; text may follow a label such as `- Findings:` on the same line.
fn has_section(section: &str, lines: &[String]) -> bool {
    let name = normalize_line(section);
    let is_label = section.trim().trim_end_matches(['*', '_']).ends_with(':');
    let label = format!("{name}:");
    let follows = |line: &String| line.replace("**", "").starts_with(&label);
    lines.contains(&name) || is_label && lines.iter().any(follows)
}

/// Removes emphasis, and trailing spaces, colons and hashes of a line.
fn normalize_line(line: &str) -> String {
    let line = line.trim();
    // `**## Review**` and `## **Review**` are the same heading.
    let line = line.trim_start_matches(['*', '_']);
    let bare = line.trim_start_matches('#');
    let (hashes, rest) = line.split_at(line.len() - bare.len());
    let rest = rest.trim_start().trim_start_matches(['*', '_']);
    let rest = rest.trim_end_matches([' ', '\t', ':', '#', '*', '_']);
    match (hashes, rest) {
        ("", rest) => rest.trim().to_owned(),
        (hashes, rest) => format!("{hashes} {}", rest.trim()),
    }
}
