//! Tests that a restore loses nothing and changes only different files.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};

use proptest::prelude::*;

use super::Repo;

#[test]
fn uncommitted_changes_are_restored_exactly() {
    let repo = Repo::new();
    repo.write("tracked.txt", "uncommitted\n");
    repo.write("notes/new.txt", "untracked\n");
    repo.write("run.sh", "#!/bin/sh\n");
    repo.executable("run.sh");
    repo.link("link", "notes/new.txt");
    fs::remove_file(repo.at("src/deep/main.rs")).unwrap();
    let (before, files) = (repo.take("before"), repo.files());
    repo.write("tracked.txt", "by the agent\n");
    repo.write("src/deep/main.rs", "written again\n");
    repo.write("agent/made/this.txt", "x\n");
    fs::remove_dir_all(repo.at("notes")).unwrap();
    repo.write("notes", "now a file\n");
    fs::remove_file(repo.at("link")).unwrap();
    repo.write("link", "now a file\n");
    fs::set_permissions(repo.at("run.sh"), fs::Permissions::from_mode(0o644)).unwrap();
    let restored = repo.snapshots().restore(&before).unwrap();
    assert_eq!(repo.files(), files);
    assert!(!repo.at("agent").exists(), "no empty folders stay");
    assert_eq!(
        restored.removed,
        ["notes", "agent/made/this.txt", "src/deep/main.rs"]
    );
    assert!(restored.unrestored.is_empty());
    // And back again: the undone changes are not lost.
    let undone = repo
        .snapshots()
        .find(&restored.previous_state.label)
        .unwrap()
        .unwrap();
    repo.snapshots().restore(&undone).unwrap();
    assert_eq!(repo.read("tracked.txt"), "by the agent\n");
    assert_eq!(repo.read("notes"), "now a file\n");
}

#[test]
fn only_different_files_are_changed() {
    let repo = Repo::new();
    let before = repo.take("before");
    let inode = |name: &str| {
        let data = repo.at(name).metadata().unwrap();
        (data.ino(), data.mtime_nsec(), data.ctime_nsec())
    };
    let same = inode("src/deep/main.rs");
    repo.write("tracked.txt", "two\n");
    let restored = repo.snapshots().restore(&before).unwrap();
    assert_eq!(restored.written, ["tracked.txt"]);
    assert_eq!(inode("src/deep/main.rs"), same);
    let again = repo.snapshots().restore(&before).unwrap();
    assert!(again.written.is_empty() && again.removed.is_empty());
}

/// An agent that stops ignoring a file must not make the restore delete it.
#[test]
fn previously_ignored_files_are_never_removed() {
    let repo = Repo::new();
    repo.write("secrets.log", "precious\n");
    let before = repo.take("before");
    repo.write(".gitignore", "");
    repo.write("made.txt", "by the agent\n");
    let restored = repo.snapshots().restore(&before).unwrap();
    assert_eq!(repo.read("secrets.log"), "precious\n");
    assert_eq!(repo.read(".gitignore"), "*.log\n/ignored/\n");
    assert!(!repo.at("made.txt").exists());
    assert_eq!(restored.unrestored[0].path, "secrets.log");
}

/// A large file is not in the snapshot; what an agent left of it is kept rather than removed.
#[test]
fn previously_excluded_files_are_never_removed() {
    let repo = Repo::new();
    fs::File::create(repo.at("data.bin"))
        .unwrap()
        .set_len(51 << 20)
        .unwrap();
    let before = repo.take("before");
    repo.write("data.bin", "cut short\n");
    let restored = repo.snapshots().restore(&before).unwrap();
    assert_eq!(repo.read("data.bin"), "cut short\n");
    assert_eq!(restored.unrestored[0].path, "data.bin");
}

/// A link in place of a directory must not redirect the restore.
#[test]
fn nothing_is_written_through_a_link() {
    let repo = Repo::new();
    repo.write("ignore-me/x", "inside\n");
    let before = repo.take("before");
    let outside = repo.folder.path().join("outside");
    fs::create_dir(&outside).unwrap();
    fs::remove_dir_all(repo.at("ignore-me")).unwrap();
    repo.link("ignore-me", outside.to_str().unwrap());
    fs::write(repo.at(".git/info/exclude"), "/ignore-me\n").unwrap();
    let restored = repo.snapshots().restore(&before).unwrap();
    assert!(fs::read_dir(&outside).unwrap().next().is_none());
    assert_eq!(restored.unrestored[0].path, "ignore-me/x");
}

#[test]
fn commits_are_kept_and_reported() {
    let repo = Repo::new();
    let before = repo.take("before");
    repo.write("tracked.txt", "two\n");
    repo.git(&["commit", "-qam", "by the agent"]);
    let head = repo.git(&["rev-parse", "HEAD"]);
    let restored = repo.snapshots().restore(&before).unwrap();
    assert_eq!(repo.read("tracked.txt"), "one\n");
    assert_eq!(repo.git(&["rev-parse", "HEAD"]), head);
    assert!(restored.head_moved);
    assert_eq!(restored.commits.len(), 1);
    assert_eq!(
        (
            restored.commits[0].id.as_str(),
            restored.commits[0].subject.as_str()
        ),
        (head.as_str(), "by the agent")
    );
}

#[test]
fn file_permissions_are_kept() {
    let repo = Repo::new();
    repo.write("private.txt", "mine\n");
    fs::set_permissions(repo.at("private.txt"), fs::Permissions::from_mode(0o600)).unwrap();
    let before = repo.take("before");
    repo.write("private.txt", "changed\n");
    repo.snapshots().restore(&before).unwrap();
    let mode = repo.at("private.txt").metadata().unwrap().mode();
    assert_eq!(mode & 0o777, 0o600);
}

/// An edit of a work tree by an agent.
#[derive(Debug, Clone)]
enum Edit {
    Write(&'static str, u8),
    Executable(&'static str),
    Link(&'static str, &'static str),
    Remove(&'static str),
    Stage,
    Commit,
}

const PLACES: [&str; 9] = [
    "a",
    "b",
    "a/x",
    "a/y",
    "b/x/deep",
    "tracked.txt",
    "src",
    "src/deep/main.rs",
    "src/deep",
];

fn edit() -> impl Strategy<Value = Edit> {
    let place = || prop::sample::select(&PLACES[..]);
    prop_oneof![
        6 => (place(), any::<u8>()).prop_map(|(place, byte)| Edit::Write(place, byte)),
        2 => place().prop_map(Edit::Executable),
        2 => (place(), place()).prop_map(|(place, to)| Edit::Link(place, to)),
        3 => place().prop_map(Edit::Remove),
        1 => Just(Edit::Stage),
        1 => Just(Edit::Commit),
    ]
}

/// Performs an edit if possible; an obstacle is removed first, as an agent would.
fn perform(repo: &Repo, edit: &Edit) {
    let clear = |name: &str| {
        let place = repo.at(name);
        let root = repo.root();
        let above: Vec<_> = place
            .ancestors()
            .take_while(|folder| *folder != root)
            .collect();
        for (depth, place) in above.into_iter().rev().enumerate() {
            let last = depth + 1 == name.split('/').count();
            match place.symlink_metadata() {
                Ok(data) if data.is_dir() && last => fs::remove_dir_all(place).unwrap(),
                Ok(data) if !data.is_dir() => fs::remove_file(place).unwrap(),
                _ => {}
            }
        }
        fs::create_dir_all(place.parent().unwrap()).unwrap();
    };
    match edit {
        Edit::Write(name, byte) => {
            clear(name);
            repo.write(name, vec![*byte; usize::from(*byte % 5)]);
        }
        Edit::Executable(name) => {
            clear(name);
            repo.write(name, "#!/bin/sh\n");
            repo.executable(name);
        }
        Edit::Link(name, to) => {
            clear(name);
            repo.link(name, to);
        }
        Edit::Remove(name) => clear(name),
        Edit::Stage => drop(repo.git(&["add", "-A"])),
        Edit::Commit => drop(repo.git(&["commit", "-q", "--allow-empty", "-am", "x"])),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    /// For any edits before and after a snapshot, the restore brings back every byte, and a second one brings back the
    /// undone edits.
    #[test]
    fn every_edit_is_undone_byte_for_byte(
        before in prop::collection::vec(edit(), 0..8),
        after in prop::collection::vec(edit(), 1..8),
    ) {
        let repo = Repo::new();
        before.iter().for_each(|edit| perform(&repo, edit));
        let (snapshot, files) = (repo.take("before"), repo.files());
        after.iter().for_each(|edit| perform(&repo, edit));
        let (changed, seen) = (repo.files(), repo.as_the_user_sees_it());
        let restored = repo.snapshots().restore(&snapshot).unwrap();
        prop_assert_eq!(repo.files(), files);
        prop_assert!(restored.unrestored.is_empty());
        prop_assert_eq!(&repo.take("x").tree, &snapshot.tree);
        repo.snapshots().restore(&restored.previous_state).unwrap();
        prop_assert_eq!(repo.files(), changed);
        prop_assert_eq!(repo.as_the_user_sees_it(), seen);
    }
}

#[test]
fn empty_directory_in_place_of_a_file_is_replaced() {
    let repo = Repo::new();
    let before = repo.take("before");
    fs::remove_file(repo.at("tracked.txt")).unwrap();
    fs::create_dir_all(repo.at("tracked.txt/and/more")).unwrap();
    let restored = repo.snapshots().restore(&before).unwrap();
    assert!(restored.previous_state.excluded.is_empty());
    assert_eq!(repo.read("tracked.txt"), "one\n");
}
