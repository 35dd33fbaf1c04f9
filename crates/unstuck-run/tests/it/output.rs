//! Tests that a child's output arrives unchanged.

use tokio::sync::watch;
use unstuck_run::process::{AttemptStopRequest, OutputSink, ProcessSpec, Stdin};

use crate::support::{Memory, run, supervisor};

#[tokio::test]
async fn output_arrives_unchanged_and_in_order() {
    let script = "i=0; while [ $i -lt 500 ]; do echo out$i; echo err$i >&2; i=$((i+1)); done; printf '\\377\\000x'";
    let (_keep, stop) = watch::channel(AttemptStopRequest::Continue);
    let mut memory = Memory::default();
    let ended = supervisor()
        .run(
            &ProcessSpec::shell(script),
            &mut Stdin::null(),
            &mut memory,
            stop,
        )
        .await
        .unwrap();
    let lines = |word: &str| -> String { (0..500).map(|i| format!("{word}{i}\n")).collect() };
    let mut expected = lines("out").into_bytes();
    expected.extend_from_slice(b"\xff\0x");
    assert_eq!(memory.stdout, expected);
    assert_eq!(memory.stderr, lines("err").into_bytes());
    assert_eq!(ended.stdout.bytes(), expected);
    assert_eq!(ended.stderr.text(), lines("err"));
    assert!(memory.pid.is_some());
}

#[tokio::test]
async fn child_that_closes_its_output_early_runs_to_its_end() {
    let ended = run(&ProcessSpec::shell(
        "echo said; exec >&- 2>&-; sleep 0.1; exit 5",
    ))
    .await;
    assert_eq!(ended.status.code(), 5);
    assert_eq!(ended.stdout.text(), "said\n");
}

#[tokio::test]
async fn grandchild_that_keeps_the_output_open_causes_no_delay() {
    let ended = run(&ProcessSpec::shell("sleep 1000 & echo done")).await;
    assert_eq!(ended.stdout.text(), "done\n");
    assert_eq!(ended.leftover_count, 1);
}

#[tokio::test]
async fn run_can_be_a_spawned_task() {
    let tasks = tokio::task::LocalSet::new();
    let task = tasks.spawn_local(async { run(&ProcessSpec::shell("echo task")).await });
    let ended = tasks.run_until(task).await.unwrap();
    assert_eq!(ended.stdout.text(), "task\n");
}

struct Count(u64);

impl OutputSink for Count {
    fn on_stdout(&mut self, bytes: &[u8]) {
        self.0 += bytes.len() as u64;
    }
    fn on_stderr(&mut self, _bytes: &[u8]) {}
}

/// Returns the peak memory usage of this process, in KiB.
fn peak() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status
        .lines()
        .find(|line| line.starts_with("VmHWM:"))
        .unwrap();
    line.split_ascii_whitespace()
        .nth(1)
        .unwrap()
        .parse()
        .unwrap()
}

#[tokio::test]
async fn large_output_needs_no_more_memory_than_small_output() {
    let mut supervisor = supervisor();
    let mut peaks = Vec::new();
    for size in ["1M", "200M"] {
        let (_keep, stop) = watch::channel(AttemptStopRequest::Continue);
        let spec = ProcessSpec::shell(format!("yes | head -c {size}"));
        let mut count = Count(0);
        let ended = supervisor
            .run(&spec, &mut Stdin::null(), &mut count, stop)
            .await
            .unwrap();
        assert_eq!(ended.stdout.total(), count.0);
        peaks.push(peak());
    }
    // Other tests may share this process; they do not need 16 MiB either.
    assert!(peaks[1].saturating_sub(peaks[0]) < 16 * 1024, "{peaks:?}");
}
