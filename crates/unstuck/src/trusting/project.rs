//! A project and what is remembered about it.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use unstuck_config::section::RecoverySection;
use unstuck_config::{Change, ProjectRecovery, ProjectTrust, difference};
use unstuck_core::guard::show;
use unstuck_core::guard_files::Baseline;
use unstuck_repair::trust::{Standing, Trust, Trusted};

use super::store;
use crate::config::Config;
use crate::report::hinted;
use crate::{clock, environment};

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
        let standing = match store() {
            Some(trust) => trust.standing(&self.root, &said.hash()),
            None => Standing::Unknown,
        };
        match standing {
            Standing::Trusted => Word::Trusted,
            _ if !self.config.project_widens() => Word::Nothing,
            other => Word::Not(other),
        }
    }

    /// What does not count, why, and what to do.
    pub(super) fn line(&self, standing: &Standing) -> String {
        let files = self.files();
        let why = match standing {
            Standing::Changed { since, .. } => {
                let since = clock::shown(*since);
                format!("it has changed since it was trusted ({since})")
            }
            Standing::Declined => "you did not trust it".to_owned(),
            Standing::Unknown | Standing::Trusted => "nobody has trusted it".to_owned(),
        };
        format!(
            "what {files} allows to repair does not count: {why}. `unstuck trust` shows it and trusts it"
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

    /// Remembers that what else the project's files say is trusted as it is now.
    pub(crate) fn accept_settings(&self) -> Result<()> {
        let hash = super::settings_hash(self.config);
        let accepted = memory()?.accept_settings(&self.root, &hash);
        accepted.context("nothing was trusted")
    }

    /// Remembers that the project's word is not wanted.
    pub(super) fn decline(&self) -> Result<()> {
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

fn memory() -> Result<Trust> {
    store().ok_or_else(|| {
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
