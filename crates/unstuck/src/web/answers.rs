//! Answers over REST: equivalent to those of the command line; the run continues afterwards.

use std::path::PathBuf;

use unstuck_core::event::RunId;
use unstuck_store::{EscalationFilter, EscalationRow, EscalationStatusFilter};
use unstuck_web::commands::{AnswerEscalation, WebCommandError};
use unstuck_web::model::EscalationAnswerResponse;

use super::resume_guard::ResumeGuard;
use super::{Desk, Doer, actor_name};
use crate::escalation_answers::{self, AnswerEffect, AnswerInput};
use crate::project_lookup::abbreviate_home;
use crate::unstuck_subprocess;

/// Answers an escalation and resumes its run.
pub(super) async fn answer_escalation(
    doer: &Doer,
    given: AnswerEscalation,
) -> Result<EscalationAnswerResponse, WebCommandError> {
    doer.0.refuse_agents()?;
    let mut question = find_escalation(doer, &given.escalation).await?;
    if let Some(hash) = given.hash
        && hash != question.request.details.hash
    {
        return Err(WebCommandError::Stale(format!(
            "request {} changed since it was shown; review it again",
            given.escalation
        )));
    }
    question.closure = None;
    let doing = doer
        .run_blocking(move |desk| {
            let session = desk.session();
            let giving = AnswerInput {
                answer: given.answer,
                note: &given.note,
                who: &actor_name(given.who),
                changes: &[],
            };
            let follows = escalation_answers::answer_as(&question, &giving, &session)?;
            Ok(match follows {
                AnswerEffect::Delivered => "the waiting process continues".to_owned(),
                AnswerEffect::Recorded => "no run was waiting for it".to_owned(),
                AnswerEffect::Ended(reason) => format!("the run has ended: {reason}"),
                AnswerEffect::NeedsResume => match desk.resumes.begin(&question.run) {
                    Some(taken) => {
                        resume_run(desk, &question.run, question.project.into(), &[], taken)
                    }
                    None => "the process that is resuming the run continues".to_owned(),
                },
            })
        })
        .await?;
    Ok(EscalationAnswerResponse {
        escalation: find_escalation(doer, &given.escalation).await?.into(),
        next_action: doing,
    })
}

/// Resumes a run in a new process and describes the effect in one sentence.
pub(super) fn resume_run(
    desk: &Desk,
    run: &RunId,
    project: PathBuf,
    restart: &[String],
    taken: ResumeGuard,
) -> String {
    match unstuck_subprocess::spawn_resume_logged(run, &project, restart, &desk.session(), taken) {
        Ok(pid) => format!(
            "the run continues in process {pid} (log: {})",
            abbreviate_home(
                &unstuck_subprocess::resume_log_path(run, &desk.session())
                    .display()
                    .to_string()
            )
        ),
        // The answer is recorded; the run can be resumed manually.
        Err(error) => format!(
            "cannot start a process for the run ({error}); resume it with `unstuck resume {}`",
            run.short()
        ),
    }
}

/// Finds the escalation with this id.
pub(super) async fn find_escalation(
    doer: &Doer,
    id: &str,
) -> Result<EscalationRow, WebCommandError> {
    let filter = EscalationFilter {
        prefix: Some(id.to_owned()),
        status: EscalationStatusFilter::Any,
        ..EscalationFilter::default()
    };
    let found = doer.0.store.escalations(&filter).await?;
    let found = found.into_iter().find(|one| one.request.id == id);
    found.ok_or_else(|| WebCommandError::NotFound(format!("request `{id}` not found")))
}
