//! What the owner can ask of the sandbox.

use std::path::PathBuf;

use unstuck_repair::sandbox::{ConfinementLevel, OverlayDirs, SandboxMode};
use unstuck_run::process::ChildStatus;
use unstuck_run::repair::RepairError;

use super::support::Place;

#[tokio::test]
async fn without_a_sandbox_it_says_so() {
    let place = Place::new();
    let outside = place.path("outside/file");
    let line = format!("echo x > {} && pwd", outside.display());
    let ran = place
        .run_as(&line, |profile| profile.mode = SandboxMode::Off)
        .await
        .unwrap();
    assert_eq!(ran.status, ChildStatus::Exited(0), "{ran:#?}");
    assert_eq!(ran.confinement.summary(), "none: it is switched off");
    assert!(outside.exists());
}

#[tokio::test]
async fn where_only_some_of_the_project_is_writable_the_rest_is_not() {
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
async fn the_owner_can_open_a_folder_outside() {
    let place = Place::new();
    let outside = place.path("outside");
    let line = format!("echo x > {}/file && echo x > here", outside.display());
    let ran = place
        .run_as(&line, |profile| profile.writable = vec![outside])
        .await
        .unwrap();
    assert_eq!(ran.status, ChildStatus::Exited(0), "{ran:#?}");
    assert!(place.path("outside/file").exists() && place.path("project/here").exists());
}

#[tokio::test]
async fn under_an_overlay_the_project_stays_as_it_is() {
    let place = Place::new();
    place.write("project/kept", "kept");
    place.write("project/gone/file", "");
    for name in ["upper", "work"] {
        std::fs::create_dir(place.path(name)).unwrap();
    }
    let overlay = OverlayDirs {
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
async fn an_overlay_that_cannot_be_laid_is_a_failed_set_up() {
    let place = Place::new();
    let overlay = OverlayDirs {
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
    assert_eq!(operation, "lay an overlay over the project");
    assert!(!place.path("project/was-here").exists());
}

/// Tests that only root can run.
mod root {
    use std::os::unix::fs::{MetadataExt, chown};

    use super::*;

    #[tokio::test]
    async fn root_repairs_the_project_of_somebody_else_as_them() {
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
async fn what_this_machine_can_do_is_told() {
    let place = Place::new();
    let effective = place
        .executor()
        .probe_sandbox(&place.path("project"), &place.environment())
        .await
        .unwrap();
    assert_eq!(effective.summary(), "full");
}
