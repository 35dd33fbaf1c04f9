//! The process table: from `/proc` on Linux, from `ps` elsewhere.

mod entry;
#[cfg(target_os = "linux")]
mod proc;
#[cfg(not(target_os = "linux"))]
mod ps;
#[cfg(any(test, not(target_os = "linux")))]
mod ps_line;

use std::collections::HashMap;

pub(crate) use entry::ProcessEntry;
#[cfg(target_os = "linux")]
pub(crate) use proc::{
    all_processes, environment_names, find_process, has_first_argument, processes_with_variable,
};
#[cfg(not(target_os = "linux"))]
pub(crate) use ps::{
    all_processes, environment_names, find_process, has_first_argument, processes_with_variable,
};

/// Returns every living descendant of a process.
pub(crate) fn descendants(ancestor: u32) -> Vec<ProcessEntry> {
    let mut children: HashMap<u32, Vec<ProcessEntry>> = HashMap::new();
    for entry in all_processes() {
        children.entry(entry.parent).or_default().push(entry);
    }
    let mut found = Vec::new();
    let mut open = vec![ancestor];
    while let Some(parent) = open.pop() {
        let below = children.remove(&parent).unwrap_or_default();
        open.extend(below.iter().map(|entry| entry.pid));
        found.extend(below.into_iter().filter(|entry| !entry.is_zombie()));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn process_table_contains_this_process() {
        let own = find_process(std::process::id()).unwrap();
        assert!(all_processes().iter().any(|entry| entry.pid == own.pid));
        assert!(!own.is_zombie());
    }
}
