//! What processes use of the processor and of the memory, as the system tells it.

use std::fs;
use std::path::Path;
use std::process::Child;
use std::time::Duration;

use anyhow::{Context, Result, ensure};

/// In these the system counts the time of processes: hundredths of a second.
const TICKS: f64 = 100.0;
/// How often a process is looked at.
const POLL_INTERVAL: Duration = Duration::from_millis(10);

/// The seconds of processor time that all processes used that were started from here, at any depth, and waited for.
pub(crate) fn cpu_of_children() -> Result<f64> {
    cpu_times("/proc/self/stat", 13)
}

/// Two times of such a file, the second after the first.
fn cpu_times(file: &str, at: usize) -> Result<f64> {
    let text = fs::read_to_string(file)?;
    // The name in parentheses may hold anything.
    let (_, fields) = text.rsplit_once(')').context("no end of the name")?;
    let mut fields = fields.split_whitespace().skip(at);
    let mut next = || -> Result<f64> { Ok(fields.next().context("too few fields")?.parse()?) };
    Ok((next()? + next()?) / TICKS)
}

/// The seconds of processor time that the threads of a process have used that it still has, to the nanosecond.
pub(crate) fn cpu_of(process: u32) -> Result<f64> {
    let mut nanos = 0.0;
    for thread in fs::read_dir(format!("/proc/{process}/task"))? {
        let text = fs::read_to_string(thread?.path().join("schedstat"))?;
        let used = text.split_whitespace().next();
        nanos += used.context("no time in schedstat")?.parse::<f64>()?;
    }
    Ok(nanos / 1e9)
}

/// The memory of a process, in MB; what it shares with others counts in part.
pub(crate) fn own_memory(process: u32) -> f64 {
    megabytes(&format!("/proc/{process}/smaps_rollup"), "Pss:")
}

/// The most memory that was used at one time, in MB.
#[derive(Debug, Default)]
pub(crate) struct PeakMemory {
    /// By the process itself.
    pub(crate) peak: f64,
    /// By the process and those of the same program below it; what several share counts once.
    pub(crate) shared: f64,
}

/// Looks at a process until it ends.
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
    ensure!(status.success(), "it ended with {status}");
    Ok(memory)
}

/// The memory of a process and of those below it that run the same program.
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

/// A figure of such a file; nothing where the process is gone.
fn megabytes(file: &str, name: &str) -> f64 {
    let text = fs::read_to_string(Path::new(file)).unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    let kilobytes = line.and_then(|line| line.trim().strip_suffix(" kB"));
    kilobytes
        .and_then(|number| number.trim().parse::<f64>().ok())
        .unwrap_or(0.0)
        / 1024.0
}

#[expect(clippy::disallowed_methods, reason = "it looks again and again")]
fn pause() {
    std::thread::sleep(POLL_INTERVAL);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_and_processor_time_can_be_told() {
        let own = std::process::id();
        assert!(megabytes("/proc/self/status", "VmHWM:") > 0.5);
        assert!(tree_memory(own) > 0.5);
        assert!(cpu_of_children().is_ok_and(|seconds| seconds >= 0.0));
    }
}
