//! Tests of the probe on real directories.
#![expect(clippy::disallowed_methods, reason = "a test makes files")]

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

use super::*;
use unstuck_core::repair::FsEntryKind;

fn asked(paths: &[&str]) -> ProjectInspectionScope {
    ProjectInspectionScope {
        paths: paths.iter().map(|path| (*path).to_owned()).collect(),
        ..ProjectInspectionScope::default()
    }
}

fn look(root: &Path, questions: &ProjectInspectionScope) -> ProjectFacts {
    probe_project(root, root, None, questions)
}

#[test]
fn path_facts_include_dangling_links() {
    let project = tempfile::tempdir().unwrap();
    let root = project.path();
    fs::create_dir_all(root.join("scripts")).unwrap();
    fs::write(root.join("scripts/run.sh"), "#!/bin/sh\r\necho\r\n").unwrap();
    symlink("/nowhere/python3", root.join("python")).unwrap();
    let facts = look(
        root,
        &asked(&["scripts/run.sh", "python", "gone/deep.txt", "scripts"]),
    );
    let run = facts.path_fact("scripts/run.sh").unwrap();
    assert_eq!(
        (run.entry, run.crlf, run.executable),
        (FsEntryKind::File, true, false)
    );
    assert_eq!(
        facts.path_fact("python").unwrap().entry,
        FsEntryKind::DanglingLink
    );
    assert_eq!(
        facts.path_fact("gone/deep.txt").unwrap().entry,
        FsEntryKind::Nothing
    );
    assert_eq!(
        facts.path_fact("scripts").unwrap().entry,
        FsEntryKind::Directory
    );
}

#[test]
fn nothing_outside_the_project_is_read() {
    let outside = tempfile::tempdir().unwrap();
    fs::write(outside.path().join("secret"), "hush").unwrap();
    let project = tempfile::tempdir().unwrap();
    symlink(outside.path().join("secret"), project.path().join("link")).unwrap();
    symlink(outside.path(), project.path().join("folder")).unwrap();
    let facts = look(project.path(), &asked(&["link", "folder/secret"]));
    assert_eq!(facts.path_fact("link").unwrap().text, None);
    assert_eq!(facts.path_fact("folder/secret").unwrap().text, None);
    assert!(!facts.listed.contains("folder/secret"));
}

#[test]
fn only_directories_of_the_project_are_known_to_be_empty() {
    let outside = tempfile::tempdir().unwrap();
    let project = tempfile::tempdir().unwrap();
    let root = project.path();
    fs::create_dir_all(root.join("store/empty")).unwrap();
    symlink("store/empty", root.join("inside")).unwrap();
    symlink(outside.path(), root.join("outside")).unwrap();
    let names = ["store", "store/empty", "inside", "outside"];
    let facts = look(root, &asked(&names));
    let is_empty = |name: &str| {
        let fact = facts.path_fact(name).unwrap();
        assert_eq!(fact.entry, FsEntryKind::Directory, "{name}");
        fact.empty
    };
    assert_eq!(names.map(is_empty), [false, true, true, false]);
}

#[test]
fn names_are_found_in_files_that_declare_them() {
    let project = tempfile::tempdir().unwrap();
    fs::write(
        project.path().join("requirements.txt"),
        "PyYAML==6.0\nsix\n",
    )
    .unwrap();
    let names = ["pyyaml", "sixty", "six"].map(str::to_owned);
    let questions = ProjectInspectionScope {
        names: names.into_iter().collect(),
        ..ProjectInspectionScope::default()
    };
    let facts = look(project.path(), &questions);
    assert!(facts.named_in["pyyaml"].contains("requirements.txt"));
    assert!(facts.named_in["six"].contains("requirements.txt"));
    assert!(facts.named_in["sixty"].is_empty());
}

#[test]
fn programs_inside_the_project_are_ignored() {
    let project = tempfile::tempdir().unwrap();
    let tools = tempfile::tempdir().unwrap();
    for folder in [project.path(), tools.path()] {
        let program = folder.join("tool");
        fs::write(&program, "").unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    }
    let questions = ProjectInspectionScope {
        programs: ["tool".to_owned()].into(),
        ..ProjectInspectionScope::default()
    };
    let found = |path: &Path| {
        let facts = probe_project(
            project.path(),
            project.path(),
            Some(path.as_os_str()),
            &questions,
        );
        facts.programs.unwrap().contains("tool")
    };
    assert!(found(tools.path()) && !found(project.path()));
}

#[test]
fn live_processes_and_port_owners_are_detected() {
    let project = tempfile::tempdir().unwrap();
    let own = std::process::id();
    fs::write(project.path().join("alive.pid"), format!("{own}\n")).unwrap();
    fs::write(project.path().join("dead.pid"), "4194303").unwrap();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let questions = ProjectInspectionScope {
        ports: [port].into(),
        ..ProjectInspectionScope::default()
    };
    let facts = look(project.path(), &questions);
    assert!(facts.pid_files["alive.pid"].alive && !facts.pid_files["dead.pid"].alive);
    if let Some(fact) = facts.ports.get(&port) {
        assert_eq!((fact.pid, fact.in_project), (Some(own), Some(false)));
    }
}

#[test]
fn a_huge_project_is_listed_within_limits() {
    let project = tempfile::tempdir().unwrap();
    for folder in 0..30 {
        let folder = project.path().join(format!("f{folder}"));
        fs::create_dir(&folder).unwrap();
        for file in 0..250 {
            fs::write(folder.join(format!("{file}.txt")), "x").unwrap();
        }
    }
    let facts = look(project.path(), &ProjectInspectionScope::default());
    assert!(facts.listed.len() < 7_000, "{}", facts.listed.len());
}
