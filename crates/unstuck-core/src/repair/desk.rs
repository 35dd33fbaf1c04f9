//! Where offers are made: each command is held against each need.

use super::candidates::{self, Candidate, candidates, filled};
use super::data::Work;
use super::deed::Entry;
use super::fit::{Fit, Judge};
use super::need::Need;
use super::offer::{Offer, PassedOver, Source};
use super::{feasible, never};
use crate::failure::Kind;
use crate::guard::{Confidence, RepairCategory};

/// How long a repair may take that installs or builds.
const LONG: u32 = 900;
/// How long any other may take.
const SHORT: u32 = 120;

/// What an offer is ranked by, the better the smaller.
pub(super) type Rank = (bool, i32, u8, bool, usize, bool, usize, usize);

pub(super) struct Found {
    pub(super) rank: Rank,
    pub(super) offer: Offer,
}

/// Where offers are made.
pub(super) struct Desk<'a> {
    pub(super) judge: Judge<'a>,
    pub(super) kind: Kind,
    /// The line that decided what kind of failure it is.
    pub(super) line: &'a str,
    pub(super) needs: Vec<Need<'a>>,
}

impl<'a> Desk<'a> {
    /// The owner's entries that fit, and the others with the reason.
    pub(super) fn owners(&self, entries: &[String]) -> (Vec<Found>, Vec<PassedOver>) {
        let (mut found, mut passed_over) = (Vec::new(), Vec::new());
        for (at, text) in entries.iter().enumerate() {
            let text = text.trim_matches([' ', '\t', '\n', '\r']);
            match self.owner(text, at) {
                Ok(one) => found.push(one),
                Err(reason) => passed_over.push(PassedOver {
                    command: text.to_owned(),
                    reason,
                }),
            }
        }
        (found, passed_over)
    }

    fn owner(&self, text: &str, at: usize) -> Result<Found, String> {
        let judge = &self.judge;
        let entry = Entry::read(judge.book, judge.facts, text);
        if let Some(reason) = never::forbidden(judge.book, judge.facts, &entry) {
            return Err(reason);
        }
        if let Some(obstacle) = feasible::obstacle(judge.book, judge.facts, &entry) {
            return Err(obstacle);
        }
        let advised = judge.message.advises(text) && judge.harm(None, &entry).is_none();
        let fits = self
            .needs
            .iter()
            .filter_map(|need| Some((need, judge.fit(need, &entry)?)));
        let best = fits.min_by_key(|(need, fit)| (-need.priority, *fit));
        match best {
            Some((need, fit)) => Ok(self.found(Some(need), fit, &entry, advised, at)),
            None if advised => Ok(self.found(None, Fit::BEST, &entry, true, at)),
            None => Err("nothing in the failure calls for it".to_owned()),
        }
    }

    fn found(
        &self,
        need: Option<&Need<'a>>,
        fit: Fit,
        entry: &Entry,
        advised: bool,
        at: usize,
    ) -> Found {
        let priority = need.map_or(0, |need| need.priority);
        let removed = entry.doing(Work::Remove).map(|deed| deed.of.len()).sum();
        let offline = entry.deeds.iter().any(|deed| deed.offline);
        let steps = entry.deeds.iter().filter(|deed| deed.depth == 0).count();
        let mut offer = self.offer(need, fit, entry);
        if advised {
            offer.confidence = Confidence::High;
        }
        offer.source = Source::Owner(self.rule(need));
        Found {
            rank: (
                !advised,
                -priority,
                fit.preference,
                !fit.tied,
                removed,
                offline,
                steps,
                at,
            ),
            offer,
        }
    }

    fn rule(&self, need: Option<&Need<'a>>) -> String {
        need.map_or("advised", |need| need.rule.id.as_str())
            .to_owned()
    }

    /// What is built in.
    pub(super) fn built_in(&self) -> Vec<Found> {
        let judge = &self.judge;
        let mut all = Vec::new();
        for need in &self.needs {
            for candidate in candidates(judge.book, judge.facts, self.kind, need) {
                all.extend(self.candidate(need, candidate, all.len()));
            }
        }
        if ![Kind::PermissionDenied, Kind::DiskFull, Kind::OutOfMemory].contains(&self.kind) {
            let advised = candidates::advised(judge.book, judge.facts, judge.message);
            all.extend(advised.iter().filter_map(|entry| self.advised(entry)));
        }
        all
    }

    /// What the message itself says to run, if it is a script of the project.
    fn advised(&self, entry: &Entry) -> Option<Found> {
        let judge = &self.judge;
        let forbidden = never::forbidden(judge.book, judge.facts, entry).is_some();
        let obstacle = feasible::obstacle(judge.book, judge.facts, entry).is_some();
        if forbidden || obstacle || judge.harm(None, entry).is_some() {
            return None;
        }
        let mut found = self.found(None, Fit::BEST, entry, true, 0);
        found.offer.source = Source::BuiltIn(self.rule(None));
        Some(found)
    }

    fn candidate(&self, need: &Need<'a>, candidate: Candidate, at: usize) -> Option<Found> {
        let judge = &self.judge;
        let mut entry = Entry::read(judge.book, judge.facts, &candidate.command);
        if never::forbidden(judge.book, judge.facts, &entry).is_some() {
            return None;
        }
        let fit = match candidate.unproven {
            true => judge.fit(need, &entry)?,
            false => Fit::BEST,
        };
        if !candidate.folder.is_empty() {
            let text = format!("cd {} && {}", candidate.folder, candidate.command);
            entry = Entry::read(judge.book, judge.facts, &text);
        }
        if feasible::obstacle(judge.book, judge.facts, &entry).is_some() {
            return None;
        }
        let advised = judge.message.advises(&candidate.command);
        let mut found = self.found(Some(need), fit, &entry, advised, at);
        found.offer.command = candidate.command;
        found.offer.source = Source::BuiltIn(need.rule.id.clone());
        if !candidate.folder.is_empty() {
            found.offer.working_dir = Some(candidate.folder);
        }
        Some(found)
    }

    fn offer(&self, need: Option<&Need<'a>>, fit: Fit, entry: &Entry) -> Offer {
        let works = [
            Work::Install,
            Work::Build,
            Work::Lock,
            Work::Rebuild,
            Work::Provide,
        ];
        let long = entry.deeds.iter().any(|deed| deed.does_any(&works));
        let plain = |text: &str| text.to_owned();
        let told = |template: &str, need: &Need<'_>| {
            let told = filled(template, need, &plain);
            told.unwrap_or_else(|| template.to_owned())
        };
        let sure = |need: &Need<'_>| match fit.tied {
            true => need.rule.confidence,
            false => need.rule.confidence.min(Confidence::Medium),
        };
        Offer {
            command: entry.text.clone(),
            working_dir: None,
            source: Source::Owner(String::new()),
            category: need.map_or_else(|| category(self.kind), |need| need.rule.category),
            confidence: need.map_or(Confidence::High, sure),
            root_cause: need.map_or_else(
                || "The failure itself says what to run.".to_owned(),
                |need| told(&need.rule.cause, need),
            ),
            evidence: vec![need.map_or(self.line, |need| &need.line).to_owned()],
            expected_outcome: need.map_or_else(
                || "What the message asks for is done.".to_owned(),
                |need| told(&need.rule.outcome, need),
            ),
            timeout_seconds: if long { LONG } else { SHORT },
        }
    }
}

/// The category of a failure for which no need was found.
fn category(kind: Kind) -> RepairCategory {
    match kind {
        Kind::MissingDependency | Kind::DependencyConflict | Kind::LockfileDrift => {
            RepairCategory::Dependency
        }
        Kind::ConfigError => RepairCategory::Config,
        Kind::PermissionDenied => RepairCategory::Permissions,
        Kind::NetworkError => RepairCategory::Network,
        _ => RepairCategory::Environment,
    }
}
