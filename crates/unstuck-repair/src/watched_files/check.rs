//! Compares the files of a command with the last commit and with the accepted versions.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Serialize;
use sha2::{Digest, Sha256};
use unstuck_core::command_policy::sanitize;
use unstuck_core::redact::Redactor;
use unstuck_core::watched_files::{
    AcceptedWatchedFilePart, ToolFileKnowledge, WatchedFileBaseline, WatchedFilePartRule,
    path_matches, split_commands,
};

use super::committed_files::LastCommitFiles;
use super::display_diff;
use super::finder::{FoundWatchedFile, WatchedFileFinder};
use super::read_entry::PathContents;
use crate::project_dir::ProjectRoot;

/// Maximum number of stored bytes of a file part for display.
const MAX_SHOWN_BYTES: usize = 16 << 10;
/// Maximum number of directories that are checked for accepted commands.
const MAX_DIRS: usize = 400;

/// The files of a project that decide what its commands execute.
pub struct WatchedFilesChecker<'a> {
    root: &'a ProjectRoot,
    committed: &'a dyn LastCommitFiles,
    accepted: Vec<&'a WatchedFileBaseline>,
}

/// The result of checking a command's files.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct WatchedFilesCheckResult {
    /// Files that match neither the commit nor the accepted version; the command may run if there are none.
    pub changed: Vec<UnacceptedWatchedFile>,
    /// SHA-256 of everything that decides what the command executes, in hexadecimal.
    pub fingerprint: String,
    /// The checked files with their contents: only these bytes may be visible to the command.
    #[serde(skip)]
    pub files: Vec<WatchedFile>,
}

/// A file that decides what a command does, as it was when it was checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WatchedFile {
    /// Path relative to the root of the project.
    pub path: String,
    /// Contents.
    pub bytes: Vec<u8>,
    /// If set, the file may be started as a program.
    pub is_program: bool,
    /// If set, the command itself writes the file, as `npm install` writes `package.json`.
    pub is_written: bool,
}

impl WatchedFile {
    /// Returns the SHA-256 of the contents in hexadecimal.
    pub fn sha256(&self) -> String {
        sha256(&self.bytes)
    }
}

/// A file that differs from its accepted version.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct UnacceptedWatchedFile {
    /// Path relative to the root of the project, sanitized for display.
    pub path: String,
    /// Reason, such as `not committed`.
    #[serde(alias = "why")]
    pub reason: String,
    /// Diff, sanitized for display; empty if it may contain secrets or there is none.
    #[serde(alias = "difference")]
    pub diff: String,
}

/// The expected versions of a file part.
struct ExpectedPart {
    /// Part in the last commit.
    committed: Option<String>,
    /// Accepted versions of the part.
    accepted: Vec<AcceptedWatchedFilePart>,
}

impl<'a> WatchedFilesChecker<'a> {
    /// Returns the files of a project with its committed files.
    pub fn new(root: &'a ProjectRoot, committed: &'a dyn LastCommitFiles) -> Self {
        Self {
            root,
            committed,
            accepted: Vec::new(),
        }
    }

    /// Also accepts the files of a baseline.
    #[must_use]
    pub fn with_baseline(mut self, baseline: &'a WatchedFileBaseline) -> Self {
        self.accepted.push(baseline);
        self
    }

    /// Checks the files of a command that runs in a directory relative to the root.
    pub fn check(&self, command: &str, folder: &Path) -> WatchedFilesCheckResult {
        let git = self.committed.git_dirs();
        let mut look = WatchedFileFinder::new(self.root, &git);
        let Some(folder) = folder.to_str() else {
            return WatchedFilesCheckResult {
                changed: vec![UnacceptedWatchedFile {
                    path: sanitize(&folder.to_string_lossy()),
                    reason: "the path of the directory is not valid UTF-8".to_owned(),
                    diff: String::new(),
                }],
                fingerprint: String::new(),
                files: Vec::new(),
            };
        };
        look.add_command(command, folder);
        self.compare(command, &look.found)
    }

    /// Returns the current parts of all files of these commands, wherever in the project they may run.
    pub fn baseline(&self, commands: &[String]) -> WatchedFileBaseline {
        let git = self.committed.git_dirs();
        let mut look = WatchedFileFinder::new(self.root, &git);
        let folders = tool_dirs(&look, commands);
        for command in commands {
            for folder in &folders {
                look.add_command(command, folder);
            }
        }
        let known = ToolFileKnowledge::built_in();
        let mut baseline = WatchedFileBaseline::default();
        for (path, found) in &look.found {
            // Installed and built files change every time.
            if known.is_installed_or_built(path) && !found.is_member {
                continue;
            }
            let ways = if found.is_whole {
                vec![RelevantPart::Whole, RelevantPart::Part]
            } else {
                vec![RelevantPart::Part]
            };
            for count in ways {
                let part = count.relevant_text(known, path, &found.contents);
                if let Some(part) = part.filter(|part| !part.is_empty()) {
                    let secret = known.rule_for(path).secret;
                    let accepted = AcceptedWatchedFilePart {
                        hash: sha256(part.as_bytes()),
                        excerpt: if secret {
                            String::new()
                        } else {
                            truncate(&part)
                        },
                    };
                    baseline.0.insert(count.baseline_key(known, path), accepted);
                }
            }
        }
        baseline
    }

    fn compare(
        &self,
        command: &str,
        found: &BTreeMap<String, FoundWatchedFile>,
    ) -> WatchedFilesCheckResult {
        let mut files = Vec::new();
        let known = ToolFileKnowledge::built_in();
        let paths: Vec<_> = found.keys().cloned().collect();
        let mut contents = self.committed.contents(&paths).map(Vec::into_iter);
        let has_commits = contents.is_some();
        let mut changed = Vec::new();
        let mut fingerprint = Sha256::new();
        for (path, found) in found {
            let committed = contents.as_mut().and_then(Iterator::next).flatten();
            let count = if found.is_whole {
                RelevantPart::Whole
            } else {
                RelevantPart::Part
            };
            let key = count.baseline_key(known, path);
            let accepted = self.accepted.iter().filter_map(|one| one.get(&key));
            let accepted: Vec<_> = accepted.cloned().collect();
            let is_made = known.is_installed_or_built(path) && !found.is_member;
            if is_made && committed.is_none() && accepted.is_empty() {
                continue;
            }
            let now = count.relevant_text(known, path, &found.contents);
            let text = now.as_deref().unwrap_or("?");
            fingerprint.update(format!("{path}\0{}\0", sha256(text.as_bytes())));
            let is_gits = path.starts_with(".git/");
            if let (PathContents::File(bytes), false) = (&found.contents, is_gits) {
                files.push(WatchedFile {
                    path: path.clone(),
                    bytes: bytes.clone(),
                    is_program: is_program(self.root, path),
                    is_written: known.writes_itself(command, path),
                });
            }
            let expected = ExpectedPart {
                committed: (has_commits && !is_gits)
                    .then(|| committed_part(known, count, path, &found.contents, committed)),
                accepted,
            };
            let whole = WatchedFilePartRule::default();
            let rule = match count {
                RelevantPart::Part => known.rule_for(path),
                RelevantPart::Whole => &whole,
            };
            let missed = expected.mismatch(&found.contents, now.as_deref(), rule);
            if let Some((why, old)) = missed {
                let difference = match (&now, known.rule_for(path).secret) {
                    (Some(now), false) => display_diff::display_diff(&old, now),
                    _ => String::new(),
                };
                changed.push(UnacceptedWatchedFile {
                    path: sanitize(path),
                    reason: why,
                    diff: difference,
                });
            }
        }
        WatchedFilesCheckResult {
            changed,
            fingerprint: hex(&fingerprint.finalize()),
            files,
        }
    }
}

/// True if a file may be started as a program.
fn is_program(root: &ProjectRoot, path: &str) -> bool {
    let stat = rustix::fs::statat(root, path, rustix::fs::AtFlags::SYMLINK_NOFOLLOW);
    stat.is_ok_and(|stat| stat.st_mode & 0o111 != 0)
}

/// The part of a file that is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RelevantPart {
    /// The part that its rule selects.
    Part,
    /// The whole file, because it is executed itself.
    Whole,
}

impl RelevantPart {
    /// Returns the compared text of a file, or `None` if it cannot be determined.
    fn relevant_text(
        self,
        known: &ToolFileKnowledge,
        path: &str,
        seen: &PathContents,
    ) -> Option<String> {
        match seen {
            PathContents::Absent | PathContents::Directory => Some(String::new()),
            PathContents::File(bytes) => Some(self.text(known, path, bytes)),
            PathContents::Link(target) => Some(link_text(&target.to_string_lossy())),
            PathContents::Unreadable(_) => None,
        }
    }

    fn text(self, known: &ToolFileKnowledge, path: &str, bytes: &[u8]) -> String {
        match self {
            Self::Part => known.rule_for(path).relevant_part(bytes),
            Self::Whole => WatchedFilePartRule::default().relevant_part(bytes),
        }
    }

    /// Returns the key of the file in the baseline.
    fn baseline_key(self, known: &ToolFileKnowledge, path: &str) -> String {
        if self == Self::Whole && !known.rule_for(path).is_whole() {
            format!("{path} (as a whole)")
        } else {
            path.to_owned()
        }
    }
}

/// Returns the compared text of a file in the last commit.
fn committed_part(
    known: &ToolFileKnowledge,
    count: RelevantPart,
    path: &str,
    seen: &PathContents,
    committed: Option<Vec<u8>>,
) -> String {
    match (committed, seen) {
        // Git stores a link as the text of its target.
        (Some(bytes), PathContents::Link(_)) => link_text(&String::from_utf8_lossy(&bytes)),
        (Some(bytes), _) => count.text(known, path, &bytes),
        (None, _) => String::new(),
    }
}

impl ExpectedPart {
    /// Returns the mismatch of a part and its old text, or `None` if it is as expected.
    fn mismatch(
        &self,
        seen: &PathContents,
        now: Option<&str>,
        rule: &WatchedFilePartRule,
    ) -> Option<(String, String)> {
        let Some(now) = now else {
            let why = match seen {
                PathContents::Unreadable(why) => why.clone(),
                _ => "unreadable".to_owned(),
            };
            return Some((sanitize(&why), String::new()));
        };
        let hash = sha256(now.as_bytes());
        let is_accepted = self.accepted.iter().any(|one| one.hash == hash);
        let committed = self.committed.as_deref();
        let is_committed = committed.is_some_and(|old| rule.allows_change(old, now));
        let is_nothing =
            committed.is_none() && self.accepted.is_empty() && rule.allows_change("", now);
        if is_accepted || is_committed || is_nothing {
            return None;
        }
        let why = match (&self.committed, self.accepted.last()) {
            _ if now.is_empty() => "the accepted content was removed",
            (Some(old), _) if !old.is_empty() => "differs from the last commit",
            (_, Some(_)) => "differs from the accepted version",
            (Some(_), None) => "not committed",
            (None, None) => "not accepted yet",
        };
        let old = match (&self.committed, self.accepted.last()) {
            (Some(old), _) if !old.is_empty() => old.clone(),
            (_, Some(accepted)) => accepted.excerpt.clone(),
            _ => String::new(),
        };
        Some((why.to_owned(), old))
    }
}

/// Returns the directories in which these commands find files of their tools.
fn tool_dirs(look: &WatchedFileFinder<'_>, commands: &[String]) -> Vec<String> {
    let known = ToolFileKnowledge::built_in();
    let uses = commands.iter().flat_map(|command| split_commands(command));
    let patterns: Vec<&String> = uses
        .flat_map(|step| step.usage(known).tools)
        .flat_map(|tool| &tool.files)
        .collect();
    let mut folders = vec![String::new()];
    for path in &look.tree().files {
        let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
        let is_new = folders.last().is_none_or(|last| last != folder);
        if is_new
            && folders.len() < MAX_DIRS
            && patterns.iter().any(|pattern| path_matches(pattern, path))
            && !folders.iter().any(|known| known == folder)
        {
            folders.push(folder.to_owned());
        }
    }
    folders
}

fn link_text(target: &str) -> String {
    format!("a link to {target}\n")
}

fn truncate(text: &str) -> String {
    let redacted = Redactor::new([]).redact(text).into_owned();
    let mut end = MAX_SHOWN_BYTES.min(redacted.len());
    while !redacted.is_char_boundary(end) {
        end -= 1;
    }
    redacted[..end].to_owned()
}

fn sha256(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
