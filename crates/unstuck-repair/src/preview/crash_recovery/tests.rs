#![expect(clippy::disallowed_methods, reason = "a test makes and looks at files")]

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::Duration;

use rustix::fs::{CWD, FileType, Mode, mknodat};
use tempfile::TempDir;
use unstuck_core::Timestamp;

use super::super::apply::ApplyOperation;
use super::super::limits::PreviewLimits;
use super::super::report::PreviewCommandExecution;
use super::*;

/// The moves of the preview of [`Place`]: two exchanges, one creation, one deletion.
const MOVES: usize = 4;

/// A project and a preview of it, created without an overlay.
struct Place {
    folder: TempDir,
    id: String,
}

impl Place {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let project = folder.path().join("project");
        fs::create_dir_all(project.join("d")).unwrap();
        for name in ["a", "d/x", "gone"] {
            fs::write(project.join(name), "old").unwrap();
        }
        let place = Self {
            folder,
            id: String::new(),
        };
        let now = Timestamp::from_seconds(1_794_777_000);
        let draft = place
            .previews()
            .prepare(&project, PreviewLimits::default(), now);
        let draft = draft.unwrap();
        let upper = draft.upper();
        fs::create_dir(upper.join("d")).unwrap();
        fs::set_permissions(upper.join("d"), fs::Permissions::from_mode(0o700)).unwrap();
        for name in ["a", "d/x", "new"] {
            fs::write(upper.join(name), "new").unwrap();
        }
        // A deletion mark as an overlay writes it.
        let gone = upper.join("gone");
        mknodat(CWD, &gone, FileType::CharacterDevice, Mode::empty(), 0).unwrap();
        let ran = PreviewCommandExecution {
            command: "repair".to_owned(),
            working_dir: String::new(),
            exit_code: 0,
            timed_out: false,
            duration: Duration::ZERO,
            network: false,
            output: Vec::new(),
            discarded_writes: Vec::new(),
        };
        let id = draft.finish(ran, &[], now).unwrap().report().id.clone();
        Self { id, ..place }
    }

    fn previews(&self) -> PreviewStore {
        PreviewStore::in_state_dir(&self.folder.path().join("state"))
    }

    /// Applies the preview with a crash after this many moves; `None` crashes during staging.
    fn crash(&self, after: Option<usize>) {
        let preview = self.previews().find(&self.id).unwrap();
        let (root, upper) = (
            preview.open_project().unwrap(),
            preview.open_upper().unwrap(),
        );
        let changes = preview.current_changes(&root, &upper).unwrap();
        let work = ApplyOperation {
            preview: &preview,
            root: &root,
            upper: &upper,
            changes: &changes,
        };
        let mut journal = work.plan_journal().unwrap();
        journal.write(preview.dir()).unwrap();
        work.stage_copies(&mut journal).unwrap();
        assert_eq!(journal.moves.len(), MOVES);
        let Some(after) = after else { return };
        journal.phase = ApplyPhase::Moving;
        journal.write(preview.dir()).unwrap();
        for step in journal.moves.iter().take(after) {
            step.perform(&step.open_dir(&root).unwrap()).unwrap();
        }
    }

    fn settled(&self) -> PreviewCrashRecoveryOutcome {
        let mut settled = self.previews().recover();
        assert_eq!(settled.len(), 1);
        assert_eq!(self.previews().recover(), [], "nothing is left to be done");
        settled.remove(0).outcome
    }

    /// Returns the files of the project with their contents.
    fn tree(&self) -> BTreeMap<String, String> {
        let project = self.folder.path().join("project");
        let mut found = BTreeMap::new();
        for folder in [project.clone(), project.join("d")] {
            for entry in fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                let name = path.strip_prefix(&project).unwrap().display().to_string();
                let mode = path.metadata().unwrap().permissions().mode() & 0o777;
                let text = fs::read_to_string(&path).unwrap_or(format!("{mode:o}"));
                found.insert(name, text);
            }
        }
        found
    }

    fn write(&self, name: &str) {
        fs::write(self.folder.path().join("project").join(name), "mine").unwrap();
    }
}

fn tree(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    let pairs = pairs.iter();
    pairs
        .map(|(n, t)| ((*n).to_owned(), (*t).to_owned()))
        .collect()
}

fn before(mode: &str) -> BTreeMap<String, String> {
    tree(&[("a", "old"), ("d", mode), ("d/x", "old"), ("gone", "old")])
}

fn mode_of(path: &Path) -> String {
    format!(
        "{:o}",
        path.metadata().unwrap().permissions().mode() & 0o777
    )
}

#[test]
fn a_crash_during_staging_is_rolled_back() {
    let place = Place::new();
    let mode = mode_of(&place.folder.path().join("project/d"));
    place.crash(None);
    assert_ne!(place.tree(), before(&mode), "copies lie beside");
    assert_eq!(place.settled(), PreviewCrashRecoveryOutcome::RolledBack);
    assert_eq!(place.tree(), before(&mode));
    // It is kept, and can be applied now.
    place.previews().find(&place.id).unwrap().apply().unwrap();
}

#[test]
fn a_crash_during_any_move_is_finished() {
    for after in 0..=MOVES {
        let place = Place::new();
        place.crash(Some(after));
        assert_eq!(
            place.settled(),
            PreviewCrashRecoveryOutcome::Finished,
            "after {after}"
        );
        let all = [("a", "new"), ("d", "700"), ("d/x", "new"), ("new", "new")];
        assert_eq!(place.tree(), tree(&all), "after {after}");
        assert!(place.previews().list().is_empty());
    }
}

#[test]
fn moves_that_cannot_be_finished_are_rolled_back() {
    for after in 0..MOVES {
        let place = Place::new();
        let mode = mode_of(&place.folder.path().join("project/d"));
        place.crash(Some(after));
        // The last move creates the new entry.
        place.write("new");
        assert_eq!(
            place.settled(),
            PreviewCrashRecoveryOutcome::RolledBack,
            "after {after}"
        );
        let mut expected = before(&mode);
        expected.insert("new".to_owned(), "mine".to_owned());
        assert_eq!(place.tree(), expected, "after {after}");
        assert_eq!(place.previews().list().len(), 1, "it is kept");
    }
}

#[test]
fn foreign_changes_are_kept_and_reported_as_conflicts() {
    let place = Place::new();
    place.crash(Some(1));
    let project = place.folder.path().join("project");
    // Neither the old nor the new entry is where it was put.
    fs::remove_file(project.join("a")).unwrap();
    place.write("a");
    place.write("new");
    let PreviewCrashRecoveryOutcome::Conflicted(left) = place.settled() else {
        panic!("it was settled");
    };
    // A user can restore the old entry.
    let beside = format!(".unstuck-{}-0", place.id);
    assert_eq!(left, [format!("a (the original may be in {beside})")]);
    assert_eq!(place.tree()[&beside], "old");
    assert_eq!(place.tree()["a"], "mine");
    assert_eq!(place.tree()["d/x"], "old");
}
