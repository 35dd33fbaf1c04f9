//! Parses one line of the output of `ps`.

use jiff::civil::DateTime;
use jiff::tz::TimeZone;

use super::entry::ProcessEntry;

/// Parses number, parent, group, state and start time, the last in English and in UTC.
pub(super) fn parse(line: &str, session_of: impl Fn(u32) -> Option<u32>) -> Option<ProcessEntry> {
    let words: Vec<&str> = line.split_ascii_whitespace().collect();
    let [pid, parent, group, state, _weekday, start @ ..] = words.as_slice() else {
        return None;
    };
    let pid = pid.parse().ok()?;
    Some(ProcessEntry {
        pid,
        parent: parent.parse().ok()?,
        group: group.parse().ok()?,
        session: session_of(pid).unwrap_or(0),
        state: *state.as_bytes().first()?,
        started: parse_start_time(&start.join(" "))?,
    })
}

/// Parses a start time as seconds since 1970.
fn parse_start_time(start: &str) -> Option<u64> {
    let moment = DateTime::strptime("%b %d %H:%M:%S %Y", start).ok()?;
    let moment = TimeZone::UTC.to_timestamp(moment).ok()?;
    u64::try_from(moment.as_second()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Option<ProcessEntry> {
        parse(line, |pid| Some(pid - 2))
    }

    #[test]
    fn line_has_number_parent_group_and_start_time() {
        let entry = read("  502   341   500 Ss+  Mon Nov 16 12:52:48 2026    ").unwrap();
        assert_eq!((entry.pid, entry.parent, entry.group), (502, 341, 500));
        assert_eq!((entry.session, entry.state), (500, b'S'));
        assert_eq!(entry.started, 1_794_833_568);
        assert!(!entry.is_zombie());
    }

    #[test]
    fn start_times_differ_by_the_second() {
        let earlier = read("7 1 7 S Fri Nov  6 09:05:01 2026").unwrap();
        let later = read("7 1 7 S Fri Nov  6 09:05:02 2026").unwrap();
        assert_eq!(later.started - earlier.started, 1);
    }

    #[test]
    fn zombie_is_dead() {
        let entry = read("502 341 500 Z+ Mon Nov 16 12:52:48 2026").unwrap();
        assert!(entry.is_zombie());
    }

    #[test]
    fn truncated_or_foreign_line_is_not_a_process() {
        for line in [
            "",
            "502 341 500 S",
            "502 341 500 S Mon Nov 16",
            "502 341 500 S lun. 16 nov. 12:52:48 2026",
            "ps: illegal option -- z",
        ] {
            assert_eq!(read(line), None, "{line}");
        }
    }
}
