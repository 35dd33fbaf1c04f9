//! Tests of a reaper that is killed itself.

use rustix::process::{Pid, Signal};

use unstuck_run::process::{ProcessError, ProcessId, ProcessSpec, Stdin};

use crate::support::{again, daemon, eventually, is_alive, pid_in, supervisor};

fn kill(process: ProcessId) {
    let pid = Pid::from_raw(process.pid.cast_signed()).unwrap();
    rustix::process::kill_process(pid, Signal::KILL).unwrap();
}

#[tokio::test]
async fn children_of_a_killed_reaper_are_killed_and_the_next_run_works() {
    let folder = tempfile::tempdir().unwrap();
    let [own, detached] = ["own", "detached"].map(|name| folder.path().join(name));
    let line = format!(
        "setsid sh -c 'echo $$ > {}; while :; do sleep 1; done' >/dev/null 2>&1 & echo $$ > {}; sleep 1000",
        detached.display(),
        own.display()
    );
    let mut supervisor = supervisor();
    let reaper = supervisor.reaper_id();
    let (spec, mut stdin) = (ProcessSpec::shell(line), Stdin::null());
    let murder = async {
        let pids = (pid_in(&own).await, pid_in(&detached).await);
        kill(reaper);
        pids
    };
    let (result, (child, detached)) =
        tokio::join!(again(&mut supervisor, &spec, &mut stdin), murder);
    assert!(
        matches!(result, Err(ProcessError::ReaperDied)),
        "{result:?}"
    );
    assert!(!is_alive(child));
    assert!(!is_alive(detached));
    assert!(!reaper.is_alive());

    let ended = again(
        &mut supervisor,
        &ProcessSpec::shell("echo back"),
        &mut Stdin::null(),
    )
    .await;
    assert_eq!(ended.unwrap().stdout.text(), "back\n");
}

/// Tests that need a machine on which cgroups can be created below our own.
mod cgroup {
    use super::*;

    /// Returns the cgroup (version 2) of a process.
    fn cgroup(pid: u32) -> String {
        let lines = std::fs::read_to_string(format!("/proc/{pid}/cgroup")).unwrap();
        let line = lines.lines().find(|line| line.starts_with("0::"));
        line.unwrap().to_owned()
    }

    #[tokio::test]
    async fn daemon_without_our_variables_dies_after_its_reaper_is_killed() {
        let mut supervisor = supervisor();
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("pid");
        let spec = ProcessSpec::shell(format!("{}; sleep 1000", daemon(&file)));
        let reaper = supervisor.reaper_id();
        let mut stdin = Stdin::null();
        let murder = async {
            let pid = pid_in(&file).await;
            // Only a child that has run for a while is moved to a cgroup.
            let own = cgroup(std::process::id());
            eventually("it has a cgroup", || cgroup(pid) != own).await;
            kill(reaper);
            pid
        };
        let (result, daemon) = tokio::join!(again(&mut supervisor, &spec, &mut stdin), murder);
        assert!(
            matches!(result, Err(ProcessError::ReaperDied)),
            "{result:?}"
        );
        assert!(!is_alive(daemon));
    }
}

#[tokio::test]
async fn program_that_is_not_a_reaper_is_an_error_and_does_not_hang() {
    let reaper = unstuck_run::process::ReaperProgram {
        program: "/bin/true".into(),
    };
    let mut supervisor = unstuck_run::process::ChildSupervisor::start(&reaper).unwrap();
    let result = again(
        &mut supervisor,
        &ProcessSpec::new("true"),
        &mut Stdin::null(),
    )
    .await;
    assert!(
        matches!(result, Err(ProcessError::ReaperDied)),
        "{result:?}"
    );

    let reaper = unstuck_run::process::ReaperProgram {
        program: "/no/such/reaper".into(),
    };
    let result = unstuck_run::process::ChildSupervisor::start(&reaper);
    assert!(matches!(
        result,
        Err(ProcessError::ReaperStartFailed { .. })
    ));
}
