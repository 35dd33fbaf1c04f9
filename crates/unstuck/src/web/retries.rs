//! Retries of sessions requested by a human.

use unstuck_core::duration;
use unstuck_core::duration::to_millis;
use unstuck_web::commands::{RetrySession, WebCommandError};
use unstuck_web::model::{
    FieldProblem, RetryPromptResponse, SessionRetryBody, SessionRetryResponse,
};

use super::answers::resume_run;
use super::{Doer, actor_name, run_of_session};
use crate::session_retry::{RetryChanges, RetryEffect, RetryTarget};

/// Returns the prompt that a retry would send.
pub(super) async fn retry_prompt(
    doer: &Doer,
    retrying: RetrySession,
) -> Result<RetryPromptResponse, WebCommandError> {
    let different = retry_changes(&retrying.options)?;
    doer.run_blocking(move |desk| {
        let session = desk.session();
        let subject = RetryTarget::find(&retrying.session, &session)?;
        let would = subject.preview_prompt(&different, &session)?;
        Ok(RetryPromptResponse {
            prompt: would.prompt,
            original: would.original,
            continues: would.continues,
            model: would.model,
            timeout_ms: would.timeout.map(to_millis),
        })
    })
    .await
}

/// Retries a session.
pub(super) async fn retry_session(
    doer: &Doer,
    retrying: RetrySession,
) -> Result<SessionRetryResponse, WebCommandError> {
    doer.0.refuse_agents()?;
    let different = retry_changes(&retrying.options)?;
    let run = run_of_session(&retrying.session)?;
    doer.run_blocking(move |desk| {
        let session = desk.session();
        // Of concurrent requests one wins; the others are rejected before anything is recorded.
        let taken = desk.begin_resume(&run)?;
        let subject = RetryTarget::find(&retrying.session, &session)?;
        let who = actor_name(retrying.who);
        let doing = match subject.retry(&different, &who, &session)? {
            RetryEffect::Delivered => "the waiting process continues".to_owned(),
            RetryEffect::NeedsResume { restart } => {
                resume_run(desk, &subject.run.id, subject.project(), &restart, taken)
            }
        };
        Ok(SessionRetryResponse {
            run: subject.run.id.to_string(),
            session: subject.session.id.as_str().to_owned(),
            next_action: doing,
        })
    })
    .await
}

fn retry_changes(options: &SessionRetryBody) -> Result<RetryChanges, WebCommandError> {
    let timeout = options.timeout.as_deref().map(duration::parse);
    let timeout = timeout
        .transpose()
        .map_err(|error| WebCommandError::Invalid {
            detail: "invalid timeout".to_owned(),
            errors: vec![FieldProblem {
                field: "timeout".to_owned(),
                value: options.timeout.clone().unwrap_or_default(),
                reason: error.to_string(),
            }],
        })?;
    let given = |text: &Option<String>| text.clone().filter(|text| !text.trim().is_empty());
    Ok(RetryChanges {
        context: options.with_context,
        message: options.message.clone().unwrap_or_default(),
        prompt: given(&options.prompt),
        model: given(&options.model),
        timeout,
    })
}
