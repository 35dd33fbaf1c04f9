//! Detects a run inside a supervised agent, which must not approve its own actions.
//!
//! Every supervised process carries variables of unstuck and descends from a reaper. A process that clears the
//! variables still has ancestors that carry them, and a process that detaches itself becomes a child of the reaper. An
//! agent that has more rights than unstuck, or that creates a PID namespace of its own in which no ancestor is visible,
//! is not detected. Outside of Linux the variables of ancestors cannot be read, and a process that detaches itself
//! loses the reaper as an ancestor.

use crate::os_processes::process_table;
use crate::process::REAPER_COOKIE;
use crate::reaper::{REAPER_ARG, cgroup};

/// Variables that supervised processes carry.
const SUPERVISION_VARIABLES: [&str; 3] = ["UNSTUCK_RUN", "UNSTUCK_SESSION", REAPER_COOKIE];

/// Variable that is set for a child if unstuck retries it.
pub(crate) const OUTER_RETRIES_VARIABLE: &str = "UNSTUCK_OUTER_RETRIES";

/// Upper limit of the ancestors that are read, against cycles.
const MAX_ANCESTORS: usize = 4096;

/// The evidence that this program runs inside a supervised agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NestingEvidence {
    /// A process carries a variable of unstuck.
    Variable {
        /// Name of the variable.
        name: String,
        /// Id of the process that carries it: this one or an ancestor.
        pid: u32,
    },
    /// The process descends from a reaper of unstuck.
    Reaper {
        /// Process id of the reaper.
        pid: u32,
    },
    /// The process is in a cgroup created by unstuck.
    Group,
}

impl std::fmt::Display for NestingEvidence {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Variable { name, pid } if *pid == std::process::id() => {
                write!(f, "{name} is set")
            }
            Self::Variable { name, pid } => write!(f, "{name} is set in ancestor process {pid}"),
            Self::Reaper { pid } => write!(f, "ancestor process {pid} is an unstuck reaper"),
            Self::Group => f.write_str("this process is in an unstuck cgroup"),
        }
    }
}

/// Returns the evidence that this program runs inside a supervised agent, or `None`.
pub fn detect_nested_run() -> Option<NestingEvidence> {
    let pid = std::process::id();
    let is_set = |name: &&str| std::env::var_os(name).is_some();
    let carried = SUPERVISION_VARIABLES.into_iter().find(is_set);
    carried
        .map(|name| NestingEvidence::Variable {
            name: name.to_owned(),
            pid,
        })
        .or_else(|| ancestors(pid).into_iter().find_map(nesting_evidence))
        .or_else(|| cgroup::is_inside_reaper_cgroup().then_some(NestingEvidence::Group))
}

/// Returns true if another unstuck runs this program and retries it when it fails.
///
/// The variable alone is not enough: a terminal opened by an agent still has it long after that run has ended.
pub fn is_retried_by_outer() -> bool {
    std::env::var_os(OUTER_RETRIES_VARIABLE).is_some()
        && ancestors(std::process::id())
            .into_iter()
            .any(|pid| process_table::has_first_argument(pid, REAPER_ARG))
}

/// Returns a process and all its ancestors.
fn ancestors(pid: u32) -> Vec<u32> {
    let mut found = vec![pid];
    let mut here = pid;
    while let Some(entry) = process_table::find_process(here).filter(|entry| entry.parent != 0) {
        here = entry.parent;
        if found.contains(&here) || found.len() > MAX_ANCESTORS {
            break;
        }
        found.push(here);
    }
    found
}

fn nesting_evidence(pid: u32) -> Option<NestingEvidence> {
    let carried = process_table::environment_names(pid);
    let is_set = |name: &&str| carried.iter().any(|one| one == name.as_bytes());
    match SUPERVISION_VARIABLES.into_iter().find(is_set) {
        Some(name) => Some(NestingEvidence::Variable {
            name: name.to_owned(),
            pid,
        }),
        // A detached process still has the reaper as an ancestor.
        None if process_table::has_first_argument(pid, REAPER_ARG) => {
            Some(NestingEvidence::Reaper { pid })
        }
        None => None,
    }
}
