//! Sessions that are tried again because a person wants it.

use unstuck_core::duration;
use unstuck_core::duration::in_millis;
use unstuck_web::deeds::{DeedError, Retrying};
use unstuck_web::model::{FieldProblem, RetryOptions, RetryPrompt, RetryStarted};

use super::answers::go_on;
use super::{Doer, run_of, who};
use crate::retrying::{Different, Follows, Subject};

/// What a retry would send.
pub(super) async fn prompt(doer: &Doer, retrying: Retrying) -> Result<RetryPrompt, DeedError> {
    let different = different(&retrying.options)?;
    doer.beside(move |desk| {
        let session = desk.session();
        let subject = Subject::find(&retrying.session, &session)?;
        let would = subject.would_send(&different, &session)?;
        Ok(RetryPrompt {
            prompt: would.prompt,
            original: would.original,
            continues: would.continues,
            model: would.model,
            timeout_ms: would.timeout.map(in_millis),
        })
    })
    .await
}

/// Tries a session again.
pub(super) async fn retry(doer: &Doer, retrying: Retrying) -> Result<RetryStarted, DeedError> {
    doer.0.only_for_people()?;
    let different = different(&retrying.options)?;
    let run = run_of(&retrying.session)?;
    doer.beside(move |desk| {
        let session = desk.session();
        // Of several who want it at once one gets it; the others are told before anything is written.
        let taken = desk.take_up(&run)?;
        let subject = Subject::find(&retrying.session, &session)?;
        let who = who(retrying.who);
        let doing = match subject.retry(&different, &who, &session)? {
            Follows::Heard => "the process that waits for it goes on".to_owned(),
            Follows::Waits { restart } => {
                go_on(desk, &subject.run.id, subject.project(), &restart, taken)
            }
        };
        Ok(RetryStarted {
            run: subject.run.id.to_string(),
            session: subject.session.id.as_str().to_owned(),
            doing,
        })
    })
    .await
}

fn different(options: &RetryOptions) -> Result<Different, DeedError> {
    let timeout = options.timeout.as_deref().map(duration::parse);
    let timeout = timeout.transpose().map_err(|error| DeedError::Invalid {
        detail: "the timeout cannot be used".to_owned(),
        errors: vec![FieldProblem {
            field: "timeout".to_owned(),
            value: options.timeout.clone().unwrap_or_default(),
            why: error.to_string(),
        }],
    })?;
    let given = |text: &Option<String>| text.clone().filter(|text| !text.trim().is_empty());
    Ok(Different {
        context: options.with_context,
        words: options.words.clone().unwrap_or_default(),
        prompt: given(&options.prompt),
        model: given(&options.model),
        timeout,
    })
}
