//! Whether what the project's own files say about repairs counts here, and asking about it once.

mod ask;
mod view;

pub(crate) use ask::ask_trust;
pub(crate) use view::{Shown, allowed};

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use unstuck_config::section::RecoverySection;
use unstuck_config::{Change, ProjectRecovery, ProjectTrust, difference};
use unstuck_core::guard::show;
use unstuck_core::guard_files::Baseline;
use unstuck_repair::trust::{Standing, Trust, Trusted};

use crate::config::Config;
use crate::report::hinted;
use crate::{clock, environment};

/// What counts about repairs here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Repairs {
    /// What may be done; none if nobody says anything about it.
    pub(crate) section: Option<RecoverySection>,
    /// The files whose permissions do not count because nobody has trusted them.
    pub(crate) untrusted: Option<String>,
    /// The guard files as they were accepted.
    pub(crate) accepted: Baseline,
    /// What the person should know, one line each.
    pub(crate) lines: Vec<String>,
}

/// A project and what is remembered about it.
pub(crate) struct Project<'c> {
    pub(crate) config: &'c Config,
    /// Its root folder.
    pub(crate) root: PathBuf,
}

/// Whether the project's word counts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Word {
    /// It says nothing, or nothing that its owner would have to trust.
    Nothing,
    /// It counts because the user trusts all projects.
    Always,
    /// It counts because it was trusted.
    Trusted,
    /// It does not count.
    Not(Standing),
}

impl Word {
    /// Whether all of it counts.
    pub(crate) fn trust(&self) -> ProjectTrust {
        match self {
            Self::Nothing | Self::Always | Self::Trusted => ProjectTrust::Trusted,
            Self::Not(_) => ProjectTrust::Untrusted,
        }
    }
}

/// What counts about repairs in a project at this moment. Asks nobody.
pub(crate) fn repairs(config: &Config, root: &Path) -> Repairs {
    Project::new(config, root).repairs()
}

impl<'c> Project<'c> {
    pub(crate) fn new(config: &'c Config, root: &Path) -> Self {
        Self {
            config,
            root: root.to_owned(),
        }
    }

    /// Whether the project's word counts.
    pub(crate) fn word(&self) -> Word {
        let Some(said) = self.config.project_recovery() else {
            return Word::Nothing;
        };
        if self.config.trusts_projects() {
            return Word::Always;
        }
        let standing = match remembered() {
            Some(trust) => trust.standing(&self.root, &said.hash()),
            None => Standing::Unknown,
        };
        match standing {
            Standing::Trusted => Word::Trusted,
            _ if !self.config.project_widens() => Word::Nothing,
            other => Word::Not(other),
        }
    }

    fn repairs(&self) -> Repairs {
        let word = self.word();
        let mut lines: Vec<_> = self
            .config
            .distrusted()
            .iter()
            .map(ToString::to_string)
            .collect();
        let untrusted = match &word {
            Word::Not(standing) => {
                let line = self.line(standing);
                lines.push(line);
                Some(self.files())
            }
            _ => None,
        };
        Repairs {
            section: self.config.repairs(word.trust()),
            untrusted,
            accepted: self.accepted(),
            lines,
        }
    }

    /// What does not count, why, and what to do.
    fn line(&self, standing: &Standing) -> String {
        let files = self.files();
        let why = match standing {
            Standing::Changed { since, .. } => {
                format!(
                    "it has changed since it was trusted ({})",
                    clock::shown(*since)
                )
            }
            Standing::Declined => "you did not trust it".to_owned(),
            Standing::Unknown | Standing::Trusted => "nobody has trusted it yet".to_owned(),
        };
        format!(
            "what {files} allows in [recovery] does not count: {why}; `unstuck trust` shows and trusts it"
        )
    }

    /// The project's files that say something about repairs, as people here write them.
    pub(crate) fn files(&self) -> String {
        let said = self.config.project_recovery();
        let files = said.map(|said| said.files.as_slice()).unwrap_or_default();
        let names = files.iter().map(|file| self.config.shown(file));
        let names: Vec<_> = names
            .map(|file| show(&file.display().to_string()))
            .collect();
        names.join(" and ")
    }

    /// The guard files as they were accepted.
    pub(crate) fn accepted(&self) -> Baseline {
        remembered()
            .map(|trust| trust.files(&self.root))
            .unwrap_or_default()
    }

    /// What counts about repairs if the project's word is trusted.
    pub(crate) fn wanted(&self) -> Option<RecoverySection> {
        self.config.repairs(ProjectTrust::Trusted)
    }

    /// What trust changes: against what was trusted before, or against what counts without it.
    pub(crate) fn changes(&self, standing: &Standing) -> Vec<Change> {
        let Some(wanted) = self.wanted() else {
            return Vec::new();
        };
        let before = match standing {
            Standing::Changed { content, .. } => ProjectRecovery::said_in(content)
                .map(|said| said.over(&self.config.owners_repairs())),
            _ => None,
        };
        let before = before.or_else(|| self.config.repairs(ProjectTrust::Untrusted));
        difference(&before.unwrap_or_default(), &wanted)
    }

    /// Remembers that the project's word is trusted, and the guard files as they are.
    pub(crate) fn accept(&self, files: Baseline) -> Result<()> {
        let said = self.config.project_recovery();
        let trusted = said.map(|said| Trusted {
            hash: said.hash(),
            content: said.content(),
            at: clock::now().at,
            by: by(),
        });
        let accepted = memory()?.accept(&self.root, trusted, files);
        accepted.context("nothing was trusted")
    }

    /// Remembers that the project's word is not wanted.
    fn decline(&self) -> Result<()> {
        if let Some(said) = self.config.project_recovery() {
            memory()?.decline(&self.root, &said.hash())?;
        }
        Ok(())
    }

    /// Forgets the project; whether there was something to forget.
    pub(crate) fn forget(&self) -> Result<bool> {
        Ok(memory()?.forget(&self.root)?)
    }
}

/// What was trusted, if there is a place for it.
fn remembered() -> Option<Trust> {
    environment::state_folder().map(|folder| Trust::open(&folder))
}

fn memory() -> Result<Trust> {
    remembered().ok_or_else(|| {
        hinted(
            "there is no place to remember it: neither XDG_STATE_HOME nor HOME is set",
            "set one of them to a folder of yours",
        )
    })
}

/// Who trusts.
fn by() -> String {
    let name = environment::variable("USER").or_else(|| environment::variable("LOGNAME"));
    let id = rustix::process::getuid().as_raw();
    name.unwrap_or_else(|| format!("user {id}"))
}
