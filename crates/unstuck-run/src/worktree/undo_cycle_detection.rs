//! Detects roles that undo each other's work: the work tree returns to an earlier state repeatedly.

/// The change of the work tree by one role.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RoleTreeChange {
    /// The role.
    pub role: String,
    /// The tree before.
    pub before: String,
    /// The tree after.
    pub after: String,
}

/// A cycle of roles that undo each other's work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RoleUndoCycle {
    /// The roles in the order of their first step.
    pub roles: Vec<String>,
    /// Number of times the work tree returned to an earlier state.
    pub returns: usize,
    /// The last two states of the cycle; [`SnapshotStore::changed_files`](super::SnapshotStore::changed_files) returns
    /// the files in which they differ.
    pub between: (String, String),
}

/// Finds roles that undo each other: by the end of these steps, at least two different roles returned the work tree to
/// an earlier state. Steps without changes are ignored.
pub fn find_undo_cycle(steps: &[RoleTreeChange]) -> Option<RoleUndoCycle> {
    let steps: Vec<&RoleTreeChange> = steps
        .iter()
        .filter(|step| step.before != step.after)
        .collect();
    let is_return = |index: usize| {
        let after = &steps[index].after;
        steps[..index].iter().any(|step| step.before == *after)
    };
    let returns = (0..steps.len())
        .rev()
        .take_while(|index| is_return(*index))
        .count();
    let circle = &steps[steps.len() - returns..];
    let last = circle.last()?;
    if circle.iter().all(|step| step.role == last.role) {
        return None;
    }
    let begin = steps
        .iter()
        .position(|step| circle.iter().any(|back| back.after == step.before))?;
    let mut roles: Vec<String> = Vec::new();
    for step in &steps[begin..] {
        if !roles.contains(&step.role) {
            roles.push(step.role.clone());
        }
    }
    Some(RoleUndoCycle {
        roles,
        returns,
        between: (last.before.clone(), last.after.clone()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(steps: &[&str]) -> Option<RoleUndoCycle> {
        let step = |text: &&str| {
            let words: Vec<&str> = text.split(' ').collect();
            RoleTreeChange {
                role: words[0].into(),
                before: words[1].into(),
                after: words[2].into(),
            }
        };
        find_undo_cycle(&steps.iter().map(step).collect::<Vec<_>>())
    }

    #[test]
    fn two_roles_that_undo_each_other_are_found() {
        let circle = found(&["coder x y", "reviewer y x", "coder x y"]).unwrap();
        assert_eq!(circle.roles, ["coder", "reviewer"]);
        assert_eq!(
            (circle.returns, circle.between),
            (2, ("x".into(), "y".into()))
        );
        let with_pauses = [
            "planner a b",
            "coder b c",
            "tester c c",
            "reviewer c b",
            "coder b c",
        ];
        assert_eq!(found(&with_pauses).unwrap().roles, ["coder", "reviewer"]);
        let three = found(&["a x y", "b y z", "c z x", "a x y"]).unwrap();
        assert_eq!((three.roles.len(), three.returns), (3, 2));
    }

    #[test]
    fn steady_progress_is_not_a_cycle() {
        assert_eq!(found(&[]), None);
        assert_eq!(
            found(&["coder x y", "reviewer y x"]),
            None,
            "once may be right"
        );
        assert_eq!(
            found(&["coder x y", "coder y x", "coder x y"]),
            None,
            "one role alone"
        );
        assert_eq!(
            found(&["a x y", "b y x", "a x y", "b y z"]),
            None,
            "it is over"
        );
        assert_eq!(found(&["a x x", "b x x", "a x x"]), None, "nothing changes");
    }
}
