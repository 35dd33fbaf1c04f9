//! The snapshots of one run: taken, listed, forgotten.

use std::fmt::Write;
use std::path::Path;

use unstuck_core::RunId;

use super::error::{WorktreeError, WorktreeIoContext};
use super::repository::Repository;
use super::snapshot::{Snapshot, ref_part};
use super::tree_builder::TreeCache;

/// Where the refs of all runs are; no branch, tag or remote is there.
const REFS_PREFIX: &str = "refs/unstuck";

/// The work tree of a project and the snapshots of it that belong to a run.
#[derive(Debug, Clone)]
pub struct SnapshotStore {
    pub(super) repository: Repository,
    tree_cache: TreeCache,
    refs: String,
}

impl SnapshotStore {
    /// Finds the repository that a project is in; an error that can be shown to people if there is none.
    ///
    /// `state` is unstuck's own folder outside the project; below it is remembered which files were read already.
    pub fn open(project: &Path, run: &RunId, state: &Path) -> Result<Self, WorktreeError> {
        let repository = Repository::find(project)?;
        // Git runs in another folder.
        let state = std::path::absolute(state).context("find", state)?;
        Ok(Self {
            tree_cache: TreeCache::new(&state, &repository),
            repository,
            refs: format!("{REFS_PREFIX}/{}", ref_part(run.as_str())),
        })
    }

    /// The root folder of the work tree; the project may be a folder below it.
    pub fn root(&self) -> &Path {
        &self.repository.root
    }

    /// Takes the work tree as it is, and keeps it under a label. A label that is there already gets the new state.
    ///
    /// Letters, digits, `-` and `_` make a label; anything else in it becomes `-`.
    pub fn create(&self, label: &str) -> Result<Snapshot, WorktreeError> {
        let snapshot = self.build(&ref_part(label))?;
        self.save(&snapshot)?;
        Ok(snapshot)
    }

    /// Looks at the work tree as it is, without keeping it.
    pub fn current(&self) -> Result<Snapshot, WorktreeError> {
        self.build("now")
    }

    fn build(&self, label: &str) -> Result<Snapshot, WorktreeError> {
        let tree = self.tree_cache.build_tree(&self.repository)?;
        Ok(Snapshot {
            label: label.to_owned(),
            tree: tree.id,
            head: tree.head,
            excluded: tree.left_out,
        })
    }

    pub(super) fn save(&self, snapshot: &Snapshot) -> Result<(), WorktreeError> {
        let tag = snapshot
            .to_tag_object()
            .map_err(|error| WorktreeError::Git {
                doing: "keep the snapshot",
                message: error.to_string(),
            })?;
        let write = self.repository.git_outside("keep the snapshot");
        let args = ["hash-object", "-w", "-t", "tag", "--stdin"];
        let id = write.args(args).input(tag).line()?;
        let name = self.ref_name(&snapshot.label);
        let args = ["update-ref", "--no-deref", &name, &id];
        let update = self.repository.git_outside("keep the snapshot").args(args);
        update.output().map(drop)
    }

    fn ref_name(&self, label: &str) -> String {
        format!("{}/{label}", self.refs)
    }

    /// The snapshots of this run that are kept, by their labels.
    pub fn list(&self) -> Result<Vec<Snapshot>, WorktreeError> {
        let names = self.ref_names(&format!("{}/", self.refs))?;
        let mut snapshots = Vec::new();
        for name in names {
            let show = self.repository.git_outside("read a snapshot");
            let tag = show.args(["cat-file", "tag", &name]).output()?;
            let text = String::from_utf8_lossy(&tag);
            let body = text.split_once("\n\n").map(|(_, body)| body);
            let read = body.and_then(|body| serde_json::from_str(body).ok());
            snapshots.extend(read);
        }
        Ok(snapshots)
    }

    /// The snapshot that is kept under a label.
    pub fn find(&self, label: &str) -> Result<Option<Snapshot>, WorktreeError> {
        let label = ref_part(label);
        let kept = self.list()?;
        Ok(kept.into_iter().find(|snapshot| snapshot.label == label))
    }

    fn ref_names(&self, prefix: &str) -> Result<Vec<String>, WorktreeError> {
        let list = self.repository.git_outside("list the snapshots");
        let args = ["for-each-ref", "--format=%(refname)", prefix];
        let output = list.args(args).output()?;
        let text = String::from_utf8_lossy(&output).into_owned();
        Ok(text.lines().map(str::to_owned).collect())
    }

    /// Lets go of all snapshots of this run and tells how many that were; git removes their objects in its own time.
    pub fn delete_all(&self) -> Result<usize, WorktreeError> {
        let names = self.ref_names(&format!("{}/", self.refs))?;
        let mut input = String::new();
        for name in &names {
            // Writing to a text cannot fail.
            let _ = writeln!(input, "delete {name}");
        }
        let forget = self.repository.git_outside("forget the snapshots");
        let args = ["update-ref", "--no-deref", "--stdin"];
        forget.args(args).input(input.into_bytes()).output()?;
        Ok(names.len())
    }
}
