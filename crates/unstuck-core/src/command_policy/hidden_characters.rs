//! Detects invisible and misleading characters in commands and paths, and trims white space.

use unicode_general_category::{GeneralCategory as Category, get_general_category};

/// Removes ASCII space, TAB, LF and CR at both ends; nothing else, nothing inside.
///
/// `str::trim` removes more, such as U+00A0 and U+2028.
pub(super) fn trim_ascii_whitespace(text: &str) -> &str {
    text.trim_matches([' ', '\t', '\n', '\r'])
}

/// Returns true if nothing in a text is visible.
pub(super) fn is_blank(text: &str) -> bool {
    text.chars().all(|c| c.is_whitespace() || is_hidden(c))
}

/// Returns the first forbidden character of a command; TAB and LF are allowed.
pub(super) fn find_hidden_in_command(command: &str) -> Option<char> {
    command
        .chars()
        .find(|c| is_hidden(*c) && !matches!(c, '\t' | '\n'))
}

/// Returns the first forbidden character of a path.
pub(super) fn find_hidden_in_path(path: &str) -> Option<char> {
    path.chars().find(|c| is_hidden(*c))
}

/// Returns true if a character is invisible, reorders others, or has no agreed appearance.
pub(super) fn is_hidden(c: char) -> bool {
    if c.is_ascii() {
        return c.is_ascii_control();
    }
    let unseen = matches!(
        get_general_category(c),
        Category::Control
            | Category::Format
            | Category::SpaceSeparator
            | Category::LineSeparator
            | Category::ParagraphSeparator
            | Category::PrivateUse
            | Category::Surrogate
    );
    unseen || is_default_ignorable(c) || is_noncharacter(c) || is_blank_sign(c)
}

/// Returns true for `Default_Ignorable_Code_Point` of Unicode, as far as the general category does not cover it.
fn is_default_ignorable(c: char) -> bool {
    matches!(c,
        '\u{34f}' | '\u{115f}'..='\u{1160}' | '\u{17b4}'..='\u{17b5}' | '\u{180b}'..='\u{180f}' | '\u{2065}' | '\u{3164}'
        | '\u{fe00}'..='\u{fe0f}' | '\u{ffa0}' | '\u{fff0}'..='\u{fff8}' | '\u{e0000}'..='\u{e0fff}')
}

fn is_noncharacter(c: char) -> bool {
    matches!(c, '\u{fdd0}'..='\u{fdef}') || u32::from(c) & 0xfffe == 0xfffe
}

/// Returns true for letters and signs drawn as nothing: an empty Braille cell, a Khitan filler, blank hieroglyphs, an
/// empty note.
fn is_blank_sign(c: char) -> bool {
    matches!(
        c,
        '\u{2800}' | '\u{16fe4}' | '\u{13441}' | '\u{13442}' | '\u{1d159}'
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_four_characters_are_trimmed() {
        assert_eq!(trim_ascii_whitespace(" \t\r\n npm  ci \n"), "npm  ci");
        for kept in [
            '\u{b}', '\u{c}', '\u{85}', '\u{a0}', '\u{2028}', '\u{3000}', '\u{feff}',
        ] {
            assert_eq!(
                trim_ascii_whitespace(&format!("{kept}x{kept}")),
                format!("{kept}x{kept}")
            );
        }
    }

    #[test]
    fn invisible_characters_are_hidden_and_letters_are_not() {
        let hidden = "\0\u{7}\u{8}\u{1b}\u{7f}\u{85}\u{9b}\u{a0}\u{ad}\u{34f}\u{600}\u{61c}\u{115f}\u{1680}\u{17b4}\u{180b}\
            \u{180e}\u{2000}\u{200b}\u{200d}\u{200e}\u{2028}\u{2029}\u{202e}\u{202f}\u{205f}\u{2060}\u{2065}\u{2066}\u{206f}\
            \u{2800}\u{3000}\u{3164}\u{e000}\u{fdd0}\u{fe0f}\u{feff}\u{ffa0}\u{fff9}\u{ffff}\u{16fe4}\u{1d159}\u{1d173}\u{1fffe}\
            \u{e0001}\u{e0061}\u{e01ef}\u{f0000}\u{10ffff}";
        for c in hidden.chars() {
            assert!(is_hidden(c), "U+{:04X}", u32::from(c));
        }
        for c in "a~ é\u{301}\u{440}ｎ；\u{37e}−“”日本語🙂\u{5d0}\u{627}".chars() {
            assert!(!is_hidden(c), "U+{:04X}", u32::from(c));
        }
    }

    #[test]
    fn tab_is_allowed_in_a_command_and_not_in_a_path() {
        assert_eq!(find_hidden_in_command("a\tb\nc"), None);
        assert_eq!(find_hidden_in_command("a\rb"), Some('\r'));
        assert_eq!(find_hidden_in_path("a\tb"), Some('\t'));
    }
}
