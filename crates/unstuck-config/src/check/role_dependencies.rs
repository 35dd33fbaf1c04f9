//! Checks of the dependencies of roles: every one exists and there is no cycle.

use std::collections::BTreeMap;

use super::{ConfigChecker, unknown_name};
use crate::section::RoleSection;

impl ConfigChecker<'_> {
    pub(super) fn check_order(&mut self) {
        let roles = self.config.roles();
        for role in roles {
            for (at, need) in role.needs.iter().enumerate() {
                if !self.config.has_role(need) {
                    let others = roles.iter().filter(|other| other.id != role.id);
                    let text = unknown_name("role", need, others.map(|other| other.id.as_str()));
                    self.report(&format!("role.{}.needs.{}", role.id, at + 1), text);
                }
            }
        }
        if let Some(circle) = find_cycle(roles) {
            let text = format!("dependency cycle: {}", circle.join(" → "));
            self.report(&format!("role.{}.needs", circle[0]), text);
        }
    }
}

/// Returns a dependency cycle, its first role repeated at the end.
fn find_cycle(roles: &[RoleSection]) -> Option<Vec<String>> {
    let mut walk = CycleSearch {
        needs: roles
            .iter()
            .map(|role| (role.id.as_str(), role.needs.as_slice()))
            .collect(),
        state: BTreeMap::new(),
        path: Vec::new(),
    };
    roles.iter().find_map(|role| walk.visit(&role.id))
}

#[derive(Clone, Copy, PartialEq)]
enum VisitState {
    InProgress,
    Done,
}

struct CycleSearch<'r> {
    needs: BTreeMap<&'r str, &'r [String]>,
    state: BTreeMap<&'r str, VisitState>,
    path: Vec<&'r str>,
}

impl<'r> CycleSearch<'r> {
    fn visit(&mut self, id: &'r str) -> Option<Vec<String>> {
        match self.state.get(id) {
            Some(VisitState::Done) => return None,
            Some(VisitState::InProgress) => {
                let start = self.path.iter().position(|one| *one == id)?;
                let circle = self.path[start..].iter().chain([&id]);
                return Some(circle.map(|id| (*id).to_owned()).collect());
            }
            None => {}
        }
        self.state.insert(id, VisitState::InProgress);
        self.path.push(id);
        let needs = self.needs.get(id).copied().unwrap_or_default();
        let found = needs.iter().find_map(|need| self.visit(need));
        self.path.pop();
        self.state.insert(id, VisitState::Done);
        found
    }
}
