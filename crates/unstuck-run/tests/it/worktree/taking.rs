//! Tests that snapshots are exact and invisible to the user.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;

use unstuck_core::RunId;
use unstuck_run::worktree::{DiffAudience, FileChangeKind, SnapshotExclusionReason, SnapshotStore};

use super::Repo;

fn names(repo: &Repo, tree: &str) -> Vec<String> {
    let listed = repo.git(&["ls-tree", "-r", "--name-only", tree]);
    listed.lines().map(str::to_owned).collect()
}

#[test]
fn snapshot_has_tracked_and_new_files_but_not_ignored_ones() {
    let repo = Repo::new();
    repo.write("new.txt", "new\n");
    repo.write("debug.log", "ignored\n");
    repo.write("ignored/x", "ignored\n");
    repo.write(".unstuck/runs/x/events.jsonl", "ours\n");
    fs::remove_file(repo.at("src/deep/main.rs")).unwrap();
    let taken = repo.take("before");
    assert_eq!(
        names(&repo, &taken.tree),
        [".gitignore", "new.txt", "tracked.txt"]
    );
    assert_eq!(
        taken.head.as_deref(),
        Some(repo.git(&["rev-parse", "HEAD"]).as_str())
    );
    assert!(taken.excluded.is_empty());
}

#[test]
fn snapshot_is_invisible_to_the_user() {
    let repo = Repo::new();
    repo.write("tracked.txt", "two\n");
    repo.git(&["stash", "push", "-q"]);
    repo.write("staged.txt", "staged\n");
    repo.git(&["add", "staged.txt"]);
    repo.write("staged.txt", "and changed since\n");
    repo.write("new.txt", "new\n");
    repo.git(&["update-index", "--assume-unchanged", "tracked.txt"]);
    let before = repo.as_the_user_sees_it();
    let index = fs::read(repo.at(".git/index")).unwrap();
    repo.take("before");
    repo.write("new.txt", "newer\n");
    repo.write("tracked.txt", "not noticed by git status\n");
    let after = repo.take("after");
    assert_eq!(repo.as_the_user_sees_it(), before);
    assert_eq!(fs::read(repo.at(".git/index")).unwrap(), index);
    let told = repo.git(&["cat-file", "blob", &format!("{}:tracked.txt", after.tree)]);
    assert_eq!(told, "not noticed by git status");
}

#[test]
fn snapshot_survives_git_gc_until_it_is_deleted() {
    let repo = Repo::new();
    repo.write("new.txt", "only in the snapshot\n");
    let taken = repo.take("before");
    fs::remove_file(repo.at("new.txt")).unwrap();
    let prune = || repo.git(&["gc", "-q", "--prune=now"]);
    prune();
    let contents = format!("{}:new.txt", taken.tree);
    assert_eq!(
        repo.git(&["cat-file", "blob", &contents]),
        "only in the snapshot"
    );
    let other = repo.open("another0run").unwrap();
    other.create("before").unwrap();
    assert_eq!(repo.snapshots().list().unwrap().len(), 1);
    assert_eq!(
        repo.snapshots().find("before").unwrap(),
        Some(taken.clone())
    );
    assert_eq!(repo.snapshots().delete_all().unwrap(), 1);
    assert!(repo.snapshots().list().unwrap().is_empty());
    assert_eq!(other.list().unwrap().len(), 1);
    prune();
    let lost = repo
        .snapshots()
        .diff(&taken.tree, &taken.tree, DiffAudience::Program);
    assert!(
        lost.unwrap_err()
            .to_string()
            .contains("no longer in the repository")
    );
    // The cache names objects that are gone now; the next snapshot is complete all the same.
    repo.write("new.txt", "only in the snapshot\n");
    let again = repo.take("again");
    assert_eq!(again.tree, taken.tree);
    assert_eq!(
        repo.git(&["cat-file", "blob", &contents]),
        "only in the snapshot"
    );
}

#[test]
fn same_size_change_in_the_same_instant_is_detected() {
    let repo = Repo::new();
    let mut trees = vec![repo.take("0").tree];
    for round in 1..20 {
        repo.write("tracked.txt", format!("{round:03}\n"));
        trees.push(repo.take("x").tree);
    }
    let count = trees.len();
    trees.sort();
    trees.dedup();
    assert_eq!(trees.len(), count);
    assert_eq!(repo.take("x").tree, repo.take("y").tree);
}

#[test]
fn damaged_cache_only_costs_time() {
    let repo = Repo::new();
    let tree = repo.take("x").tree;
    let folder = fs::read_dir(repo.state().join("worktrees")).unwrap();
    let folder = folder.flatten().next().unwrap().path();
    let files = folder.join("files");
    let record = fs::read_to_string(&files).unwrap();
    let lost = "1".repeat(tree.len());
    fs::write(&files, record.replace(&tree, &lost)).unwrap();
    assert_eq!(repo.take("x").tree, tree);
    repo.write("tracked.txt", "two\n");
    let changed = repo.take("x").tree;
    assert_ne!(changed, tree);
    fs::write(&files, "rubbish").unwrap();
    assert_eq!(repo.take("x").tree, changed);
    let blob = repo.git(&["rev-parse", &format!("{changed}:tracked.txt")]);
    let record = fs::read_to_string(&files).unwrap();
    let record = record.replace(&changed, &lost).replace(&blob, &lost);
    fs::write(&files, record).unwrap();
    assert_eq!(repo.take("x").tree, changed);
    repo.write("tracked.txt", "one\n");
    assert_eq!(repo.take("x").tree, tree);
}

#[test]
fn names_are_case_sensitive_whatever_the_repository_configures() {
    let repo = Repo::new();
    repo.git(&["config", "core.ignoreCase", "true"]);
    repo.write("New/a", "one\n");
    repo.write("new/b", "two\n");
    let taken = repo.take("x");
    let names = names(&repo, &taken.tree);
    assert!(names.contains(&"New/a".to_owned()), "{names:?}");
    assert!(names.contains(&"new/b".to_owned()), "{names:?}");
}

#[test]
fn directory_and_file_can_replace_each_other() {
    let repo = Repo::new();
    repo.write("one", "a file\n");
    repo.write("two/deep/x", "in a folder\n");
    let before = repo.take("before");
    fs::remove_file(repo.at("one")).unwrap();
    fs::remove_dir_all(repo.at("two")).unwrap();
    repo.write("one/deep/x", "in a folder\n");
    repo.write("two", "a file\n");
    let after = repo.take("after");
    let added = names(&repo, &after.tree);
    assert!(added.contains(&"one/deep/x".to_owned()) && added.contains(&"two".to_owned()));
    repo.git(&["add", "-A"]);
    assert_eq!(after.tree, repo.git(&["write-tree"]));
    assert_ne!(after.tree, before.tree);
    let refs = repo.git(&["for-each-ref", "--format=%(refname)", "refs/unstuck"]);
    assert_eq!(refs.lines().count(), 2, "{refs}");
}

/// Line-ending conversions, filters, and external programs of the repository are all ignored.
#[test]
fn files_are_stored_byte_for_byte_without_running_repository_programs() {
    let repo = Repo::new();
    let trap = format!("touch {}", repo.folder.path().join("ran").display());
    for name in [
        "filter.f.clean",
        "filter.f.smudge",
        "filter.f.process",
        "diff.external",
        "diff.d.command",
        "diff.d.textconv",
        "core.fsmonitor",
        "core.pager",
        "pager.diff-tree",
        "gpg.program",
        "core.editor",
    ] {
        repo.git(&["config", name, &trap]);
    }
    repo.git(&["config", "core.autocrlf", "true"]);
    repo.git(&["config", "core.hooksPath", "hooks"]);
    repo.git(&["config", "log.showSignature", "true"]);
    for hook in [
        "reference-transaction",
        "post-index-change",
        "post-checkout",
        "pre-auto-gc",
    ] {
        repo.write(&format!("hooks/{hook}"), format!("#!/bin/sh\n{trap}\n"));
        repo.executable(&format!("hooks/{hook}"));
    }
    repo.write(".gitattributes", "* text=auto filter=f diff=d\n");
    repo.write("crlf.txt", "one\r\ntwo\n");
    let before = repo.take("before");
    repo.write("crlf.txt", "one\ntwo\n");
    let after = repo.take("after");
    let snapshots = repo.snapshots();
    let patch = snapshots
        .diff(&before.tree, &after.tree, DiffAudience::Program)
        .unwrap();
    assert!(String::from_utf8(patch).unwrap().contains("-one\r\n+one\n"));
    snapshots.restore(&before).unwrap();
    assert_eq!(repo.read("crlf.txt"), "one\r\ntwo\n");
    assert!(!repo.folder.path().join("ran").exists());
}

#[test]
fn unusual_file_names_are_supported() {
    let repo = Repo::new();
    let odd = [
        &b"new\nline"[..],
        b"\xff\xfe.bin",
        b"tab\there",
        b"\"quoted\"",
        b"back\\slash",
        b"ends in cr\r",
        b"-dash",
        b":(top)",
        b" space ",
        b"*",
        b"git~1",
        "Grüße".as_bytes(),
    ];
    for name in odd {
        fs::write(repo.root().join(OsStr::from_bytes(name)), name).unwrap();
    }
    repo.link("link\n", "to\nsomewhere");
    let (before, files) = (repo.take("before"), repo.files());
    for name in odd {
        fs::write(repo.root().join(OsStr::from_bytes(name)), "changed").unwrap();
    }
    fs::remove_file(repo.at("link\n")).unwrap();
    let after = repo.take("after");
    let changed = repo
        .snapshots()
        .changed_files(&before.tree, &after.tree)
        .unwrap();
    assert_eq!(changed.len(), odd.len() + 1);
    assert!(changed.iter().any(|file| file.path == "\\377\\376.bin"));
    repo.snapshots().restore(&before).unwrap();
    assert_eq!(repo.files(), files);
}

#[test]
fn large_untracked_files_are_excluded_and_listed() {
    let repo = Repo::new();
    fs::File::create(repo.at("core.dump"))
        .unwrap()
        .set_len(51 << 20)
        .unwrap();
    let taken = repo.take("before");
    assert_eq!(taken.excluded[0].path, "core.dump");
    assert_eq!(taken.excluded[0].reason, SnapshotExclusionReason::TooLarge);
    assert!(!names(&repo, &taken.tree).contains(&"core.dump".to_owned()));
}

#[test]
fn changes_are_listed_by_file_and_as_an_applicable_patch() {
    let repo = Repo::new();
    let before = repo.take("before");
    repo.write("tracked.txt", "one\ntwo\n");
    repo.write("new.bin", [0, 159, 146, 150]);
    fs::remove_file(repo.at("src/deep/main.rs")).unwrap();
    let after = repo.take("after");
    let snapshots = repo.snapshots();
    let files = snapshots.changed_files(&before.tree, &after.tree).unwrap();
    let told: Vec<_> = files
        .iter()
        .map(|file| (file.path.as_str(), file.change, file.added, file.removed))
        .collect();
    assert_eq!(
        told,
        [
            ("new.bin", FileChangeKind::Added, None, None),
            (
                "src/deep/main.rs",
                FileChangeKind::Deleted,
                Some(0),
                Some(1)
            ),
            ("tracked.txt", FileChangeKind::Modified, Some(1), Some(0)),
        ]
    );
    let patch = snapshots
        .diff(&before.tree, &after.tree, DiffAudience::Program)
        .unwrap();
    let read = snapshots
        .diff(&before.tree, &after.tree, DiffAudience::Person)
        .unwrap();
    let read = String::from_utf8(read).unwrap();
    assert!(
        read.contains("Binary files /dev/null and b/new.bin differ\n"),
        "{read}"
    );
    snapshots.restore(&before).unwrap();
    let file = repo.folder.path().join("patch");
    fs::write(&file, patch).unwrap();
    repo.git(&["apply", file.to_str().unwrap()]);
    assert_eq!(repo.take("applied").tree, after.tree);
    assert!(
        snapshots
            .diff(&after.tree, &after.tree, DiffAudience::Program)
            .unwrap()
            .is_empty()
    );
}

#[test]
fn files_behind_a_link_are_not_part_of_the_work_tree() {
    let repo = Repo::new();
    let outside = repo.folder.path().join("outside");
    fs::create_dir_all(outside.join("deep")).unwrap();
    fs::write(outside.join("deep/main.rs"), "not ours\n").unwrap();
    let (before, files) = (repo.take("before"), repo.files());
    fs::remove_dir_all(repo.at("src")).unwrap();
    repo.link("src", outside.to_str().unwrap());
    let after = repo.take("after");
    assert_eq!(
        names(&repo, &after.tree),
        [".gitignore", "src", "tracked.txt"]
    );
    repo.snapshots().restore(&before).unwrap();
    assert_eq!(repo.files(), files);
    assert_eq!(
        fs::read_to_string(outside.join("deep/main.rs")).unwrap(),
        "not ours\n"
    );
}

/// A store in the project changes all the time, and restoring it would damage it.
#[test]
fn files_of_unstuck_itself_are_excluded() {
    let repo = Repo::new();
    let run = RunId::new("r");
    let snapshots = SnapshotStore::open(&repo.root(), &run, &repo.at("history.d")).unwrap();
    repo.write("history.db", "SQLite format 3\0 and more");
    repo.write("history.db-wal", "more");
    repo.write("history.md", "the user's own\n");
    let before = snapshots.create("before").unwrap();
    let held = [
        ".gitignore",
        "history.md",
        "src/deep/main.rs",
        "tracked.txt",
    ];
    assert_eq!(names(&repo, &before.tree), held);
    repo.write("history.db", "SQLite format 3\0 and other things");
    assert_eq!(snapshots.create("after").unwrap().tree, before.tree);
}
