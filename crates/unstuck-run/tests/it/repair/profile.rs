//! Tests of the sandbox settings of an owner.

use std::path::PathBuf;

use unstuck_repair::sandbox::{ConfinementLevel, SandboxMode, SandboxOverlayDirs};
use unstuck_run::process::ChildExitStatus;
use unstuck_run::repair_execution::RepairError;

use super::support::Place;

#[tokio::test]
async fn missing_sandbox_is_reported() {
    let place = Place::new();
    let outside = place.path("outside/file");
    let line = format!("echo x > {} && pwd", outside.display());
    let ran = place
        .run_as(&line, |profile| profile.mode = SandboxMode::Off)
        .await
        .unwrap();
    assert_eq!(ran.status, ChildExitStatus::Exited(0), "{ran:#?}");
    assert_eq!(ran.confinement.summary(), "none: disabled by configuration");
    assert!(outside.exists());
}

#[tokio::test]
async fn only_configured_write_paths_are_writable() {
    let place = Place::new();
    place.write("project/src/main.js", "mine");
    std::fs::create_dir(place.path("project/node_modules")).unwrap();
    let line = "echo x > node_modules/a; echo x > src/main.js; touch new; echo over";
    let some = vec![PathBuf::from("node_modules"), PathBuf::from("../outside")];
    let ran = place
        .run_as(line, |profile| profile.writable = some)
        .await
        .unwrap();
    assert_eq!(ran.stdout, "over\n", "{ran:#?}");
    assert!(place.path("project/node_modules/a").exists());
    assert_eq!(place.read("project/src/main.js").as_deref(), Some("mine"));
    assert!(!place.path("project/new").exists());
}

#[tokio::test]
async fn owner_can_make_an_outside_directory_writable() {
    let place = Place::new();
    let outside = place.path("outside");
    let line = format!("echo x > {}/file && echo x > here", outside.display());
    let ran = place
        .run_as(&line, |profile| profile.writable = vec![outside])
        .await
        .unwrap();
    assert_eq!(ran.status, ChildExitStatus::Exited(0), "{ran:#?}");
    assert!(place.path("outside/file").exists() && place.path("project/here").exists());
}

#[tokio::test]
async fn project_below_an_overlay_is_not_changed() {
    let place = Place::new();
    place.write("project/kept", "kept");
    place.write("project/gone/file", "");
    for name in ["upper", "work"] {
        std::fs::create_dir(place.path(name)).unwrap();
    }
    let overlay = SandboxOverlayDirs {
        lower: place.path("project"),
        upper: place.path("upper"),
        work: place.path("work"),
    };
    let line = "echo changed > kept; echo new > new; rm -r gone; cat kept new; ls";
    let ran = place
        .run_as(line, |profile| profile.overlay = Some(overlay))
        .await
        .unwrap();
    assert_eq!(ran.stdout, "changed\nnew\nkept\nnew\n", "{ran:#?}");
    assert_eq!(ran.confinement.level, ConfinementLevel::Full);
    assert_eq!(place.read("project/kept").as_deref(), Some("kept"));
    assert!(place.path("project/gone/file").exists() && !place.path("project/new").exists());
    assert_eq!(place.read("upper/kept").as_deref(), Some("changed\n"));
    assert_eq!(place.read("upper/new").as_deref(), Some("new\n"));
}

#[tokio::test]
async fn overlay_that_cannot_be_mounted_is_a_setup_failure() {
    let place = Place::new();
    let overlay = SandboxOverlayDirs {
        lower: place.path("project"),
        upper: place.path("not-there"),
        work: place.path("not-there-either"),
    };
    let ran = place
        .run_as("touch was-here", |profile| profile.overlay = Some(overlay))
        .await;
    let Err(RepairError::SandboxSetup { operation, .. }) = ran else {
        panic!("{ran:#?}");
    };
    assert_eq!(operation, "mount an overlay over the project");
    assert!(!place.path("project/was-here").exists());
}

/// Tests that only root can run.
mod root {
    use std::os::unix::fs::{MetadataExt, chown};

    use super::*;

    #[tokio::test]
    async fn root_repairs_a_project_as_its_owner() {
        let place = Place::new();
        chown(place.path("project"), Some(65534), Some(65534)).unwrap();
        let ran = place
            .run("id -u; touch made; echo \"$HOME\"; touch ~/made; cat /proc/self/status | grep CapEff")
            .await;
        assert!(
            ran.stdout
                .starts_with("65534\n/tmp/home\nCapEff:\t0000000000000000"),
            "{ran:#?}"
        );
        assert_eq!(place.path("project/made").metadata().unwrap().uid(), 65534);
    }
}

#[tokio::test]
async fn sandbox_features_of_this_machine_are_reported() {
    let place = Place::new();
    let effective = place
        .executor()
        .probe_sandbox(&place.path("project"), &place.environment())
        .await
        .unwrap();
    assert_eq!(effective.summary(), "full");
}
