//! Forges with the URLs of their tarballs, and mirrors of hosts, as data (`data/hosts.toml`).

use serde::Deserialize;

/// The known forges and mirrors.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ForgesAndMirrors {
    /// Forges and their tarball URLs; the first match applies.
    pub forge: Vec<Forge>,
    /// Mirrors of the same content.
    pub mirror: Vec<MirrorUrlRule>,
    /// Packages that contain commands, where the names differ.
    pub package: std::collections::BTreeMap<String, String>,
}

/// A code forge and the URL of its tarballs.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Forge {
    /// Parts of a host name by which it is recognized; empty means every host.
    pub hosts: Vec<String>,
    /// The URL of a tarball: a template over `host`, `path`, `repo` and `branch`.
    pub archive: String,
}

/// A mirror of the same content.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MirrorUrlRule {
    /// A regular expression for the URLs it mirrors.
    pub from: String,
    /// The mirror's URL, with `$1`, `$2` … from the expression.
    pub to: String,
}
