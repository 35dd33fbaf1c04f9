//! Tests of projects in worktrees, submodules, repositories without commits, merges, and outside of repositories.

use std::fs;
use std::path::Path;

use unstuck_core::RunId;
use unstuck_repair::watched_files::LastCommitFiles;
use unstuck_run::worktree::{CommittedTree, SnapshotExclusionReason, SnapshotStore, WorktreeError};

use super::{Repo, git};

#[test]
fn missing_repository_is_reported() {
    let folder = tempfile::tempdir().unwrap();
    let opened = SnapshotStore::open(folder.path(), &RunId::new("r"), folder.path());
    let error = opened.unwrap_err();
    assert!(matches!(error, WorktreeError::NoRepository { .. }));
    let said = error.to_string();
    assert!(said.ends_with("is not in a git repository"), "{said}");
    git(folder.path(), &["init", "-q", "--bare"]);
    let opened = SnapshotStore::open(folder.path(), &RunId::new("r"), folder.path());
    assert!(matches!(opened, Err(WorktreeError::NoRepository { .. })));
}

#[test]
fn repository_without_commits_is_supported() {
    let repo = Repo::without_commits();
    let empty = repo.take("empty");
    assert_eq!(empty.head, None);
    repo.write("a", "a\n");
    let before = repo.take("before");
    repo.write("a", "b\n");
    repo.git(&["add", "a"]);
    repo.git(&["commit", "-qm", "the first ever"]);
    let restored = repo.snapshots().restore(&before).unwrap();
    assert_eq!(repo.read("a"), "a\n");
    assert_eq!(restored.commits[0].subject, "the first ever");
    repo.snapshots().restore(&empty).unwrap();
    assert!(!repo.at("a").exists());
}

#[test]
fn detached_head_linked_worktree_and_subdirectory_are_supported() {
    let repo = Repo::new();
    repo.git(&["checkout", "-q", "--detach"]);
    repo.git(&["worktree", "add", "-q", "../other", "-b", "other"]);
    let other = repo.root().join("../other").canonicalize().unwrap();
    let below = other.join("src");
    let snapshots = SnapshotStore::open(&below, &RunId::new("r"), &repo.state()).unwrap();
    assert_eq!(snapshots.root(), other);
    let before = snapshots.create("before").unwrap();
    fs::write(other.join("tracked.txt"), "changed in the other\n").unwrap();
    snapshots.restore(&before).unwrap();
    assert_eq!(
        fs::read_to_string(other.join("tracked.txt")).unwrap(),
        "one\n"
    );
    assert_eq!(repo.take("here").tree, before.tree);
}

#[test]
fn commit_is_found_with_the_directories_of_its_repository() {
    let repo = Repo::new();
    repo.git(&["worktree", "add", "-q", "../other", "-b", "other"]);
    let other = repo.root().join("../other").canonicalize().unwrap();
    let head = repo.git(&["rev-parse", "HEAD"]);
    let found = CommittedTree::at_head(&other.join("src")).unwrap();
    assert_eq!(found.commit(), head);
    let git = repo.at(".git");
    assert_eq!(found.git_dirs(), [git.join("worktrees/other"), git.clone()]);
    assert_eq!(
        CommittedTree::at_head(&repo.root()).unwrap().git_dirs(),
        [git]
    );
    assert_eq!(
        CommittedTree::at_commit(&repo.root(), &head)
            .unwrap()
            .commit(),
        head
    );
}

#[test]
fn name_that_is_not_a_commit_is_an_error() {
    let repo = Repo::new();
    let blob = repo.git(&["rev-parse", "HEAD:tracked.txt"]);
    for name in ["", "--all", "HEAD:tracked.txt", "nothing", &blob] {
        let error = CommittedTree::at_commit(&repo.root(), name).unwrap_err();
        assert!(
            matches!(error, WorktreeError::Git { .. }),
            "{name}: {error:?}"
        );
    }
    let empty = tempfile::tempdir().unwrap();
    git(empty.path(), &["init", "-q"]);
    assert!(CommittedTree::at_head(empty.path()).is_err());
}

#[test]
fn submodule_has_its_own_snapshots_and_its_parent_excludes_it() {
    let (repo, library) = (Repo::new(), Repo::new());
    let url = library.root().display().to_string();
    repo.git(&["submodule", "--quiet", "add", &url, "lib"]);
    repo.git(&["commit", "-qm", "with a library"]);
    let outer = repo.take("outer");
    assert_eq!(outer.excluded[0].path, "lib");
    assert_eq!(
        outer.excluded[0].reason,
        SnapshotExclusionReason::Repository
    );
    let inner = SnapshotStore::open(&repo.at("lib"), &RunId::new("r"), &repo.state()).unwrap();
    let before = inner.create("before").unwrap();
    repo.write("lib/tracked.txt", "changed\n");
    assert_eq!(repo.take("outer").tree, outer.tree);
    inner.restore(&before).unwrap();
    assert_eq!(repo.read("lib/tracked.txt"), "one\n");
}

/// Another repository of the owner, which no project may make unstuck write to.
fn others() -> Repo {
    let other = Repo::new();
    other.write("secret.txt", "the owner's\n");
    other.git(&["add", "-A"]);
    other.git(&["commit", "-qm", "private"]);
    other
}

/// Writes a directory that claims to belong to a linked work tree of another repository.
fn pretend_linked(own: &Path, git: &Path, common: &Path) {
    fs::create_dir_all(own).unwrap();
    fs::write(own.join("gitdir"), format!("{}\n", git.display())).unwrap();
    fs::write(own.join("commondir"), format!("{}\n", common.display())).unwrap();
    fs::write(own.join("HEAD"), "ref: refs/heads/main\n").unwrap();
}

#[track_caller]
fn expect_redirected(place: &Path, state: &Path) {
    let opened = SnapshotStore::open(place, &RunId::new("r"), state);
    let error = opened.unwrap_err();
    assert!(
        matches!(error, WorktreeError::Redirected { .. }),
        "{error:?}"
    );
    assert!(CommittedTree::at_head(place).is_err());
}

/// A `.git` file that an agent wrote never leads to a repository of its choice, neither to read nor to write.
#[test]
fn git_file_never_leads_to_another_repository() {
    for own in [
        "project/evil",
        "evil",
        "evil/worktrees/x",
        "project/evil/worktrees/x",
    ] {
        let other = others();
        let before = other.files();
        let folder = tempfile::tempdir().unwrap();
        let base = folder.path().canonicalize().unwrap();
        let (project, own) = (base.join("project"), base.join(own));
        fs::create_dir(&project).unwrap();
        let git = project.join(".git");
        pretend_linked(&own, &git, &other.at(".git"));
        fs::write(&git, format!("gitdir: {}\n", own.display())).unwrap();
        // Git itself accepts it.
        let seen = super::git(&project, &["rev-parse", "--git-common-dir"]);
        assert_eq!(Path::new(&seen), other.at(".git"));
        expect_redirected(&project, &base.join("state"));
        let refs = other.git(&["for-each-ref"]);
        assert!(!refs.contains("unstuck"), "{refs}");
        assert_eq!(other.files(), before);
    }
}

/// A repository below the project is not one that `.git` may name.
#[test]
fn git_file_that_names_a_directory_of_the_project_is_refused() {
    let repo = Repo::new();
    fs::rename(repo.at(".git"), repo.at("evil")).unwrap();
    repo.write(".git", "gitdir: evil\n");
    let back = format!("{}\n", repo.at(".git").display());
    repo.write("evil/gitdir", back);
    expect_redirected(&repo.root(), &repo.state());
}

#[test]
fn submodule_with_a_commondir_is_refused() {
    let (repo, library, other) = (Repo::new(), Repo::new(), others());
    let url = library.root().display().to_string();
    repo.git(&["submodule", "--quiet", "add", &url, "lib"]);
    repo.git(&["commit", "-qm", "with a library"]);
    let lib = repo.at("lib");
    SnapshotStore::open(&lib, &RunId::new("r"), &repo.state()).unwrap();
    let common = format!("{}\n", other.at(".git").display());
    repo.write(".git/modules/lib/commondir", common);
    expect_redirected(&lib, &repo.state());
    // Not even if it looks like a linked work tree.
    let back = format!("{}\n", lib.join(".git").display());
    repo.write(".git/modules/lib/gitdir", back);
    expect_redirected(&lib, &repo.state());
}

/// A linked work tree is pinned to its repository while unstuck uses it.
#[test]
fn commondir_replaced_during_a_run_is_refused() {
    let (repo, other) = (Repo::new(), others());
    repo.git(&["worktree", "add", "-q", "../other", "-b", "other"]);
    let linked = repo.root().join("../other").canonicalize().unwrap();
    let snapshots = SnapshotStore::open(&linked, &RunId::new("r"), &repo.state()).unwrap();
    snapshots.create("before").unwrap();
    let common = format!("{}\n", other.at(".git").display());
    repo.write(".git/worktrees/other/commondir", common);
    assert!(snapshots.create("after").is_err());
    assert!(!other.git(&["for-each-ref"]).contains("unstuck"));
}

/// A linked work tree of a submodule, and one in the directory of its own repository, are supported.
#[test]
fn linked_worktrees_elsewhere_are_supported() {
    let (repo, library) = (Repo::new(), Repo::new());
    let url = library.root().display().to_string();
    repo.git(&["submodule", "--quiet", "add", &url, "lib"]);
    git(
        &repo.at("lib"),
        &["worktree", "add", "-q", "../lib-2", "-b", "two"],
    );
    repo.git(&["worktree", "add", "-q", "inside", "-b", "inside"]);
    for place in ["lib-2", "inside"] {
        let opened = SnapshotStore::open(&repo.at(place), &RunId::new("r"), &repo.state());
        opened.unwrap().create("before").unwrap();
        CommittedTree::at_head(&repo.at(place)).unwrap();
    }
}

#[test]
fn nested_repository_is_never_removed() {
    let repo = Repo::new();
    repo.write("vendor/clone/a", "precious\n");
    git(&repo.at("vendor/clone"), &["init", "-q"]);
    let before = repo.take("before");
    assert_eq!(before.excluded[0].path, "vendor/clone");
    fs::remove_dir_all(repo.at("vendor/clone/.git")).unwrap();
    let restored = repo.snapshots().restore(&before).unwrap();
    assert_eq!(repo.read("vendor/clone/a"), "precious\n");
    assert_eq!(restored.unrestored[0].path, "vendor/clone/a");
}

#[test]
fn merge_with_conflicts_is_not_changed() {
    let repo = Repo::new();
    repo.git(&["checkout", "-qb", "theirs"]);
    repo.write("tracked.txt", "theirs\n");
    repo.git(&["commit", "-qam", "theirs"]);
    repo.git(&["checkout", "-q", "main"]);
    repo.write("tracked.txt", "ours\n");
    repo.git(&["commit", "-qam", "ours"]);
    repo.git(&["merge", "-q", "--no-commit", "-s", "ours", "theirs"]);
    let stage = |number: &str| {
        let blob = repo.git(&["rev-parse", "HEAD:tracked.txt"]);
        format!("100644 {blob} {number}\ttracked.txt\n")
    };
    let conflict = repo.folder.path().join("conflict");
    fs::write(&conflict, format!("{}{}", stage("2"), stage("3"))).unwrap();
    git_shell(
        &repo,
        &format!(
            "git update-index --force-remove tracked.txt && git update-index --index-info < {}",
            conflict.display()
        ),
    );
    repo.write("tracked.txt", "<<<<<<< ours\n");
    let seen = repo.as_the_user_sees_it();
    assert!(seen[0].contains("\nu "), "{}", seen[0]);
    let (before, files) = (repo.take("before"), repo.files());
    repo.write("tracked.txt", "resolved\n");
    repo.snapshots().restore(&before).unwrap();
    assert_eq!((repo.files(), repo.as_the_user_sees_it()), (files, seen));
    assert!(repo.at(".git/MERGE_HEAD").exists());
}

#[expect(clippy::disallowed_methods, reason = "git as the user runs it")]
fn git_shell(repo: &Repo, line: &str) {
    let status = std::process::Command::new("sh")
        .args(["-c", line])
        .current_dir(repo.root())
        .status()
        .unwrap();
    assert!(status.success());
}

#[test]
fn sparse_checkout_is_stored_as_it_is_on_disk() {
    let repo = Repo::new();
    repo.git(&[
        "sparse-checkout",
        "set",
        "--no-cone",
        "/tracked.txt",
        "/.gitignore",
    ]);
    assert!(!repo.at("src").exists());
    let before = repo.take("before");
    repo.write("src/deep/main.rs", "outside of what is checked out\n");
    repo.write("tracked.txt", "two\n");
    assert_ne!(repo.take("after").tree, before.tree);
    repo.snapshots().restore(&before).unwrap();
    assert!(!repo.at("src").exists());
    assert_eq!(repo.read("tracked.txt"), "one\n");
}

#[test]
fn index_lock_is_ignored_and_ref_lock_is_reported() {
    let repo = Repo::new();
    repo.write(".git/index.lock", "");
    repo.take("before");
    repo.write(".git/refs/unstuck/k3v9x0m2qa/before.lock", "");
    let error = repo.snapshots().create("before").unwrap_err();
    assert!(matches!(error, WorktreeError::Locked { .. }), "{error}");
}

#[test]
fn deleted_project_directory_is_an_error() {
    let repo = Repo::new();
    let gone = SnapshotStore::open(&repo.at("nowhere"), &RunId::new("r"), &repo.state());
    assert!(matches!(gone, Err(WorktreeError::System { .. })));
}
