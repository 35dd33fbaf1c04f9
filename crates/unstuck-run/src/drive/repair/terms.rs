//! What the owner's configuration says about repairs, as far as it counts now.

use std::path::PathBuf;

use unstuck_core::guard::Rules;
use unstuck_repair::sandbox::Demand;

/// What the owner's configuration says about repairs, as far as it counts now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RepairTerms {
    /// Whether what may run by itself does.
    pub mode: RepairMode,
    /// What may run.
    pub rules: Rules,
    /// The file whose approvals do not count because nobody has trusted it.
    pub untrusted: Option<String>,
    /// Whether repairs are confined.
    pub sandbox: Demand,
    /// Whether they reach the network.
    pub network: bool,
    /// What of the project they may write to; all of it where nothing is named.
    pub write_paths: Vec<PathBuf>,
    /// Variables of the owner's environment that they see beside the usual ones.
    pub env_keep: Vec<String>,
    /// Whether changed files that decide what a command does make it ask.
    pub guard_files: bool,
}

/// Whether what may run by itself does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum RepairMode {
    /// It does.
    #[default]
    Auto,
    /// A person is asked about each.
    Ask,
}
