//! Tests that a repair runs in the directory on which the decision was based.

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use unstuck_run::repair_execution::RepairError;

use super::support::Place;

/// Swaps a directory for a symlink and back, until it is dropped.
struct Swapper {
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Swapper {
    fn start(work: PathBuf, aside: PathBuf, outside: PathBuf) -> Self {
        let is_over = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&is_over);
        let thread = std::thread::spawn(move || {
            while !seen.load(Ordering::Relaxed) {
                let _ = std::fs::rename(&work, &aside);
                let _ = symlink(&outside, &work);
                let _ = std::fs::remove_file(&work);
                let _ = std::fs::rename(&aside, &work);
            }
        });
        Self {
            is_over,
            thread: Some(thread),
        }
    }
}

impl Drop for Swapper {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

/// S3-48: a directory that is swapped for a symlink between decision and execution does not redirect the repair.
#[tokio::test]
async fn constantly_swapped_directory_never_leads_outside() {
    let place = Place::new();
    place.write("outside/who", "outside");
    place.write("project/work/who", "inside");
    let [work, aside, outside] =
        ["project/work", "project/aside", "outside"].map(|name| place.path(name));
    let swapper = Swapper::start(work, aside, outside);
    let root = place.root();
    let mut ran_inside = 0;
    for _ in 0..60 {
        let folder = std::iter::repeat_with(|| root.open_working_dir(Some("work")));
        let folder = folder.flatten().next().unwrap();
        let line = "cat who && touch was-here";
        match place.run_in(line, &root, &folder, |_| {}).await {
            Ok(ran) => {
                assert_eq!(ran.stdout, "inside", "{ran:#?}");
                ran_inside += 1;
            }
            Err(RepairError::SandboxSetup { operation, reason }) => {
                println!("cannot {operation}: {reason}")
            }
            Err(other) => panic!("{other}"),
        }
    }
    drop(swapper);
    println!("it ran {ran_inside} of 60 times, and nowhere else");
    assert!(!place.path("outside/was-here").exists());
}

#[tokio::test]
async fn repair_refuses_a_replaced_directory() {
    let place = Place::new();
    place.write("project/work/file", "");
    let root = place.root();
    let folder = root.open_working_dir(Some("work")).unwrap();
    std::fs::rename(place.path("project/work"), place.path("project/old")).unwrap();
    place.write("project/work/file", "");
    let ran = place.run_in("touch was-here", &root, &folder, |_| {}).await;
    let Err(RepairError::SandboxSetup { reason, .. }) = ran else {
        panic!("{ran:#?}");
    };
    assert!(reason.contains("the directory was replaced"), "{reason}");
    assert!(!place.path("project/work/was-here").exists());
    assert!(!place.path("project/old/was-here").exists());
}

#[tokio::test]
async fn repair_refuses_a_replaced_project() {
    let place = Place::new();
    let root = place.root();
    let folder = root.open_working_dir(None).unwrap();
    std::fs::rename(place.path("project"), place.path("old")).unwrap();
    std::fs::create_dir(place.path("project")).unwrap();
    let ran = place.run_in("touch was-here", &root, &folder, |_| {}).await;
    assert!(
        matches!(ran, Err(RepairError::SandboxSetup { .. })),
        "{ran:#?}"
    );
    assert!(!place.path("project/was-here").exists());
}

#[tokio::test]
async fn project_in_the_temporary_directory_is_visible_and_its_siblings_are_not() {
    for below in ["/tmp", "/var/tmp"] {
        let place = Place::below(Path::new(below));
        place.write("outside/secret", "hunter2");
        place.write("home/.npmrc", "registry");
        let temporary = format!("unstuck-test-{}", std::process::id());
        let line = format!(
            "pwd; touch made; ls -A \"$TMPDIR\"; cat ~/.npmrc; cat ../outside/secret; echo kept > \"$TMPDIR/{temporary}\""
        );
        let ran = place.run(&line).await;
        assert!(
            ran.stdout
                .starts_with(place.path("project").to_str().unwrap()),
            "{ran:#?}"
        );
        assert!(
            ran.stdout.ends_with("registry") && !ran.stdout.contains("hunter2"),
            "{ran:#?}"
        );
        assert!(place.path("project/made").exists());
        assert!(!Path::new(below).join(temporary).exists());
    }
}
