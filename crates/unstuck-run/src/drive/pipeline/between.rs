//! What is done about a broken environment between two iterations: what roles have proposed, and what fits a check that
//! did not pass. The next iteration starts repaired.

use unstuck_core::decision::{AskWhy, RepairLeave};
use unstuck_core::event::{DiagnosedCheck, EscalationKind, Event, RecoveryResolved};
use unstuck_core::question::Circumstances;
use unstuck_core::recovery::Repair;

use super::{Conductor, Plan, Stage};
use crate::drive::asking::Asking;
use crate::drive::error::RunError;
use crate::drive::repair::{Best, Case, Moment, Repairer, Source, carried_out, remembered};
use crate::process::Stop;

/// What follows between two iterations.
pub(super) enum Between {
    /// The next iteration may begin, and is told this.
    Ready(Vec<String>),
    /// A person is asked first, or the iteration is judged anew.
    Undecided,
}

impl Conductor<'_> {
    /// Takes over what was changed in the configuration, and repairs what can be repaired before an iteration begins.
    pub(super) async fn repaired(
        &self,
        stage: &Stage<'_, '_>,
        iteration: u32,
    ) -> Result<Between, RunError> {
        if iteration == 1 {
            return Ok(Between::Ready(Vec::new()));
        }
        self.reload(stage).await?;
        self.note_cut_repair(stage).await?;
        let plan = self.plan();
        let Some(repairer) = self.repairer(&plan) else {
            return Ok(Between::Ready(Vec::new()));
        };
        let mut told = self.refused(stage);
        while *self.stop.borrow() == Stop::No {
            let Some(best) = self.best_repair(stage, repairer).await? else {
                break;
            };
            if matches!(best.leave, RepairLeave::Granted { .. }) {
                let until = self.clock.at().after(best.wait());
                self.clock.wait_until(until).await;
            } else {
                self.ask_about_repair(stage, repairer, &best).await?;
                return Ok(Between::Undecided);
            }
            if let Some(said) = self.carry_out(stage, repairer, &best.proposed.id).await? {
                told.push(said);
                if self.passes(stage, &best.proposed.id).await? {
                    // It may have been all that was left undone.
                    self.judge(stage).await?;
                    let done = self.know(stage.journal, |pipeline| {
                        pipeline.judged().is_some_and(|judged| judged.done)
                    });
                    return Ok(match done {
                        true => Between::Undecided,
                        false => Between::Ready(told),
                    });
                }
            }
        }
        Ok(Between::Ready(told))
    }

    /// One who repairs on the terms of this plan; none where nothing is repaired.
    pub(super) fn repairer<'p>(&self, plan: &'p Plan) -> Option<Repairer<'p>>
    where
        Self: 'p,
    {
        Some(Repairer {
            terms: plan.repair.as_ref()?,
            project: &plan.project,
            workshop: self.workshop,
        })
    }

    /// What of the roles' proposals was refused in the iteration that is over, for the next one.
    fn refused(&self, stage: &Stage<'_, '_>) -> Vec<String> {
        stage.journal.know(|run| {
            let why = run.repairs.refused_in_iteration();
            why.map(|why| format!("Your recovery.json was refused as a whole: {why}"))
                .collect()
        })
    }

    /// The repair that fits, written down; none where nothing fits that was not tried.
    async fn best_repair(
        &self,
        stage: &Stage<'_, '_>,
        repairer: Repairer<'_>,
    ) -> Result<Option<Best>, RunError> {
        let (repairs, project, check) = stage.journal.know(|run| {
            let judged = run.pipeline.as_ref().and_then(|one| one.judged());
            let check = judged.and_then(|judged| judged.failed_check.clone());
            (run.repairs.clone(), run.run.project.clone(), check)
        });
        repairer.survey().await;
        let now = self.clock.at();
        if let Some(allowed) = repairs.allowed() {
            return Ok(Some(Best::allowed(allowed.proposed.clone())));
        }
        let known = match &check {
            Some(check) => remembered(self.store, &project, &check.diagnosis.fingerprint).await?,
            None => Vec::new(),
        };
        let failure = check
            .as_deref()
            .map(|check| (check.failure(), &check.diagnosis));
        let best = repairer.best(&Case {
            source: Source::Run,
            at: repairer.project,
            failure: failure.as_ref().map(|(failure, found)| (failure, *found)),
            repairs: &repairs,
            remembered: &known,
            now,
        });
        if let Some(best) = best.as_ref().filter(|best| best.is_new) {
            let proposed = Box::new(best.proposed.clone());
            self.write(stage.journal, vec![proposed.into()]).await?;
        }
        Ok(best)
    }

    async fn ask_about_repair(
        &self,
        stage: &Stage<'_, '_>,
        repairer: Repairer<'_>,
        best: &Best,
    ) -> Result<(), RunError> {
        let proposed = &best.proposed;
        let reason = format!(
            "`{}` may repair the environment, and needs your word: {}",
            proposed.command, proposed.reason
        );
        let question = EscalationKind::RecoveryApprovalRequired;
        let asking = Asking::about(question, AskWhy::Repair, reason);
        let of = Circumstances {
            repair: Some(&proposed.command),
            ..Circumstances::default()
        };
        let id = format!("{}-{}", stage.journal.run(), proposed.id);
        let mut asked = self.question(id, asking, &of, Some(proposed.id.clone()));
        asked.shown.conditions = Some(repairer.conditions(&proposed.command));
        self.write(stage.journal, vec![asked.into()]).await?;
        Ok(())
    }

    /// Runs a repair if it may still run; what is told about it to the next iteration if it did what it should.
    async fn carry_out(
        &self,
        stage: &Stage<'_, '_>,
        repairer: Repairer<'_>,
        id: &str,
    ) -> Result<Option<String>, RunError> {
        let repairs = stage.journal.know(|run| run.repairs.clone());
        let Some(repair) = repairs.named(id) else {
            return Ok(None);
        };
        repairer.survey().await;
        let allowed = match repairer.allowed(repair, &repairs, self.clock.at()) {
            Ok(allowed) => allowed,
            Err(why) => {
                self.say(stage, carried_out::failed(repair, why)).await?;
                return Ok(None);
            }
        };
        let run = stage.journal.run().clone();
        let before = repairer.keep_tree(&run, id, Moment::Before).await;
        let begun = carried_out::begun(repair, &allowed, before);
        self.write(stage.journal, begun).await?;
        let ran = repairer.run(&allowed, &run, self.stop.clone());
        let ran = self.watching(stage.journal, ran).await;
        let after = repairer.keep_tree(&run, id, Moment::After).await;
        let ended = carried_out::ended(repair, &allowed, ran, after, self.redactor);
        let is_fine = !ended
            .iter()
            .any(|one| matches!(one, Event::RecoveryFailed(_)));
        self.write(stage.journal, ended).await?;
        Ok(is_fine.then(|| format!("The environment was repaired with `{}`.", allowed.text())))
    }

    /// Whether the check that had failed passes now.
    async fn passes(&self, stage: &Stage<'_, '_>, id: &str) -> Result<bool, RunError> {
        let repair = stage.journal.know(|run| run.repairs.named(id).cloned());
        let before = self.know(stage.journal, |pipeline| {
            let judged = pipeline.judged()?;
            Some(judged.failed_check.as_deref()?.check.line.clone())
        });
        let (Some(repair), Some(line)) = (repair, before) else {
            return Ok(false);
        };
        match self.run_check(&line).await? {
            None => {
                let helped = RecoveryResolved::by_repair(repair.proposed.session.clone(), id);
                self.write(stage.journal, vec![helped.into()]).await?;
                Ok(true)
            }
            Some(still) => {
                self.still_fails(stage, &repair, &still).await?;
                Ok(false)
            }
        }
    }

    /// Whether the check fails as before: one that fails otherwise has got further.
    async fn still_fails(
        &self,
        stage: &Stage<'_, '_>,
        repair: &Repair,
        now: &DiagnosedCheck,
    ) -> Result<(), RunError> {
        let error = format!("it still fails: {}", now.diagnosis.message);
        self.say(stage, carried_out::failed(repair, error)).await
    }

    /// A repair that was cut off when unstuck itself ended is not run again.
    async fn note_cut_repair(&self, stage: &Stage<'_, '_>) -> Result<(), RunError> {
        let cut = stage.journal.know(|run| run.repairs.cut_off().cloned());
        let Some(repair) = cut.filter(|one| one.proposed.session.is_none()) else {
            return Ok(());
        };
        let event = carried_out::cut_off(None, &repair.proposed.id);
        self.say(stage, event).await
    }

    async fn say(&self, stage: &Stage<'_, '_>, event: impl Into<Event>) -> Result<(), RunError> {
        self.write(stage.journal, vec![event.into()]).await?;
        Ok(())
    }
}
