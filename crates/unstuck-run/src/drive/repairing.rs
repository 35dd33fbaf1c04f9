//! Repairs as the answer to a failed attempt of a session.

use std::path::Path;

use unstuck_core::Category;
use unstuck_core::event::RecoveryResolved;

use super::engine::Engine;
use super::error::RunError;
use super::log::Log;
use super::repair::{Best, Case, Moment, Source, carried_out, documents, remembered};
use crate::process::Stop;

impl Engine<'_> {
    /// The repair that fits the newest failure and was not tried yet; what was proposed is written down.
    pub(super) async fn best_repair(
        &mut self,
        log: &mut Log<'_, '_>,
    ) -> Result<Option<Best>, RunError> {
        let Some(repairer) = self.repairer else {
            return Ok(None);
        };
        repairer.survey().await;
        self.note_that_it_did_not_help(log);
        self.flush(log).await?;
        let recovery = log.recovery();
        let Some(failed) = recovery.failure().cloned() else {
            return Ok(None);
        };
        let (repairs, project) = log
            .journal()
            .know(|run| (run.repairs.clone(), run.run.project.clone()));
        let remembered = match failed.diagnosis.category() {
            Category::Code | Category::None => Vec::new(),
            _ => remembered(self.store, &project, &failed.diagnosis.fingerprint).await?,
        };
        let session = recovery.spec().session.clone();
        let command = &recovery.spec().command;
        let failure = log.failure().unwrap_or_else(|| failed.failure(command));
        let best = repairer.best(&Case {
            source: Source::Session(&session),
            at: Path::new(&recovery.spec().cwd),
            failure: Some((&failure, &failed.diagnosis)),
            repairs: &repairs,
            remembered: &remembered,
            now: self.clock.at(),
        });
        if let Some(best) = best.as_ref().filter(|best| best.is_new) {
            log.note(self.clock.at(), Box::new(best.proposed.clone()));
            self.flush(log).await?;
        }
        Ok(best)
    }

    /// What was run before and did not help is told as such, now that the attempt after it has failed.
    fn note_that_it_did_not_help(&mut self, log: &mut Log<'_, '_>) {
        let session = log.recovery().spec().session.clone();
        let ran = log
            .journal()
            .know(|run| run.repairs.executed(Some(&session)).cloned());
        if let Some(repair) = ran {
            let still = log.recovery().failure();
            let still = still.map_or("", |failed| failed.diagnosis.message.as_str());
            let event = carried_out::failed(&repair, format!("it still fails: {still}"));
            log.note(self.clock.at(), event);
        }
    }

    /// Takes in what the agent has proposed in its newest attempt, and whether a repair before it has helped.
    pub(super) async fn after_attempt(&mut self, log: &mut Log<'_, '_>, is_fine: bool) {
        let session = log.recovery().spec().session.clone();
        let repairs = log.journal().know(|run| run.repairs.clone());
        if let Some(repair) = repairs.executed(Some(&session)).filter(|_| is_fine) {
            let helped = RecoveryResolved::by_repair(Some(session.clone()), &repair.proposed.id);
            log.note(self.clock.at(), helped);
        }
        let number = log.recovery().attempts();
        let folder = log.journal().proposals(log.as_part(), number);
        let (Some(repairer), Some((folder, _))) = (self.repairer, folder) else {
            return;
        };
        if documents::is_there(&folder) {
            repairer.survey().await;
        }
        let failed = log.recovery().failure().filter(|_| !is_fine);
        let fingerprint = failed.map_or("", |failed| failed.diagnosis.fingerprint.as_str());
        let now = self.clock.at();
        let found = documents::read(repairer, &folder, &session, fingerprint, &repairs, now);
        if let Some(event) = found {
            log.note(now, event);
        }
    }

    /// Runs the repair that was decided on, if it may still run.
    pub(super) async fn repair(&mut self, log: &mut Log<'_, '_>) -> Result<(), RunError> {
        self.flush(log).await?;
        let id = log.recovery().repair().unwrap_or_default().to_owned();
        let repairs = log.journal().know(|run| run.repairs.clone());
        let repair = repairs.named(&id);
        let session = Some(log.recovery().spec().session.clone());
        let (Some(repairer), Some(repair)) = (self.repairer, repair) else {
            let why = "repairs are switched off here".to_owned();
            log.note(self.clock.at(), carried_out::unknown(session, &id, why));
            return Ok(());
        };
        repairer.survey().await;
        if log.journal().is_ahead_of_store() {
            let why = "the store cannot be written, and what is run must be recorded before";
            log.note(self.clock.at(), carried_out::failed(repair, why.to_owned()));
            return Ok(());
        }
        let allowed = match repairer.allowed(repair, &repairs, self.clock.at()) {
            Ok(allowed) => allowed,
            Err(why) => {
                log.note(self.clock.at(), carried_out::failed(repair, why));
                return Ok(());
            }
        };
        let run = log.recovery().id().clone();
        let before = repairer.keep_tree(&run, &id, Moment::Before).await;
        for event in carried_out::begun(repair, &allowed, before) {
            log.note(self.clock.at(), event);
        }
        self.flush(log).await?;
        let ran = repairer.run(&allowed, &run, self.stop.clone()).await;
        let after = repairer.keep_tree(&run, &id, Moment::After).await;
        for event in carried_out::ended(repair, &allowed, ran, after, self.redactor) {
            log.note(self.clock.at(), event);
        }
        if *self.stop.borrow() != Stop::No {
            self.interrupted(log, None);
        }
        Ok(())
    }

    /// Notes that the repair under way was cut off when unstuck itself ended.
    pub(super) fn note_cut_repair(&mut self, log: &mut Log<'_, '_>) {
        let id = log.recovery().repair().unwrap_or_default().to_owned();
        let session = Some(log.recovery().spec().session.clone());
        log.note(self.clock.at(), carried_out::cut_off(session, &id));
    }
}
