//! The files of a project at one commit.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use unstuck_repair::watched_files::{LastCommitFiles, NoCommits};

use super::error::WorktreeError;
use super::repository::Repository;

/// Largest file that is read.
const MAX_FILE_BYTES: u64 = 8 << 20;
/// Number of paths in one git command.
const PATHS_PER_CALL: usize = 500;

/// The files of a project at one commit.
#[derive(Debug, Clone)]
pub struct CommittedTree {
    repository: Repository,
    /// The path from the repository's root to the project.
    prefix: String,
    commit: String,
    folders: Vec<PathBuf>,
}

/// Returns the project's files at its last commit, or no files if there is none.
pub fn open_committed_files(project: &Path) -> Box<dyn LastCommitFiles> {
    match CommittedTree::at_head(project) {
        Ok(head) => Box::new(head),
        Err(_) => Box::new(NoCommits),
    }
}

/// A file in a commit.
struct CommittedBlob {
    id: String,
    path: String,
}

impl CommittedTree {
    /// Returns the project at the commit that is checked out now.
    ///
    /// To be called before agents run: nobody has accepted what an agent commits.
    pub fn at_head(project: &Path) -> Result<Self, WorktreeError> {
        Self::at_commit(project, "HEAD")
    }

    /// Returns the project at a commit.
    pub fn at_commit(project: &Path, commit: &str) -> Result<Self, WorktreeError> {
        let (repository, commit) = Repository::with_commit(project, commit)?;
        let root = repository
            .root
            .canonicalize()
            .unwrap_or(repository.root.clone());
        let real = project.canonicalize().unwrap_or(project.to_owned());
        let prefix = real.strip_prefix(&root).unwrap_or(Path::new(""));
        Ok(Self {
            prefix: prefix.to_string_lossy().into_owned(),
            commit,
            folders: repository.folders(),
            repository,
        })
    }

    /// Returns the id of the commit.
    pub fn commit(&self) -> &str {
        &self.commit
    }

    fn blobs(&self, paths: &[String]) -> Result<Vec<CommittedBlob>, WorktreeError> {
        let mut blobs = Vec::new();
        for some in paths.chunks(PATHS_PER_CALL) {
            let call = self.repository.git_outside("list the committed files");
            let call = call.args(["--literal-pathspecs", "ls-tree", "-z", "-l", "--full-tree"]);
            let call = call.args([self.commit.as_str(), "--"]);
            let output = call.args(some.iter().map(String::as_str)).output()?;
            let lines = output.split(|byte| *byte == 0);
            blobs.extend(lines.filter_map(parse_tree_line));
        }
        Ok(blobs)
    }

    fn read_contents(&self, paths: &[String]) -> Result<Vec<Option<Vec<u8>>>, WorktreeError> {
        let whole = |path: &String| {
            if self.prefix.is_empty() {
                path.clone()
            } else {
                format!("{}/{path}", self.prefix)
            }
        };
        let paths: Vec<_> = paths.iter().map(whole).collect();
        let blobs = self.blobs(&paths)?;
        let wanted: String = blobs.iter().map(|blob| format!("{}\n", blob.id)).collect();
        let call = self.repository.git_outside("read the committed files");
        let call = call
            .args(["cat-file", "--batch"])
            .input(wanted.into_bytes());
        let contents = parse_batch(&call.output()?);
        let by_path: HashMap<_, _> = blobs
            .iter()
            .filter_map(|blob| Some((blob.path.as_str(), contents.get(&blob.id)?)))
            .collect();
        let of = |path: &String| by_path.get(path.as_str()).map(|bytes| (*bytes).clone());
        Ok(paths.iter().map(of).collect())
    }
}

impl LastCommitFiles for CommittedTree {
    fn contents(&self, paths: &[String]) -> Option<Vec<Option<Vec<u8>>>> {
        if paths.is_empty() {
            return Some(Vec::new());
        }
        self.read_contents(paths).ok()
    }

    fn git_dirs(&self) -> Vec<PathBuf> {
        self.folders.clone()
    }

    fn commit(&self) -> Option<String> {
        Some(self.commit.clone())
    }
}

/// Parses a line such as `100644 blob 1f7a… 120<TAB>path`.
fn parse_tree_line(line: &[u8]) -> Option<CommittedBlob> {
    let line = std::str::from_utf8(line).ok()?;
    let (data, path) = line.split_once('\t')?;
    let mut fields = data.split_ascii_whitespace().skip(1);
    let (kind, id, size) = (fields.next()?, fields.next()?, fields.next()?);
    let is_small = size.parse::<u64>().is_ok_and(|size| size <= MAX_FILE_BYTES);
    (kind == "blob" && is_small).then(|| CommittedBlob {
        id: id.to_owned(),
        path: path.to_owned(),
    })
}

/// Parses the output of `cat-file --batch`.
fn parse_batch(mut output: &[u8]) -> HashMap<String, Vec<u8>> {
    let mut found = HashMap::new();
    while let Some(end) = output.iter().position(|byte| *byte == b'\n') {
        let head = String::from_utf8_lossy(&output[..end]).into_owned();
        output = &output[end + 1..];
        let mut fields = head.split(' ');
        let (Some(id), Some("blob"), Some(size)) = (fields.next(), fields.next(), fields.next())
        else {
            continue;
        };
        let size = size.parse::<usize>().unwrap_or(usize::MAX);
        let Some(bytes) = output.get(..size) else {
            break;
        };
        found.insert(id.to_owned(), bytes.to_vec());
        output = output.get(size + 1..).unwrap_or_default();
    }
    found
}
