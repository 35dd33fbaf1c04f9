//! Plants hostile files as an agent would, and swaps them while unstuck works.

use std::fs;
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use rustix::fs::{CWD, FileType, Mode, RenameFlags, makedev, mknodat, renameat_with};

use super::{CANARY, Chance, LINKED};

/// The run whose files are written.
pub(crate) const RUN: &str = "k3v9x0m2qa";

/// Names at which unstuck reads or writes in a project.
pub(crate) const NAMES: &[&str] = &[
    ".unstuck",
    ".unstuck/.gitignore",
    ".unstuck/runs",
    ".unstuck/runs/k3v9x0m2qa",
    ".unstuck/runs/k3v9x0m2qa/events.jsonl",
    ".unstuck/runs/k3v9x0m2qa/usage.jsonl",
    ".unstuck/runs/k3v9x0m2qa/episodes.jsonl",
    ".unstuck/runs/k3v9x0m2qa/state.json",
    ".unstuck/runs/k3v9x0m2qa/state.new",
    ".unstuck/runs/k3v9x0m2qa/checkpoint.json",
    ".unstuck/runs/k3v9x0m2qa/attempt-1",
    ".unstuck/runs/k3v9x0m2qa/attempt-1/stdout.log",
    ".unstuck/runs/k3v9x0m2qa/attempt-1/stderr.log",
    ".unstuck/runs/k3v9x0m2qa/attempt-1/prompt.md",
    ".unstuck/runs/k3v9x0m2qa/attempt-1/recovery.json",
    ".unstuck/runs/k3v9x0m2qa/roles",
    ".unstuck/runs/k3v9x0m2qa/roles/a",
    ".unstuck/runs/k3v9x0m2qa/roles/a/output.md",
    ".unstuck/runs/k3v9x0m2qa/roles/a/iteration-1",
    ".unstuck/runs/k3v9x0m2qa/roles/a/iteration-1/output.md",
    "unstuck.toml",
    "unstuck.yml",
    "prompts",
    "prompts/a.md",
    "schema.json",
    "docs",
    "docs/notes.md",
    "answer.md",
    "src",
    "src/main.rs",
    "made.txt",
];

/// A project that an agent owns, and the state directory of unstuck.
pub(crate) struct Tree {
    pub(crate) place: PathBuf,
    pub(crate) project: PathBuf,
    pub(crate) state: PathBuf,
    /// Keeps the sockets open.
    _sockets: Vec<UnixListener>,
}

/// Creates the owner's own files: some that the agent may not read, and some that it has hard links to.
pub(crate) fn make_outside(outside: &Path) {
    fs::create_dir_all(outside.join("folder/attempt-1")).unwrap();
    fs::create_dir_all(outside.join("folder/a/iteration-1")).unwrap();
    fs::create_dir_all(outside.join("empty")).unwrap();
    for name in [
        "private.txt",
        "folder/state.json",
        "folder/events.jsonl",
        "folder/attempt-1/stdout.log",
        "folder/a/output.md",
        "folder/a/iteration-1/output.md",
        "folder/notes.md",
        "folder/a.md",
        "folder/main.rs",
    ] {
        // A valid configuration, so that unstuck would get far with it.
        fs::write(outside.join(name), format!("token = \"{CANARY} {name}\"\n")).unwrap();
    }
    let repository = outside.join("repository");
    fs::create_dir(&repository).unwrap();
    crate::worktree::git(&repository, &["init", "-q", "-b", "main", "--template="]);
    crate::worktree::git(&repository, &["commit", "-qm", CANARY, "--allow-empty"]);
    for number in 0..4 {
        let name = format!("linked-{number}");
        fs::write(outside.join(name), format!("{LINKED}\n")).unwrap();
    }
}

/// Creates a random entry at a path; one that cannot be created is omitted.
fn put(at: &Path, outside: &Path, chance: &mut Chance) -> Option<UnixListener> {
    let targets = [
        "private.txt",
        "folder",
        "empty",
        "empty/new.txt",
        "folder/state.json",
    ];
    let target = outside.join(chance.one(&targets));
    match chance.below(14) {
        0..4 => drop(symlink(&target, at)),
        4 => drop(symlink(at, at)),
        5 => {
            // The same target by a path with `..`.
            let up = "../".repeat(20);
            let target = target.strip_prefix("/").unwrap();
            drop(symlink(Path::new(&up).join(target), at));
        }
        6 => mknodat(CWD, at, FileType::Fifo, Mode::RWXU, 0).unwrap_or(()),
        7 => return UnixListener::bind(at).ok(),
        8 => {
            let zero = makedev(1, 5);
            // Only root can create devices.
            let _ = mknodat(CWD, at, FileType::CharacterDevice, Mode::RWXU, zero);
        }
        9 => {
            if let Ok(file) = fs::File::create(at) {
                drop(file.set_len(1 << 42));
            }
        }
        10 => drop(fs::create_dir_all(at.join("inner"))),
        11 => {
            let linked = format!("linked-{}", chance.below(4));
            drop(fs::hard_link(outside.join(linked), at));
        }
        12 => drop(symlink("../src", at)),
        _ => drop(fs::write(at, "plain\n")),
    }
    None
}

impl Tree {
    pub(crate) fn plant(place: &Path, outside: &Path, chance: &mut Chance) -> Self {
        let project = place.join("project");
        fs::create_dir_all(project.join("src")).unwrap();
        fs::create_dir_all(project.join("docs")).unwrap();
        fs::write(project.join("src/main.rs"), "fn main() {}\n").unwrap();
        fs::write(project.join("docs/notes.md"), "notes\n").unwrap();
        fs::write(
            project.join("unstuck.toml"),
            "[[role]]\nid = \"a\"\nagent = \"command\"\ncommand = [\"true\"]\nprompt_file = \"prompts/a.md\"\nexpect.json = \"schema.json\"\n",
        )
        .unwrap();
        let mut sockets = Vec::new();
        for _ in 0..=chance.below(6) {
            let at = project.join(chance.one(NAMES));
            let above = at.parent().unwrap();
            // The agent owns only entries of the project itself, not the targets of its links.
            let is_inside = |folder: &Path| {
                let real = folder.canonicalize();
                real.is_ok_and(|real| real.starts_with(&project))
            };
            let nearest = above
                .ancestors()
                .find(|folder| folder.symlink_metadata().is_ok());
            if !nearest.is_some_and(is_inside) || fs::create_dir_all(above).is_err() {
                continue;
            }
            let _ = fs::remove_file(&at);
            let _ = fs::remove_dir_all(&at);
            sockets.extend(put(&at, outside, chance));
        }
        Self {
            state: place.join("state"),
            place: place.to_owned(),
            project,
            _sockets: sockets,
        }
    }

    pub(crate) fn remove(&self) {
        fs::remove_dir_all(&self.place).unwrap();
    }
}

/// A thread that swaps entries of a project until it is dropped.
pub(crate) struct Racer {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Racer {
    pub(crate) fn start(tree: &Tree, outside: &Path, case: u64) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let (project, outside) = (tree.project.clone(), outside.to_owned());
        let is_stopped = Arc::clone(&stop);
        let root =
            rustix::fs::open(&project, rustix::fs::OFlags::DIRECTORY, Mode::empty()).unwrap();
        let thread = std::thread::spawn(move || {
            let mut chance = Chance::of(case ^ 0x5eed);
            let spare = project.join("spare");
            while !is_stopped.load(Ordering::Relaxed) {
                // The agent itself never works through its own links: it is confined to the project.
                let name = *chance.one(NAMES);
                let how = rustix::fs::ResolveFlags::BENEATH | rustix::fs::ResolveFlags::NO_SYMLINKS;
                let above = Path::new(name).parent().unwrap();
                let above = if above.as_os_str().is_empty() {
                    Path::new(".")
                } else {
                    above
                };
                let flags = rustix::fs::OFlags::PATH | rustix::fs::OFlags::DIRECTORY;
                let Ok(folder) = rustix::fs::openat2(&root, above, flags, Mode::empty(), how)
                else {
                    continue;
                };
                let last = Path::new(name).file_name().unwrap();
                drop(put(&spare, &outside, &mut chance));
                let swapped = renameat_with(&root, "spare", &folder, last, RenameFlags::EXCHANGE);
                if swapped.is_err() {
                    let _ = renameat_with(&root, "spare", &folder, last, RenameFlags::NOREPLACE);
                }
                let _ = fs::remove_file(&spare);
                let _ = fs::remove_dir_all(&spare);
            }
        });
        Self {
            stop,
            thread: Some(thread),
        }
    }
}

impl Drop for Racer {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.join().unwrap();
        }
    }
}
