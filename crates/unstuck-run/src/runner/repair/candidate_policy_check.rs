//! Evaluates a candidate with the command policy, in the same way when it is proposed and when it is run.

use std::path::PathBuf;
use std::time::Duration;

use serde_json::json;
use unstuck_core::Timestamp;
use unstuck_core::command_policy::{
    ApprovedCommand, CommandEvaluation, CommandVerdict, CommandVerdictRestrictions, evaluate,
};
use unstuck_core::event::{ApprovalSource, PolicyVerdict};
use unstuck_core::session_state::{RepairRecord, RepairStates};
use unstuck_repair::project_dir::{ProjectRoot, RepairWorkingDir};
use unstuck_repair::sandbox::{ConfinementLevel, ProcessAccess, process_scope};
use unstuck_repair::watched_files::{
    LastCommitFiles, WatchedFile, WatchedFilesCheckResult, WatchedFilesChecker,
};

use super::coordinator::RepairCoordinator;
use super::unevaluated_candidate::RepairCandidate;
use crate::blobs::content_hash;
use crate::worktree::CommittedTree;

/// A project without accepted commits, with the directories of its repository.
struct NoCommittedFiles(Vec<PathBuf>);

impl LastCommitFiles for NoCommittedFiles {
    fn contents(&self, _paths: &[String]) -> Option<Vec<Option<Vec<u8>>>> {
        None
    }

    fn git_dirs(&self) -> Vec<PathBuf> {
        self.0.clone()
    }
}

/// A candidate evaluated by the command policy.
pub(super) struct PolicyCheckedRepair {
    evaluation: CommandEvaluation,
    folder: RepairWorkingDir,
    /// The watched files as they were inspected.
    watched_files: Vec<WatchedFile>,
    /// The hash to which an answer is bound.
    pub(super) hash: String,
}

/// A repair that may run, with the handle of its working directory.
pub(in crate::runner) struct ApprovedRepair {
    pub(super) approved: ApprovedCommand,
    pub(super) root: ProjectRoot,
    pub(super) folder: RepairWorkingDir,
    pub(super) timeout: Duration,
    /// The watched files as they were checked.
    pub(super) watched_files: Vec<WatchedFile>,
}

impl ApprovedRepair {
    /// Returns the command to run.
    pub(in crate::runner) fn command(&self) -> &str {
        self.approved.command_text()
    }
}

impl PolicyCheckedRepair {
    pub(super) fn verdict(&self) -> PolicyVerdict {
        match self.evaluation.verdict {
            CommandVerdict::Run(_) => PolicyVerdict::Run,
            CommandVerdict::RequireApproval(_) => PolicyVerdict::Ask,
            CommandVerdict::Deny | CommandVerdict::RejectProposal => PolicyVerdict::Deny,
        }
    }

    pub(super) fn reason(&self) -> &str {
        &self.evaluation.reason
    }
}

impl RepairCoordinator<'_> {
    /// Evaluates a candidate; returns an error if its directory cannot be used or its text cannot be shown.
    pub(super) fn evaluate(
        &self,
        root: &ProjectRoot,
        candidate: &RepairCandidate,
        repairs: &RepairStates,
    ) -> Result<PolicyCheckedRepair, String> {
        let folder = root
            .open_working_dir(candidate.working_dir.as_deref())
            .map_err(|error| error.to_string())?;
        let mut standing = CommandVerdictRestrictions {
            auto_repairs_this_run: repairs.auto_count(),
            cooldown_left: None,
            untrusted_config: self.settings.untrusted.clone(),
            changed_watched_files: Vec::new(),
            incomplete_sandbox: self.missing_confinement(&candidate.command),
        };
        let rules = &self.settings.rules;
        let judged = |standing: &CommandVerdictRestrictions| {
            evaluate(rules, &candidate.command, folder.directory_kind(), standing)
        };
        let mut judgement = judged(&standing);
        let guarded = self.check_watched_files(root, &folder, &candidate.command, repairs);
        if matches!(judgement.verdict, CommandVerdict::Run(_)) && !guarded.changed.is_empty() {
            let names = guarded.changed.iter().map(|file| file.path.clone());
            standing.changed_watched_files = names.collect();
            judgement = judged(&standing);
        }
        if judgement.verdict == CommandVerdict::RejectProposal {
            return Err(judgement.reason);
        }
        let hash = self.approval_hash(candidate, &folder, &guarded.fingerprint);
        Ok(PolicyCheckedRepair {
            evaluation: judgement,
            folder,
            watched_files: guarded.files,
            hash,
        })
    }

    /// Compares the watched files with the committed or accepted versions.
    fn check_watched_files(
        &self,
        root: &ProjectRoot,
        folder: &RepairWorkingDir,
        command: &str,
        repairs: &RepairStates,
    ) -> WatchedFilesCheckResult {
        if !self.settings.checks_watched_files {
            return WatchedFilesCheckResult {
                changed: Vec::new(),
                fingerprint: String::new(),
                files: Vec::new(),
            };
        }
        let accepted = (self.context.accepted)(self.project);
        let first = self.first_committed_files(repairs);
        let committed = first.as_deref().unwrap_or(self.context.committed);
        let files = WatchedFilesChecker::new(root, committed).with_baseline(&accepted);
        files.check(command, folder.relative())
    }

    /// Returns the project as it was committed when the run began, if another commit is checked out now: nobody has
    /// accepted what agents committed since.
    fn first_committed_files(&self, repairs: &RepairStates) -> Option<Box<dyn LastCommitFiles>> {
        let first = repairs.head()?;
        let now = self.context.committed.commit().unwrap_or_default();
        if first == now {
            return None;
        }
        Some(match CommittedTree::at_commit(self.project, first) {
            Ok(head) if !first.is_empty() => Box::new(head),
            _ => Box::new(NoCommittedFiles(self.context.committed.git_dirs())),
        })
    }

    /// Returns the missing sandbox features if they make a pre-approved command require approval. Commands that inspect
    /// processes cannot have all features, and are known to do nothing else.
    fn missing_confinement(&self, command: &str) -> Option<String> {
        let found = self.context.confinement.get()?;
        let is_fine = self.settings.accepts_incomplete
            || found.level == ConfinementLevel::Full
            || process_scope(command) == ProcessAccess::Inspect;
        (!is_fine).then(|| found.summary())
    }

    /// Returns the hash to which an answer is bound: it covers everything that decides what would happen.
    fn approval_hash(
        &self,
        candidate: &RepairCandidate,
        folder: &RepairWorkingDir,
        guarded: &str,
    ) -> String {
        let place = folder.identity();
        let terms = self.settings;
        let all = json!({
            "command": candidate.command,
            "folder": folder.relative(),
            "device": place.dev,
            "inode": place.ino,
            "timeout_seconds": candidate.timeout_seconds,
            "document": candidate.document,
            "network": terms.network,
            "sandbox": terms.sandbox,
            "confinement": self.context.confinement.get().map(|found| found.level),
            "write_paths": terms.write_paths,
            "env_keep": terms.env_keep,
            "guard_files": guarded,
        });
        content_hash(all.to_string().as_bytes())
    }

    /// Authorizes a repair by the owner's current list, or by a human's approval of exactly what would run.
    pub(in crate::runner) fn authorize(
        &self,
        repair: &RepairRecord,
        repairs: &RepairStates,
        now: Timestamp,
    ) -> Result<ApprovedRepair, String> {
        let proposed = &repair.proposed;
        let root = ProjectRoot::open(self.project).map_err(|error| error.to_string())?;
        let weighed = self.evaluate(&root, &RepairCandidate::from_event(proposed), repairs)?;
        let by_person = repair.source == Some(ApprovalSource::Human);
        let approved = match weighed.evaluation.verdict {
            CommandVerdict::Deny | CommandVerdict::RejectProposal => {
                return Err(weighed.evaluation.reason);
            }
            _ if by_person && weighed.hash != proposed.hash => {
                return Err("the command has changed since you approved it".to_owned());
            }
            _ if by_person => {
                ApprovedCommand::by_person(&proposed.command).map_err(|error| error.to_string())?
            }
            CommandVerdict::Run(approved) if self.remaining_cooldown(repairs, now).is_zero() => {
                approved
            }
            CommandVerdict::Run(_) => return Err("the repair cooldown has not elapsed".to_owned()),
            CommandVerdict::RequireApproval(_) => return Err(weighed.evaluation.reason),
        };
        Ok(ApprovedRepair {
            approved,
            root,
            folder: weighed.folder,
            watched_files: weighed.watched_files,
            timeout: Duration::from_secs(proposed.timeout_seconds.into()),
        })
    }

    /// Returns the remaining time until the next automatic repair.
    pub(super) fn remaining_cooldown(&self, repairs: &RepairStates, now: Timestamp) -> Duration {
        let cooldown = Duration::from_secs(self.settings.rules.cooldown_seconds);
        let left = |passed: Duration| cooldown.saturating_sub(passed);
        let by_log = repairs
            .last_auto_start()
            .map(|newest| left(now.since(newest)));
        // Setting the clock forward does not shorten the cooldown.
        let by_process = self
            .context
            .last_started
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
    use unstuck_core::command_policy::RepairPolicy;
    use unstuck_core::repair::RepairCatalog;
    use unstuck_core::watched_files::WatchedFileBaseline;
    use unstuck_repair::sandbox::SandboxMode;
    use unstuck_repair::watched_files::NoCommits;

    use super::super::context::SharedRepairContext;
    use super::super::settings::{RepairMode, RepairSettings};
    use super::*;

    /// Setting the clock forward does not shorten the cooldown.
    #[tokio::test(start_paused = true)]
    async fn clock_jump_does_not_end_the_cooldown() {
        let terms = RepairSettings {
            mode: RepairMode::Auto,
            rules: RepairPolicy::default(),
            untrusted: None,
            sandbox: SandboxMode::Required,
            accepts_incomplete: false,
            network: true,
            write_paths: Vec::new(),
            env_keep: Vec::new(),
            checks_watched_files: true,
        };
        let (newest, here) = (Cell::new(Some(Instant::now())), Path::new("/"));
        let workshop = SharedRepairContext {
            catalog_source: RepairCatalog::built_in(),
            state: here,
            hidden_paths: &[],
            environment: &[],
            committed: &NoCommits,
            accepted: &|_| WatchedFileBaseline::default(),
            confinement: &OnceCell::new(),
            last_started: &newest,
        };
        let repairer = RepairCoordinator {
            settings: &terms,
            project: here,
            context: workshop,
        };
        let repairs = RepairStates::default();
        let much_later = Timestamp::from_seconds(9_000_000_000);
        let left = |repairer: &RepairCoordinator<'_>| {
            repairer.remaining_cooldown(&repairs, much_later).as_secs()
        };
        assert_eq!(left(&repairer), 60);
        tokio::time::advance(Duration::from_secs(45)).await;
        assert_eq!(left(&repairer), 15);
        tokio::time::advance(Duration::from_secs(15)).await;
        assert_eq!(left(&repairer), 0);
    }
}
