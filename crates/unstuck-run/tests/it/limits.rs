//! Tests that a child ends at a limit or on a stop request.

use std::time::Duration;

use tokio::sync::watch;
use unstuck_run::process::{
    AttemptStopRequest, ChildExitStatus, ProcessResult, ProcessSpec, ProcessTimeouts,
    ReachedTimeLimit, Stdin, StopRequestUnixSignal,
};

use crate::support::{Memory, again, eventually, run, supervisor};

fn limited(line: &str, limits: ProcessTimeouts) -> ProcessSpec {
    ProcessSpec {
        limits,
        ..ProcessSpec::shell(line)
    }
}

fn short() -> ProcessTimeouts {
    ProcessTimeouts {
        timeout: Some(Duration::from_millis(200)),
        idle_timeout: None,
        grace: Duration::from_millis(100),
    }
}

#[tokio::test]
async fn child_that_ignores_sigterm_is_killed_after_the_grace() {
    let ended = run(&limited(
        "trap '' TERM; echo up; while :; do sleep 1; done",
        short(),
    ))
    .await;
    assert_eq!(ended.timed_out, Some(ReachedTimeLimit::Timeout));
    assert_eq!(ended.status, ChildExitStatus::Signaled(9));
    assert_eq!(ended.stdout.text(), "up\n");
    assert!(!ended.was_stopped);
}

#[tokio::test]
async fn child_that_handles_sigterm_may_write_its_last_output() {
    let limits = ProcessTimeouts {
        grace: Duration::from_secs(20),
        ..short()
    };
    let line = "trap 'echo bye; exit 9' TERM; while :; do sleep 0.05; done";
    let ended = run(&limited(line, limits)).await;
    assert_eq!(ended.timed_out, Some(ReachedTimeLimit::Timeout));
    assert_eq!(ended.status, ChildExitStatus::Exited(9));
    assert_eq!(ended.stdout.text(), "bye\n");
}

#[tokio::test]
async fn suspended_child_is_ended_too() {
    let ended = run(&limited("kill -STOP $$; echo never", short())).await;
    assert_eq!(ended.timed_out, Some(ReachedTimeLimit::Timeout));
    assert_eq!(ended.status, ChildExitStatus::Signaled(15));
}

#[tokio::test]
async fn silence_reaches_the_idle_limit_and_output_does_not() {
    let limits = ProcessTimeouts {
        timeout: None,
        idle_timeout: Some(Duration::from_secs(3)),
        grace: Duration::from_millis(100),
    };
    let line = "for i in 1 2 3 4 5 6 7 8; do sleep 0.1; echo $i >&2; done; sleep 1000";
    let ended = run(&limited(line, limits)).await;
    assert_eq!(ended.timed_out, Some(ReachedTimeLimit::IdleTimeout));
    assert_eq!(ended.stderr.text(), "1\n2\n3\n4\n5\n6\n7\n8\n");
}

/// Runs the line, and stops it once it has created the file `$UP`.
async fn stopped(line: &str, how: AttemptStopRequest, grace: Duration) -> ProcessResult {
    let folder = tempfile::tempdir().unwrap();
    let up = folder.path().join("up");
    let line = format!("UP={}; {line}", up.display());
    let (say, stop) = watch::channel(AttemptStopRequest::Continue);
    let mut supervisor = supervisor();
    let limits = ProcessTimeouts {
        grace,
        ..ProcessTimeouts::default()
    };
    let (spec, mut stdin, mut sink) = (limited(&line, limits), Stdin::null(), Memory::default());
    let run = supervisor.run(&spec, &mut stdin, &mut sink, stop);
    let later = async {
        eventually("it is up", || up.exists()).await;
        say.send(how).unwrap();
    };
    tokio::join!(run, later).0.unwrap()
}

#[tokio::test]
async fn graceful_stop_sends_sigterm_and_kill_does_not() {
    let line = "trap 'exit 3' TERM; : >$UP; while :; do sleep 0.05; done";
    let gently = stopped(
        line,
        AttemptStopRequest::Graceful(StopRequestUnixSignal::Interrupt),
        Duration::from_secs(20),
    )
    .await;
    assert!(gently.was_stopped);
    assert_eq!(gently.status, ChildExitStatus::Exited(3));
    let at_once = stopped(
        line,
        AttemptStopRequest::Kill(StopRequestUnixSignal::Interrupt),
        Duration::from_secs(20),
    )
    .await;
    assert!(at_once.was_stopped);
    assert_eq!(at_once.status, ChildExitStatus::Signaled(9));
}

#[tokio::test]
async fn attempt_stopped_before_its_start_never_starts() {
    let folder = tempfile::tempdir().unwrap();
    let trace = folder.path().join("trace");
    let (_keep, stop) = watch::channel(AttemptStopRequest::Graceful(
        StopRequestUnixSignal::Interrupt,
    ));
    let spec = ProcessSpec::new("touch").with_args([&trace]);
    let mut supervisor = supervisor();
    let ended = supervisor
        .run(&spec, &mut Stdin::null(), &mut Memory::default(), stop)
        .await
        .unwrap();
    assert!(ended.was_stopped);
    assert!(!trace.exists());
}

#[tokio::test]
async fn signal_is_forwarded_to_the_child() {
    let mut supervisor = supervisor();
    let remote = supervisor.signal_sender();
    let folder = tempfile::tempdir().unwrap();
    let up = folder.path().join("up");
    let spec = ProcessSpec::shell(format!(
        "trap 'echo got it; exit 0' USR1; : >{}; while :; do sleep 0.05; done",
        up.display()
    ));
    let later = async {
        eventually("it is up", || up.exists()).await;
        remote.signal(999);
        remote.signal(10);
    };
    let mut stdin = Stdin::null();
    let (ended, ()) = tokio::join!(again(&mut supervisor, &spec, &mut stdin), later);
    assert_eq!(ended.unwrap().stdout.text(), "got it\n");
}
