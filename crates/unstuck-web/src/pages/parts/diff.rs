//! Line diff of two texts; long unchanged sections are left out.

use maud::{Markup, html};
use similar::{ChangeTag, TextDiff};

use super::sanitized_text;

/// Number of context lines around a change.
const CONTEXT_LINES: usize = 2;

/// Maximum number of lines shown.
const MAX_LINES: usize = 400;

/// Renders the changed lines with some context; `None` if the texts are equal.
pub(crate) fn diff(label: &str, before: &str, after: &str) -> Option<Markup> {
    let (before, after) = (sanitized_text::lines(before), sanitized_text::lines(after));
    if before == after {
        return None;
    }
    let diff = TextDiff::from_lines(&before, &after);
    let groups = diff.grouped_ops(CONTEXT_LINES);
    let lines = groups.iter().enumerate().flat_map(|(at, group)| {
        let gap = (at > 0).then_some(None);
        let changes = group.iter().flat_map(|op| diff.iter_changes(op));
        gap.into_iter().chain(changes.map(Some))
    });
    Some(html! {
        div class="diff" tabindex="0" role="region" aria-label=(label) {
            ol {
                @for line in lines.take(MAX_LINES) {
                    @match line {
                        None => li class="is-gap" { "⋯" },
                        Some(change) => {
                            @let (class, sign, word) = line_marker(change.tag());
                            li class=[class] {
                                span class="sign" aria-hidden="true" { (sign) }
                                @if let Some(word) = word { span class="hidden-visually" { (word) ": " } }
                                (change.value().trim_end_matches('\n'))
                            }
                        }
                    }
                }
            }
        }
    })
}

const fn line_marker(tag: ChangeTag) -> (Option<&'static str>, &'static str, Option<&'static str>) {
    match tag {
        ChangeTag::Delete => (Some("is-removed"), "-", Some("removed")),
        ChangeTag::Insert => (Some("is-added"), "+", Some("added")),
        ChangeTag::Equal => (None, " ", None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn added_and_removed_lines_are_marked_besides_their_color() {
        let shown = diff("prompts", "fix it\nnow\n", "fix it\n<b>later</b>\n")
            .unwrap()
            .into_string();
        assert!(shown.contains("removed: </span>now"), "{shown}");
        assert!(
            shown.contains("added: </span>&lt;b&gt;later&lt;/b&gt;"),
            "{shown}"
        );
    }

    #[test]
    fn equal_texts_have_no_diff() {
        assert!(diff("prompts", "a\n", "a").is_none());
    }

    #[test]
    fn long_unchanged_sections_are_left_out() {
        let before: String = (0..500).map(|n| format!("line {n}\n")).collect();
        let after = before
            .replace("line 3\n", "changed\n")
            .replace("line 450\n", "changed, too\n");
        let shown = diff("prompts", &before, &after).unwrap().into_string();
        assert_eq!(shown.matches("<li").count(), 13, "{shown}");
    }
}
