//! Holds the files of a command against the last commit and against what was accepted.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Serialize;
use sha2::{Digest, Sha256};
use unstuck_core::command_policy::sanitize;
use unstuck_core::redact::Redactor;
use unstuck_core::watched_files::{
    AcceptedPart, AcceptedParts, WatchedFileKnowledge, WatchedFileRule, path_matches,
    split_commands,
};

use super::committed_files::CommittedFiles;
use super::display_diff;
use super::finder::{FoundFile, WatchedFileFinder};
use super::read_entry::PathContents;
use crate::project_dir::ProjectRoot;

/// How much of a part is kept to be shown later, in bytes.
const MAX_SHOWN_BYTES: usize = 16 << 10;
/// In so many folders an accepted command may run, as far as they are looked at.
const MAX_DIRS: usize = 400;

/// The files of a project that decide what its commands execute.
pub struct WatchedFiles<'a> {
    root: &'a ProjectRoot,
    committed: &'a dyn CommittedFiles,
    accepted: Vec<&'a AcceptedParts>,
}

/// What a look at the files of a command came to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct WatchedFilesCheck {
    /// The files that are neither as they were committed nor as they were accepted; none if the command may run.
    pub changed: Vec<ChangedWatchedFile>,
    /// The SHA-256 of all that decides what the command executes, in hexadecimal digits.
    pub fingerprint: String,
    /// The files that were looked at, as they were: these very bytes are what the command may see.
    #[serde(skip)]
    pub files: Vec<WatchedFile>,
}

/// A file that decides what a command does, as it was when it was checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WatchedFile {
    /// Its path from the root of the project.
    pub path: String,
    /// Its contents.
    pub bytes: Vec<u8>,
    /// Whether it may be started as a program.
    pub is_program: bool,
    /// Whether the command itself writes it, as `npm install` writes `package.json`.
    pub is_written: bool,
}

impl WatchedFile {
    /// The SHA-256 of its contents, in hexadecimal digits.
    pub fn sha256(&self) -> String {
        sha256(&self.bytes)
    }
}

/// A file that is not as it was accepted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ChangedWatchedFile {
    /// Its path from the root of the project, fit to be shown.
    pub path: String,
    /// What is the matter with it, such as `it is not committed`.
    #[serde(rename = "why")]
    pub reason: String,
    /// The lines that went and came, fit to be shown; empty where they may hold secrets or there are none.
    #[serde(rename = "difference")]
    pub diff: String,
}

/// What a file must be to be fine.
struct ExpectedPart {
    /// Its part in the last commit.
    committed: Option<String>,
    /// Its part as it was accepted.
    accepted: Vec<AcceptedPart>,
}

impl<'a> WatchedFiles<'a> {
    /// The files of a project, of which some are committed.
    pub fn new(root: &'a ProjectRoot, committed: &'a dyn CommittedFiles) -> Self {
        Self {
            root,
            committed,
            accepted: Vec::new(),
        }
    }

    /// The same, where files are also fine as they were accepted.
    #[must_use]
    pub fn with_baseline(mut self, baseline: &'a AcceptedParts) -> Self {
        self.accepted.push(baseline);
        self
    }

    /// Looks at the files of a command that runs in a folder, which is named from the root.
    pub fn check(&self, command: &str, folder: &Path) -> WatchedFilesCheck {
        let git = self.committed.git_dirs();
        let mut look = WatchedFileFinder::new(self.root, &git);
        let Some(folder) = folder.to_str() else {
            return WatchedFilesCheck {
                changed: vec![ChangedWatchedFile {
                    path: sanitize(&folder.to_string_lossy()),
                    reason: "the folder has no name that is text".to_owned(),
                    diff: String::new(),
                }],
                fingerprint: String::new(),
                files: Vec::new(),
            };
        };
        look.add_command(command, folder);
        self.compare(command, &look.found)
    }

    /// The parts of all files of these commands as they are now, wherever in the project they may run.
    pub fn baseline(&self, commands: &[String]) -> AcceptedParts {
        let git = self.committed.git_dirs();
        let mut look = WatchedFileFinder::new(self.root, &git);
        let folders = tool_dirs(&look, commands);
        for command in commands {
            for folder in &folders {
                look.add_command(command, folder);
            }
        }
        let known = WatchedFileKnowledge::built_in();
        let mut baseline = AcceptedParts::default();
        for (path, found) in &look.found {
            // What is installed or built changes with every time.
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
                    let accepted = AcceptedPart {
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

    fn compare(&self, command: &str, found: &BTreeMap<String, FoundFile>) -> WatchedFilesCheck {
        let mut files = Vec::new();
        let known = WatchedFileKnowledge::built_in();
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
            let grows =
                known.rule_for(path).watches_additions_only() && count == RelevantPart::Part;
            let missed = expected.mismatch(&found.contents, now.as_deref(), grows);
            if let Some((why, old)) = missed {
                let difference = match (&now, known.rule_for(path).secret) {
                    (Some(now), false) => display_diff::display_diff(&old, now),
                    _ => String::new(),
                };
                changed.push(ChangedWatchedFile {
                    path: sanitize(path),
                    reason: why,
                    diff: difference,
                });
            }
        }
        WatchedFilesCheck {
            changed,
            fingerprint: hex(&fingerprint.finalize()),
            files,
        }
    }
}

/// Whether a file may be started as a program.
fn is_program(root: &ProjectRoot, path: &str) -> bool {
    let stat = rustix::fs::statat(root, path, rustix::fs::AtFlags::SYMLINK_NOFOLLOW);
    stat.is_ok_and(|stat| stat.st_mode & 0o111 != 0)
}

/// How much of a file counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RelevantPart {
    /// The part that its rule names.
    Part,
    /// All of it: it is executed itself.
    Whole,
}

impl RelevantPart {
    /// What counts of a file; none if it cannot be told.
    fn relevant_text(
        self,
        known: &WatchedFileKnowledge,
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

    fn text(self, known: &WatchedFileKnowledge, path: &str, bytes: &[u8]) -> String {
        match self {
            Self::Part => known.rule_for(path).relevant_part(bytes),
            Self::Whole => WatchedFileRule::default().relevant_part(bytes),
        }
    }

    /// The name under which it is accepted.
    fn baseline_key(self, known: &WatchedFileKnowledge, path: &str) -> String {
        if self == Self::Whole && !known.rule_for(path).is_whole() {
            format!("{path} (as a whole)")
        } else {
            path.to_owned()
        }
    }
}

/// What counted of a file in the last commit.
fn committed_part(
    known: &WatchedFileKnowledge,
    count: RelevantPart,
    path: &str,
    seen: &PathContents,
    committed: Option<Vec<u8>>,
) -> String {
    match (committed, seen) {
        // A link is committed as the text of where it leads to.
        (Some(bytes), PathContents::Link(_)) => link_text(&String::from_utf8_lossy(&bytes)),
        (Some(bytes), _) => count.text(known, path, &bytes),
        (None, _) => String::new(),
    }
}

impl ExpectedPart {
    /// What is the matter with a part, and what it was; none if it is as expected.
    fn mismatch(
        &self,
        seen: &PathContents,
        now: Option<&str>,
        grows: bool,
    ) -> Option<(String, String)> {
        let Some(now) = now else {
            let why = match seen {
                PathContents::Unreadable(why) => why.clone(),
                _ => "it cannot be read".to_owned(),
            };
            return Some((sanitize(&why), String::new()));
        };
        let hash = sha256(now.as_bytes());
        let is_accepted = self.accepted.iter().any(|one| one.hash == hash);
        // Of some files only what is new counts: a line that was there before is fine.
        let is_among =
            |old: &str| grows && now.lines().all(|line| old.lines().any(|one| one == line));
        let is_committed = self.committed.as_deref() == Some(now)
            || self.committed.as_deref().is_some_and(is_among);
        let is_nothing = now.is_empty() && self.committed.is_none() && self.accepted.is_empty();
        if is_accepted || is_committed || is_nothing {
            return None;
        }
        let why = match (&self.committed, self.accepted.last()) {
            _ if now.is_empty() => "what was accepted of it is gone",
            (Some(old), _) if !old.is_empty() => "it differs from the last commit",
            (_, Some(_)) => "it differs from what was accepted",
            (Some(_), None) => "it is not committed",
            (None, None) => "nobody has accepted it yet",
        };
        let old = match (&self.committed, self.accepted.last()) {
            (Some(old), _) if !old.is_empty() => old.clone(),
            (_, Some(accepted)) => accepted.excerpt.clone(),
            _ => String::new(),
        };
        Some((why.to_owned(), old))
    }
}

/// The folders in which these commands find files of their tools.
fn tool_dirs(look: &WatchedFileFinder<'_>, commands: &[String]) -> Vec<String> {
    let known = WatchedFileKnowledge::built_in();
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
