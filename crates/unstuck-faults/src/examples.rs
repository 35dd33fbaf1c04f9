//! Ready scripts: a rate limit, a brownout, flaky answers, broken streams and connections, a benchmark.

use crate::error::FaultsError;
use crate::script::Script;

/// A ready script.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Example {
    /// Its name.
    pub name: &'static str,
    /// The script, with comments.
    pub text: &'static str,
}

macro_rules! examples {
    ($($name:literal),* $(,)?) => {
        [$(Example { name: $name, text: include_str!(concat!("../data/examples/", $name, ".toml")) }),*]
    };
}

const EXAMPLES: [Example; 6] = examples![
    "rate-limit",
    "brownout",
    "flaky",
    "streams",
    "connections",
    "benchmark",
];

/// The ready scripts.
pub fn all() -> &'static [Example] {
    &EXAMPLES
}

/// The ready script of this name.
pub fn find(name: &str) -> Option<&'static Example> {
    EXAMPLES.iter().find(|example| example.name == name)
}

impl Example {
    /// What it shows, from its first line.
    pub fn summary(&self) -> &'static str {
        let line = self.text.lines().next().unwrap_or_default();
        line.trim_start_matches('#').trim()
    }

    /// The script that it is.
    pub fn script(&self) -> Result<Script, FaultsError> {
        self.text.parse()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_ready_script_can_be_served_and_says_what_it_shows() {
        for example in all() {
            example.script().unwrap();
            assert!(example.text.starts_with("# "), "{}", example.name);
        }
    }
}
