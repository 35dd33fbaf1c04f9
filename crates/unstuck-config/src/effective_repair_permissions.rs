//! Returns the repair permissions in effect for a given trust in the project, and the ignored files.

use crate::config::Config;
use crate::section::{RepairPolicySection, SandboxModeSetting};
use crate::trust_layering::{ProjectRepairPolicy, ProjectTrust, UntrustedOwnerFile};

impl Config {
    /// Returns the effective repair permissions; `None` if none are declared.
    ///
    /// Unlike [`Config::recovery`] this takes the trust in each file into account.
    pub fn repair_policy(&self, trust: ProjectTrust) -> Option<RepairPolicySection> {
        self.repair_trust.effective(trust)
    }

    /// Returns the permissions of the owner's own files alone.
    pub fn owner_repair_policy(&self) -> RepairPolicySection {
        self.repair_trust.owner_policy()
    }

    /// Returns the repair sandbox mode set by the owner's own files.
    pub fn owner_sandbox(&self) -> Option<SandboxModeSetting> {
        self.repair_trust.owner_sandbox()
    }

    /// Returns the repair permissions of the project's own files; `None` if there are none.
    pub fn project_recovery(&self) -> Option<&ProjectRepairPolicy> {
        self.repair_trust.project()
    }

    /// Returns whether trusting the project would change anything.
    pub fn is_project_wider(&self) -> bool {
        self.repair_policy(ProjectTrust::Trusted) != self.repair_policy(ProjectTrust::Untrusted)
    }

    /// Returns the owner's file whose gateway upstreams are ignored, if there is one.
    pub fn ignored_upstreams(&self) -> Option<&UntrustedOwnerFile> {
        self.repair_trust.ignored_upstreams()
    }

    /// Returns the owner's files whose permissions are ignored.
    pub fn untrusted_files(&self) -> &[UntrustedOwnerFile] {
        self.repair_trust.untrusted_files()
    }
}
