//! What each layer says about repairs, and what of it counts.

use std::fmt;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use sha2::{Digest, Sha256};

use super::declared::DeclaredRepairPolicy;
use super::intersect::intersect;
use crate::aliases::ValueErrors;
use crate::section::{RecoverySection, Sandbox};
use crate::spanned::{Table, decode};

/// Whether what the project says about repairs counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProjectTrust {
    /// Its owner has trusted it: all of it counts.
    Trusted,
    /// Nobody has: only what makes it stricter counts.
    Untrusted,
}

/// Whose word a file is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum FileTrust {
    /// The owner's own.
    Owner,
    /// The project's: whoever works in it can have written it.
    Project,
    /// It should be the owner's, but others can have written it.
    Untrusted(UntrustedFile),
}

/// A file of the owner's that others can have written. It allows nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UntrustedFile {
    /// The file.
    pub file: PathBuf,
    /// What is wrong with it.
    pub reason: String,
    /// What to do about it.
    pub hint: String,
}

impl fmt::Display for UntrustedFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            file,
            reason: why,
            hint,
        } = self;
        let file = file.display();
        write!(f, "{file} {why}, so what it allows does not count; {hint}")
    }
}

/// What the project's own files say about repairs.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ProjectRecovery {
    /// What they say.
    pub declared: DeclaredRepairPolicy,
    /// The files.
    pub files: Vec<PathBuf>,
}

impl ProjectRecovery {
    /// What is trusted: the values in one form, which no comment and no order changes.
    pub fn content(&self) -> String {
        serde_json::to_string(&self.declared.canonical()).unwrap_or_default()
    }

    /// The SHA-256 of that, in hexadecimal digits.
    pub fn hash(&self) -> String {
        sha256(self.content().as_bytes())
    }

    /// What such a content said; none if it is none.
    pub fn parse_content(content: &str) -> Option<DeclaredRepairPolicy> {
        serde_json::from_str(content).ok()
    }
}

pub(super) fn sha256(bytes: &[u8]) -> String {
    let digest = Sha256::digest(bytes);
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// What all layers say about repairs, each by itself.
#[derive(Debug, Default)]
pub(crate) struct RepairDeclarations {
    owner: Option<DeclaredRepairPolicy>,
    project: Option<ProjectRecovery>,
    /// Both, in the order of the layers.
    merged: Option<DeclaredRepairPolicy>,
    suspect: Option<DeclaredRepairPolicy>,
    untrusted: Vec<UntrustedFile>,
    ignored_upstreams: Option<UntrustedFile>,
}

/// The one section that is looked at.
#[derive(Default, Deserialize)]
#[serde(default)]
struct RecoveryOnly {
    recovery: Option<DeclaredRepairPolicy>,
}

impl RepairDeclarations {
    /// What counts; none if nobody says anything.
    pub(crate) fn effective(&self, trust: ProjectTrust) -> Option<RecoverySection> {
        let said = self.merged.as_ref().or(self.suspect.as_ref())?;
        let built_in = RecoverySection::default();
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

    /// What the owner's own files alone come to.
    pub(crate) fn owner_policy(&self) -> RecoverySection {
        let owner = self.owner.clone().unwrap_or_default();
        owner.apply_to(&RecoverySection::default())
    }

    /// What the owner's own files say about the sandbox; none if they say nothing.
    pub(crate) fn owner_sandbox(&self) -> Option<Sandbox> {
        self.owner.as_ref()?.sandbox
    }

    /// What the project's own files say.
    pub(crate) fn project(&self) -> Option<&ProjectRecovery> {
        self.project.as_ref()
    }

    /// The files of the owner's that allow nothing.
    pub(crate) fn untrusted_files(&self) -> &[UntrustedFile] {
        &self.untrusted
    }

    /// Remembers a file that allows nothing.
    /// A file of the owner's that names upstreams which do not count.
    pub(crate) fn ignored_upstreams(&self) -> Option<&UntrustedFile> {
        self.ignored_upstreams.as_ref()
    }

    pub(crate) fn ignore_upstreams(&mut self, file: UntrustedFile) {
        self.ignored_upstreams = Some(file);
    }

    pub(crate) fn add_untrusted(&mut self, file: UntrustedFile) {
        self.untrusted.push(file);
    }

    /// Takes in what one file says, the first one first; what is wrong with it approves nothing.
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
