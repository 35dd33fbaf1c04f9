//! Tests from the bytes of a proposal to a verdict: files, directories, and the whole evaluation.

mod corpus;
mod files;
mod folders;
mod races;
mod scripts;
mod weighed;

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use tempfile::TempDir;
use unstuck_repair::project_dir::ProjectRoot;

/// A project with possible obstacles to a working directory, and a directory beside it that must stay untouched.
struct Place {
    folder: TempDir,
}

impl Place {
    fn new() -> Self {
        let place = Self {
            folder: tempfile::tempdir().unwrap(),
        };
        for folder in [
            "packages/web",
            ".git/hooks",
            "node_modules/evil",
            ".unstuck/runs",
            "dir with space",
            "ünïcode",
            "...",
            "..hidden",
            "-rf",
            "state/unstuck",
            "../outside/deep",
        ] {
            fs::create_dir_all(place.project().join(folder)).unwrap();
        }
        fs::write(place.project().join("README.md"), "x\n").unwrap();
        for (link, target) in [
            ("inside", "packages/web"),
            ("here", "."),
            ("git", ".git"),
            ("out", "/etc"),
            ("up", ".."),
            ("beside", "../outside"),
            ("chain", "out"),
            ("loop", "loop"),
            ("dangling", "nowhere"),
            ("proc", "/proc/self/root"),
            ("packages/up", "../../outside"),
        ] {
            symlink(target, place.project().join(link)).unwrap();
        }
        let web = place.project().join("packages/web");
        symlink(web, place.project().join("absolute")).unwrap();
        place
    }

    fn project(&self) -> PathBuf {
        self.folder.path().join("project")
    }

    fn outside(&self) -> PathBuf {
        self.folder.path().join("outside")
    }

    fn root(&self) -> ProjectRoot {
        ProjectRoot::open(&self.project()).unwrap()
    }
}

/// Returns a well-formed proposal.
fn document(command: &str, working_dir: Option<&str>) -> Value {
    json!({
        "version": 1,
        "timestamp": "2026-01-23T05:36:33Z",
        "category": "dependency",
        "severity": "blocking",
        "diagnosis": { "error_pattern": "x", "root_cause": "x", "evidence": [] },
        "recovery": {
            "command": command,
            "working_dir": working_dir,
            "expected_outcome": "x",
            "confidence": "high",
        },
    })
}

fn identity(path: &Path) -> (u64, u64) {
    use std::os::unix::fs::MetadataExt;
    let found = fs::metadata(path).unwrap();
    (found.dev(), found.ino())
}
