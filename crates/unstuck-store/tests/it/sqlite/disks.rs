//! Full and read-only disks: real ones, mounted in a namespace of the test.

use std::fs;
use std::path::Path;

use unstuck_core::event::RunId;
use unstuck_store::{
    MaintenanceReport, MaintenanceTask, Store, StoreError, StoreLocation, StoreOptions,
};

use super::processes::{process, told};
use crate::contract::{Place, wait};
use crate::samples::{append, attempt_started, run, started};

/// Mounts a disk of 1 MB over the directory and runs the rest there.
const SMALL_DISK: &str = r#"mount -t tmpfs -o size=1m none "$1" || exit 77; shift; exec "$@""#;

/// Makes the directory a read-only disk and runs the rest there.
const READ_ONLY_DISK: &str = r#"mount --bind "$1" "$1" && mount -o remount,ro,bind "$1" || exit 77
shift; exec "$@""#;

#[test]
#[ignore = "started by another test, on a small disk"]
fn fills_the_disk() {
    let store = wait(Store::open(&told(), StoreOptions::default())).unwrap();
    let run = run(1);
    wait(store.append(append(&run, [started(&run)]))).unwrap();
    let ballast = told().path().with_file_name("ballast");
    fs::write(&ballast, vec![0; 200_000]).unwrap();
    let error = fill(&store, &run);
    assert!(matches!(error, StoreError::Full { .. }), "{error:?}");

    // Acknowledged events are there, and writing works again once there is space.
    let kept = wait(store.load(&run)).unwrap().len();
    fs::remove_file(ballast).unwrap();
    let next = wait(store.append(append(&run, [attempt_started(&run, 0)]))).unwrap();
    assert_eq!(next[0].seq, kept as u64 + 1);
    let checked = wait(store.maintain(MaintenanceTask::Check)).unwrap();
    assert!(matches!(checked, MaintenanceReport::Checked { findings, .. } if findings.is_empty()));
}

/// Writes until it fails.
fn fill(store: &Store, run: &RunId) -> StoreError {
    let mut seq = 1;
    loop {
        let events = (0..20).map(|number| attempt_started(run, number));
        match wait(store.append(append(run, events))) {
            Ok(kept) => assert_eq!(kept[0].seq, seq + 1),
            Err(error) => {
                assert_eq!(wait(store.load(run)).unwrap().len() as u64, seq);
                return error;
            }
        }
        seq += 20;
    }
}

/// Tests that need root, because they mount disks.
mod root {
    use super::*;

    /// Runs a test under a script that mounts something over the directory.
    fn succeeds(script: &str, folder: &Path, test: &str, location: &StoreLocation) {
        let folder = folder.to_str().unwrap();
        let by = ["unshare", "-m", "sh", "-c", script, "sh", folder];
        let output = process(&by, test, location).output().unwrap();
        assert!(output.status.success(), "{output:?}");
    }

    #[test]
    fn full_disk_is_reported_and_loses_nothing() {
        let place = Place::new();
        let location = place.location();
        let folder = location.path().parent().unwrap();
        fs::create_dir_all(folder).unwrap();
        let test = "sqlite::disks::fills_the_disk";
        succeeds(SMALL_DISK, folder, test, &location);
    }

    #[test]
    fn read_only_disk_is_reported() {
        let place = Place::new();
        wait(async { place.open().await.close().await }).unwrap();
        let test = "sqlite::disks::finds_the_disk_read_only";
        let file = place.file();
        for name in ["unstuck.db", "new.db", "new/unstuck.db"] {
            let location = StoreLocation::file(file.with_file_name(name));
            succeeds(READ_ONLY_DISK, file.parent().unwrap(), test, &location);
        }
    }
}

#[test]
#[ignore = "started by another test, on a read-only disk"]
fn finds_the_disk_read_only() {
    let error = wait(Store::open(&told(), StoreOptions::default())).unwrap_err();
    assert!(matches!(error, StoreError::ReadOnly { .. }), "{error:?}");
}
