//! Repairs in response to a failed attempt of a session.

use std::path::Path;

use unstuck_core::Category;
use unstuck_core::event::EscalationResolved;

use super::error::RunError;
use super::repair::{
    RepairQuery, RepairQueryScope, SelectedRepair, SnapshotPhase, agent_proposal, events,
    load_history,
};
use super::session_event_log::SessionEventLog;
use super::session_runner::SessionRunner;
use crate::process::AttemptStopRequest;

impl SessionRunner<'_> {
    /// Selects an untried repair for the newest failure; records the proposals.
    pub(super) async fn select_repair(
        &mut self,
        log: &mut SessionEventLog<'_, '_>,
    ) -> Result<Option<SelectedRepair>, RunError> {
        let Some(repairer) = self.repairer else {
            return Ok(None);
        };
        repairer.probe_sandbox().await;
        self.note_unhelpful_repair(log);
        self.flush(log).await?;
        let recovery = log.recovery();
        let Some(failed) = recovery.last_failure().cloned() else {
            return Ok(None);
        };
        let (repairs, project) = log
            .journal()
            .with_view(|run| (run.repairs.clone(), run.run.project.clone()));
        let remembered = match failed.diagnosis.category() {
            Category::Code | Category::None => Vec::new(),
            _ => load_history(self.store, &project, &failed.diagnosis.fingerprint).await?,
        };
        let session = recovery.spec().session.clone();
        let command = &recovery.spec().command;
        let failure = log.failure().unwrap_or_else(|| failed.to_failure(command));
        let best = repairer.select_repair(&RepairQuery {
            source: RepairQueryScope::Session(&session),
            dir: Path::new(&recovery.spec().cwd),
            failure: Some((&failure, &failed.diagnosis)),
            repairs: &repairs,
            history: &remembered,
            now: self.clock.timestamp(),
        });
        if let Some(best) = best.as_ref().filter(|best| best.is_new) {
            log.note(self.clock.timestamp(), Box::new(best.proposed.clone()));
            self.flush(log).await?;
        }
        Ok(best)
    }

    /// Notes that the last repair did not help, now that the attempt after it has failed.
    fn note_unhelpful_repair(&mut self, log: &mut SessionEventLog<'_, '_>) {
        let session = log.recovery().spec().session.clone();
        let ran = log
            .journal()
            .with_view(|run| run.repairs.last_executed(Some(&session)).cloned());
        if let Some(repair) = ran {
            let still = log.recovery().last_failure();
            let still = still.map_or("", |failed| failed.diagnosis.message.as_str());
            let event = events::failed_event(&repair, format!("still failing: {still}"));
            log.note(self.clock.timestamp(), event);
        }
    }

    /// Records the agent's proposals of its newest attempt, and the success of a repair before it.
    pub(super) async fn record_proposals_after_attempt(
        &mut self,
        log: &mut SessionEventLog<'_, '_>,
        is_fine: bool,
    ) {
        let session = log.recovery().spec().session.clone();
        let repairs = log.journal().with_view(|run| run.repairs.clone());
        if let Some(repair) = repairs.last_executed(Some(&session)).filter(|_| is_fine) {
            let helped = EscalationResolved::by_repair(Some(session.clone()), &repair.proposed.id);
            log.note(self.clock.timestamp(), helped);
        }
        let number = log.recovery().attempt_count();
        let folder = log.journal().proposal_dir(log.role_instance(), number);
        let (Some(repairer), Some((folder, _))) = (self.repairer, folder) else {
            return;
        };
        if agent_proposal::has_proposal(&folder) {
            repairer.probe_sandbox().await;
        }
        let failed = log.recovery().last_failure().filter(|_| !is_fine);
        let fingerprint = failed.map_or("", |failed| failed.diagnosis.fingerprint.as_str());
        let now = self.clock.timestamp();
        let found =
            agent_proposal::read_proposal(repairer, &folder, &session, fingerprint, &repairs, now);
        if let Some(event) = found {
            log.note(now, event);
        }
    }

    /// Runs the planned repair if it is still allowed.
    pub(super) async fn run_repair(
        &mut self,
        log: &mut SessionEventLog<'_, '_>,
    ) -> Result<(), RunError> {
        self.flush(log).await?;
        let id = log
            .recovery()
            .pending_repair()
            .unwrap_or_default()
            .to_owned();
        let repairs = log.journal().with_view(|run| run.repairs.clone());
        let repair = repairs.get(&id);
        let session = Some(log.recovery().spec().session.clone());
        let (Some(repairer), Some(repair)) = (self.repairer, repair) else {
            let why = if self.repairer.is_none() {
                "repairs are disabled here".to_owned()
            } else {
                format!("this run has no repair {id}")
            };
            log.note(
                self.clock.timestamp(),
                events::unknown_repair_event(session, &id, why),
            );
            return Ok(());
        };
        repairer.probe_sandbox().await;
        if log.journal().is_ahead_of_store() {
            let why = "the store is not writable, and commands must be recorded before they run";
            log.note(
                self.clock.timestamp(),
                events::failed_event(repair, why.to_owned()),
            );
            return Ok(());
        }
        let allowed = match repairer.authorize(repair, &repairs, self.clock.timestamp()) {
            Ok(allowed) => allowed,
            Err(why) => {
                log.note(self.clock.timestamp(), events::failed_event(repair, why));
                return Ok(());
            }
        };
        let run = log.recovery().id().clone();
        let before = repairer
            .snapshot_tree(&run, &id, SnapshotPhase::Before)
            .await;
        for event in events::started_events(repair, &allowed, before) {
            log.note(self.clock.timestamp(), event);
        }
        self.flush(log).await?;
        let ran = repairer.run(&allowed, &run, self.stop.clone()).await;
        let after = repairer
            .snapshot_tree(&run, &id, SnapshotPhase::After)
            .await;
        for event in events::finished_events(repair, &allowed, ran, after, self.redactor) {
            log.note(self.clock.timestamp(), event);
        }
        if *self.stop.borrow() != AttemptStopRequest::Continue {
            self.note_interrupted(log, None);
        }
        Ok(())
    }

    /// Notes that the running repair was interrupted when unstuck crashed.
    pub(super) fn note_interrupted_repair(&mut self, log: &mut SessionEventLog<'_, '_>) {
        let id = log
            .recovery()
            .pending_repair()
            .unwrap_or_default()
            .to_owned();
        let session = Some(log.recovery().spec().session.clone());
        log.note(
            self.clock.timestamp(),
            events::interrupted_event(session, &id),
        );
    }
}
