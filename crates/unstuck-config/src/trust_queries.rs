//! What of a configuration counts about repairs, by whose word it is.

use crate::config::Config;
use crate::section::{RecoverySection, Sandbox};
use crate::trust_layering::{ProjectRecovery, ProjectTrust, UntrustedFile};

impl Config {
    /// What counts about repairs; none if nobody says anything about them.
    ///
    /// Unlike [`Config::recovery`] this knows whose word each value is.
    pub fn repair_policy(&self, trust: ProjectTrust) -> Option<RecoverySection> {
        self.repair_trust.effective(trust)
    }

    /// What the owner's own files alone come to.
    pub fn owner_repair_policy(&self) -> RecoverySection {
        self.repair_trust.owner_policy()
    }

    /// What the owner's own files say about the sandbox of repairs; none if they say nothing.
    pub fn owner_sandbox(&self) -> Option<Sandbox> {
        self.repair_trust.owner_sandbox()
    }

    /// What the project's own files say about repairs; none if they say nothing.
    pub fn project_recovery(&self) -> Option<&ProjectRecovery> {
        self.repair_trust.project()
    }

    /// Whether the project's word changes anything once it is trusted.
    pub fn is_project_wider(&self) -> bool {
        self.repair_policy(ProjectTrust::Trusted) != self.repair_policy(ProjectTrust::Untrusted)
    }

    /// A file of the owner's that names upstreams for the gateway which do not count; none if there is none.
    pub fn ignored_upstreams(&self) -> Option<&UntrustedFile> {
        self.repair_trust.ignored_upstreams()
    }

    /// Files of the owner's whose permissions are not counted.
    pub fn untrusted_files(&self) -> &[UntrustedFile] {
        self.repair_trust.untrusted_files()
    }
}
