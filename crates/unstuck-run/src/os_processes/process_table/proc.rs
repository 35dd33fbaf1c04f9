//! Reads the process table from `/proc`.
#![expect(
    clippy::disallowed_methods,
    reason = "files of the system, which no agent can put there"
)]

use std::os::unix::ffi::OsStrExt;

use super::entry::ProcessEntry;

/// Returns the entry of a process, if it exists.
pub(crate) fn find_process(pid: u32) -> Option<ProcessEntry> {
    let text = std::fs::read(format!("/proc/{pid}/stat")).ok()?;
    parse_stat_line(&String::from_utf8_lossy(&text))
}

/// Returns all processes.
pub(crate) fn all_processes() -> Vec<ProcessEntry> {
    pids().filter_map(find_process).collect()
}

/// Returns every living process whose environment contains exactly this `NAME=value`.
pub(crate) fn processes_with_variable(assignment: &[u8]) -> Vec<ProcessEntry> {
    let holds = |pid: &u32| {
        std::fs::read(format!("/proc/{pid}/environ"))
            .is_ok_and(|text| text.split(|byte| *byte == 0).any(|one| one == assignment))
    };
    pids()
        .filter(holds)
        .filter_map(find_process)
        .filter(|entry| !entry.is_zombie())
        .collect()
}

/// Returns the variable names of a process's initial environment, if it is readable.
pub(crate) fn environment_names(pid: u32) -> Vec<Vec<u8>> {
    let text = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
    text.split(|byte| *byte == 0)
        .filter_map(|one| one.split(|byte| *byte == b'=').next())
        .map(<[u8]>::to_vec)
        .collect()
}

/// Returns true if this is the first argument of a process.
pub(crate) fn has_first_argument(pid: u32, argument: &str) -> bool {
    let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    line.split(|byte| *byte == 0).nth(1) == Some(argument.as_bytes())
}

fn pids() -> impl Iterator<Item = u32> {
    let names = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    names.filter_map(|name| {
        let name = name.file_name();
        std::str::from_utf8(name.as_bytes()).ok()?.parse().ok()
    })
}

/// Parses a line; the program name may contain spaces and parentheses, so the fields start after the last parenthesis.
fn parse_stat_line(line: &str) -> Option<ProcessEntry> {
    let (pid, _) = line.split_once(' ')?;
    let (_, rest) = line.rsplit_once(')')?;
    let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
    Some(ProcessEntry {
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
    fn parentheses_and_spaces_in_a_name_do_not_shift_the_fields() {
        let line = "42 (a) b (c) S 7 41 40 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 999 0 0";
        let entry = parse_stat_line(line).unwrap();
        assert_eq!((entry.pid, entry.state, entry.parent), (42, b'S', 7));
        assert_eq!((entry.group, entry.session, entry.started), (41, 40, 999));
    }

    #[test]
    fn truncated_line_is_not_a_process() {
        assert_eq!(parse_stat_line("42 (a) S 7"), None);
        assert_eq!(parse_stat_line(""), None);
    }
}
