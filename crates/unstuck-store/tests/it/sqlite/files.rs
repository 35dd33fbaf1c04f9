//! The file and its directory.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::Duration;

use rusqlite::Connection;
use unstuck_store::{Store, StoreError, StoreLocation, StoreOptions};

use super::bare;
use crate::contract::{Place, wait};
use crate::samples::{append, attempt_started, run, started};

fn open(path: &Path) -> Result<Store, StoreError> {
    wait(Store::open(
        &StoreLocation::file(path),
        StoreOptions::default(),
    ))
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

/// Checks that opening fails as expected and leaves the file unchanged.
fn refused(path: &Path) -> StoreError {
    let before = fs::read(path).unwrap();
    let error = open(path).unwrap_err();
    assert!(before == fs::read(path).unwrap(), "the file was changed");
    error
}

#[test]
fn store_is_accessible_only_to_the_user() {
    let place = Place::new();
    let store = wait(place.open());
    wait(store.append(append(&run(1), [started(&run(1))]))).unwrap();
    let file = place.file();
    assert_eq!(mode(file.parent().unwrap()), 0o700);
    for name in ["unstuck.db", "unstuck.db-wal", "unstuck.db-shm"] {
        assert_eq!(mode(&file.with_file_name(name)), 0o600, "{name}");
    }
}

#[test]
fn missing_store_is_an_empty_history() {
    let place = Place::new();
    let opened = wait(Store::open_existing(
        &place.location(),
        StoreOptions::default(),
    ));
    assert!(opened.unwrap().is_none());
    assert!(!place.file().exists());
    drop(wait(place.open()));
    let opened = wait(Store::open_existing(
        &place.location(),
        StoreOptions::default(),
    ));
    assert!(opened.unwrap().is_some());
}

#[test]
fn garbage_file_is_rejected_unchanged() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("notes.txt");
    fs::write(&path, "Dear diary, today I ran an agent.\n".repeat(500)).unwrap();
    let error = refused(&path);
    assert!(matches!(error, StoreError::NotAStore { .. }), "{error}");
}

#[test]
fn foreign_database_is_rejected_unchanged() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("bookmarks.db");
    let other = Connection::open(&path).unwrap();
    other
        .execute_batch("CREATE TABLE marks (url TEXT)")
        .unwrap();
    drop(other);
    let error = refused(&path);
    assert!(matches!(error, StoreError::NotAStore { .. }), "{error}");
}

#[test]
fn newer_store_is_rejected_unchanged() {
    let place = Place::new();
    wait(async { place.open().await.close().await }).unwrap();
    bare(&place)
        .pragma_update(None, "user_version", 99)
        .unwrap();
    let error = refused(&place.file());
    assert!(
        matches!(error, StoreError::NewerSchema { found: 99, .. }),
        "{error}"
    );
}

#[test]
fn empty_file_becomes_a_store() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("new.db");
    fs::write(&path, "").unwrap();
    assert!(open(&path).is_ok());
}

#[test]
fn directory_that_cannot_be_created_is_reported() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    fs::write(&file, "").unwrap();
    let error = open(&file.join("sub").join("unstuck.db")).unwrap_err();
    assert!(matches!(error, StoreError::Inaccessible { .. }), "{error}");
    let error = open(folder.path()).unwrap_err();
    assert!(error.to_string().starts_with("cannot open "), "{error}");
}

#[test]
fn busy_store_is_reported_and_recovers() {
    let place = Place::new();
    let options = StoreOptions {
        busy_timeout: Duration::from_millis(60),
        ..StoreOptions::default()
    };
    let store = wait(Store::open(&place.location(), options)).unwrap();
    wait(store.append(append(&run(1), [started(&run(1))]))).unwrap();
    let other = bare(&place);
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let more = || append(&run(1), [attempt_started(&run(1), 1)]);
    // Requests in one transaction fail together, and none is acknowledged.
    let failed = wait(async {
        tokio::join!(
            store.append(more()),
            store.append(more()),
            store.append(more())
        )
    });
    for result in [failed.0, failed.1, failed.2] {
        assert!(matches!(result, Err(StoreError::Busy { .. })), "{result:?}");
    }
    other.execute_batch("ROLLBACK").unwrap();
    assert_eq!(wait(store.append(more())).unwrap()[0].seq, 2);
}

#[test]
fn concurrent_creation_of_a_store_works() {
    let place = Place::new();
    let location = place.location();
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..6)
            .map(|number| {
                let location = &location;
                scope.spawn(move || {
                    wait(async {
                        let store = Store::open(location, StoreOptions::default())
                            .await
                            .unwrap();
                        let run = run(number);
                        store.append(append(&run, [started(&run)])).await.unwrap();
                        store.close().await.unwrap();
                    });
                })
            })
            .collect();
        for thread in threads {
            thread.join().unwrap();
        }
    });
    let events: i64 = bare(&place)
        .query_row("SELECT count(*) FROM events", [], |row| row.get(0))
        .unwrap();
    assert_eq!(events, 6);
}
