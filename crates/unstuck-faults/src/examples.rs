//! Example scripts: a rate limit, a brownout, flaky answers, broken streams and connections, a benchmark.

use crate::error::FaultServerError;
use crate::script::FaultScript;

/// An example script.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExampleFaultScript {
    /// Name of the example.
    pub name: &'static str,
    /// Script text with comments.
    pub text: &'static str,
}

macro_rules! examples {
    ($($name:literal),* $(,)?) => {
        [$(ExampleFaultScript { name: $name, text: include_str!(concat!("../data/examples/", $name, ".toml")) }),*]
    };
}

const EXAMPLES: [ExampleFaultScript; 6] = examples![
    "rate-limit",
    "brownout",
    "flaky",
    "streams",
    "connections",
    "benchmark",
];

/// Returns all example scripts.
pub fn all() -> &'static [ExampleFaultScript] {
    &EXAMPLES
}

/// Returns the example script of this name.
pub fn find(name: &str) -> Option<&'static ExampleFaultScript> {
    EXAMPLES.iter().find(|example| example.name == name)
}

impl ExampleFaultScript {
    /// Returns a summary from the first line of the script.
    pub fn summary(&self) -> &'static str {
        let line = self.text.lines().next().unwrap_or_default();
        line.trim_start_matches('#').trim()
    }

    /// Parses the script.
    pub fn script(&self) -> Result<FaultScript, FaultServerError> {
        self.text.parse()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_example_script_is_valid_and_has_a_summary() {
        for example in all() {
            example.script().unwrap();
            assert!(example.text.starts_with("# "), "{}", example.name);
        }
    }
}
