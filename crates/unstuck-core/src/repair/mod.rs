//! Which repair fits a failure.
//!
//! A failure *needs* something: packages, a folder, a free port. A command *does* something. Both are read by the
//! knowledge in `data/repairs/`, and the [facts](Facts) of the project tell whether they go together. The owner's
//! entries come first, and only those that the evidence supports; nothing is ever tried just because it is allowed.
//!
//! Offering is not allowing: whether a command may run is decided by [`guard`](crate::guard), whatever is offered here.

mod book;
mod call;
mod candidates;
mod data;
mod deed;
mod facts;
mod feasible;
mod fit;
mod instructions;
mod message;
mod need;
mod network;
mod never;
mod offer;
mod paths;
mod pattern;
mod questions;
mod sample;
mod sampling;
mod usual_check;

pub use book::Book;
pub use data::RepairFile;
pub use facts::{Facts, PathFact, PidFile, PortFact, Thing};
pub use instructions::instructions;
pub use network::needs_network;
pub use offer::{Offer, Offers, PassedOver, Refusal, Source};
pub use questions::{Questions, questions};
pub use sample::Sample;
pub use usual_check::{usual_check, usual_check_questions};

use candidates::{Candidate, candidates, filled};
use data::Work;
use deed::Entry;
use fit::{Fit, Judge};
use message::Message;
use need::{Need, clues, needs};

use crate::diagnosis::Diagnosis;
use crate::failure::{Failure, Kind};
use crate::guard::{Confidence, RepairCategory};

/// How long a repair may take that installs or builds.
const LONG: u32 = 900;
/// How long any other may take.
const SHORT: u32 = 120;

/// The repairs that fit a failure of a project, the best first: the owner's entries that the evidence supports, then
/// what is built in.
pub fn offers(
    book: &Book,
    failure: &Failure,
    diagnosis: &Diagnosis,
    facts: &Facts,
    owner_entries: &[String],
) -> Offers {
    let message = Message::read(failure);
    let refused = never::refusal(book, failure, diagnosis, &message);
    if refused.is_some() {
        return Offers {
            refused,
            ..Offers::default()
        };
    }
    let clues = clues(book, diagnosis.kind, &message);
    let desk = Desk {
        judge: Judge {
            book,
            facts,
            message: &message,
        },
        kind: diagnosis.kind,
        line: &diagnosis.evidence.line,
        needs: needs(book, facts, &message, &clues),
    };
    let (mut found, passed_over) = desk.owners(owner_entries);
    found.sort_by_key(|one| one.rank);
    let mut offers: Vec<Offer> = found.into_iter().map(|one| one.offer).collect();
    let mut built_in = desk.built_in();
    built_in.sort_by_key(|one| one.rank);
    for one in built_in {
        if offers
            .iter()
            .all(|known| known.command != one.offer.command)
        {
            offers.push(one.offer);
        }
    }
    Offers {
        offers,
        refused: None,
        passed_over,
    }
}

/// What an offer is ranked by, the better the smaller.
type Rank = (bool, i32, u8, bool, usize, Reach, usize, usize);

/// Where packages come from, the surest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Reach {
    /// From a folder of the project.
    Project,
    /// From wherever the manager finds them.
    Anywhere,
    /// From what happens to be on this machine.
    Machine,
}

struct Found {
    rank: Rank,
    offer: Offer,
}

/// Where offers are made.
struct Desk<'a> {
    judge: Judge<'a>,
    kind: Kind,
    line: &'a str,
    needs: Vec<Need<'a>>,
}

impl<'a> Desk<'a> {
    fn owners(&self, entries: &[String]) -> (Vec<Found>, Vec<PassedOver>) {
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
            None if advised => {
                let fit = Fit {
                    preference: 0,
                    tied: true,
                };
                Ok(self.found(None, fit, &entry, true, at))
            }
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
        let reach = match () {
            () if entry.deeds.iter().any(|deed| !deed.sources.is_empty()) => Reach::Project,
            () if entry.deeds.iter().any(|deed| deed.offline) => Reach::Machine,
            () => Reach::Anywhere,
        };
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
                reach,
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

    fn built_in(&self) -> Vec<Found> {
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
        let fit = Fit {
            preference: 0,
            tied: true,
        };
        let mut found = self.found(None, fit, entry, true, 0);
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
            false => Fit {
                preference: 0,
                tied: true,
            },
        };
        if !candidate.folder.is_empty() {
            entry = Entry::read(judge.book, judge.facts, &candidate.in_its_folder());
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
