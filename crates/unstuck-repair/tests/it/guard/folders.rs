//! `working_dir`: a handle on a directory of the project, or a refusal.

use std::path::Path;

use unstuck_core::command_policy::WorkingDirProtection as Standing;
use unstuck_repair::project_dir::{DirOpenError, ProjectDirError, ProjectRoot};

use super::{Place, identity};

fn problem(root: &ProjectRoot, working_dir: &str) -> DirOpenError {
    match root.open_working_dir(Some(working_dir)) {
        Err(ProjectDirError::WorkingDir { problem, .. }) => problem,
        other => panic!("{working_dir}: {other:?}"),
    }
}

/// S3-12, S3-48: a path that stays inside is opened, and reported by its resolved path.
#[test]
fn a_directory_of_the_project_is_opened() {
    let place = Place::new();
    let root = place.root();
    let project = place.project().display().to_string();
    let inside = [
        (".", ""),
        ("./", ""),
        ("packages/web", "packages/web"),
        ("packages/web/", "packages/web"),
        ("packages//web", "packages/web"),
        ("./packages/./web", "packages/web"),
        ("packages/../packages/web", "packages/web"),
        ("packages/web/../..", ""),
        ("dir with space", "dir with space"),
        ("ünïcode", "ünïcode"),
        ("...", "..."),
        ("..hidden", "..hidden"),
        ("-rf", "-rf"),
        ("inside", "packages/web"),
        ("inside/..", "packages"),
        ("here", ""),
        ("here/here/packages", "packages"),
        (project.as_str(), ""),
        (&format!("{project}/"), ""),
        (&format!("{project}/packages/web"), "packages/web"),
        (&format!("{project}//packages/./web"), "packages/web"),
    ];
    for (working_dir, relative) in inside {
        let folder = root.open_working_dir(Some(working_dir)).unwrap();
        assert_eq!(folder.relative(), Path::new(relative), "{working_dir}");
        assert_eq!(
            folder.directory_kind(),
            &Standing::Ordinary,
            "{working_dir}"
        );
        let found = folder.identity();
        let expected = identity(&place.project().join(relative));
        assert_eq!((found.dev, found.ino), expected, "{working_dir}");
    }
    assert_eq!(
        root.open_working_dir(None).unwrap().relative(),
        Path::new("")
    );
}

/// S3-48: no path leads out, and nothing is expanded.
#[test]
fn paths_outside_the_project_and_non_directories_are_refused() {
    let place = Place::new();
    let root = place.root();
    let project = place.project().display().to_string();
    let name = "project";
    for working_dir in [
        "..",
        "../",
        "../outside",
        "packages/../..",
        "packages/web/../../../outside",
        &format!("../{name}"),
        &format!("../{name}/packages/web"),
        "/",
        "//",
        "/tmp",
        "/etc",
        "/proc/self/cwd",
        &format!("{project}/.."),
        &format!("{project}/../outside"),
        &format!("{project}/../{name}"),
        &format!("{project}-evil"),
        &format!("{project}evil"),
        "out",
        "out/",
        "up",
        "beside",
        "beside/deep",
        "chain",
        "proc",
        "packages/up",
        "absolute",
    ] {
        assert_eq!(
            problem(&root, working_dir),
            DirOpenError::OutsideRoot,
            "{working_dir}"
        );
    }
    for missing in [
        "nowhere",
        "dangling",
        "packages/web/missing/..",
        "PACKAGES/web",
        "~",
        "~root",
        "$HOME",
        "$(pwd)",
        "`pwd`",
        "packages/*",
        "%2e%2e/outside",
        "packages\\web",
        "packages/web;id",
        " packages/web",
        "packages/web ",
    ] {
        assert_eq!(problem(&root, missing), DirOpenError::Missing, "{missing}");
    }
    assert_eq!(problem(&root, ""), DirOpenError::Empty);
    assert_eq!(problem(&root, "README.md"), DirOpenError::NotADirectory);
    assert_eq!(problem(&root, "README.md/x"), DirOpenError::NotADirectory);
    assert_eq!(problem(&root, "loop"), DirOpenError::SymlinkLoop);
    assert!(matches!(
        problem(&root, &"a".repeat(300)),
        DirOpenError::System(_)
    ));
    assert!(matches!(
        problem(&root, "packages/web\0"),
        DirOpenError::System(_)
    ));
    let told = root
        .open_working_dir(Some("\u{1b}[2J"))
        .unwrap_err()
        .to_string();
    assert_eq!(told, r"working_dir `\u{1b}[2J` does not exist");
}

/// S3-48: inside `.git`, `node_modules` and our own state no approval applies, by whatever path.
#[test]
fn protected_directories_are_recognized_by_their_resolved_path() {
    let place = Place::new();
    let root = place.root();
    for (working_dir, part) in [
        (".git", ".git"),
        (".git/hooks", ".git"),
        ("git", ".git"),
        ("git/hooks", ".git"),
        ("packages/../.git", ".git"),
        ("node_modules", "node_modules"),
        ("node_modules/evil", "node_modules"),
        (".unstuck", ".unstuck"),
        (".unstuck/runs", ".unstuck"),
    ] {
        let folder = root.open_working_dir(Some(working_dir)).unwrap();
        assert_eq!(
            folder.directory_kind(),
            &Standing::Protected(part.to_owned()),
            "{working_dir}"
        );
    }
    for ordinary in [".git/..", "git/..", "node_modules/.."] {
        let folder = root.open_working_dir(Some(ordinary)).unwrap();
        assert_eq!(folder.directory_kind(), &Standing::Ordinary, "{ordinary}");
    }
}

#[test]
fn a_missing_project_is_reported() {
    let place = Place::new();
    let told = ProjectRoot::open(&place.project().join("nowhere")).unwrap_err();
    assert!(
        told.to_string().starts_with("cannot open the project"),
        "{told}"
    );
    assert!(ProjectRoot::open(&place.project().join("README.md")).is_err());
}

/// A project named by a link is the same project under both names.
#[test]
fn a_linked_project_is_known_by_both_names() {
    let place = Place::new();
    let link = place.folder.path().join("link");
    std::os::unix::fs::symlink(place.project(), &link).unwrap();
    let root = ProjectRoot::open(&link).unwrap();
    for name in [link, place.project()] {
        let working_dir = name.join("packages").display().to_string();
        let folder = root.open_working_dir(Some(&working_dir)).unwrap();
        assert_eq!(folder.relative(), Path::new("packages"));
    }
    assert_eq!(root.path(), place.project().canonicalize().unwrap());
}
