//! The repair permissions of each layer, and the effective ones.

use std::fmt;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use sha2::{Digest, Sha256};

use super::declared_policy::DeclaredRepairPolicy;
use super::intersect::intersect;
use crate::key_aliases::ValueErrors;
use crate::section::{RepairPolicySection, SandboxModeSetting};
use crate::value_tree::{Table, decode};

/// The trust in the project's repair permissions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProjectTrust {
    /// Trusted by the owner: all of them apply.
    Trusted,
    /// Not trusted: only those that tighten the policy apply.
    Untrusted,
}

/// The trust in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum FileTrust {
    /// The owner's own file.
    Owner,
    /// A project file: anyone who works in the project may have written it.
    Project,
    /// An owner's file that others may have written.
    Untrusted(UntrustedOwnerFile),
}

/// An owner's file that others may have written; it grants no permissions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UntrustedOwnerFile {
    /// The file.
    pub file: PathBuf,
    /// The problem with its permissions.
    pub reason: String,
    /// The advice.
    pub hint: String,
}

impl fmt::Display for UntrustedOwnerFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            file,
            reason: why,
            hint,
        } = self;
        let file = file.display();
        write!(f, "{file} {why}, so what it allows is ignored; {hint}")
    }
}

/// The repair permissions of the project's own files.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ProjectRepairPolicy {
    /// The declared permissions.
    pub declared: DeclaredRepairPolicy,
    /// The files.
    pub files: Vec<PathBuf>,
}

impl ProjectRepairPolicy {
    /// Returns the trusted content: the values in canonical form, independent of comments and order.
    pub fn content(&self) -> String {
        serde_json::to_string(&self.declared.canonical()).unwrap_or_default()
    }

    /// Returns the SHA-256 of the content in hex.
    pub fn hash(&self) -> String {
        sha256(self.content().as_bytes())
    }

    /// Parses such content; `None` if it is invalid.
    pub fn parse_content(content: &str) -> Option<DeclaredRepairPolicy> {
        serde_json::from_str(content).ok()
    }
}

pub(super) fn sha256(bytes: &[u8]) -> String {
    let digest = Sha256::digest(bytes);
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The declared repair permissions of all layers.
#[derive(Debug, Default)]
pub(crate) struct LayeredRepairPolicy {
    owner: Option<DeclaredRepairPolicy>,
    project: Option<ProjectRepairPolicy>,
    /// Both, merged in the order of the layers.
    merged: Option<DeclaredRepairPolicy>,
    suspect: Option<DeclaredRepairPolicy>,
    untrusted: Vec<UntrustedOwnerFile>,
    ignored_upstreams: Option<UntrustedOwnerFile>,
}

/// The only section that is read.
#[derive(Default, Deserialize)]
#[serde(default)]
struct RecoveryOnly {
    recovery: Option<DeclaredRepairPolicy>,
}

impl LayeredRepairPolicy {
    /// Returns the effective permissions; `None` if none are declared.
    pub(crate) fn effective(&self, trust: ProjectTrust) -> Option<RepairPolicySection> {
        let said = self.merged.as_ref().or(self.suspect.as_ref())?;
        let built_in = RepairPolicySection::default();
        let section = match (&self.merged, &self.project, trust) {
            (None, ..) => built_in,
            (Some(_), Some(project), ProjectTrust::Untrusted) => {
                intersect(&self.owner_policy(), &project.declared)
            }
            (Some(_), ..) => said.apply_to(&built_in),
        };
        let suspect = self.suspect.as_ref();
        Some(suspect.map_or(section.clone(), |suspect| intersect(&section, suspect)))
    }

    /// Returns the permissions of the owner's own files alone.
    pub(crate) fn owner_policy(&self) -> RepairPolicySection {
        let owner = self.owner.clone().unwrap_or_default();
        owner.apply_to(&RepairPolicySection::default())
    }

    /// Returns the sandbox mode set by the owner's own files.
    pub(crate) fn owner_sandbox(&self) -> Option<SandboxModeSetting> {
        self.owner.as_ref()?.sandbox
    }

    /// Returns the permissions of the project's own files.
    pub(crate) fn project(&self) -> Option<&ProjectRepairPolicy> {
        self.project.as_ref()
    }

    /// Returns the owner's files that grant no permissions.
    pub(crate) fn untrusted_files(&self) -> &[UntrustedOwnerFile] {
        &self.untrusted
    }

    /// Returns the owner's file with upstreams that are ignored.
    pub(crate) fn ignored_upstreams(&self) -> Option<&UntrustedOwnerFile> {
        self.ignored_upstreams.as_ref()
    }

    pub(crate) fn ignore_upstreams(&mut self, file: UntrustedOwnerFile) {
        self.ignored_upstreams = Some(file);
    }

    pub(crate) fn add_untrusted(&mut self, file: UntrustedOwnerFile) {
        self.untrusted.push(file);
    }

    /// Adds the declarations of a file in layer order; unreadable ones grant nothing.
    pub(crate) fn add_file(&mut self, class: &FileTrust, file: &Path, tree: &Table) -> ValueErrors {
        if let FileTrust::Untrusted(fault) = class {
            self.add_untrusted(fault.clone());
        }
        let Some(entry) = tree.entry("recovery") else {
            return ValueErrors::new();
        };
        let mut alone = Table(vec![entry.clone()]);
        let (RecoveryOnly { recovery }, faults) = decode::decode_table::<RecoveryOnly>(&mut alone);
        let said = if faults.is_empty() {
            recovery.unwrap_or_default()
        } else {
            DeclaredRepairPolicy::deny_all()
        };
        match class {
            FileTrust::Untrusted(_) => merge_into(&mut self.suspect, said),
            FileTrust::Owner => {
                merge_into(&mut self.owner, said.clone());
                merge_into(&mut self.merged, said);
            }
            FileTrust::Project => {
                let project = self.project.get_or_insert_default();
                project.files.push(file.to_owned());
                project.declared = std::mem::take(&mut project.declared).merged_with(said.clone());
                merge_into(&mut self.merged, said);
            }
        }
        faults
    }
}

fn merge_into(below: &mut Option<DeclaredRepairPolicy>, said: DeclaredRepairPolicy) {
    *below = Some(below.take().unwrap_or_default().merged_with(said));
}
