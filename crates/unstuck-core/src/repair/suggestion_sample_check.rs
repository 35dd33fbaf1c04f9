//! Checks the repair suggestions for a sample of the repair files.

use std::collections::BTreeSet;

use super::project_facts::{
    FsEntryKind, PortFact, ProjectFacts, ProjectPathFacts, ProjectPidFileFacts,
};
use super::repair_catalog::RepairCatalog;
use super::suggestion::RepairSuggestions;
use super::suggestion_sample::SuggestionSample;
use super::{path_strings, probes_for, project_facts_request, suggest_repairs};
use crate::diagnosis::Classifier;
use crate::failure::FailureInputRecord;
use crate::time::ClockReading;

/// The project directory of every sample.
const ROOT: &str = "/w/app";

/// Directories whose files are known only if probed, as in a real project.
const NOT_LISTED: [&str; 3] = ["node_modules", ".venv", "venv"];

impl SuggestionSample {
    /// Returns how the suggestions differ from the expected ones.
    pub fn problem(&self, book: &RepairCatalog) -> Option<String> {
        let offers = self.offers(book, &self.entries);
        let first = |offers: &RepairSuggestions, is_owner: bool| {
            let mut all = offers.suggestions.iter();
            let found = all.find(|offer| offer.source.is_owner() == is_owner);
            found.map(|offer| offer.command.clone())
        };
        let owner = first(&offers, true);
        let built_in = first(&self.offers(book, &[]), false);
        let rule = offers.refusal.as_ref().map(|refusal| refusal.rule.clone());
        let wrong = owner != self.first
            || (self.built_in.is_some() && built_in != self.built_in)
            || (self.nothing && self.built_in.is_none() && built_in.is_some())
            || (self.refused.is_some() && rule != self.refused);
        let said = format!("{}{}", self.stdout, self.stderr);
        let said: String = said.chars().take(120).collect();
        wrong.then(|| {
            format!("`{said}`: offered {owner:?}, built in {built_in:?}, refused {rule:?}, skipped {:?}", offers.skipped_entries)
        })
    }

    /// Returns the suggestions for the sample.
    fn offers(&self, book: &RepairCatalog, entries: &[String]) -> RepairSuggestions {
        let failure = FailureInputRecord {
            tool: Some(self.tool.clone()),
            exit_code: Some(1),
            stdout: Some(self.stdout.as_str().into()),
            stderr: Some(self.stderr.as_str().into()),
            ..FailureInputRecord::default()
        };
        let failure = failure.into_failure();
        let now = ClockReading::utc(crate::time::Timestamp::from_seconds(0));
        let diagnosis = Classifier::built_in().diagnose(&failure, &now);
        let asked = probes_for(book, &failure, &diagnosis, entries);
        let facts = self.facts(&asked);
        suggest_repairs(book, &failure, &diagnosis, &facts, entries)
    }

    fn facts(&self, asked: &project_facts_request::ProjectInspectionScope) -> ProjectFacts {
        let named = self.files.iter().chain(self.texts.keys()).chain(&self.crlf);
        let named = named
            .chain(&self.executable)
            .chain(&self.lfs_pointers)
            .chain(&self.in_use);
        let files: BTreeSet<String> = named.chain(self.pids.keys()).cloned().collect();
        let mut facts = ProjectFacts {
            roots: vec![ROOT.to_owned()],
            scripts: self.scripts.clone(),
            submodules: self.submodules.clone(),
            ..ProjectFacts::default()
        };
        let folders = files.iter().chain(&self.dangling).chain(&self.directories);
        let folders: BTreeSet<&str> = folders
            .flat_map(|path| path_strings::ancestors(path).skip(1))
            .chain(self.directories.iter().map(String::as_str))
            .collect();
        facts.listed = files
            .iter()
            .cloned()
            .chain(folders.iter().map(|one| (*one).to_owned()))
            .filter(|path| is_listed(path))
            .collect();
        let asked_paths = asked.paths.iter().filter_map(|path| facts.relative(path));
        let copies = facts
            .listed
            .iter()
            .filter_map(|file| asked.template_target(file));
        let all: BTreeSet<String> = asked_paths
            .chain(copies)
            .chain(facts.listed.clone())
            .collect();
        facts.paths = all
            .into_iter()
            .map(|path| {
                let fact = self.path_fact(&path, &files, &folders);
                (path, fact)
            })
            .collect();
        facts.copy_facts_to_link_targets();
        facts.named_in = asked
            .names
            .iter()
            .map(|name| {
                let naming = self
                    .texts
                    .iter()
                    .filter(|(_, text)| text.contains(name.as_str()));
                (name.clone(), naming.map(|(file, _)| file.clone()).collect())
            })
            .collect();
        facts.pid_files = self
            .pids
            .iter()
            .map(|(path, alive)| {
                (
                    path.clone(),
                    ProjectPidFileFacts {
                        pid: 4711,
                        alive: *alive,
                        in_project: Some(*alive),
                    },
                )
            })
            .collect();
        facts.ports = self
            .ports
            .iter()
            .filter_map(|(port, ours)| {
                Some((
                    port.parse().ok()?,
                    PortFact {
                        pid: Some(4711),
                        in_project: Some(*ours),
                        command: "node server.js".to_owned(),
                    },
                ))
            })
            .collect();
        facts
    }

    fn path_fact(
        &self,
        path: &str,
        files: &BTreeSet<String>,
        folders: &BTreeSet<&str>,
    ) -> ProjectPathFacts {
        let what = match () {
            () if self.dangling.contains(path) => FsEntryKind::DanglingLink,
            () if files.contains(path) => FsEntryKind::File,
            () if folders.contains(path) || path.is_empty() => FsEntryKind::Directory,
            () => FsEntryKind::Nothing,
        };
        ProjectPathFacts {
            link: self.links.get(path).cloned(),
            entry: what,
            executable: self.executable.contains(path),
            writable: true,
            empty: self.directories.contains(path),
            crlf: self.crlf.contains(path),
            has_bom: self
                .texts
                .get(path)
                .is_some_and(|text| text.starts_with('\u{feff}')),
            lfs_pointer: self.lfs_pointers.contains(path),
            in_use: Some(self.in_use.contains(path)),
            text: self.texts.get(path).cloned(),
        }
    }
}

/// Returns true if probing lists a path without being asked for it.
fn is_listed(path: &str) -> bool {
    let mut above = path_strings::ancestors(path).skip(1);
    !above.any(|folder| NOT_LISTED.contains(&folder))
}
