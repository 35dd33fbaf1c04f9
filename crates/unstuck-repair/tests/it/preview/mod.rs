//! Previews of real commands on real overlays.

mod applying;
mod crashes;
mod seeing;

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use tempfile::TempDir;
use unstuck_core::Timestamp;
use unstuck_repair::preview::{
    Preview, PreviewCommandExecution, PreviewError, PreviewLimits, PreviewStore, UnfinishedPreview,
};

/// The kind of marks that an overlay leaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Marks {
    /// Marks of an overlay in a user namespace.
    User,
    /// Marks of root, whose overlays may move directories.
    Root,
    /// Marks of root, whose overlays may leave file contents in the lower layer.
    Hollow,
}

/// A project and a preview store.
struct Place {
    folder: TempDir,
}

impl Place {
    /// Creates a project with a line for `sh`.
    fn new(script: &str) -> Self {
        let place = Self {
            folder: tempfile::tempdir().unwrap(),
        };
        fs::create_dir(place.project()).unwrap();
        place.sh(script);
        place
    }

    fn project(&self) -> PathBuf {
        self.folder.path().join("project")
    }

    fn previews(&self) -> PreviewStore {
        PreviewStore::in_state_dir(&self.folder.path().join("state"))
    }

    /// Runs a line in the project itself.
    fn sh(&self, script: &str) {
        let mut line = command("sh");
        line.args(["-ec", script]).current_dir(self.project());
        assert!(line.status().unwrap().success(), "{script}");
    }

    fn draft(&self) -> UnfinishedPreview {
        let previews = self.previews();
        let draft = previews.prepare(&self.project(), PreviewLimits::default(), now());
        draft.unwrap()
    }

    /// Runs a line in an overlay of the project, and returns its exit code.
    fn overlaid(&self, draft: &UnfinishedPreview, script: &str, marks: Marks) -> i32 {
        let merged = self.folder.path().join("merged");
        fs::create_dir_all(&merged).unwrap();
        let (options, namespace) = match marks {
            Marks::User => ("userxattr", "-Urm"),
            Marks::Root => ("redirect_dir=on", "-m"),
            Marks::Hollow => ("metacopy=on", "-m"),
        };
        let mount = "mount -t overlay overlay -o lowerdir=$1,upperdir=$2,workdir=$3,$4 $5 || exit 99; \
                     cd $5 && exec sh -c \"$6\"";
        let ended = command("unshare")
            .args([namespace, "sh", "-c", mount, "sh"])
            .args([draft.project(), &draft.upper(), &draft.work()])
            .arg(options)
            .arg(merged)
            .arg(script)
            .status()
            .unwrap();
        let code = ended.code().unwrap_or(-1);
        assert_ne!(code, 99, "an overlay could not be mounted");
        code
    }

    fn try_preview(&self, script: &str, marks: Marks) -> Result<Preview, PreviewError> {
        let draft = self.draft();
        let code = self.overlaid(&draft, script, marks);
        draft.finish(ran(script, code), &[], now())
    }

    /// Returns the preview of a line.
    fn preview(&self, script: &str) -> Preview {
        self.try_preview(script, Marks::User).unwrap()
    }

    /// Applies the preview of a line, and asserts that the result is the same as of the line itself.
    fn applied_is_what_it_does(&self, script: &str, marks: Marks) {
        let twin = self.folder.path().join("twin");
        let mut copy = command("cp");
        copy.arg("-a").args([&self.project(), &twin]);
        assert!(copy.status().unwrap().success());
        let _ = command("sh")
            .args(["-c", script])
            .current_dir(&twin)
            .status();
        let before = tree(&self.project());
        let preview = self.try_preview(script, marks).unwrap();
        assert_eq!(tree(&self.project()), before, "a preview changes nothing");
        let is_empty = preview.report().is_empty();
        let applied = preview.apply().unwrap();
        assert_eq!(applied.leftovers, [""; 0]);
        assert_eq!(tree(&self.project()), tree(&twin), "{script}");
        assert_eq!(is_empty, before == tree(&twin));
        assert!(
            self.previews().list().is_empty(),
            "an applied preview is gone"
        );
        // A closed directory could not be removed.
        self.sh("chmod -R u+rwx . ../twin");
    }
}

/// Returns the displayed rows: change, path and note.
fn rows(preview: &Preview) -> Vec<String> {
    let rows = preview.report().rows.iter();
    rows.map(|row| format!("{} {} ({})", row.change.name(), row.path, row.note))
        .collect()
}

fn ran(command: &str, code: i32) -> PreviewCommandExecution {
    PreviewCommandExecution {
        command: command.to_owned(),
        working_dir: String::new(),
        exit_code: code,
        timed_out: false,
        duration: Duration::from_millis(1200),
        network: false,
        output: vec!["done".to_owned()],
        discarded_writes: Vec::new(),
    }
}

fn now() -> Timestamp {
    Timestamp::from_seconds(1_794_777_000)
}

/// Returns everything relevant in a directory: types, permissions, contents, targets and hard links.
fn tree(folder: &Path) -> BTreeMap<Vec<u8>, String> {
    let mode = folder.metadata().unwrap().permissions().mode();
    let mut found = BTreeMap::from([(b".".to_vec(), format!("{mode:o}"))]);
    let mut first: BTreeMap<u64, String> = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(at) = folders.pop() {
        let mut entries: Vec<_> = fs::read_dir(at).unwrap().map(Result::unwrap).collect();
        entries.sort_by_key(fs::DirEntry::file_name);
        for entry in entries {
            let (path, data) = (entry.path(), entry.path().symlink_metadata().unwrap());
            let name = path.strip_prefix(folder).unwrap().as_os_str().as_bytes();
            let mode = data.permissions().mode();
            let what = if data.is_dir() {
                folders.push(path.clone());
                format!("{mode:o}")
            } else if data.is_symlink() {
                format!("-> {:?}", fs::read_link(&path).unwrap())
            } else if data.is_file() {
                let shared = first.entry(data.ino()).or_insert(format!("{name:?}"));
                let shared = (data.nlink() > 1).then_some(shared);
                format!("{mode:o} {shared:?} {:?}", fs::read(&path).unwrap())
            } else {
                format!("special {mode:o}")
            };
            found.insert(name.to_vec(), what);
        }
    }
    found
}

#[expect(
    clippy::disallowed_methods,
    reason = "the commands under test are started here"
)]
fn command(program: &str) -> std::process::Command {
    std::process::Command::new(program)
}
