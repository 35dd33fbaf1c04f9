//! Tests that exactly the approved command runs, with what it needs and no more.

use std::time::Duration;

use tokio::sync::watch;
use unstuck_core::command_policy::ApprovedCommand;
use unstuck_run::process::{AttemptStopRequest, ChildExitStatus, StopRequestUnixSignal};
use unstuck_run::repair_execution::{RepairError, RepairJob};

use super::support::Place;
use crate::support::eventually;

/// S3-47: plain commands run word by word, without a shell.
#[tokio::test]
async fn plain_commands_run_without_a_shell_until_one_fails() {
    let place = Place::new();
    let ran = place
        .run("basename one && basename '$(id) *' && cat not-there && basename never")
        .await;
    assert_eq!(ran.status, ChildExitStatus::Exited(1));
    assert_eq!(ran.stdout, "one\n$(id) *\n");
    assert!(ran.programs.iter().all(|program| program.is_absolute()));
    assert!(ran.programs[0].ends_with("basename"), "{ran:#?}");
}

#[tokio::test]
async fn other_commands_run_in_the_plain_shell() {
    let place = Place::new();
    let ran = place
        .run("for i in 1 2; do echo $i; done; echo $0; exit 7")
        .await;
    assert_eq!(
        (ran.status, ran.stdout.as_str()),
        (ChildExitStatus::Exited(7), "1\n2\nsh\n")
    );
    let ran = place.run("kill -9 $$").await;
    assert_eq!(ran.status, ChildExitStatus::Signaled(9));
}

#[tokio::test]
async fn missing_program_is_a_failure_of_the_command() {
    let place = Place::new();
    let ran = place.run("no-such-program --now").await;
    assert_eq!(ran.status, ChildExitStatus::Exited(127));
    assert_eq!(ran.stderr, "unstuck: no-such-program: no such program\n");
    place.write("project/text", "no program");
    let ran = place.run("./text").await;
    assert_eq!(ran.status, ChildExitStatus::Exited(126), "{ran:#?}");
}

#[tokio::test]
async fn project_program_runs_only_if_the_entry_names_its_path() {
    let place = Place::new();
    place.write("project/bin/tool", "#!/bin/sh\necho from the project\n");
    let tool = place.path("project/bin/tool");
    std::os::unix::fs::symlink(&tool, place.path("outside/tool")).unwrap();
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(&tool, std::fs::Permissions::from_mode(0o755)).unwrap();
    assert_eq!(place.run("bin/tool").await.stdout, "from the project\n");
    let root = place.root();
    let folder = root.open_working_dir(None).unwrap();
    let approved = ApprovedCommand::by_person("tool").unwrap();
    let environment = place
        .environment()
        .with_variable("PATH", place.path("outside"));
    let job = RepairJob::new(&approved, &root, &folder, environment);
    let (_keep, stop) = watch::channel(AttemptStopRequest::Continue);
    let refused = place.executor().run(&job, stop).await;
    let Err(RepairError::Refused { reason }) = refused else {
        panic!("{refused:#?}");
    };
    assert!(reason.contains("inside the project"), "{reason}");
}

/// S3-50: the environment is rebuilt; it has none of our variables that could influence the command or leak secrets.
#[tokio::test]
async fn environment_is_exactly_the_rebuilt_one() {
    let mut place = Place::new();
    place.keep.push("UNSTUCK_TEST_KEPT".to_owned());
    let ran = place.run("env | cut -d= -f1 | sort | tr '\\n' ' '").await;
    for name in ["CI", "HOME", "NO_COLOR", "PATH", "TERM", "TMPDIR"] {
        assert!(
            ran.stdout.contains(&format!("{name} ")),
            "{name}: {}",
            ran.stdout
        );
    }
    for name in [
        "CARGO_MANIFEST_DIR",
        "CARGO_PKG_NAME",
        "NEXTEST",
        "LD_LIBRARY_PATH",
        "UNSTUCK_TEST_KEPT",
    ] {
        assert!(!ran.stdout.contains(name), "{name}: {}", ran.stdout);
    }
}

/// S3-49: no repair exceeds its timeout.
#[tokio::test]
async fn timed_out_repair_is_ended_and_reported() {
    let mut place = Place::new();
    place.timeout = Duration::from_millis(700);
    let ran = place
        .run("trap 'echo asked; exit 3' TERM; echo begun; sleep 1000 & wait")
        .await;
    assert!(ran.timed_out && !ran.stopped);
    assert_eq!(ran.stdout, "begun\nasked\n", "{ran:#?}");
    assert_eq!(ran.status, ChildExitStatus::Exited(3));
    let ran = place.run("trap '' TERM; while :; do sleep 0.1; done").await;
    assert!(ran.timed_out);
    assert_eq!(ran.status, ChildExitStatus::Signaled(9), "{ran:#?}");
}

#[tokio::test]
async fn stop_request_ends_the_repair_and_starts_no_further_command() {
    let place = Place::new();
    let root = place.root();
    let folder = root.open_working_dir(None).unwrap();
    let approved = ApprovedCommand::by_person("touch begun && sleep 1000 && touch never").unwrap();
    let job = RepairJob::new(&approved, &root, &folder, place.environment());
    let (send, stop) = watch::channel(AttemptStopRequest::Continue);
    let mut executor = place.executor();
    let begun = place.path("project/begun");
    let stopper = async {
        eventually("it has begun", || begun.exists()).await;
        send.send(AttemptStopRequest::Graceful(
            StopRequestUnixSignal::Interrupt,
        ))
        .unwrap();
    };
    let (ran, ()) = tokio::join!(executor.run(&job, stop), stopper);
    let ran = ran.unwrap();
    assert!(ran.stopped);
    assert_eq!(ran.status, ChildExitStatus::Signaled(15), "{ran:#?}");
    assert!(!place.path("project/never").exists());
}

#[tokio::test]
async fn huge_output_is_bounded_and_redacted() {
    let place = Place::new();
    let line = "echo s3cret-value; head -c 1000000000 /dev/zero | tr '\\0' 'x'; echo; echo the end";
    let ran = place.run(line).await;
    assert_eq!(ran.status, ChildExitStatus::Exited(0));
    assert!(ran.stdout.len() < 400_000, "{}", ran.stdout.len());
    assert!(
        ran.stdout.starts_with("[redacted:"),
        "{}",
        &ran.stdout[..40]
    );
    assert!(ran.stdout.ends_with("the end\n") && ran.stdout.contains("bytes omitted]"));
}

#[tokio::test]
async fn one_repair_runs_at_a_time_per_project() {
    let place = Place::new();
    let root = place.root();
    let folder = root.open_working_dir(None).unwrap();
    let line = "mkdir alone && sleep 0.3 && rmdir alone";
    let approved = ApprovedCommand::by_person(line).unwrap();
    let job = RepairJob::new(&approved, &root, &folder, place.environment());
    let (_keep, stop) = watch::channel(AttemptStopRequest::Continue);
    let (mut one, mut other) = (place.executor(), place.executor());
    let (first, second) = tokio::join!(one.run(&job, stop.clone()), other.run(&job, stop.clone()));
    assert_eq!(first.unwrap().status, ChildExitStatus::Exited(0));
    assert_eq!(second.unwrap().status, ChildExitStatus::Exited(0));
    let slow = ApprovedCommand::by_person("touch running && sleep 2").unwrap();
    let slow = RepairJob::new(&slow, &root, &folder, place.environment());
    let mut hasty = RepairJob::new(&approved, &root, &folder, place.environment());
    hasty.timeout = Duration::from_millis(300);
    let waits = async {
        eventually("the slow one runs", || {
            place.path("project/running").exists()
        })
        .await;
        other.run(&hasty, stop.clone()).await
    };
    let (slow, hasty) = tokio::join!(one.run(&slow, stop.clone()), waits);
    assert!(slow.is_ok());
    assert!(matches!(hasty, Err(RepairError::Busy)), "{hasty:?}");
}
