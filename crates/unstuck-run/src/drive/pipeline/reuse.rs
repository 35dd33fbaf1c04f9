//! Running a part of a pipeline: what the selected roles build on comes from an earlier run.

use std::collections::BTreeSet;

use unstuck_core::Pipeline;
use unstuck_core::event::{OutputReused, Part};
use unstuck_store::RunFilter;

use super::{Conductor, Plan};
use crate::drive::error::RunError;

/// So many earlier runs are looked through.
const RUNS: usize = 50;

/// Which roles are run.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Selection {
    /// The roles that are left out, and whose outputs come from an earlier run.
    pub reused: Vec<String>,
}

impl Selection {
    /// Only one role.
    pub fn only(plan: &mut Plan, role: &str) -> Self {
        Self::keep(plan, |id, _| id == role)
    }

    /// A role and all that come after it.
    pub fn from(plan: &mut Plan, role: &str) -> Self {
        let order = order(plan);
        let at = order.iter().position(|id| id == role).unwrap_or(0);
        let later: BTreeSet<String> = order[at..].iter().cloned().collect();
        Self::keep(plan, |id, _| later.contains(id))
    }

    /// Keeps some roles in the plan; of the others those that are needed are reused.
    fn keep(plan: &mut Plan, wanted: impl Fn(&str, &Plan) -> bool) -> Self {
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
        plan.leave_out(|id| !kept.contains(id));
        Self {
            reused: reused.into_iter().collect(),
        }
    }
}

/// The roles in an order in which they can be run.
fn order(plan: &Plan) -> Vec<String> {
    let mut order: Vec<String> = Vec::new();
    while order.len() < plan.roles.len() {
        let next = plan.roles.iter().find(|role| {
            let done = |id: &String| order.contains(id);
            !done(&role.id) && role.needs.iter().all(done)
        });
        match next {
            Some(role) => order.push(role.id.clone()),
            // A circle, which the configuration's check refuses.
            None => break,
        }
    }
    order
}

impl Conductor<'_> {
    /// The outputs of roles that are not run, from the newest run that has them.
    pub(super) async fn reused(
        &self,
        selection: &Selection,
    ) -> Result<Vec<OutputReused>, RunError> {
        let mut missing: BTreeSet<&String> = selection.reused.iter().collect();
        let mut found = Vec::new();
        if missing.is_empty() {
            return Ok(found);
        }
        let filter = RunFilter {
            project: Some(self.plan().project.display().to_string()),
            limit: Some(RUNS),
            ..RunFilter::default()
        };
        for run in self.store.runs(&filter).await? {
            if run.roles.is_none() {
                continue;
            }
            let events = self.store.load(&run.id).await?;
            let outputs = Pipeline::fold(&events).map(|pipeline| pipeline.outputs());
            for (role, names) in outputs.unwrap_or_default() {
                if missing.remove(&role) {
                    let of = |(number, output): (u32, String)| OutputReused {
                        part: Part {
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
