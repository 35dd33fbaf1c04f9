//! All replies by name, and ready scripts: the data that the command line and the errors show.

use std::sync::LazyLock;

use serde::Deserialize;
use unstuck_core::nearest;

use crate::error::FaultsError;
use crate::script::Script;

/// A reply as people look it up.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fault {
    /// The name that it has in a script.
    pub name: String,
    /// What the client meets, in a line.
    pub about: String,
    /// How a step writes it, with all its values.
    pub step: String,
}

/// A ready script.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Example {
    /// Its name.
    pub name: &'static str,
    /// The script, with comments.
    pub text: &'static str,
}

#[derive(Deserialize)]
struct Catalog {
    fault: Vec<Fault>,
}

// The tests of this file read it, so it cannot be wrong in the product.
static FAULTS: LazyLock<Vec<Fault>> = LazyLock::new(|| {
    let catalog: Result<Catalog, _> = toml::from_str(include_str!("../data/faults.toml"));
    catalog.map(|catalog| catalog.fault).unwrap_or_default()
});

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

/// Every reply that a script can name.
pub fn faults() -> &'static [Fault] {
    &FAULTS
}

/// The ready scripts.
pub fn examples() -> &'static [Example] {
    &EXAMPLES
}

/// The ready script of this name.
pub fn example(name: &str) -> Option<&'static Example> {
    EXAMPLES.iter().find(|example| example.name == name)
}

impl Example {
    /// What it shows, from its first line.
    pub fn about(&self) -> &'static str {
        let line = self.text.lines().next().unwrap_or_default();
        line.trim_start_matches('#').trim()
    }

    /// The script that it is.
    pub fn script(&self) -> Result<Script, FaultsError> {
        self.text.parse()
    }
}

pub(crate) fn find(name: &str) -> Option<&'static Fault> {
    FAULTS.iter().find(|fault| fault.name == name)
}

/// The words for a reply that there is not.
pub(crate) fn unknown(name: &str) -> String {
    let known = FAULTS.iter().map(|fault| (fault.name.as_str(), fault));
    let meant = nearest(name, known)
        .map(|fault| format!("; did you mean `{}`?", fault.step))
        .unwrap_or_default();
    let all: Vec<_> = FAULTS.iter().map(|fault| fault.name.as_str()).collect();
    format!(
        "there is no reply `{name}`{meant}\nallowed: {}",
        all.join(", ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_fault_is_written_as_the_catalogue_says_and_none_is_missing() {
        for fault in faults() {
            let script: Script = format!("[[step]]\n{}", fault.step).parse().unwrap();
            assert_eq!(script.steps()[0].reply.name(), fault.name);
        }
        // The enum names all its variants in this error.
        let all = toml::from_str::<toml::Table>("x = 1")
            .unwrap()
            .try_into::<crate::script::Reply>()
            .unwrap_err()
            .to_string();
        let count = all.matches('`').count() / 2 - 1;
        assert_eq!(count, faults().len(), "{all}");
    }

    #[test]
    fn every_ready_script_can_be_served_and_says_what_it_shows() {
        for example in examples() {
            example.script().unwrap();
            assert!(example.text.starts_with("# "), "{}", example.name);
        }
    }
}
