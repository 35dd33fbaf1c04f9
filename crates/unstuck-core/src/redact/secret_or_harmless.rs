//! Decides if a found value is a secret or harmless: a count, a name, a path or a placeholder.

use std::sync::LazyLock;

use super::base64::decode;
use super::built_in_secret_patterns::{HarmlessValues, RequiredSecretForm, SecretPatternFile};

/// Decides if a value is a secret or harmless.
#[derive(Debug)]
pub(super) struct SecretValueCheck {
    innocent: &'static HarmlessValues,
}

impl SecretValueCheck {
    pub(super) fn built_in() -> &'static Self {
        static BUILT_IN: LazyLock<SecretValueCheck> = LazyLock::new(|| SecretValueCheck {
            innocent: &SecretPatternFile::built_in().harmless,
        });
        &BUILT_IN
    }

    pub(super) fn is_secret(&self, value: RequiredSecretForm, bytes: &[u8]) -> bool {
        let text = String::from_utf8_lossy(bytes);
        match value {
            RequiredSecretForm::Any => true,
            RequiredSecretForm::Random => self.is_random(&text),
            RequiredSecretForm::Mixed => is_mixed(bytes) && self.is_secret_word(&text),
            RequiredSecretForm::Word => self.is_secret_word(&text),
            RequiredSecretForm::Password => self.is_password(&text),
            RequiredSecretForm::Login => !self.is_placeholder(&text),
            RequiredSecretForm::Pair => is_basic_auth_pair(bytes),
        }
    }

    /// Returns true if letters and digits are mixed in a way that words do not have.
    pub(super) fn is_random(&self, text: &str) -> bool {
        let count = |is: fn(&u8) -> bool| text.bytes().filter(is).count();
        let (digits, letters) = (count(u8::is_ascii_digit), count(u8::is_ascii_alphabetic));
        let is_one_run = digits + letters == text.len();
        text.len() >= 8
            && letters > 0
            && (digits > 0 || is_one_run && letters >= 24)
            && self.is_secret_word(text)
    }

    /// Returns true for anything but a placeholder, a number, a path or a common word.
    pub(super) fn is_secret_word(&self, text: &str) -> bool {
        let bare = text.trim_matches(|c: char| ",.;:!?()".contains(c));
        bare.len() >= 4
            && !is_number(bare)
            && !is_path(bare)
            && !self.innocent.words.contains(&bare.to_ascii_lowercase())
            && !self.is_placeholder(bare)
    }

    /// Like [`is_secret_word`](Self::is_secret_word), but a long number may be a password. Several words are rather a
    /// message about one.
    pub(super) fn is_password(&self, text: &str) -> bool {
        let is_long_number = text.len() >= 6 && text.bytes().all(|byte| byte.is_ascii_digit());
        is_long_number || !text.contains(char::is_whitespace) && self.is_secret_word(text)
    }

    /// Returns true for a placeholder, or an expression that computes a value.
    fn is_placeholder(&self, text: &str) -> bool {
        let mut chars = text.chars();
        let first = chars.next();
        let is_one_character = chars.all(|c| Some(c) == first);
        let begins = |begin: &String| text.starts_with(begin.as_str());
        is_one_character || text.contains("...") || self.innocent.prefixes.iter().any(begins)
    }
}

/// Returns true for a mix of capitals, lower case and digits, beyond that of a hexadecimal hash or a name.
fn is_mixed(bytes: &[u8]) -> bool {
    let has = |is: fn(&u8) -> bool| bytes.iter().any(is);
    let is_hex = bytes.iter().all(u8::is_ascii_hexdigit);
    !is_hex && has(u8::is_ascii_uppercase) && has(u8::is_ascii_lowercase) && has(u8::is_ascii_digit)
}

fn is_number(text: &str) -> bool {
    let is_part = |byte: u8| byte.is_ascii_digit() || b"_,.%:+-".contains(&byte);
    text.parse::<f64>().is_ok() || text.bytes().all(is_part)
}

fn is_path(text: &str) -> bool {
    let bytes = text.as_bytes();
    let has_drive = bytes.len() > 2 && bytes[1] == b':' && b"\\/".contains(&bytes[2]);
    let is_rooted = ["/", "./", "../", "~/", "file:", "@/"]
        .iter()
        .any(|root| text.starts_with(root));
    has_drive || is_rooted && !text.contains(['+', '='])
}

/// Returns true if it is base64 of `user:password`.
fn is_basic_auth_pair(base64: &[u8]) -> bool {
    decode(base64).is_some_and(|text| {
        text.contains(&b':') && text.iter().all(|byte| *byte >= b' ' && *byte != 0x7f)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_names_paths_and_placeholders_are_not_secrets() {
        let looks = SecretValueCheck::built_in();
        for text in [
            "4096",
            "12.5e10",
            "true",
            "/etc/ssl/key1.pem",
            "C:\\keys\\k1.pem",
            "${API_KEY1}",
            "your-api-key-1",
            "********",
            "process.env.KEY1",
            "count",
        ] {
            assert!(
                !looks.is_random(text) && !looks.is_secret_word(text),
                "{text}"
            );
        }
        assert!(!looks.is_random("authentication") && looks.is_secret_word("swordfish"));
        assert!(looks.is_random("q7h2k9zt4m") && looks.is_password("271828"));
    }

    #[test]
    fn basic_auth_pair_is_distinguished_from_a_word() {
        assert!(is_basic_auth_pair(b"dXNlcjpwYXNz") && is_basic_auth_pair(b"dXNlcjpwYXNzMQ=="));
        assert!(!is_basic_auth_pair(b"authentication") && !is_basic_auth_pair(b"understanding"));
    }
}
