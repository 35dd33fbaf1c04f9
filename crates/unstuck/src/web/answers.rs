//! Answers of people, given over REST: they count as those of the command line, and the run goes on.

use std::path::PathBuf;

use unstuck_core::event::RunId;
use unstuck_store::{Question, QuestionFilter, Standing};
use unstuck_web::deeds::{Answering, DeedError};
use unstuck_web::model::AnswerTaken;

use super::resuming::TakenUp;
use super::{Desk, Doer, who};
use crate::answering::{self, Given, Giving};
use crate::config;
use crate::place::homely;
use crate::started;

/// Answers a question, and lets its run go on.
pub(super) async fn answer(doer: &Doer, given: Answering) -> Result<AnswerTaken, DeedError> {
    doer.0.only_for_people()?;
    let mut question = find(doer, &given.question).await?;
    if let Some(hash) = given.hash
        && hash != question.asked.shown.hash
    {
        return Err(DeedError::Stale(format!(
            "{} has changed since it was shown; look at it again",
            given.question
        )));
    }
    question.answered = None;
    let doing = doer
        .beside(move |desk| {
            let session = desk.session();
            let config = config::load_in(question.project.as_ref(), session.sources())?;
            let giving = Giving {
                answer: given.answer,
                note: &given.note,
                who: &who(given.who),
                changes: &[],
            };
            let follows = answering::give_as(&question, &giving, &config, &session)?;
            Ok(match follows {
                Given::Heard => "the process that waits for it goes on".to_owned(),
                Given::Noted => "nothing was held up by it".to_owned(),
                Given::Ended(reason) => format!("the run has ended: {reason}"),
                Given::Waits => match desk.resuming.begin(&question.run) {
                    Some(taken) => go_on(desk, &question.run, question.project.into(), &[], taken),
                    None => "the process that takes it up goes on with it".to_owned(),
                },
            })
        })
        .await?;
    Ok(AnswerTaken {
        escalation: find(doer, &given.question).await?.into(),
        doing,
    })
}

/// Lets a run go on in a process of its own, and tells in one sentence what happens.
pub(super) fn go_on(
    desk: &Desk,
    run: &RunId,
    project: PathBuf,
    restart: &[String],
    taken: TakenUp,
) -> String {
    match started::resume_telling(run, &project, restart, &desk.session(), taken) {
        Ok(pid) => format!(
            "the run goes on in process {pid}; what it says is in {}",
            homely(&started::log_of(run, &desk.session()).display().to_string())
        ),
        // What was wanted is written down; it can be taken up by hand.
        Err(error) => format!(
            "no process could be started for the run ({error}): `unstuck resume {}` takes it up",
            run.short()
        ),
    }
}

/// The question of an id.
pub(super) async fn find(doer: &Doer, id: &str) -> Result<Question, DeedError> {
    let filter = QuestionFilter {
        prefix: Some(id.to_owned()),
        standing: Standing::Any,
        ..QuestionFilter::default()
    };
    let found = doer.0.store.questions(&filter).await?;
    let found = found.into_iter().find(|one| one.asked.id == id);
    found.ok_or_else(|| DeedError::NotFound(format!("there is no question {id}")))
}
