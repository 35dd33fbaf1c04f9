//! What each layer says about repairs, and what of it counts.

use std::fmt;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use sha2::{Digest, Sha256};

use super::narrow::narrowed;
use super::said::RecoverySaid;
use crate::section::{RecoverySection, Sandbox};
use crate::spelling::Faults;
use crate::tree::{Table, decode};

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
pub(crate) enum Class {
    /// The owner's own.
    Owner,
    /// The project's: whoever works in it can have written it.
    Project,
    /// It should be the owner's, but others can have written it.
    Distrusted(Distrusted),
}

/// A file of the owner's that others can have written. It allows nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Distrusted {
    /// The file.
    pub file: PathBuf,
    /// What is wrong with it.
    pub why: String,
    /// What to do about it.
    pub hint: String,
}

impl fmt::Display for Distrusted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { file, why, hint } = self;
        let file = file.display();
        write!(f, "{file} {why}, so what it allows does not count; {hint}")
    }
}

/// What the project's own files say about repairs.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ProjectRecovery {
    /// What they say.
    pub said: RecoverySaid,
    /// The files.
    pub files: Vec<PathBuf>,
}

impl ProjectRecovery {
    /// What is trusted: the values in one form, which no comment and no order changes.
    pub fn content(&self) -> String {
        serde_json::to_string(&self.said.canonical()).unwrap_or_default()
    }

    /// The SHA-256 of that, in hexadecimal digits.
    pub fn hash(&self) -> String {
        sha256(self.content().as_bytes())
    }

    /// What such a content said; none if it is none.
    pub fn said_in(content: &str) -> Option<RecoverySaid> {
        serde_json::from_str(content).ok()
    }
}

pub(super) fn sha256(bytes: &[u8]) -> String {
    let digest = Sha256::digest(bytes);
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// What all layers say about repairs, each by itself.
#[derive(Debug, Default)]
pub(crate) struct RepairWords {
    owner: Option<RecoverySaid>,
    project: Option<ProjectRecovery>,
    /// Both, in the order of the layers.
    both: Option<RecoverySaid>,
    suspect: Option<RecoverySaid>,
    distrusted: Vec<Distrusted>,
    ignored_upstreams: Option<Distrusted>,
}

/// The one section that is looked at.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Only {
    recovery: Option<RecoverySaid>,
}

impl RepairWords {
    /// What counts; none if nobody says anything.
    pub(crate) fn counting(&self, trust: ProjectTrust) -> Option<RecoverySection> {
        let said = self.both.as_ref().or(self.suspect.as_ref())?;
        let built_in = RecoverySection::default();
        let section = match (&self.both, &self.project, trust) {
            (None, ..) => built_in,
            (Some(_), Some(project), ProjectTrust::Untrusted) => {
                narrowed(&self.owners(), &project.said)
            }
            (Some(_), ..) => said.over(&built_in),
        };
        let suspect = self.suspect.as_ref();
        Some(suspect.map_or(section.clone(), |suspect| narrowed(&section, suspect)))
    }

    /// What the owner's own files alone come to.
    pub(crate) fn owners(&self) -> RecoverySection {
        let owner = self.owner.clone().unwrap_or_default();
        owner.over(&RecoverySection::default())
    }

    /// What the owner's own files say about the sandbox; none if they say nothing.
    pub(crate) fn owners_sandbox(&self) -> Option<Sandbox> {
        self.owner.as_ref()?.sandbox
    }

    /// What the project's own files say.
    pub(crate) fn project(&self) -> Option<&ProjectRecovery> {
        self.project.as_ref()
    }

    /// The files of the owner's that allow nothing.
    pub(crate) fn distrusted(&self) -> &[Distrusted] {
        &self.distrusted
    }

    /// Remembers a file that allows nothing.
    /// A file of the owner's that names upstreams which do not count.
    pub(crate) fn ignored_upstreams(&self) -> Option<&Distrusted> {
        self.ignored_upstreams.as_ref()
    }

    pub(crate) fn ignore_upstreams(&mut self, file: Distrusted) {
        self.ignored_upstreams = Some(file);
    }

    pub(crate) fn distrust(&mut self, file: Distrusted) {
        self.distrusted.push(file);
    }

    /// Takes in what one file says, the first one first; what is wrong with it approves nothing.
    pub(crate) fn hear(&mut self, class: &Class, file: &Path, tree: &Table) -> Faults {
        if let Class::Distrusted(fault) = class {
            self.distrust(fault.clone());
        }
        let Some(entry) = tree.entry("recovery") else {
            return Faults::new();
        };
        let mut alone = Table(vec![entry.clone()]);
        let (Only { recovery }, faults) = decode::read::<Only>(&mut alone);
        let said = match faults.is_empty() {
            true => recovery.unwrap_or_default(),
            false => RecoverySaid::closed(),
        };
        match class {
            Class::Distrusted(_) => lay(&mut self.suspect, said),
            Class::Owner => {
                lay(&mut self.owner, said.clone());
                lay(&mut self.both, said);
            }
            Class::Project => {
                let project = self.project.get_or_insert_default();
                project.files.push(file.to_owned());
                project.said = std::mem::take(&mut project.said).then(said.clone());
                lay(&mut self.both, said);
            }
        }
        faults
    }
}

fn lay(below: &mut Option<RecoverySaid>, said: RecoverySaid) {
    *below = Some(below.take().unwrap_or_default().then(said));
}
