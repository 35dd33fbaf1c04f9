//! All replies by name: the data that the command line and the errors of scripts show.

use std::sync::LazyLock;

use serde::Deserialize;
use unstuck_core::nearest;

/// A reply as people look it up.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FaultDescription {
    /// The name that it has in a script.
    pub name: String,
    /// What the client meets, in a line.
    #[serde(rename = "about")]
    pub summary: String,
    /// How a step writes it, with all its values.
    pub step: String,
}

#[derive(Deserialize)]
struct FaultCatalog {
    fault: Vec<FaultDescription>,
}

// A test reads it against all replies, so it cannot be wrong in the product.
static FAULTS: LazyLock<Vec<FaultDescription>> = LazyLock::new(|| {
    let catalog: Result<FaultCatalog, _> = toml::from_str(include_str!("../data/faults.toml"));
    catalog.map(|catalog| catalog.fault).unwrap_or_default()
});

/// Every reply that a script can name.
pub fn faults() -> &'static [FaultDescription] {
    &FAULTS
}

pub(crate) fn find(name: &str) -> Option<&'static FaultDescription> {
    FAULTS.iter().find(|fault| fault.name == name)
}

/// The words for a reply that there is not.
pub(crate) fn unknown_fault_message(name: &str) -> String {
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
