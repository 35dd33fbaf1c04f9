//! A warning about risky repair permissions in `[recovery]`.

use unstuck_core::command_policy::OnUnlistedCommand;

use crate::config::Config;
use crate::problem::ConfigProblem;

impl Config {
    /// Warns if unlisted commands may run.
    pub(super) fn unlisted_commands_warning(&self) -> Option<ConfigProblem> {
        let section = self.recovery()?;
        (section.on_unknown == OnUnlistedCommand::Allow).then(|| {
            let told = "runs unlisted simple commands without approval";
            self.problem_at("recovery.on_unknown", told)
        })
    }
}
