//! Tests of the detection of changes, with and without git.

use std::fs;

use unstuck_run::worktree::fingerprint;

use super::Repo;

#[test]
fn commit_without_changed_files_is_a_change() {
    let repo = Repo::new();
    let look = || fingerprint(&repo.root(), &repo.state()).unwrap();
    let first = look();
    repo.write("debug.log", "ignored\n");
    assert_eq!(look(), first);
    repo.write("tracked.txt", "two\n");
    let second = look();
    assert_ne!(second, first);
    repo.git(&["commit", "-qam", "the same files"]);
    assert_ne!(look(), second);
    assert_eq!(
        repo.git(&["for-each-ref", "refs/unstuck"]),
        "",
        "nothing is kept"
    );
}

#[test]
fn directory_without_a_repository_has_a_fingerprint() {
    let folder = tempfile::tempdir().unwrap();
    let look = || fingerprint(folder.path(), &folder.path().join("state")).unwrap();
    let first = look();
    assert_eq!(look(), first);
    fs::write(folder.path().join("a"), "a").unwrap();
    assert_ne!(look(), first);
}
