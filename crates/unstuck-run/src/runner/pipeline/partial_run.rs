//! Runs a part of a pipeline: outputs that the selected roles need come from an earlier run.

use std::collections::BTreeSet;

use unstuck_core::PipelineState;
use unstuck_core::event::{OutputReused, RoleInstance};
use unstuck_store::RunFilter;

use super::{PipelineRunner, PipelineSpec};
use crate::runner::error::RunError;

/// Largest number of earlier runs that are searched.
const MAX_RUNS_SEARCHED: usize = 50;

/// A selection of roles to run.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PartialRunSelection {
    /// Roles that are not run; their outputs come from an earlier run.
    pub reused_roles: Vec<String>,
}

impl PartialRunSelection {
    /// Selects one role.
    pub fn only(plan: &mut PipelineSpec, role: &str) -> Self {
        Self::keep_roles(plan, |id, _| id == role)
    }

    /// Selects a role and all roles after it.
    pub fn from(plan: &mut PipelineSpec, role: &str) -> Self {
        let order = topological_order(plan);
        let at = order.iter().position(|id| id == role).unwrap_or(0);
        let later: BTreeSet<String> = order[at..].iter().cloned().collect();
        Self::keep_roles(plan, |id, _| later.contains(id))
    }

    /// Keeps the wanted roles in the plan; outputs that they need from other roles are reused.
    fn keep_roles(plan: &mut PipelineSpec, wanted: impl Fn(&str, &PipelineSpec) -> bool) -> Self {
        let kept: BTreeSet<String> = plan
            .roles
            .iter()
            .map(|role| role.id.clone())
            .filter(|id| wanted(id, plan))
            .collect();
        let is_needed = |id: &String| {
            let mut roles = plan.roles.iter().filter(|role| kept.contains(&role.id));
            roles.any(|role| role.needs.contains(id) || role.prompt.uses_output(id))
        };
        let others = plan.roles.iter().map(|role| &role.id);
        let reused: BTreeSet<String> = others
            .filter(|id| !kept.contains(*id) && is_needed(id))
            .cloned()
            .collect();
        plan.exclude_roles(|id| !kept.contains(id));
        Self {
            reused_roles: reused.into_iter().collect(),
        }
    }
}

/// Returns the roles in an order in which they can run.
fn topological_order(plan: &PipelineSpec) -> Vec<String> {
    let mut order: Vec<String> = Vec::new();
    while order.len() < plan.roles.len() {
        let next = plan.roles.iter().find(|role| {
            let done = |id: &String| order.contains(id);
            !done(&role.id) && role.needs.iter().all(done)
        });
        match next {
            Some(role) => order.push(role.id.clone()),
            // A dependency cycle, which configuration validation rejects.
            None => break,
        }
    }
    order
}

impl PipelineRunner<'_> {
    /// Returns the outputs of roles that are not run, from the newest run that has them.
    pub(super) async fn reused_outputs(
        &self,
        selection: &PartialRunSelection,
    ) -> Result<Vec<OutputReused>, RunError> {
        let mut missing: BTreeSet<&String> = selection.reused_roles.iter().collect();
        let mut found = Vec::new();
        if missing.is_empty() {
            return Ok(found);
        }
        let filter = RunFilter {
            project: Some(self.plan().project.display().to_string()),
            limit: Some(MAX_RUNS_SEARCHED),
            ..RunFilter::default()
        };
        for run in self.store.runs(&filter).await? {
            if run.roles.is_none() {
                continue;
            }
            let events = self.store.load(&run.id).await?;
            let outputs =
                PipelineState::from_events(&events).map(|pipeline| pipeline.available_outputs());
            for (role, names) in outputs.unwrap_or_default() {
                if missing.remove(&role) {
                    let of = |(number, output): (u32, String)| OutputReused {
                        part: RoleInstance {
                            role: role.clone(),
                            iteration: 1,
                            instance: number,
                        },
                        output,
                        from_run: run.id.to_string(),
                    };
                    found.extend((1..).zip(names).map(of));
                }
            }
        }
        match missing.into_iter().next() {
            Some(role) => Err(RunError::NoOutput { role: role.clone() }),
            None => Ok(found),
        }
    }
}
