//! What `[recovery]` allows.

use unstuck_core::guard::OnUnknown;

use crate::config::Config;
use crate::problem::Problem;

impl Config {
    /// That commands run which nobody listed.
    pub(super) fn allowance(&self) -> Option<Problem> {
        let section = self.recovery()?;
        (section.on_unknown == OnUnknown::Allow).then(|| {
            let told = "lets plain commands run although nobody listed them";
            self.problem_at("recovery.on_unknown", told)
        })
    }
}
