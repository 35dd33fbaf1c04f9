#![expect(clippy::disallowed_methods, reason = "a test makes and looks at files")]

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use tempfile::TempDir;
use unstuck_core::Timestamp;
use unstuck_core::watched_files::{AcceptedWatchedFilePart, WatchedFileBaseline};

use super::*;

struct Place {
    folder: TempDir,
}

impl Place {
    fn new() -> Self {
        let place = Self {
            folder: tempfile::tempdir().unwrap(),
        };
        fs::create_dir(place.project()).unwrap();
        place
    }

    fn project(&self) -> PathBuf {
        self.folder.path().join("project")
    }

    fn trust(&self) -> TrustStore {
        TrustStore::open(&self.folder.path().join("state"))
    }

    fn accept(&self, hash: &str) {
        let trusted = TrustedRepairPolicy {
            hash: hash.to_owned(),
            content: format!("content of {hash}"),
            trusted_at: Timestamp::from_seconds(7),
            trusted_by: "me".to_owned(),
        };
        let accepted = self
            .trust()
            .accept(&self.project(), Some(trusted), files("package.json"));
        accepted.unwrap();
    }

    fn standing(&self, hash: &str) -> TrustStatus {
        self.trust().status(&self.project(), hash)
    }

    fn only_file(&self) -> PathBuf {
        let mut files = fs::read_dir(self.folder.path().join("state/trust")).unwrap();
        let file = files.next().unwrap().unwrap().path();
        assert!(files.next().is_none(), "something was left behind");
        file
    }
}

fn files(name: &str) -> WatchedFileBaseline {
    let accepted = AcceptedWatchedFilePart {
        hash: "h".to_owned(),
        excerpt: String::new(),
    };
    WatchedFileBaseline([(name.to_owned(), accepted)].into())
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[test]
fn only_the_exact_trusted_content_is_trusted() {
    let place = Place::new();
    assert_eq!(place.standing("one"), TrustStatus::NeverTrusted);
    place.accept("one");
    assert_eq!(place.standing("one"), TrustStatus::Trusted);
    let changed = TrustStatus::Changed {
        since: Timestamp::from_seconds(7),
        content: "content of one".to_owned(),
    };
    assert_eq!(place.standing("two"), changed);
    assert!(
        place
            .trust()
            .accepted_files(&place.project())
            .get("package.json")
            .is_some()
    );
    assert!(place.trust().forget(&place.project()).unwrap());
    assert_eq!(place.standing("one"), TrustStatus::NeverTrusted);
    assert!(!place.trust().forget(&place.project()).unwrap());
}

#[test]
fn records_are_accessible_by_their_owner_only() {
    let place = Place::new();
    place.accept("one");
    let file = place.only_file();
    assert_eq!((mode(&file), mode(file.parent().unwrap())), (0o600, 0o700));
}

#[test]
fn a_damaged_or_writable_record_is_ignored() {
    let place = Place::new();
    place.accept("one");
    let file = place.only_file();
    let whole = fs::read_to_string(&file).unwrap();
    let breakages = [
        whole[..whole.len() / 2].to_owned(),
        String::new(),
        whole.replace("\"version\": 1", "\"version\": 2"),
        whole.replace("\"inode\": ", "\"inode\": 9"),
        whole.replace("\"project\": \"", "\"project\": \"/other"),
    ];
    for broken in breakages {
        fs::write(&file, &broken).unwrap();
        assert_eq!(place.standing("one"), TrustStatus::NeverTrusted, "{broken}");
    }
    fs::write(&file, &whole).unwrap();
    assert_eq!(place.standing("one"), TrustStatus::Trusted);
    fs::set_permissions(&file, fs::Permissions::from_mode(0o620)).unwrap();
    assert_eq!(place.standing("one"), TrustStatus::NeverTrusted);
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
    let folder = file.parent().unwrap();
    fs::set_permissions(folder, fs::Permissions::from_mode(0o777)).unwrap();
    assert_eq!(place.standing("one"), TrustStatus::NeverTrusted);
    let refused = place.trust().accept_files(&place.project(), files("a"));
    assert!(matches!(refused, Err(TrustError::NotPrivate { .. })));
}

#[test]
fn a_symlinked_record_is_ignored() {
    let place = Place::new();
    place.accept("one");
    let file = place.only_file();
    let elsewhere = place.folder.path().join("elsewhere.json");
    fs::rename(&file, &elsewhere).unwrap();
    symlink(&elsewhere, &file).unwrap();
    assert_eq!(place.standing("one"), TrustStatus::NeverTrusted);
}

#[test]
fn trust_does_not_carry_over_to_a_new_project_at_the_same_path() {
    let place = Place::new();
    place.accept("one");
    fs::rename(place.project(), place.folder.path().join("moved")).unwrap();
    fs::create_dir(place.project()).unwrap();
    assert_eq!(place.standing("one"), TrustStatus::NeverTrusted);
    let moved = place.folder.path().join("moved");
    assert_eq!(
        place.trust().status(&moved, "one"),
        TrustStatus::NeverTrusted
    );
}

#[test]
fn a_project_is_recognized_by_every_path_to_it() {
    let place = Place::new();
    place.accept("one");
    let link = place.folder.path().join("link");
    symlink(place.project(), &link).unwrap();
    assert_eq!(place.trust().status(&link, "one"), TrustStatus::Trusted);
}

#[test]
fn declining_is_remembered_and_keeps_earlier_trust() {
    let place = Place::new();
    place.trust().decline(&place.project(), "two").unwrap();
    assert_eq!(place.standing("two"), TrustStatus::Declined);
    place.accept("one");
    place.trust().decline(&place.project(), "two").unwrap();
    assert_eq!(place.standing("two"), TrustStatus::Declined);
    assert_eq!(place.standing("one"), TrustStatus::Trusted);
    place.accept("two");
    assert_eq!(place.standing("two"), TrustStatus::Trusted);
}

#[test]
fn accepting_files_trusts_nothing_else() {
    let place = Place::new();
    let accept = |name| place.trust().accept_files(&place.project(), files(name));
    accept("Makefile").unwrap();
    assert_eq!(place.standing("one"), TrustStatus::NeverTrusted);
    place.accept("one");
    accept("build.rs").unwrap();
    assert_eq!(place.standing("one"), TrustStatus::Trusted);
    let known = place.trust().accepted_files(&place.project());
    assert!(known.get("build.rs").is_some() && known.get("package.json").is_some());
}
