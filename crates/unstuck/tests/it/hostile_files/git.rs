//! A repository whose configuration, directories or git program an agent has changed.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::Stdio;

use super::fifo;
use crate::output_snapshot::assert_output;
use crate::{Place, eventually};

/// A role whose first attempt fails, with snapshots and rollback.
const ROLE: &str = "[run]\non_failed_attempt = \"rollback\"\n[[role]]\nid = \"a\"\nagent = \"command\"\nprompt = \"x\"\n\
    command = [\"sh\", \"-c\", '''echo changed >> made.txt; [ -e $HOME/again ] && echo fine && exit 0; touch $HOME/again; echo '503 Service Unavailable' >&2; exit 1''']\n\
    [policy]\ntemplate = \"pipeline\"\ncurve = \"exponential\"\nbackoffBase = 0.001\n";

fn git(place: &Place, args: &[&str]) -> String {
    let output = place.program("git", args).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// A repository with one commit, in which `unstuck run` takes snapshots.
fn repository() -> Place {
    let place = Place::new();
    git(&place, &["init", "-q"]);
    git(&place, &["config", "user.email", "a@example.org"]);
    git(&place, &["config", "user.name", "a"]);
    place.write("unstuck.toml", ROLE);
    git(&place, &["add", "-A"]);
    git(&place, &["commit", "-qm", "first"]);
    place
}

/// Returns all objects in a project's repository.
fn objects(place: &Place) -> String {
    git(
        place,
        &[
            "-c",
            "core.worktree=",
            "cat-file",
            "--batch-all-objects",
            "--batch",
            "--unordered",
        ],
    )
}

/// H5, first part: files of a directory named by `core.worktree` are not added to the project's repository.
#[test]
fn other_work_tree_is_not_copied_into_the_repository() {
    let place = repository();
    let docs = place.folder.path().join("home/docs");
    fs::create_dir_all(&docs).unwrap();
    fs::write(docs.join("secret.txt"), "THE OWNERS SECRET\n").unwrap();
    let home = place.folder.path().join("home");
    git(&place, &["config", "core.worktree", home.to_str().unwrap()]);
    let ended = place.run_in_time(&["run"]);
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    ended.told(0, &[]);
    assert_output!(place, ended.stderr);
    git(&place, &["config", "--unset", "core.worktree"]);
    assert!(!objects(&place).contains("THE OWNERS SECRET"));
}

/// H5, second part: nothing is rolled back there, even if it is configured during the run.
#[test]
fn other_work_tree_is_not_rolled_back() {
    for during in [false, true] {
        let place = repository();
        let docs = place.folder.path().join("home/docs");
        fs::create_dir_all(&docs).unwrap();
        fs::write(docs.join("thesis.txt"), "v1\n").unwrap();
        let home = place.folder.path().join("home");
        let worktree = ["config", "core.worktree", home.to_str().unwrap()];
        let work = format!(
            "echo 'v2, a whole day of work' > {0}/thesis.txt; touch {0}/new-chapter.txt; ",
            docs.display()
        );
        let named = if during {
            format!("git config core.worktree {}; {work}", home.display())
        } else {
            git(&place, &worktree);
            work
        };
        let role = ROLE.replace("echo changed", &format!("{named}echo changed"));
        place.write("unstuck.toml", &role);
        let ended = place.run_in_time(&["run"]);
        assert_eq!(ended.code, 0, "{}", ended.stderr);
        let thesis = fs::read_to_string(docs.join("thesis.txt")).unwrap();
        assert_eq!(thesis, "v2, a whole day of work\n", "{}", ended.stderr);
        assert!(docs.join("new-chapter.txt").exists(), "{}", ended.stderr);
    }
}

/// H5: repository directories that link elsewhere are not written to.
#[test]
fn nothing_is_written_through_links_in_the_repository() {
    for link in ["objects", "refs/unstuck", "logs", "commondir"] {
        let place = repository();
        place.outside();
        let outside = place.folder.path().join("outside");
        let inside = place.project().join(".git").join(link);
        match link {
            "objects" => {
                // The agent copies the existing content, so that git finds everything.
                let moved = place.folder.path().join("moved");
                fs::rename(&inside, &moved).unwrap();
                symlink(&moved, &inside).unwrap();
            }
            "commondir" => fs::write(&inside, format!("{}\n", outside.display())).unwrap(),
            _ => {
                let _ = fs::remove_dir_all(&inside);
                symlink(&outside, &inside).unwrap();
            }
        }
        let count = || count_files(&place.folder.path().join("moved"));
        let before = count();
        let ended = place.run_in_time(&["run"]);
        assert_eq!(ended.code, 0, "{link}: {}", ended.stderr);
        assert_eq!(count(), before, "{link}");
        place.assert_outside_is_untouched(link);
    }
}

fn count_files(folder: &Path) -> usize {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let count = |entry: fs::DirEntry| {
        if entry.file_type().unwrap().is_dir() {
            count_files(&entry.path())
        } else {
            1
        }
    };
    entries.map(count).sum()
}

/// L1: a git program in the project is never run, whatever the search path says.
#[test]
fn git_program_in_the_project_is_never_run() {
    let place = repository();
    for folder in ["", "bin/"] {
        let path = place.write(
            &format!("{folder}git"),
            &format!(
                "#!/bin/sh\ntouch '{}'\nexec /usr/bin/git \"$@\"\n",
                place.folder.path().join("pwned").display()
            ),
        );
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
    }
    let open = place.folder.path().join("open");
    fs::create_dir(&open).unwrap();
    fs::copy(place.project().join("git"), open.join("git")).unwrap();
    fs::set_permissions(&open, fs::Permissions::from_mode(0o777)).unwrap();
    let search = format!(
        ".::{0}:{0}/bin:bin:{1}:/usr/bin:/bin",
        place.project().display(),
        open.display()
    );
    for args in [&["run"][..], &["diff"], &["trust"]] {
        let mut command = place.command(args);
        command.env("PATH", &search);
        super::end_in_time(command);
    }
    assert!(!place.folder.path().join("pwned").exists());
}

/// M9: FIFOs in place of files that git reads are detected before git blocks on them.
#[test]
fn fifo_in_the_repository_does_not_block() {
    for name in ["config", "HEAD", "index", "packed-refs", "info/exclude"] {
        let place = repository();
        let path = place.project().join(".git").join(name);
        let _ = fs::remove_file(&path);
        fifo(&path);
        let ended = place.run_in_time(&["run"]);
        assert_eq!(ended.code, 0, "{name}: {}", ended.stderr);
    }
}

/// M9: a hanging git ends with unstuck, even if unstuck is killed.
#[test]
fn hanging_git_does_not_outlive_unstuck() {
    let place = repository();
    let hanging = place.folder.path().join("hanging");
    fifo(&hanging);
    git(
        &place,
        &["config", "core.excludesFile", hanging.to_str().unwrap()],
    );
    let mut command = place.command(&["run"]);
    let mut unstuck = command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    eventually(|| !gits_in(&place).is_empty() && is_waiting(&gits_in(&place)));
    unstuck.kill().unwrap();
    unstuck.wait().unwrap();
    eventually(|| gits_in(&place).is_empty());
}

/// Returns the git processes that work in the project.
fn gits_in(place: &Place) -> Vec<String> {
    let project = place.project().canonicalize().unwrap();
    let entries = fs::read_dir("/proc").unwrap().flatten();
    let is_git = |pid: &String| {
        let here = fs::read_link(format!("/proc/{pid}/cwd")).is_ok_and(|cwd| cwd == project);
        let name = fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
        here && name.trim() == "git"
    };
    let pids = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
    pids.filter(|pid| pid.bytes().all(|byte| byte.is_ascii_digit()))
        .filter(is_git)
        .collect()
}

/// Returns whether one of these processes is blocked opening a FIFO.
fn is_waiting(pids: &[String]) -> bool {
    pids.iter().any(|pid| {
        let call = fs::read_to_string(format!("/proc/{pid}/wchan")).unwrap_or_default();
        call.contains("wait_for_partner") || call.contains("fifo_open") || call == "0"
    })
}

/// A `.git` file that an agent writes never makes unstuck write into another repository, or show anything of it.
#[test]
fn git_file_never_leads_to_another_repository() {
    for own in ["project/evil", "evil"] {
        let place = Place::new();
        let base = place.folder.path().canonicalize().unwrap();
        let (other, own) = (base.join("other"), base.join(own));
        fs::create_dir(&other).unwrap();
        let in_other = |args: &[&str]| {
            let args = [&["-C", other.to_str().unwrap()], args].concat();
            git(&place, &args)
        };
        in_other(&["init", "-q"]);
        fs::write(other.join("private.txt"), "THE OWNERS SECRET\n").unwrap();
        in_other(&["add", "-A"]);
        let user = ["-c", "user.email=a@example.org", "-c", "user.name=a"];
        in_other(&[&user[..], &["commit", "-qm", "private"]].concat());
        fs::create_dir(&own).unwrap();
        let pointer = base.join("project/.git");
        for (name, text) in [
            ("gitdir", pointer.display().to_string()),
            ("commondir", other.join(".git").display().to_string()),
            ("HEAD", in_other(&["rev-parse", "HEAD"]).trim().to_owned()),
        ] {
            fs::write(own.join(name), format!("{text}\n")).unwrap();
        }
        fs::write(&pointer, format!("gitdir: {}\n", own.display())).unwrap();
        place.write("unstuck.toml", ROLE);
        let before = count_files(&other);
        let ended = place.run_in_time(&["run"]);
        ended.told(0, &[]);
        let diff = place.run_in_time(&["diff"]);
        assert!(
            !diff.stdout.contains("THE OWNERS SECRET"),
            "{}",
            diff.stdout
        );
        assert_eq!(count_files(&other), before);
        assert!(!in_other(&["for-each-ref"]).contains("unstuck"));
        assert_output!(place, ended.stderr);
    }
}
