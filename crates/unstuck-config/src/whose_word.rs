//! What of a configuration counts about repairs, by whose word it is.

use crate::config::Config;
use crate::repairs::{Distrusted, ProjectRecovery, ProjectTrust};
use crate::section::{RecoverySection, Sandbox};

impl Config {
    /// What counts about repairs; none if nobody says anything about them.
    ///
    /// Unlike [`Config::recovery`] this knows whose word each value is.
    pub fn repairs(&self, trust: ProjectTrust) -> Option<RecoverySection> {
        self.repair_words.counting(trust)
    }

    /// What the owner's own files alone come to.
    pub fn owners_repairs(&self) -> RecoverySection {
        self.repair_words.owners()
    }

    /// What the owner's own files say about the sandbox of repairs; none if they say nothing.
    pub fn owners_sandbox(&self) -> Option<Sandbox> {
        self.repair_words.owners_sandbox()
    }

    /// What the project's own files say about repairs; none if they say nothing.
    pub fn project_recovery(&self) -> Option<&ProjectRecovery> {
        self.repair_words.project()
    }

    /// Whether the project's word changes anything once it is trusted.
    pub fn project_widens(&self) -> bool {
        self.repairs(ProjectTrust::Trusted) != self.repairs(ProjectTrust::Untrusted)
    }

    /// A file of the owner's that names upstreams for the gateway which do not count; none if there is none.
    pub fn ignored_upstreams(&self) -> Option<&Distrusted> {
        self.repair_words.ignored_upstreams()
    }

    /// Files of the owner's whose permissions are not counted.
    pub fn distrusted(&self) -> &[Distrusted] {
        self.repair_words.distrusted()
    }
}
