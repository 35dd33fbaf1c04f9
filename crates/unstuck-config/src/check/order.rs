//! In which order roles can run: that each finds what it needs, and none waits for itself.

use std::collections::BTreeMap;

use super::{Check, unknown};
use crate::section::Role;

impl Check<'_> {
    pub(super) fn order(&mut self) {
        let roles = self.config.roles();
        for role in roles {
            for (at, need) in role.needs.iter().enumerate() {
                if !self.config.knows_role(need) {
                    let others = roles.iter().filter(|other| other.id != role.id);
                    let text = unknown("role", need, others.map(|other| other.id.as_str()));
                    self.tell(&format!("role.{}.needs.{}", role.id, at + 1), text);
                }
            }
        }
        if let Some(circle) = circle(roles) {
            let text = format!("these roles wait for each other: {}", circle.join(" → "));
            self.tell(&format!("role.{}.needs", circle[0]), text);
        }
    }
}

/// Roles that wait for each other, the first one again at the end.
fn circle(roles: &[Role]) -> Option<Vec<String>> {
    let mut walk = Walk {
        needs: roles
            .iter()
            .map(|role| (role.id.as_str(), role.needs.as_slice()))
            .collect(),
        state: BTreeMap::new(),
        way: Vec::new(),
    };
    roles.iter().find_map(|role| walk.from(&role.id))
}

#[derive(Clone, Copy, PartialEq)]
enum State {
    OnTheWay,
    Done,
}

struct Walk<'r> {
    needs: BTreeMap<&'r str, &'r [String]>,
    state: BTreeMap<&'r str, State>,
    way: Vec<&'r str>,
}

impl<'r> Walk<'r> {
    fn from(&mut self, id: &'r str) -> Option<Vec<String>> {
        match self.state.get(id) {
            Some(State::Done) => return None,
            Some(State::OnTheWay) => {
                let start = self.way.iter().position(|one| *one == id)?;
                let circle = self.way[start..].iter().chain([&id]);
                return Some(circle.map(|id| (*id).to_owned()).collect());
            }
            None => {}
        }
        self.state.insert(id, State::OnTheWay);
        self.way.push(id);
        let needs = self.needs.get(id).copied().unwrap_or_default();
        let found = needs.iter().find_map(|need| self.from(need));
        self.way.pop();
        self.state.insert(id, State::Done);
        found
    }
}
