//! Regular expressions in data files.

use regex::Regex;
use serde::Deserialize;

/// A regular expression.
#[derive(Debug, Clone, Deserialize)]
#[serde(try_from = "String")]
pub(super) struct RegexPattern(pub(super) Regex);

impl TryFrom<String> for RegexPattern {
    type Error = regex::Error;

    fn try_from(text: String) -> Result<Self, regex::Error> {
        Regex::new(&text).map(Self)
    }
}
