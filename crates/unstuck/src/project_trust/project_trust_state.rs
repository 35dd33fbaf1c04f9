//! The trust state of a project's repair rules, trusted or not, and its trust record.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use unstuck_config::section::RepairPolicySection;
use unstuck_config::{ProjectRepairPolicy, ProjectTrust, RepairPolicyChange, diff_policies};
use unstuck_core::command_policy::sanitize;
use unstuck_core::watched_files::WatchedFileBaseline;
use unstuck_repair::trust::{TrustStatus, TrustStore, TrustedRepairPolicy};

use super::trust_store;
use crate::config::Config;
use crate::error_report::error_with_hint;
use crate::{clock, environment_variables};

/// A project with its trust record.
pub(crate) struct ProjectWithTrustRecord<'c> {
    pub(crate) config: &'c Config,
    /// Root directory of the project.
    pub(crate) root: PathBuf,
}

/// Trust state of the project's rules.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ProjectTrustState {
    /// The project declares nothing that needs trust.
    NothingDeclared,
    /// Trusted because the user trusts all projects.
    TrustsAll,
    /// Trusted explicitly.
    Trusted,
    /// Not trusted.
    Untrusted(TrustStatus),
}

impl ProjectTrustState {
    /// Converts to the trust value used by the policy.
    pub(crate) fn as_project_trust(&self) -> ProjectTrust {
        match self {
            Self::NothingDeclared | Self::TrustsAll | Self::Trusted => ProjectTrust::Trusted,
            Self::Untrusted(_) => ProjectTrust::Untrusted,
        }
    }
}

impl<'c> ProjectWithTrustRecord<'c> {
    pub(crate) fn new(config: &'c Config, root: &Path) -> Self {
        Self {
            config,
            root: root.to_owned(),
        }
    }

    /// Returns the trust state of the project's rules.
    pub(crate) fn trust_state(&self) -> ProjectTrustState {
        let Some(said) = self.config.project_recovery() else {
            return ProjectTrustState::NothingDeclared;
        };
        if self.config.trusts_projects() {
            return ProjectTrustState::TrustsAll;
        }
        let standing = match trust_store() {
            Some(trust) => trust.status(&self.root, &said.hash()),
            None => TrustStatus::NeverTrusted,
        };
        match standing {
            TrustStatus::Trusted => ProjectTrustState::Trusted,
            _ if !self.config.is_project_wider() => ProjectTrustState::NothingDeclared,
            other => ProjectTrustState::Untrusted(other),
        }
    }

    /// Describes the ignored rules, with the reason and a hint.
    pub(super) fn untrusted_line(&self, standing: &TrustStatus) -> String {
        let files = self.files();
        let why = match standing {
            TrustStatus::Changed { since, .. } => {
                let since = clock::format_time(*since);
                format!("changed since you trusted them ({since})")
            }
            TrustStatus::Declined => "you declined to trust them".to_owned(),
            TrustStatus::NeverTrusted | TrustStatus::Trusted => "not trusted yet".to_owned(),
        };
        format!("repair rules in {files} are ignored: {why} (run `unstuck trust`)")
    }

    /// Returns the project's files that declare repair rules, as display paths.
    pub(crate) fn files(&self) -> String {
        let said = self.config.project_recovery();
        let files = said.map(|said| said.files.as_slice()).unwrap_or_default();
        let names = files.iter().map(|file| self.config.display_path(file));
        let names: Vec<_> = names
            .map(|file| sanitize(&file.display().to_string()))
            .collect();
        names.join(" and ")
    }

    /// Returns the repair rules that apply once the project is trusted.
    pub(crate) fn declared_section(&self) -> Option<RepairPolicySection> {
        self.config.repair_policy(ProjectTrust::Trusted)
    }

    /// Returns the changes that trust brings, compared with the last trusted version or with the untrusted state.
    pub(crate) fn changes(&self, standing: &TrustStatus) -> Vec<RepairPolicyChange> {
        let Some(wanted) = self.declared_section() else {
            return Vec::new();
        };
        let before = match standing {
            TrustStatus::Changed { content, .. } => ProjectRepairPolicy::parse_content(content)
                .map(|said| said.apply_to(&self.config.owner_repair_policy())),
            _ => None,
        };
        let before = before.or_else(|| self.config.repair_policy(ProjectTrust::Untrusted));
        diff_policies(&before.unwrap_or_default(), &wanted)
    }

    /// Records trust in the repair rules and the current watched files.
    pub(crate) fn accept(&self, files: WatchedFileBaseline) -> Result<()> {
        let said = self.config.project_recovery();
        let trusted = said.map(|said| TrustedRepairPolicy {
            hash: said.hash(),
            content: said.content(),
            trusted_at: clock::now().at,
            trusted_by: trusting_user(),
        });
        let accepted = required_trust_store()?.accept(&self.root, trusted, files);
        accepted.context("nothing was trusted")
    }

    /// Records trust in the current settings outside `[recovery]`.
    pub(crate) fn accept_settings(&self) -> Result<()> {
        let hash = super::settings_hash(self.config);
        let accepted = required_trust_store()?.accept_settings(&self.root, &hash);
        accepted.context("nothing was trusted")
    }

    /// Records that trust was declined.
    pub(super) fn decline(&self) -> Result<()> {
        if let Some(said) = self.config.project_recovery() {
            required_trust_store()?.decline(&self.root, &said.hash())?;
        }
        Ok(())
    }

    /// Removes the trust record; returns whether there was one.
    pub(crate) fn forget(&self) -> Result<bool> {
        Ok(required_trust_store()?.forget(&self.root)?)
    }
}

fn required_trust_store() -> Result<TrustStore> {
    trust_store().ok_or_else(|| {
        error_with_hint(
            "cannot locate the state directory: neither XDG_STATE_HOME nor HOME is set",
            "set HOME or XDG_STATE_HOME",
        )
    })
}

/// Returns the name of the trusting user.
fn trusting_user() -> String {
    let name = environment_variables::variable("USER")
        .or_else(|| environment_variables::variable("LOGNAME"));
    let id = rustix::process::getuid().as_raw();
    name.unwrap_or_else(|| format!("user {id}"))
}
