//! A catalog of all replies by name, for the command line and for error messages.

use std::sync::LazyLock;

use serde::Deserialize;
use unstuck_core::nearest;

/// A reply with its description.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FaultReplyDescription {
    /// Name in a script.
    pub name: String,
    /// Effect on the client, in one line.
    #[serde(rename = "about")]
    pub summary: String,
    /// Example step with all its values.
    pub step: String,
}

#[derive(Deserialize)]
struct FaultCatalog {
    fault: Vec<FaultReplyDescription>,
}

// A test compares it with all replies, so it cannot be wrong in a release.
static FAULTS: LazyLock<Vec<FaultReplyDescription>> = LazyLock::new(|| {
    let catalog: Result<FaultCatalog, _> = toml::from_str(include_str!("../data/faults.toml"));
    catalog.map(|catalog| catalog.fault).unwrap_or_default()
});

/// Returns every reply that a script can name.
pub fn faults() -> &'static [FaultReplyDescription] {
    &FAULTS
}

pub(crate) fn find(name: &str) -> Option<&'static FaultReplyDescription> {
    FAULTS.iter().find(|fault| fault.name == name)
}

/// Returns the error message for an unknown reply.
pub(crate) fn unknown_fault_message(name: &str) -> String {
    let known = FAULTS.iter().map(|fault| (fault.name.as_str(), fault));
    let meant = nearest(name, known)
        .map(|fault| format!("; did you mean `{}`?", fault.step))
        .unwrap_or_default();
    let all: Vec<_> = FAULTS.iter().map(|fault| fault.name.as_str()).collect();
    format!(
        "unknown reply `{name}`{meant}\nvalid replies: {}",
        all.join(", ")
    )
}
