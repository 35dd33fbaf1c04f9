//! What is known about hosts: where forges keep tarballs, which mirrors exist (`data/hosts.toml`).

use serde::Deserialize;

/// What is known about hosts.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HostKnowledge {
    /// Where forges keep tarballs of repositories; the first that fits counts.
    pub forge: Vec<Forge>,
    /// Other addresses of the same content.
    pub mirror: Vec<Mirror>,
    /// The packages that hold commands, where the names differ.
    pub package: std::collections::BTreeMap<String, String>,
}

/// A kind of forge.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Forge {
    /// Parts of a host's name by which it is recognised; empty means every host.
    pub hosts: Vec<String>,
    /// The address of a tarball: a template over `host`, `failed_path`, `repo` and `branch`.
    pub archive: String,
}

/// Another address of the same content.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Mirror {
    /// A regular expression for addresses that it knows.
    pub from: String,
    /// The other address, with `$1`, `$2` … from the expression.
    pub to: String,
}
