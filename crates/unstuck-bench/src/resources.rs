//! CPU and memory use of processes, as reported by the system.
#![expect(clippy::disallowed_methods, reason = "files of the kernel in /proc")]

use std::fs;
use std::path::Path;
use std::process::Child;
use std::time::Duration;

use anyhow::{Context, Result, ensure};

/// Clock ticks per second in the system's process times.
const TICKS: f64 = 100.0;
/// Polling interval for a process.
const POLL_INTERVAL: Duration = Duration::from_millis(10);

/// Returns the CPU seconds of all descendants that were waited for.
pub(crate) fn cpu_of_children() -> Result<f64> {
    cpu_times("/proc/self/stat", 13)
}

/// Returns the sum of two adjacent times in such a file.
fn cpu_times(file: &str, at: usize) -> Result<f64> {
    let text = fs::read_to_string(file)?;
    // The name in parentheses may contain anything.
    let (_, fields) = text
        .rsplit_once(')')
        .context("no closing parenthesis after the name")?;
    let mut fields = fields.split_whitespace().skip(at);
    let mut next = || -> Result<f64> { Ok(fields.next().context("too few fields")?.parse()?) };
    Ok((next()? + next()?) / TICKS)
}

/// Returns the CPU seconds of a process's live threads, with nanosecond precision.
pub(crate) fn cpu_of(process: u32) -> Result<f64> {
    let mut nanos = 0.0;
    for thread in fs::read_dir(format!("/proc/{process}/task"))? {
        let text = fs::read_to_string(thread?.path().join("schedstat"))?;
        let used = text.split_whitespace().next();
        nanos += used.context("schedstat has no CPU time")?.parse::<f64>()?;
    }
    Ok(nanos / 1e9)
}

/// Returns the memory of a process in MB, with its proportional share of shared memory.
pub(crate) fn own_memory(process: u32) -> f64 {
    megabytes(&format!("/proc/{process}/smaps_rollup"), "Pss:")
}

/// The peak memory in MB.
#[derive(Debug, Default)]
pub(crate) struct PeakMemory {
    /// Peak of the process itself.
    pub(crate) peak: f64,
    /// Peak of the process and its descendants of the same program; shared memory is counted once.
    pub(crate) shared: f64,
}

/// Monitors a process until it ends.
pub(crate) fn watch_memory(mut child: Child) -> Result<PeakMemory> {
    let mut memory = PeakMemory::default();
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break status;
        }
        let peak = megabytes(&format!("/proc/{}/status", child.id()), "VmHWM:");
        memory.peak = memory.peak.max(peak);
        memory.shared = memory.shared.max(tree_memory(child.id()));
        pause();
    };
    ensure!(status.success(), "process failed with {status}");
    Ok(memory)
}

/// Returns the memory of a process and its descendants of the same program.
fn tree_memory(process: u32) -> f64 {
    let same = descendants(process).into_iter().filter(|other| {
        let program = |process: u32| fs::read_link(format!("/proc/{process}/exe")).ok();
        program(*other) == program(process)
    });
    let all = same.chain([process]);
    all.map(|process| megabytes(&format!("/proc/{process}/smaps_rollup"), "Pss:"))
        .sum()
}

fn descendants(process: u32) -> Vec<u32> {
    let tasks = fs::read_dir(format!("/proc/{process}/task"));
    let lists = tasks
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|task| fs::read_to_string(task.path().join("children")).ok());
    let numbers = lists.flat_map(|list| {
        let numbers = list.split_whitespace().map(|number| number.parse().ok());
        numbers.flatten().collect::<Vec<u32>>()
    });
    numbers.collect()
}

/// Returns a value of such a file; zero if the process is gone.
fn megabytes(file: &str, name: &str) -> f64 {
    let text = fs::read_to_string(Path::new(file)).unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    let kilobytes = line.and_then(|line| line.trim().strip_suffix(" kB"));
    kilobytes
        .and_then(|number| number.trim().parse::<f64>().ok())
        .unwrap_or(0.0)
        / 1024.0
}

#[expect(clippy::disallowed_methods, reason = "polls repeatedly")]
fn pause() {
    std::thread::sleep(POLL_INTERVAL);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_and_cpu_time_are_available() {
        let own = std::process::id();
        assert!(megabytes("/proc/self/status", "VmHWM:") > 0.5);
        assert!(tree_memory(own) > 0.5);
        assert!(cpu_of_children().is_ok_and(|seconds| seconds >= 0.0));
    }
}
