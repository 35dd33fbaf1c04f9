//! The store of a run's snapshots.

use std::fmt::Write;
use std::path::Path;

use unstuck_core::RunId;

use super::error::{WorktreeError, WorktreeIoContext};
use super::repository::Repository;
use super::snapshot::{Snapshot, ref_part};
use super::tree_builder::TreeCache;

/// Prefix of the refs of all runs, apart from branches, tags and remotes.
const REFS_PREFIX: &str = "refs/unstuck";

/// The work tree of a project and the snapshots of it that belong to a run.
#[derive(Debug, Clone)]
pub struct SnapshotStore {
    pub(super) repository: Repository,
    tree_cache: TreeCache,
    refs: String,
}

impl SnapshotStore {
    /// Opens the store in the repository of a project; an error for humans if there is no repository.
    ///
    /// `state` is the state directory outside of the project; it holds the cache of files that were already read.
    pub fn open(project: &Path, run: &RunId, state: &Path) -> Result<Self, WorktreeError> {
        let repository = Repository::find(project)?;
        // Git runs in another directory.
        let state = std::path::absolute(state).context("find", state)?;
        Ok(Self {
            tree_cache: TreeCache::new(&state, &repository),
            repository,
            refs: format!("{REFS_PREFIX}/{}", ref_part(run.as_str())),
        })
    }

    /// Returns the root directory of the work tree; the project may be below it.
    pub fn root(&self) -> &Path {
        &self.repository.root
    }

    /// Stores the current work tree under a label, replacing an existing snapshot with that label.
    ///
    /// A label consists of letters, digits, `-` and `_`; any other character becomes `-`.
    pub fn create(&self, label: &str) -> Result<Snapshot, WorktreeError> {
        let snapshot = self.build(&ref_part(label))?;
        self.save(&snapshot)?;
        Ok(snapshot)
    }

    /// Returns the current state of the work tree without storing it.
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
                doing: "store the snapshot",
                message: error.to_string(),
            })?;
        let write = self.repository.git_outside("store the snapshot");
        let args = ["hash-object", "-w", "-t", "tag", "--stdin"];
        let id = write.args(args).input(tag).line()?;
        let name = self.ref_name(&snapshot.label);
        let args = ["update-ref", "--no-deref", &name, &id];
        let update = self.repository.git_outside("store the snapshot").args(args);
        update.output().map(drop)
    }

    fn ref_name(&self, label: &str) -> String {
        format!("{}/{label}", self.refs)
    }

    /// Returns the stored snapshots of this run by their labels.
    pub fn list(&self) -> Result<Vec<Snapshot>, WorktreeError> {
        let names = self.ref_names(&format!("{}/", self.refs))?;
        let mut snapshots = Vec::new();
        for name in names {
            let show = self
                .repository
                .git_outside("read a snapshot of the work tree");
            let tag = show.args(["cat-file", "tag", &name]).output()?;
            let text = String::from_utf8_lossy(&tag);
            let body = text.split_once("\n\n").map(|(_, body)| body);
            let read = body.and_then(|body| serde_json::from_str(body).ok());
            snapshots.extend(read);
        }
        Ok(snapshots)
    }

    /// Returns the snapshot stored under a label.
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

    /// Deletes all snapshots of this run and returns their number; git removes their objects later.
    pub fn delete_all(&self) -> Result<usize, WorktreeError> {
        let names = self.ref_names(&format!("{}/", self.refs))?;
        let mut input = String::new();
        for name in &names {
            // Writing to a string cannot fail.
            let _ = writeln!(input, "delete {name}");
        }
        let forget = self.repository.git_outside("delete the snapshots");
        let args = ["update-ref", "--no-deref", "--stdin"];
        forget.args(args).input(input.into_bytes()).output()?;
        Ok(names.len())
    }
}
