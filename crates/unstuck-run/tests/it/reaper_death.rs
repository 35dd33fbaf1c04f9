//! The reaper itself is killed.

use rustix::process::{Pid, Signal};
use std::time::Duration;

use unstuck_run::process::{ProcessError, ProcessId, Spec, Stdin};

use crate::support::{again, daemon, is_alive, pid_in, supervisor};

fn kill(process: ProcessId) {
    let pid = Pid::from_raw(process.pid.cast_signed()).unwrap();
    rustix::process::kill_process(pid, Signal::KILL).unwrap();
}

#[tokio::test]
async fn what_a_killed_reaper_watched_over_is_killed_and_the_next_run_works() {
    let folder = tempfile::tempdir().unwrap();
    let [own, detached] = ["own", "detached"].map(|name| folder.path().join(name));
    let line = format!(
        "setsid sh -c 'echo $$ > {}; while :; do sleep 1; done' >/dev/null 2>&1 & echo $$ > {}; sleep 1000",
        detached.display(),
        own.display()
    );
    let mut supervisor = supervisor();
    let reaper = supervisor.reaper();
    let (spec, mut stdin) = (Spec::shell(line), Stdin::null());
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
        &Spec::shell("echo back"),
        &mut Stdin::null(),
    )
    .await;
    assert_eq!(ended.unwrap().stdout.text(), "back\n");
}

/// The line of the second version of cgroups, and whether we may make cgroups below ours.
fn own_cgroup() -> (String, bool) {
    let line = std::fs::read_to_string("/proc/self/cgroup").unwrap();
    let line = line.lines().find(|line| line.starts_with("0::"));
    let own = line.unwrap_or_default().to_owned();
    let folder = ["/sys/fs/cgroup", "/sys/fs/cgroup/unified"]
        .iter()
        .map(|mount| std::path::Path::new(mount).join(own.trim_start_matches("0::/")))
        .find(|folder| folder.join("cgroup.procs").exists());
    let trial = folder.map(|folder| folder.join(format!("trial-{}", std::process::id())));
    let may = trial.is_some_and(|trial| {
        std::fs::create_dir(&trial).is_ok() && std::fs::remove_dir(&trial).is_ok()
    });
    (own, may)
}

#[tokio::test]
async fn where_cgroups_may_be_made_even_a_nameless_daemon_of_a_killed_reaper_dies() {
    let (own, may) = own_cgroup();
    let mut supervisor = supervisor();
    // Only a child that has run for a while is worth a cgroup.
    let spec = Spec::shell("sleep 1.3; grep ^0:: /proc/self/cgroup");
    let ended = again(&mut supervisor, &spec, &mut Stdin::null())
        .await
        .unwrap();
    let theirs = ended.stdout.text().trim().to_owned();
    if !may {
        assert_eq!(theirs, own);
        return;
    }
    assert_ne!(theirs, own);

    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("pid");
    let spec = Spec::shell(format!("{}; sleep 1000", daemon(&file)));
    let reaper = supervisor.reaper();
    let mut stdin = Stdin::null();
    let murder = async {
        let pid = pid_in(&file).await;
        tokio::time::sleep(Duration::from_millis(1300)).await;
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

#[tokio::test]
async fn a_program_that_is_no_reaper_is_an_error_and_not_a_hang() {
    let reaper = unstuck_run::process::ReaperProgram {
        program: "/bin/true".into(),
    };
    let mut supervisor = unstuck_run::process::Supervisor::start(&reaper).unwrap();
    let result = again(&mut supervisor, &Spec::new("true"), &mut Stdin::null()).await;
    assert!(
        matches!(result, Err(ProcessError::ReaperDied)),
        "{result:?}"
    );

    let reaper = unstuck_run::process::ReaperProgram {
        program: "/no/such/reaper".into(),
    };
    let result = unstuck_run::process::Supervisor::start(&reaper);
    assert!(matches!(result, Err(ProcessError::NoReaper { .. })));
}
