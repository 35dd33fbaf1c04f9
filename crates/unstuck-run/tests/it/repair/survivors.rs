//! Tests that no process of a repair is left behind.

use std::path::Path;

use unstuck_repair::sandbox::{ProcessAccess, SandboxProfile, process_scope};
use unstuck_run::process::ChildExitStatus;
use unstuck_run::repair_execution::RepairError;

use super::support::Place;
use crate::support::{daemon, eventually};

/// Counts the processes of this machine whose command line contains a word.
fn with_word(word: &str) -> usize {
    pids_with(word).count()
}

fn pids_with(word: &str) -> impl Iterator<Item = u32> {
    let names = std::fs::read_dir("/proc").unwrap().flatten();
    let pids = names.filter_map(|name| name.file_name().to_str()?.parse().ok());
    let others = pids.filter(|pid| *pid != std::process::id());
    others.filter(move |pid| line_of(*pid).contains(word))
}

fn line_of(pid: u32) -> String {
    let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    String::from_utf8_lossy(&line).into_owned()
}

/// Returns the reaper above a process.
fn reaper_of(pid: u32) -> u32 {
    let mut pid = pid;
    while !line_of(pid).contains("__reaper") {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
        let (_, fields) = stat.rsplit_once(')').unwrap();
        pid = fields.split_whitespace().nth(1).unwrap().parse().unwrap();
    }
    pid
}

/// Returns a line that leaves a daemon behind which ignores signals, in a directory of this name; it does not list
/// processes.
fn deaf(word: &str) -> String {
    let daemon = daemon(&Path::new(word).join("pid"));
    let (line, _) = daemon.rsplit_once("; kill -0").unwrap();
    format!("mkdir {word}; {line}")
}

/// S3-49: it dies even if double-forked, in its own session, and ignoring SIGTERM.
#[tokio::test]
async fn detached_daemon_that_ignores_signals_dies_with_the_repair() {
    let place = Place::new();
    let word = format!("daemon-{}-", std::process::id());
    assert_eq!(process_scope(&deaf(&word)), ProcessAccess::Own);
    let ran = place.run(&deaf(&word)).await;
    assert_eq!(ran.status, ChildExitStatus::Exited(0), "{ran:#?}");
    assert!(ran.leftover_count >= 1, "{ran:#?}");
    assert_eq!(ran.survivors, 0);
    assert_eq!(with_word(&word), 0);
}

#[tokio::test]
async fn daemon_of_a_process_inspecting_entry_dies_too() {
    let place = Place::new();
    let word = format!("seeing-{}-", std::process::id());
    let line = format!("kill -0 $$; {}", deaf(&word));
    let signals = |profile: &mut SandboxProfile| profile.process_scope = ProcessAccess::Signals;
    let ran = place.run_as(&line, signals).await.unwrap();
    assert_eq!(ran.status, ChildExitStatus::Exited(0), "{ran:#?}");
    assert!(ran.leftover_count >= 1, "{ran:#?}");
    assert_eq!(with_word(&word), 0);
}

#[tokio::test]
async fn fork_bomb_is_limited_and_ended() {
    let mut place = Place::new();
    place.timeout = std::time::Duration::from_secs(3);
    let word = format!("bomb-{}-", std::process::id());
    let bomb = format!(
        "import os, sys, time\nsys.argv.append(\"{word}\")\nwhile True:\n  try: os.fork()\n  except OSError: time.sleep(1)\n"
    );
    place.write("project/bomb.py", &bomb);
    let line = format!("python3 bomb.py {word}");
    let ran = place
        .run_as(&line, |profile| profile.limits.processes = 200)
        .await
        .unwrap();
    assert!(ran.timed_out, "{ran:#?}");
    assert_eq!(ran.survivors, 0);
    assert_eq!(with_word(&word), 0);
}

#[tokio::test]
async fn process_limit_is_enforced() {
    let place = Place::new();
    let line = "i=0; while [ $i -lt 100 ]; do sleep 5 & i=$((i+1)); done; ls -d /proc/[0-9]* | wc -l; exit 0";
    let ran = place.run_as(line, |profile| {
        profile.limits.processes = 40;
        profile.process_scope = ProcessAccess::Own;
    });
    let ran = ran.await.unwrap();
    assert!(
        ran.stderr.contains("Cannot fork")
            || ran.stderr.contains("Resource temporarily unavailable"),
        "{ran:#?}"
    );
}

/// Not a test: the program that the next test kills.
#[tokio::test]
#[ignore = "it is the victim of another test"]
async fn repair_victim() {
    let Some(line) = std::env::var_os("VICTIM_LINE") else {
        return;
    };
    let place = std::env::var_os("VICTIM_PLACE").unwrap();
    Place::at(place.into()).run(line.to_str().unwrap()).await;
}

#[tokio::test]
async fn killed_supervisor_leaves_no_process_of_the_repair() {
    let place = Place::new();
    let word = format!("orphan-{}-", std::process::id());
    let line = format!("echo '{{}}' > unstuck.json; {}; sleep 1000", deaf(&word));
    #[expect(clippy::disallowed_methods, reason = "it must be killed from outside")]
    let victim = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "repair::survivors::repair_victim", "--ignored"])
        .env("VICTIM_LINE", line)
        .env("VICTIM_PLACE", place.path(""))
        .stdin(std::process::Stdio::null())
        .stdout(std::process::Stdio::null())
        .spawn();
    let mut victim = victim.unwrap();
    eventually("the daemon runs", || with_word(&word) >= 2).await;
    let planted = place.path("project/unstuck.json");
    assert!(planted.exists());
    victim.kill().unwrap();
    let scratch = std::env::temp_dir().join(format!("unstuck-repair-{}-0", victim.id()));
    victim.wait().unwrap();
    eventually("all are gone", || with_word(&word) == 0).await;
    eventually("what was planted is gone", || !planted.exists()).await;
    eventually("what was temporary is gone", || !scratch.exists()).await;
}

#[tokio::test]
async fn killed_reaper_leaves_no_process_of_the_repair() {
    let place = Place::new();
    let word = format!("reaped-{}", std::process::id());
    let line = format!("{}; sleep 1000", deaf(&word));
    let killer = async {
        eventually("the daemon runs", || with_word(&word) >= 2).await;
        let reaper = reaper_of(pids_with(&word).next().unwrap()).cast_signed();
        let reaper = rustix::process::Pid::from_raw(reaper).unwrap();
        rustix::process::kill_process(reaper, rustix::process::Signal::KILL).unwrap();
    };
    let (ran, ()) = tokio::join!(place.run_as(&line, |_| {}), killer);
    assert!(matches!(ran, Err(RepairError::Process(_))), "{ran:#?}");
    eventually("all are gone", || with_word(&word) == 0).await;
}
