//! Tests that no process is left behind.

use tokio::sync::watch;
use unstuck_run::process::{
    AttemptStopRequest, ChildExitStatus, ProcessSpec, Stdin, StopRequestUnixSignal,
};

use crate::support::{Memory, again, daemon, eventually, is_alive, pid_in, run, supervisor};

#[tokio::test]
async fn detached_daemon_that_ignores_signals_dies_with_the_attempt() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("pid");
    let ended = run(&ProcessSpec::shell(daemon(&file))).await;
    assert_eq!(ended.status, ChildExitStatus::Exited(0));
    assert!(ended.leftover_count >= 1);
    assert_eq!(ended.survivor_count, 0);
    assert!(!is_alive(pid_in(&file).await));
}

/// Also holds on systems where orphans are not reparented to the reaper.
#[tokio::test]
async fn background_process_is_ended_and_counted() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("pid");
    let line = format!("sleep 1000 & echo $! > {}; exit 5", file.display());
    let ended = run(&ProcessSpec::shell(line)).await;
    assert_eq!(ended.status, ChildExitStatus::Exited(5));
    assert_eq!((ended.leftover_count, ended.survivor_count), (1, 0));
    assert!(!is_alive(pid_in(&file).await));
}

/// Holds on every system: the process was seen below its agent when the agent was asked to end.
#[tokio::test]
async fn tool_with_its_own_session_ends_with_its_stopped_agent() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("pid");
    let spec = ProcessSpec::shell(
        "trap 'exit 4' TERM; setsid sh -c 'trap \"\" TERM HUP; echo $$ > $0.new; mv $0.new $0; sleep 1000' \"$TOOL\" & \
         while :; do sleep 0.05; done",
    );
    let spec = ProcessSpec {
        env: vec![("TOOL".into(), file.clone().into())],
        ..spec
    };
    let (say, stop) = watch::channel(AttemptStopRequest::Continue);
    let (mut supervisor, mut stdin, mut sink) = (supervisor(), Stdin::null(), Memory::default());
    let run = supervisor.run(&spec, &mut stdin, &mut sink, stop);
    let later = async {
        pid_in(&file).await;
        say.send(AttemptStopRequest::Graceful(
            StopRequestUnixSignal::Interrupt,
        ))
        .unwrap();
    };
    let ended = tokio::join!(run, later).0.unwrap();
    assert_eq!(ended.status, ChildExitStatus::Exited(4));
    assert!(ended.leftover_count >= 1);
    assert!(!is_alive(pid_in(&file).await));
}

#[tokio::test]
async fn constantly_forking_processes_are_ended() {
    let line = "f() { while :; do (sleep 0.01 & ) ; done; }; \
                for i in 1 2 3; do f >/dev/null 2>&1 & done; sleep 0.2; exit 6";
    let ended = run(&ProcessSpec::shell(line)).await;
    assert_eq!(ended.status, ChildExitStatus::Exited(6));
    assert!(ended.leftover_count >= 3);
    assert_eq!(ended.survivor_count, 0);
}

#[tokio::test]
async fn dropped_run_ends_its_child_and_the_next_run_works() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("pid");
    let mut supervisor = supervisor();
    let spec = ProcessSpec::shell(format!("{}; sleep 1000", daemon(&file)));
    let mut stdin = Stdin::null();
    tokio::select! {
        _ = again(&mut supervisor, &spec, &mut stdin) => panic!("it cannot end"),
        _ = pid_in(&file) => {}
    }
    let ended = again(
        &mut supervisor,
        &ProcessSpec::shell("echo next"),
        &mut Stdin::null(),
    )
    .await;
    assert_eq!(ended.unwrap().stdout.text(), "next\n");
    assert!(!is_alive(pid_in(&file).await));
}

#[tokio::test]
async fn dropped_supervisor_leaves_no_process_behind() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("pid");
    let mut supervisor = supervisor();
    let reaper = supervisor.reaper_id();
    let spec = ProcessSpec::shell(format!("{}; sleep 1000", daemon(&file)));
    let mut stdin = Stdin::null();
    tokio::select! {
        _ = again(&mut supervisor, &spec, &mut stdin) => panic!("it cannot end"),
        _ = pid_in(&file) => {}
    }
    drop(supervisor);
    assert!(!is_alive(pid_in(&file).await));
    assert!(!reaper.is_alive());
}

#[tokio::test]
async fn two_supervisors_are_independent() {
    let (mut one, mut other) = (supervisor(), supervisor());
    let (slow, quick) = (
        ProcessSpec::shell("sleep 0.4; echo slow"),
        ProcessSpec::shell("sleep 1000 & echo quick"),
    );
    let (mut nothing, mut nothing_too) = (Stdin::null(), Stdin::null());
    let (slow, quick) = tokio::join!(
        again(&mut one, &slow, &mut nothing),
        again(&mut other, &quick, &mut nothing_too)
    );
    assert_eq!(slow.unwrap().stdout.text(), "slow\n");
    assert_eq!(quick.unwrap().stdout.text(), "quick\n");
}

/// Not a test: the program that the next test kills. It supervises the command in a variable.
#[tokio::test]
#[ignore = "it is the victim of another test"]
async fn victim() {
    let Some(line) = std::env::var_os("VICTIM_LINE") else {
        return;
    };
    let spec = ProcessSpec {
        exit_record: std::env::var_os("VICTIM_RECORD").map(Into::into),
        ..ProcessSpec::shell(line)
    };
    let _ = run(&spec).await;
}

/// A victim that is killed with its test, even if that fails.
struct Victim(std::process::Child);

impl Victim {
    fn kill(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

impl Drop for Victim {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn start_victim(line: &str, record: &std::path::Path) -> Victim {
    #[expect(clippy::disallowed_methods, reason = "it must be killed from outside")]
    let child = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "cleanup::victim", "--ignored"])
        .env("VICTIM_LINE", line)
        .env("VICTIM_RECORD", record)
        .stdin(std::process::Stdio::null())
        .stdout(std::process::Stdio::null())
        .spawn();
    Victim(child.unwrap())
}

#[tokio::test]
async fn killed_supervisor_leaves_no_process_behind() {
    let folder = tempfile::tempdir().unwrap();
    let [file, own, record] = ["daemon", "own", "exit.json"].map(|name| folder.path().join(name));
    let line = format!("{}; echo $$ > {}; sleep 1000", daemon(&file), own.display());
    let mut victim = start_victim(&line, &record);
    let (daemon, child) = (pid_in(&file).await, pid_in(&own).await);
    assert!(is_alive(daemon) && is_alive(child));
    victim.kill();
    eventually("both are gone", || !is_alive(daemon) && !is_alive(child)).await;
    assert!(!record.exists(), "it did not end by itself");
}

#[tokio::test]
async fn exit_is_recorded_even_if_the_supervisor_is_gone() {
    let folder = tempfile::tempdir().unwrap();
    let [own, record, go] = ["own", "exit.json", "go"].map(|name| folder.path().join(name));
    let line = format!(
        "echo $$ > {}; while ! test -e {}; do sleep 0.02; done; exit 11",
        own.display(),
        go.display()
    );
    let mut victim = start_victim(&line, &record);
    pid_in(&own).await;
    let pid = rustix::process::Pid::from_child(&victim.0);
    rustix::process::kill_process(pid, rustix::process::Signal::STOP).unwrap();
    std::fs::write(&go, "").unwrap();
    eventually("the record is there", || record.exists()).await;
    victim.kill();
    assert_eq!(
        ChildExitStatus::from_record(&record),
        Some(ChildExitStatus::Exited(11))
    );
}

#[tokio::test]
async fn reaper_is_in_its_own_group_and_survives_termination_signals() {
    let mut supervisor = supervisor();
    again(
        &mut supervisor,
        &ProcessSpec::new("true"),
        &mut Stdin::null(),
    )
    .await
    .unwrap();
    let pid = rustix::process::Pid::from_raw(supervisor.reaper_id().pid.cast_signed()).unwrap();
    assert_ne!(
        rustix::process::getpgid(Some(pid)).unwrap(),
        rustix::process::getpgrp()
    );
    use rustix::process::Signal;
    for signal in [Signal::INT, Signal::TERM, Signal::HUP, Signal::QUIT] {
        rustix::process::kill_process(pid, signal).unwrap();
    }
    // The kernel delivers them before the reaper reads its next request.
    let ended = again(
        &mut supervisor,
        &ProcessSpec::new("true"),
        &mut Stdin::null(),
    )
    .await;
    assert!(ended.unwrap().status.is_success());
}
