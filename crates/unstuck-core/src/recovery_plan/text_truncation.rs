//! Truncation of texts, with a visible mark at the omission.

/// Estimates the number of tokens of a text: four characters each.
pub fn estimate_tokens(text: &str) -> usize {
    text.chars().count().div_ceil(4)
}

/// Cuts the middle of a text, so that it has at most `most` characters including the mark.
///
/// ```
/// use unstuck_core::recovery_plan::cut_middle;
///
/// assert_eq!(cut_middle("short", 40), "short");
/// assert_eq!(cut_middle(&"x".repeat(90), 40), "xxxxxx[… 78 characters omitted …]xxxxxx");
/// ```
pub fn cut_middle(text: &str, most: usize) -> String {
    let length = text.chars().count();
    if length <= most {
        return text.to_owned();
    }
    let longest_mark = omission_mark(length).chars().count();
    // If not even the mark fits, the beginning is more useful than a part of the mark.
    let Some(room) = most.checked_sub(longest_mark) else {
        return text.chars().take(most).collect();
    };
    let half = room / 2;
    let start: String = text.chars().take(half).collect();
    let end: String = text.chars().skip(length - half).collect();
    format!("{start}{}{end}", omission_mark(length - 2 * half))
}

fn omission_mark(count: usize) -> String {
    format!("[… {count} characters omitted …]")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_truncated_text_is_never_longer_than_allowed(text in "\\PC{0,300}", most in 0_usize..200) {
            let cut = cut_middle(&text, most);
            prop_assert!(cut.chars().count() <= most.max(text.chars().count().min(most)));
        }
    }

    #[test]
    fn the_mark_shows_how_much_is_omitted() {
        let text = format!("{}{}{}", "a".repeat(50), "b".repeat(100), "c".repeat(50));
        let cut = cut_middle(&text, 100);
        let kept = cut.chars().filter(|c| "abc".contains(*c)).count();
        assert!(cut.starts_with("aaa") && cut.ends_with("ccc"));
        // The mark itself contains five of these letters: c, a, a, c in "characters", and none elsewhere.
        assert!(cut.contains(&format!("[… {} characters omitted …]", 200 - (kept - 4))));
    }

    #[test]
    fn a_token_is_about_four_characters() {
        assert_eq!(
            (
                estimate_tokens(""),
                estimate_tokens("abcd"),
                estimate_tokens("abcde")
            ),
            (0, 1, 2)
        );
    }
}
