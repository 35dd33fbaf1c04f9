//! Whether anything changed, with git and without.

use std::fs;

use unstuck_run::worktree::fingerprint;

use super::Repo;

#[test]
fn a_commit_without_a_change_of_files_is_a_change() {
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
fn a_folder_without_a_repository_has_one_too() {
    let folder = tempfile::tempdir().unwrap();
    let look = || fingerprint(folder.path(), &folder.path().join("state")).unwrap();
    let first = look();
    assert_eq!(look(), first);
    fs::write(folder.path().join("a"), "a").unwrap();
    assert_ne!(look(), first);
}
