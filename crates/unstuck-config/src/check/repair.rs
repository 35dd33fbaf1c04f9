//! What `[recovery]` allows.

use unstuck_core::guard::Rules;

use super::Check;
use crate::config::Config;
use crate::problem::Problem;

impl Check<'_> {
    /// Entries in which there is nothing to see: then nothing of the section counts.
    pub(super) fn repair(&mut self) {
        let rules = self.config.recovery().map(|section| section.rules());
        if let Some(Err(error)) = rules {
            self.tell(&format!("recovery.{}", error.key), error.problem);
        }
    }
}

impl Config {
    /// What may not be meant as it stands.
    pub(super) fn about_repair(&self) -> Vec<Problem> {
        let rules = self.recovery().and_then(|section| section.rules().ok());
        let warnings = rules.as_ref().map(Rules::warnings).unwrap_or_default();
        let told = warnings.iter();
        told.map(|one| self.problem_at(&format!("recovery.{}", one.key), one.says.as_str()))
            .collect()
    }
}
