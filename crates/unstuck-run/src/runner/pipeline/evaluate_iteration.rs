//! Evaluates an iteration: the loop's condition and the goals that are not met.

use std::path::PathBuf;
use std::time::Duration;

use unstuck_core::FailureKind;
use unstuck_core::event::{DiagnosedCheck, IterationFinished, RunOutcome};

use super::{LoopEndCondition, LoopPlan, PipelineExecution, PipelineRunner};
use crate::blobs::{BlobStore, content_hash};
use crate::process::{DiscardOutput, ProcessSpec, ProcessTimeouts, Stdin};
use crate::runner::check_outcome::{CheckOutcome, check_failure_message};
use crate::runner::error::RunError;
use crate::worktree::{self, find_undo_cycle};

/// Timeout of a check.
const CHECK_TIMEOUT: Duration = Duration::from_mins(30);

/// A goal that is not met.
struct UnmetGoal {
    /// The description for humans and for the next iteration.
    message: String,
    /// Identifies the same problem in later iterations.
    fingerprint: String,
    /// The check that failed, if it was a check.
    check: Option<Box<DiagnosedCheck>>,
}

impl PipelineRunner<'_> {
    /// Evaluates the finished iteration.
    pub(super) async fn evaluate_iteration(
        &self,
        stage: &PipelineExecution<'_, '_>,
    ) -> Result<(), RunError> {
        let Some(looping) = &self.plan().loop_plan else {
            return Ok(());
        };
        let failed = self.unmet_by_failed_roles(stage);
        let (done, undone) = match &looping.until {
            Some(until) => self.is_done(stage, until, failed).await?,
            None => {
                let last = self.with_pipeline(stage.journal, |pipeline| {
                    pipeline.iteration() >= pipeline.max_iterations()
                });
                (last && failed.is_empty(), failed)
            }
        };
        let finished = self.iteration_finished(stage, looping, done, undone);
        self.write(stage.journal, vec![finished.into()]).await?;
        Ok(())
    }

    fn iteration_finished(
        &self,
        stage: &PipelineExecution<'_, '_>,
        looping: &LoopPlan,
        done: bool,
        undone: Vec<UnmetGoal>,
    ) -> IterationFinished {
        let said: Vec<_> = undone.iter().map(|one| one.message.as_str()).collect();
        let marks: Vec<_> = undone.iter().map(|one| one.fingerprint.as_str()).collect();
        let failed_check = undone.iter().find_map(|one| one.check.clone());
        let mut finished = IterationFinished {
            iteration: self.with_pipeline(stage.journal, unstuck_core::PipelineState::iteration),
            done,
            feedback: if done {
                String::new()
            } else {
                said.join("\n\n")
            },
            fingerprint: (!done && !marks.is_empty())
                .then(|| content_hash(marks.join("\n").as_bytes())),
            tree: worktree::fingerprint(&self.plan().project, self.state).ok(),
            unchanged: 0,
            failed_check,
        };
        let before = stage.previous_iteration();
        finished.unchanged = self.with_pipeline(stage.journal, |pipeline| {
            pipeline.unchanged_iterations_with(&finished, before.as_ref())
        });
        if let Some(circle) = find_undo_cycle(&stage.steps.borrow()).filter(|_| !done)
            && circle.returns >= usize::try_from(looping.stuck_after).unwrap_or(usize::MAX)
        {
            let said = format!(
                "{} undo each other's changes: the files returned to an earlier state {} times",
                circle.roles.join(" and "),
                circle.returns
            );
            finished.feedback = format!("{said}\n\n{}", finished.feedback);
            finished.unchanged = looping.stuck_after;
        }
        stage.remember_iteration(&finished);
        finished
    }

    /// Returns the failed roles that are not optional.
    fn unmet_by_failed_roles(&self, stage: &PipelineExecution<'_, '_>) -> Vec<UnmetGoal> {
        stage.journal.with_view(|run| {
            let Some(pipeline) = &run.pipeline else {
                return Vec::new();
            };
            let failed = pipeline.stopped_instances().filter(|(part, outcome)| {
                *outcome == RunOutcome::Failed
                    && pipeline.role(&part.role).is_some_and(|role| !role.optional)
            });
            let told = failed.map(|(part, _)| {
                let mut sessions = run.sessions.iter();
                let session = sessions.find(|session| session.part.as_ref() == Some(part));
                let diagnosis = session.and_then(|session| session.diagnosis.as_deref());
                let why = diagnosis.map_or("unknown cause", |found| found.message.as_str());
                let line = diagnosis.map_or("", |found| found.evidence.line.as_str());
                UnmetGoal {
                    message: format!("{} failed: {why}\n{line}", part.role)
                        .trim_end()
                        .to_owned(),
                    fingerprint: diagnosis.map_or("", |found| &found.fingerprint).to_owned(),
                    check: None,
                }
            });
            told.collect()
        })
    }

    /// Returns true if the loop's condition is met, and the unmet goals.
    async fn is_done(
        &self,
        stage: &PipelineExecution<'_, '_>,
        until: &LoopEndCondition,
        failed: Vec<UnmetGoal>,
    ) -> Result<(bool, Vec<UnmetGoal>), RunError> {
        let mut met = 0;
        let mut undone = Vec::new();
        if until.all_roles && failed.is_empty() {
            met += 1;
        }
        undone.extend(failed);
        if let Some(promise) = &until.promise {
            if self.is_marker_printed(stage, promise)? {
                met += 1
            } else {
                // The marker itself is not named: an agent that repeats its prompt would emit it.
                let said = match &promise.role {
                    Some(role) => format!("{role} has not reported completion"),
                    None => "no role has reported completion".to_owned(),
                };
                undone.push(UnmetGoal {
                    fingerprint: said.clone(),
                    message: said,
                    check: None,
                });
            }
        }
        if let Some(check) = &until.check {
            match self.run_until_check(check).await? {
                None => met += 1,
                Some(complaint) => undone.push(complaint),
            }
        }
        let wanted = usize::from(until.all_roles)
            + usize::from(until.promise.is_some())
            + usize::from(until.check.is_some());
        let done = if until.any { met > 0 } else { met == wanted };
        Ok((done, undone))
    }

    fn is_marker_printed(
        &self,
        stage: &PipelineExecution<'_, '_>,
        promise: &super::CompletionMarker,
    ) -> Result<bool, RunError> {
        let outputs = self.with_pipeline(stage.journal, |pipeline| pipeline.current_outputs());
        let blobs = BlobStore::in_state_dir(self.state);
        let said_by = |role: &String| promise.role.as_ref().is_none_or(|wanted| wanted == role);
        for (_, names) in outputs.iter().filter(|(role, _)| said_by(role)) {
            for name in names {
                let text = blobs.get(name)?;
                if contains_marker(&promise.text, &String::from_utf8_lossy(&text)) {
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }

    /// Runs the check command of the loop's condition; returns the unmet goal if it fails.
    async fn run_until_check(&self, line: &str) -> Result<Option<UnmetGoal>, RunError> {
        let Some(failed) = self.run_check(line).await? else {
            return Ok(None);
        };
        let kind = match failed.diagnosis.kind {
            FailureKind::None | FailureKind::Unknown => String::new(),
            kind => format!(" ({kind})"),
        };
        Ok(Some(UnmetGoal {
            message: check_failure_message(&failed.check, &kind),
            fingerprint: failed.diagnosis.fingerprint.clone(),
            check: Some(failed),
        }))
    }

    /// Runs a check of the loop; returns the diagnosis if it failed.
    pub(super) async fn run_check(
        &self,
        line: &str,
    ) -> Result<Option<Box<DiagnosedCheck>>, RunError> {
        let spec = ProcessSpec {
            folder: Some(PathBuf::from(&self.plan().cwd)),
            limits: ProcessTimeouts {
                timeout: Some(CHECK_TIMEOUT),
                ..ProcessTimeouts::default()
            },
            ..ProcessSpec::shell(line)
        };
        let mut supervisor = self.supervisors.acquire().await?;
        let ended = supervisor
            .run(
                &spec,
                &mut Stdin::null(),
                &mut DiscardOutput,
                self.stop.clone(),
            )
            .await?;
        if ended.status.is_success() {
            return Ok(None);
        }
        let checked = CheckOutcome {
            line: line.to_owned(),
            ended,
        };
        let found = self
            .knowledge
            .classifier()
            .diagnose(&checked.failure(), &self.clock.reading());
        Ok(Some(Box::new(DiagnosedCheck {
            check: checked.to_failed_check(),
            diagnosis: found,
        })))
    }
}

/// Returns true if a text contains the marker on a line of its own or in its last line; prose may only mention it.
fn contains_marker(promise: &str, text: &str) -> bool {
    let promise = promise.trim();
    let last = text.trim_end().lines().next_back().unwrap_or_default();
    let own_line = |line: &str| line.trim().trim_matches(['`', '*', '_']).trim() == promise;
    last.contains(promise) || text.lines().any(own_line)
}

#[cfg(test)]
mod tests {
    use super::contains_marker;

    #[test]
    fn marker_mentioned_in_prose_does_not_count() {
        let done = "<promise>DONE</promise>";
        assert!(contains_marker(
            done,
            "All tests pass.\n<promise>DONE</promise>\n"
        ));
        assert!(contains_marker(
            done,
            "**<promise>DONE</promise>**\nSee the summary above."
        ));
        assert!(contains_marker(done, "fixed it <promise>DONE</promise>"));
        assert!(!contains_marker(
            done,
            "I say <promise>DONE</promise> when it works.\nNot yet."
        ));
        assert!(!contains_marker(done, ""));
    }
}
