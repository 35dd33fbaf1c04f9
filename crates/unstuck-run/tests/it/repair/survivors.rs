//! Nothing of a repair is left behind, however it tries.

use std::path::Path;

use unstuck_run::process::Status;

use super::support::Place;
use crate::support::{daemon, eventually};

/// The processes of this machine whose command line has this word in it.
fn with_word(word: &str) -> usize {
    let has = |pid: &str| {
        std::fs::read(format!("/proc/{pid}/cmdline")).is_ok_and(|line| {
            String::from_utf8_lossy(&line).contains(word) && !line.starts_with(b"/proc/self/exe")
        })
    };
    let names = std::fs::read_dir("/proc").unwrap().flatten();
    let pids = names.filter_map(|name| name.file_name().into_string().ok());
    let own = std::process::id().to_string();
    let pids = pids.filter(|name| name.bytes().all(|byte| byte.is_ascii_digit()) && *name != own);
    pids.filter(|pid| has(pid)).count()
}

/// S3-49: double-forked, in a session of its own, deaf to SIGTERM: dead all the same.
#[tokio::test]
async fn a_detached_deaf_daemon_is_dead_when_the_repair_has_ended() {
    let place = Place::new();
    let word = format!("daemon-{}", std::process::id());
    let line = format!(
        "mkdir {word}; {}",
        daemon(Path::new(&format!("{word}/pid")))
    );
    let ran = place.run(&line).await;
    assert_eq!(ran.status, Status::Exited(0), "{ran:#?}");
    assert!(ran.left >= 1, "{ran:#?}");
    assert_eq!(ran.survivors, 0);
    assert_eq!(with_word(&word), 0);
}

#[tokio::test]
async fn a_daemon_of_an_entry_that_sees_the_machine_is_dead_too() {
    let place = Place::new();
    let word = format!("seeing-{}", std::process::id());
    let line = format!(
        "kill -0 $$; mkdir {word}; {}",
        daemon(Path::new(&format!("{word}/pid")))
    );
    let ran = place.run(&line).await;
    assert_eq!(ran.status, Status::Exited(0), "{ran:#?}");
    assert!(ran.left >= 1, "{ran:#?}");
    assert_eq!(with_word(&word), 0);
}

#[tokio::test]
async fn a_fork_bomb_stays_within_its_bounds_and_is_gone_afterwards() {
    let mut place = Place::new();
    place.timeout = std::time::Duration::from_secs(3);
    let word = format!("bomb-{}", std::process::id());
    let bomb = format!(
        "import os, sys, time\nsys.argv.append(\"{word}\")\nwhile True:\n  try: os.fork()\n  except OSError: time.sleep(1)\n"
    );
    place.write("project/bomb.py", &bomb);
    let line = format!("python3 bomb.py {word}");
    let ran = place
        .run_as(&line, |profile| profile.bounds.processes = 200)
        .await
        .unwrap();
    assert!(ran.timed_out, "{ran:#?}");
    assert_eq!(ran.survivors, 0);
    assert_eq!(with_word(&word), 0);
}

#[tokio::test]
async fn no_more_processes_are_started_than_the_bounds_say() {
    let place = Place::new();
    let line = "i=0; while [ $i -lt 100 ]; do sleep 5 & i=$((i+1)); done; ls -d /proc/[0-9]* | wc -l; exit 0";
    let ran = place.run_as(line, |profile| {
        profile.bounds.processes = 40;
        profile.reach = unstuck_repair::sandbox::Reach::Own;
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
    Place::new().run(line.to_str().unwrap()).await;
}

#[tokio::test]
async fn when_unstuck_is_killed_nothing_of_the_repair_is_left() {
    let word = format!("orphan-{}", std::process::id());
    let line = format!(
        "mkdir {word}; {}; sleep 1000",
        daemon(Path::new(&format!("{word}/pid")))
    );
    #[expect(clippy::disallowed_methods, reason = "it must be killed from outside")]
    let victim = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "repair::survivors::repair_victim", "--ignored"])
        .env("VICTIM_LINE", line)
        .stdin(std::process::Stdio::null())
        .stdout(std::process::Stdio::null())
        .spawn();
    let mut victim = victim.unwrap();
    eventually("the daemon runs", || with_word(&word) >= 2).await;
    victim.kill().unwrap();
    victim.wait().unwrap();
    eventually("all are gone", || with_word(&word) == 0).await;
}
