//! What the guard says to a candidate, with all that it is judged by; the same when it is proposed and when it is run.

use std::path::PathBuf;
use std::time::Duration;

use serde_json::json;
use unstuck_core::Timestamp;
use unstuck_core::event::{ApprovalSource, GuardWord};
use unstuck_core::guard::{Approved, Judgement, Standing, Verdict, judge};
use unstuck_core::recovery::{Repair, Repairs};
use unstuck_repair::guard_files::{Committed, GuardFile, GuardFiles, Guarded};
use unstuck_repair::place::{Folder, Root};
use unstuck_repair::sandbox::{Confinement, Reach, reach};

use super::candidate::Candidate;
use super::repairer::Repairer;
use crate::blobs::hash;
use crate::worktree::Head;

/// A project in which nothing is committed that anybody has accepted, with the folders of its repository.
struct Without(Vec<PathBuf>);

impl Committed for Without {
    fn contents(&self, _paths: &[String]) -> Option<Vec<Option<Vec<u8>>>> {
        None
    }

    fn git_folders(&self) -> Vec<PathBuf> {
        self.0.clone()
    }
}

/// A candidate that the guard has seen.
pub(super) struct Weighed {
    judgement: Judgement,
    folder: Folder,
    /// The files that decide what it does, as they were looked at.
    files: Vec<GuardFile>,
    /// What an answer binds to.
    pub(super) hash: String,
}

/// A repair that may run, with the handle of the folder that it runs in.
pub(in crate::drive) struct Allowed {
    pub(super) approved: Approved,
    pub(super) root: Root,
    pub(super) folder: Folder,
    pub(super) timeout: Duration,
    /// The files that decide what it does, as they were checked.
    pub(super) checked: Vec<GuardFile>,
}

impl Allowed {
    /// What runs.
    pub(in crate::drive) fn text(&self) -> &str {
        self.approved.text()
    }
}

impl Weighed {
    pub(super) fn word(&self) -> GuardWord {
        match self.judgement.verdict {
            Verdict::Run(_) => GuardWord::Run,
            Verdict::Ask(_) => GuardWord::Ask,
            Verdict::Deny | Verdict::RejectProposal => GuardWord::Deny,
        }
    }

    pub(super) fn reason(&self) -> &str {
        &self.judgement.reason
    }
}

impl Repairer<'_> {
    /// Asks the guard; an error where the folder cannot be used, or the text is none that could be shown.
    pub(super) fn weigh(
        &self,
        root: &Root,
        candidate: &Candidate,
        repairs: &Repairs,
    ) -> Result<Weighed, String> {
        let folder = root
            .folder(candidate.working_dir.as_deref())
            .map_err(|error| error.to_string())?;
        let mut standing = Standing {
            auto_this_run: repairs.auto(),
            cooling: None,
            untrusted: self.terms.untrusted.clone(),
            changed_guard_files: Vec::new(),
            incomplete_sandbox: self.incomplete_sandbox(&candidate.command),
        };
        let rules = &self.terms.rules;
        let judged =
            |standing: &Standing| judge(rules, &candidate.command, folder.place(), standing);
        let mut judgement = judged(&standing);
        let guarded = self.guard_files(root, &folder, &candidate.command, repairs);
        if matches!(judgement.verdict, Verdict::Run(_)) && !guarded.changed.is_empty() {
            let names = guarded.changed.iter().map(|file| file.path.clone());
            standing.changed_guard_files = names.collect();
            judgement = judged(&standing);
        }
        if judgement.verdict == Verdict::RejectProposal {
            return Err(judgement.reason);
        }
        let hash = self.bound(candidate, &folder, &guarded.fingerprint);
        Ok(Weighed {
            judgement,
            folder,
            files: guarded.files,
            hash,
        })
    }

    /// What the files that decide what a command does are like, against what was committed or accepted.
    fn guard_files(
        &self,
        root: &Root,
        folder: &Folder,
        command: &str,
        repairs: &Repairs,
    ) -> Guarded {
        if !self.terms.guard_files {
            return Guarded {
                changed: Vec::new(),
                fingerprint: String::new(),
                files: Vec::new(),
            };
        }
        let accepted = (self.workshop.accepted)(self.project);
        let first = self.first_commit(repairs);
        let committed = first.as_deref().unwrap_or(self.workshop.committed);
        let files = GuardFiles::new(root, committed).accepting(&accepted);
        files.check(command, folder.relative())
    }

    /// The project as it was committed when the run began, where that is not what is checked out now: whatever agents
    /// committed in between, nobody has accepted.
    fn first_commit(&self, repairs: &Repairs) -> Option<Box<dyn Committed>> {
        let first = repairs.head()?;
        let now = self.workshop.committed.commit().unwrap_or_default();
        if first == now {
            return None;
        }
        Some(match Head::at(self.project, first) {
            Ok(head) if !first.is_empty() => Box::new(head),
            _ => Box::new(Without(self.workshop.committed.git_folders())),
        })
    }

    /// What is missing for a complete sandbox, where that makes what is approved in advance ask. What looks into
    /// processes cannot have all of it, and is known to do nothing else.
    fn incomplete_sandbox(&self, command: &str) -> Option<String> {
        let found = self.workshop.surveyed.get()?;
        let is_fine = self.terms.accepts_incomplete
            || found.confinement == Confinement::Full
            || reach(command) == Reach::Looks;
        (!is_fine).then(|| found.line())
    }

    /// What an answer binds to: whatever decides what would happen, so that another answer is needed if it changes.
    fn bound(&self, candidate: &Candidate, folder: &Folder, guarded: &str) -> String {
        let place = folder.identity();
        let terms = self.terms;
        let all = json!({
            "command": candidate.command,
            "folder": folder.relative(),
            "device": place.dev,
            "inode": place.ino,
            "timeout_seconds": candidate.timeout_seconds,
            "document": candidate.document,
            "network": terms.network,
            "sandbox": terms.sandbox,
            "confinement": self.workshop.surveyed.get().map(|found| found.confinement),
            "write_paths": terms.write_paths,
            "env_keep": terms.env_keep,
            "guard_files": guarded,
        });
        hash(all.to_string().as_bytes())
    }

    /// Whether a repair may run now: by the owner's list as it is at this moment, or by the word of a person about
    /// exactly what would run.
    pub(in crate::drive) fn allowed(
        &self,
        repair: &Repair,
        repairs: &Repairs,
        now: Timestamp,
    ) -> Result<Allowed, String> {
        let proposed = &repair.proposed;
        let root = Root::open(self.project).map_err(|error| error.to_string())?;
        let weighed = self.weigh(&root, &Candidate::told(proposed), repairs)?;
        let by_person = repair.source == Some(ApprovalSource::Human);
        let approved = match weighed.judgement.verdict {
            Verdict::Deny | Verdict::RejectProposal => return Err(weighed.judgement.reason),
            _ if by_person && weighed.hash != proposed.hash => {
                return Err("what would run is not what you were shown any more".to_owned());
            }
            _ if by_person => {
                Approved::by_person(&proposed.command).map_err(|error| error.to_string())?
            }
            Verdict::Run(approved) if self.cooling(repairs, now).is_zero() => approved,
            Verdict::Run(_) => return Err("the last repair was too short a time ago".to_owned()),
            Verdict::Ask(_) => return Err(weighed.judgement.reason),
        };
        Ok(Allowed {
            approved,
            root,
            folder: weighed.folder,
            checked: weighed.files,
            timeout: Duration::from_secs(proposed.timeout_seconds.into()),
        })
    }

    /// How long it is until the next repair may run by itself.
    pub(super) fn cooling(&self, repairs: &Repairs, now: Timestamp) -> Duration {
        let cooldown = Duration::from_secs(self.terms.rules.cooldown_seconds);
        let left = |passed: Duration| cooldown.saturating_sub(passed);
        let by_log = repairs.newest().map(|newest| left(now.since(newest)));
        // A clock that is set forward does not make it shorter.
        let by_process = self
            .workshop
            .newest
            .get()
            .map(|newest| left(newest.elapsed()));
        by_log.max(by_process).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use std::cell::{Cell, OnceCell};
    use std::path::Path;

    use tokio::time::Instant;
    use unstuck_core::guard::Rules;
    use unstuck_core::guard_files::Baseline;
    use unstuck_core::repair::Book;
    use unstuck_repair::guard_files::NothingCommitted;
    use unstuck_repair::sandbox::Demand;

    use super::super::terms::{RepairMode, RepairTerms};
    use super::super::workshop::Workshop;
    use super::*;

    /// Whoever sets the clock forward does not get a second repair any sooner.
    #[tokio::test(start_paused = true)]
    async fn a_clock_that_jumps_does_not_end_the_cooldown() {
        let terms = RepairTerms {
            mode: RepairMode::Auto,
            rules: Rules::default(),
            untrusted: None,
            sandbox: Demand::Required,
            accepts_incomplete: false,
            network: true,
            write_paths: Vec::new(),
            env_keep: Vec::new(),
            guard_files: true,
        };
        let (newest, here) = (Cell::new(Some(Instant::now())), Path::new("/"));
        let workshop = Workshop {
            knows: Book::built_in(),
            state: here,
            own: &[],
            environment: &[],
            committed: &NothingCommitted,
            accepted: &|_| Baseline::default(),
            surveyed: &OnceCell::new(),
            newest: &newest,
        };
        let repairer = Repairer {
            terms: &terms,
            project: here,
            workshop,
        };
        let repairs = Repairs::default();
        let much_later = Timestamp::from_seconds(9_000_000_000);
        let left = |repairer: &Repairer<'_>| repairer.cooling(&repairs, much_later).as_secs();
        assert_eq!(left(&repairer), 60);
        tokio::time::advance(Duration::from_secs(45)).await;
        assert_eq!(left(&repairer), 15);
        tokio::time::advance(Duration::from_secs(15)).await;
        assert_eq!(left(&repairer), 0);
    }
}
