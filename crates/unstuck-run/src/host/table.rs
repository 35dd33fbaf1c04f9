//! Reads the table of processes in `/proc`.

use std::collections::HashMap;
use std::os::unix::ffi::OsStrExt;

/// One line of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) pid: u32,
    pub(crate) parent: u32,
    pub(crate) group: u32,
    pub(crate) session: u32,
    pub(crate) state: u8,
    pub(crate) started: u64,
}

impl Entry {
    /// Whether it has ended and only waits for its parent to ask how.
    pub(crate) fn is_dead(&self) -> bool {
        matches!(self.state, b'Z' | b'X')
    }
}

/// The line of one process, if there is such a process.
pub(crate) fn entry(pid: u32) -> Option<Entry> {
    let text = std::fs::read(format!("/proc/{pid}/stat")).ok()?;
    parse(&String::from_utf8_lossy(&text))
}

/// Every process that is in the table now.
pub(crate) fn all() -> Vec<Entry> {
    pids().filter_map(entry).collect()
}

/// Every living process that has the given one as parent, grandparent and so on.
pub(crate) fn descendants(ancestor: u32) -> Vec<Entry> {
    let mut children: HashMap<u32, Vec<Entry>> = HashMap::new();
    for entry in all() {
        children.entry(entry.parent).or_default().push(entry);
    }
    let mut found = Vec::new();
    let mut open = vec![ancestor];
    while let Some(parent) = open.pop() {
        let below = children.remove(&parent).unwrap_or_default();
        open.extend(below.iter().map(|entry| entry.pid));
        found.extend(below.into_iter().filter(|entry| !entry.is_dead()));
    }
    found
}

/// Every living process whose environment holds exactly this `NAME=value`.
pub(crate) fn with_variable(assignment: &[u8]) -> Vec<Entry> {
    let holds = |pid: &u32| {
        std::fs::read(format!("/proc/{pid}/environ"))
            .is_ok_and(|text| text.split(|byte| *byte == 0).any(|one| one == assignment))
    };
    pids()
        .filter(holds)
        .filter_map(entry)
        .filter(|entry| !entry.is_dead())
        .collect()
}

fn pids() -> impl Iterator<Item = u32> {
    let names = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    names.filter_map(|name| {
        let name = name.file_name();
        std::str::from_utf8(name.as_bytes()).ok()?.parse().ok()
    })
}

/// The name of the program may hold spaces and brackets, so the fields are counted from the last bracket.
fn parse(line: &str) -> Option<Entry> {
    let (pid, _) = line.split_once(' ')?;
    let (_, rest) = line.rsplit_once(')')?;
    let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
    Some(Entry {
        pid: pid.parse().ok()?,
        state: *fields.first()?.as_bytes().first()?,
        parent: fields.get(1)?.parse().ok()?,
        group: fields.get(2)?.parse().ok()?,
        session: fields.get(3)?.parse().ok()?,
        started: fields.get(19)?.parse().ok()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_brackets_and_spaces_does_not_shift_the_fields() {
        let line = "42 (a) b (c) S 7 41 40 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 999 0 0";
        let entry = parse(line).unwrap();
        assert_eq!((entry.pid, entry.state, entry.parent), (42, b'S', 7));
        assert_eq!((entry.group, entry.session, entry.started), (41, 40, 999));
    }

    #[test]
    fn a_cut_line_is_nobody() {
        assert_eq!(parse("42 (a) S 7"), None);
        assert_eq!(parse(""), None);
    }

    #[test]
    fn the_table_knows_this_process() {
        let own = entry(std::process::id()).unwrap();
        assert!(all().iter().any(|entry| entry.pid == own.pid));
        assert!(!own.is_dead());
    }
}
