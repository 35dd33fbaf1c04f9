//! Redacts JSON values and command lines, using key and flag names.

use serde_json::{Map, Value as Json};

use super::built_in_secret_patterns::SecretPatternFile;
use super::key_names::SecretNames;
use super::secret_or_harmless::SecretValueCheck;
use super::{Redactor, marker, rank_name};

impl Redactor {
    /// Redacts every string of a value, including those that only their key identifies as secret.
    pub fn redact_value(&self, value: &mut Json) {
        self.redact_under(None, value);
    }

    /// Redacts a command line, including the value after `--api-key` and the like.
    pub fn redact_command(&self, command: &[String]) -> Vec<String> {
        let mut flag = None;
        let mut redacted = Vec::with_capacity(command.len());
        for word in command {
            let mut text = word.clone();
            self.redact_text(flag, &mut text);
            redacted.push(text);
            flag = as_flag(word);
        }
        redacted
    }

    fn redact_under(&self, key: Option<&str>, value: &mut Json) {
        match value {
            Json::String(text) => self.redact_text(key, text),
            Json::Array(items) => self.redact_items(key, items),
            Json::Object(fields) => {
                self.redact_keys(fields);
                for (key, value) in fields {
                    self.redact_under(Some(key), value);
                }
            }
            Json::Null | Json::Bool(_) | Json::Number(_) => {}
        }
    }

    /// Redacts an array, which may be a command line.
    fn redact_items(&self, key: Option<&str>, items: &mut [Json]) {
        let mut flag: Option<String> = None;
        for item in items {
            let next = item.as_str().and_then(as_flag).map(str::to_owned);
            self.redact_under(flag.as_deref().or(key), item);
            flag = next;
        }
    }

    fn redact_text(&self, key: Option<&str>, text: &mut String) {
        let wanted = key.and_then(|key| SecretNames::built_in().value_class(key));
        let is_marked = !marker::find_markers(text.as_bytes()).is_empty();
        if let Some(wanted) = wanted.filter(|_| !is_marked)
            && !text.contains(char::is_whitespace)
            && SecretValueCheck::built_in().is_secret(wanted, text.as_bytes())
        {
            *text = marker::marker_for(rank_name(SecretPatternFile::built_in().rank("secret")));
        } else if let std::borrow::Cow::Owned(redacted) = self.redact(text) {
            *text = redacted;
        }
    }

    fn redact_keys(&self, fields: &mut Map<String, Json>) {
        if fields.keys().any(|key| self.contains_secret(key)) {
            let renamed = std::mem::take(fields).into_iter();
            *fields = renamed
                .map(|(key, value)| (self.redact(&key).into_owned(), value))
                .collect();
        }
    }
}

/// Returns the name of a long flag whose value is the next word.
fn as_flag(word: &str) -> Option<&str> {
    word.strip_prefix("--").filter(|name| !name.contains('='))
}
