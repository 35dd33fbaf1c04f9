//! Checks of the `[recovery]` permissions.

use unstuck_core::command_policy::OnUnknown;

use crate::config::Config;
use crate::problem::ConfigProblem;

impl Config {
    /// Warns if unlisted commands may run.
    pub(super) fn unlisted_commands_warning(&self) -> Option<ConfigProblem> {
        let section = self.recovery()?;
        (section.on_unknown == OnUnknown::Allow).then(|| {
            let told = "lets plain commands run although nobody listed them";
            self.problem_at("recovery.on_unknown", told)
        })
    }
}
