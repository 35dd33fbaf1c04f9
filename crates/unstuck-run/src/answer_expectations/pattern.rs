//! Regular expressions that an answer must match.

use std::fmt;
use std::str::FromStr;

use regex::Regex;
use serde::{Deserialize, Serialize};

/// A regular expression that must match; it is serialized as its text.
#[derive(Clone, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ExpectedPattern(Regex);

impl ExpectedPattern {
    /// Returns its text.
    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }

    /// Returns the error if it does not match.
    pub(super) fn check(&self, text: &str) -> Option<String> {
        let is_found = self.0.is_match(text);
        (!is_found).then(|| format!("The output does not match the pattern {}", self.as_str()))
    }
}

impl FromStr for ExpectedPattern {
    type Err = regex::Error;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Regex::new(text).map(Self)
    }
}

impl TryFrom<String> for ExpectedPattern {
    type Error = regex::Error;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl From<ExpectedPattern> for String {
    fn from(pattern: ExpectedPattern) -> Self {
        pattern.as_str().to_owned()
    }
}

impl PartialEq for ExpectedPattern {
    fn eq(&self, other: &Self) -> bool {
        self.as_str() == other.as_str()
    }
}

impl fmt::Debug for ExpectedPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), f)
    }
}
