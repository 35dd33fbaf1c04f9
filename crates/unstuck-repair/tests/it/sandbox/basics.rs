//! Sandboxes on machines that allow less, and their reports.

use unstuck_repair::sandbox::wire::{CommandExit, SandboxCommand, SandboxLifecycleEvent};
use unstuck_repair::sandbox::{ConfinementLevel, NetworkAccess, SandboxMode};

use super::support::Place;

#[test]
fn a_command_runs_and_its_exit_is_reported() {
    let place = Place::new();
    let tried = place.shell("echo hi > file; sleep 100 & exit 3");
    assert_eq!(tried.end(), Some(CommandExit::Exited(3)), "{tried:#?}");
    assert_eq!(tried.effective().unwrap().summary(), "full");
    assert!(tried.reports.iter().any(|report| matches!(
        report,
        SandboxLifecycleEvent::Ended {
            leftover_count: 1,
            ..
        }
    )));
    assert!(matches!(
        tried.reports.last(),
        Some(SandboxLifecycleEvent::Cleared { .. })
    ));
    assert!(place.path("project/file").exists());
}

#[test]
fn required_mode_without_namespaces_runs_nothing() {
    let mut place = Place::new();
    place.obstacle = Some("refused by this test".to_owned());
    let tried = place.shell("echo hi > file");
    let Some(SandboxLifecycleEvent::SetupFailed { error, .. }) = tried.reports.first() else {
        panic!("{tried:#?}");
    };
    assert!(error.contains("refused by this test"), "{error}");
    assert_eq!(tried.end(), None);
    assert!(!place.path("project/file").exists());
}

#[test]
fn best_effort_without_namespaces_confines_partially_and_reports_gaps() {
    let mut place = Place::new();
    place.obstacle = Some("refused by this test".to_owned());
    place.profile.mode = SandboxMode::BestEffort;
    place.profile.network = NetworkAccess::Off;
    place.write("home/.cache/pip/http/old", "");
    let outside = place.path("outside/file");
    let line = format!(
        "echo hi > file; echo hi > ~/.cache/pip/http/new; echo hi > \"$TMPDIR/t\"; echo bad > {}; echo bad > ~/file; \
         python3 -c 'import socket; socket.socket()' && echo bad; \
         python3 -c 'import socket; socket.socket(socket.AF_UNIX)' && echo bad; \
         unshare -U true && echo bad; mknod dev c 1 3 && echo bad; grep NoNewPrivs /proc/self/status",
        outside.display()
    );
    let tried = place.shell(&line);
    let effective = tried.effective().unwrap();
    assert_eq!(effective.level, ConfinementLevel::Partial);
    assert!(
        effective
            .summary()
            .contains("user namespaces are not available"),
        "{effective:#?}"
    );
    assert_eq!(tried.stdout, "NoNewPrivs:\t1\n", "{tried:#?}");
    assert!(place.path("project/file").exists() && place.path("home/.cache/pip/http/new").exists());
    assert!(!outside.exists() && !place.path("home/file").exists());
}

/// A directory that an agent has replaced with a symlink opens nothing outside of the project.
#[test]
fn writable_paths_in_the_project_are_not_reached_by_symlinks() {
    for obstacle in [None, Some("refused by this test".to_owned())] {
        let mut place = Place::new();
        place.obstacle = obstacle;
        place.profile.mode = SandboxMode::BestEffort;
        place.profile.writable = vec!["dist".into(), "made".into()];
        std::os::unix::fs::symlink(place.path("outside"), place.path("project/dist")).unwrap();
        let tried = place.shell("echo bad > dist/file; echo bad > file; ls; true");
        assert_eq!(tried.end(), Some(CommandExit::Exited(0)), "{tried:#?}");
        assert!(!place.path("outside/file").exists());
        assert!(!place.path("project/file").exists());
    }
}

#[test]
fn the_file_system_root_is_refused_as_project() {
    let mut place = Place::new();
    place.profile.root = "/".into();
    let tried = place.run(SandboxCommand::Shell("true".to_owned()));
    assert!(
        matches!(
            tried.reports.first(),
            Some(SandboxLifecycleEvent::SetupFailed { .. })
        ),
        "{tried:#?}"
    );
    assert_eq!(tried.end(), None);
}

#[test]
fn open_descriptors_are_not_inherited() {
    let place = Place::new();
    let secret = place.write("outside/secret", "hunter2");
    let file = std::fs::File::open(secret).unwrap();
    rustix::io::fcntl_setfd(&file, rustix::io::FdFlags::empty()).unwrap();
    let tried = place.shell("ls -l /proc/self/fd");
    assert!(tried.stdout.contains(" 2 -> "), "{tried:#?}");
    assert!(!tried.stdout.contains("secret"), "{tried:#?}");
    drop(file);
}
