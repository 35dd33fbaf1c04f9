//! Names whose value is secret.

use super::built_in_secret_patterns::{RequiredSecretForm, SecretNameLists, SecretPatternFile};
use super::secret_or_harmless::SecretValueCheck;

/// Recognizes names whose value is secret.
#[derive(Debug)]
pub(super) struct SecretNames {
    lists: &'static SecretNameLists,
}

/// Minimum length of an environment value; shorter ones occur in too many places.
const MIN_ENV_VALUE_LEN: usize = 8;
/// Minimum length of a value without digits; a shorter one is a word, such as a database's default password.
const MIN_LETTERS_ONLY_LEN: usize = 20;

impl SecretNames {
    pub(super) fn built_in() -> Self {
        Self {
            lists: &SecretPatternFile::built_in().names,
        }
    }

    /// Returns the required form of a secret value under a name; none if the name does not indicate a secret.
    pub(super) fn value_class(&self, name: &str) -> Option<RequiredSecretForm> {
        let name = normalize_name(name);
        let lists = self.lists;
        let ends = |ends: &[String]| ends.iter().any(|end| name.ends_with(end.as_str()));
        if lists
            .harmless
            .iter()
            .any(|innocent| name.ends_with(innocent.as_str()))
        {
            None
        } else if ends(&lists.passwords) {
            Some(RequiredSecretForm::Password)
        } else if lists.exact.contains(&name) || ends(&lists.suffixes) {
            Some(RequiredSecretForm::Random)
        } else {
            None
        }
    }
}

/// Returns a name in lower case with `_` between its words.
fn normalize_name(name: &str) -> String {
    let mut plain = String::with_capacity(name.len() + 4);
    let mut after_small = false;
    for c in name.trim_start_matches('-').chars() {
        if c.is_ascii_uppercase() && after_small {
            plain.push('_');
        }
        after_small = c.is_ascii_lowercase() || c.is_ascii_digit();
        plain.push(match c {
            '-' | '.' | ' ' => '_',
            c => c.to_ascii_lowercase(),
        });
    }
    plain
}

/// Returns the secret values of an environment: those of names such as `*_TOKEN` or `PGPASSWORD` with at least eight
/// characters that are not a path, number, address or word.
pub fn secret_values(env: impl Iterator<Item = (String, String)>) -> Vec<String> {
    let is_secret = |(name, value): &(String, String)| {
        let value = value.trim();
        let is_word = value.len() < MIN_LETTERS_ONLY_LEN
            && value
                .bytes()
                .all(|byte| byte.is_ascii_lowercase() || b"_-".contains(&byte));
        SecretNames::built_in().value_class(name).is_some()
            && value.len() >= MIN_ENV_VALUE_LEN
            && !is_word
            && SecretValueCheck::built_in().is_secret_word(value)
    };
    env.filter(is_secret).map(|(_, value)| value).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(name: &str, value: &str) -> bool {
        !secret_values([(name.to_owned(), value.to_owned())].into_iter()).is_empty()
    }

    #[test]
    fn environment_secrets_are_recognized_by_name_and_value() {
        for (name, value) in [
            ("GITHUB_TOKEN", "abcd1234efgh"),
            ("PGPASSWORD", "Tr0ub4dor&3"),
            ("AWS_SECRET_ACCESS_KEY", "wJalrXUtnFEMI/K7MDENG"),
            ("apiKey", "abcd1234efgh"),
        ] {
            assert!(taken(name, value), "{name}");
        }
        for (name, value) in [
            ("GITHUB_TOKEN", "short"),
            ("GOOGLE_APPLICATION_CREDENTIALS", "/home/a/key.json"),
            ("DB_PASSWORD", "postgres"),
            ("MAX_TOKEN", "100000000"),
            ("USE_TOKEN", "false"),
            ("CACHE_KEY", "linux-abc123def"),
            ("HOME", "abcd1234efgh"),
        ] {
            assert!(!taken(name, value), "{name}");
        }
    }
}
