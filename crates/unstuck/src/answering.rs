//! Answers of people to what they are asked, wherever they give them.

use std::path::Path;
use std::sync::Arc;

use anyhow::Result;
use unstuck_core::decision::Changed;
use unstuck_core::event::RunId;
use unstuck_core::guard::show;
use unstuck_core::question::Answer;
use unstuck_run::drive::{self, Announcer, RunError, Said, Scribe};
use unstuck_store::{Answered, Question, QuestionFilter, Standing, StoreError};

use crate::config::Config;
use crate::history::History;
use crate::notifying::Notifying;
use crate::place::project_of;
use crate::report::{forbidden, refused};
use crate::session::Session;
use crate::{clock, environment, runtime, trusting};

/// What follows from an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Given {
    /// The process that drives the run hears it.
    Heard,
    /// Nobody drives the run: somebody has to take it up.
    Waits,
    /// Nothing was held up by the question.
    Noted,
}

/// The questions that wait, the oldest first; those whose time is over are settled before.
pub(crate) fn open(filter: &QuestionFilter, session: &Session<'_>) -> Result<Vec<Question>> {
    runtime::block_on(async {
        let Some(store) = crate::store::open_existing(session.store).await? else {
            return Ok(Vec::new());
        };
        let now = clock::now().at;
        let is_over = |one: &Question| {
            let deadline = one.asked.shown.deadline;
            one.answered.is_none() && deadline.is_some_and(|deadline| deadline.at <= now)
        };
        let mut found = store.questions(filter).await?;
        if found.iter().any(is_over) {
            let scribe = Scribe {
                store: &store,
                announcer: None,
            };
            drive::lapse(&scribe, filter, now).await?;
            found = store.questions(filter).await?;
        }
        store.close().await?;
        Ok(found)
    })
}

/// The question that is meant: by the first letters of its id or of its run, or the newest that can be answered so.
pub(crate) fn find(id: Option<&str>, answer: Answer, session: &Session<'_>) -> Result<Question> {
    let filter = QuestionFilter {
        prefix: id.map(str::to_owned),
        ..QuestionFilter::default()
    };
    let mut found = open(&filter, session)?;
    if id.is_some_and(|id| found.iter().any(|one| one.asked.id == id)) {
        found.retain(|one| Some(one.asked.id.as_str()) == id);
    }
    match id {
        Some(id) => one_of(found, id, session),
        None => newest(found, answer),
    }
}

fn newest(mut found: Vec<Question>, answer: Answer) -> Result<Question> {
    found.retain(|one| one.asked.shown.allows(answer));
    let here = std::env::current_dir().unwrap_or_default();
    let project = project_of(&here).display().to_string();
    if found.iter().any(|one| one.project == project) {
        found.retain(|one| one.project == project);
    }
    let none = || {
        refused(
            format!("nothing waits that could be answered with {answer}"),
            "`unstuck inbox` lists what waits; `unstuck resume` goes on with what was cut off",
        )
    };
    found.pop().ok_or_else(none)
}

fn one_of(mut found: Vec<Question>, id: &str, session: &Session<'_>) -> Result<Question> {
    match (found.len(), found.pop()) {
        (1, Some(question)) => Ok(question),
        (0, _) => Err(nothing_waits(id, session)?),
        (_, last) => {
            let ids = found.iter().chain(&last).map(|one| one.asked.id.clone());
            Err(refused(
                format!("`{}` is the beginning of several questions", show(id)),
                format!("one of {}", ids.collect::<Vec<_>>().join(", ")),
            ))
        }
    }
}

/// Why nothing waits under an id: it was answered, or there is no such question.
fn nothing_waits(id: &str, session: &Session<'_>) -> Result<anyhow::Error> {
    let filter = QuestionFilter {
        prefix: Some(id.to_owned()),
        standing: Standing::Any,
        ..QuestionFilter::default()
    };
    let all = open(&filter, session)?;
    let newest = all.last();
    let answered = newest.and_then(|one| Some((one.asked.id.clone(), one.answered.clone()?)));
    Ok(match answered {
        Some((id, answered)) => too_late(&id, &answered),
        None => refused(
            format!("there is no question whose id starts with `{}`", show(id)),
            "`unstuck inbox` lists what waits",
        ),
    })
}

/// Gives the answer of who is at the keyboard; the first one counts.
pub(crate) fn give(
    question: &Question,
    answer: Answer,
    note: &str,
    config: &Config,
    session: &Session<'_>,
) -> Result<Given> {
    let giving = Giving {
        answer,
        note,
        who: &user(),
        changes: &[],
    };
    give_as(question, &giving, config, session)
}

/// An answer, and whose it is.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Giving<'a> {
    pub(crate) answer: Answer,
    pub(crate) note: &'a str,
    pub(crate) who: &'a str,
    /// What is to be different beside what the answer itself says.
    pub(crate) changes: &'a [Changed],
}

/// Gives somebody's answer; the first one counts.
pub(crate) fn give_as(
    question: &Question,
    giving: &Giving<'_>,
    config: &Config,
    session: &Session<'_>,
) -> Result<Given> {
    may_answer(question, giving.answer, giving.who, config, session)?;
    let said = Said {
        answer: giving.answer,
        note: giving.note,
        who: Some(giving.who),
    };
    runtime::block_on(async {
        let redactor = Arc::new(environment::redactor());
        let store = crate::store::open(session.store, redactor).await?;
        let notifying = Notifying::of_project(&question.project, session);
        let scribe = Scribe {
            store: &store,
            announcer: notifying.as_ref().map(|hooks| hooks as &dyn Announcer),
        };
        let now = clock::now().at;
        let given = drive::answer_with(&scribe, question, &said, giving.changes, now).await;
        let heard = is_driven(session, &question.run).await;
        store.close().await?;
        given.map_err(|error| told(error, question))?;
        Ok(match (question.asked.lets_it_go_on(), heard?) {
            (true, _) => Given::Noted,
            (false, true) => Given::Heard,
            (false, false) => Given::Waits,
        })
    })
}

async fn is_driven(session: &Session<'_>, run: &RunId) -> Result<bool> {
    let history = History::open(session.store).await?;
    history.drives(run, clock::now().at).await
}

/// Only a person may answer, only who is allowed to, and only what makes sense.
fn may_answer(
    question: &Question,
    answer: Answer,
    who: &str,
    config: &Config,
    session: &Session<'_>,
) -> Result<()> {
    if let Some(why) = trusting::inside_an_agent() {
        return Err(forbidden(
            format!("only a person can answer: {why}"),
            "answer in a terminal of your own",
        ));
    }
    let id = &question.asked.id;
    if !question.asked.shown.allows(answer) {
        let choices = question.asked.shown.choices.iter();
        let names: Vec<_> = choices.map(|one| one.answer.name()).collect();
        return Err(refused(
            format!("{answer} is no answer to {id}"),
            format!("it can be answered with {}", names.join(", ")),
        ));
    }
    let here = std::env::current_dir().unwrap_or_default();
    let project = Path::new(&question.project);
    let own;
    // What counts is what the project itself says.
    let config = match project_of(&here) == project {
        true => config,
        false => {
            own = crate::config::load_in(project, session.sources())?;
            &own
        }
    };
    let people = config.escalations().answerers(answer);
    match people.filter(|people| people.iter().all(|one| one != who)) {
        None => Ok(()),
        Some(people) => Err(forbidden(
            format!("{who} may not answer with {answer} here"),
            format!("[escalations.answerers] names {}", people.join(", ")),
        )),
    }
}

fn told(error: RunError, question: &Question) -> anyhow::Error {
    let id = &question.asked.id;
    match error {
        RunError::Store(StoreError::Answered { answered, .. }) => too_late(id, &answered),
        RunError::Store(StoreError::OtherQuestion { .. }) => refused(
            format!("{id} has changed since it was shown"),
            format!("look at it again: unstuck inbox {id}"),
        ),
        RunError::Store(error) => crate::store::explained(error),
        other => other.into(),
    }
}

/// Somebody was faster.
fn too_late(id: &str, answered: &Answered) -> anyhow::Error {
    let when = clock::shown(answered.at);
    let said = answered.answer.as_ref();
    let how = said.and_then(|said| said.answer()).map(Answer::said);
    let how = how.unwrap_or("settled, because its run went on");
    let by = match said {
        Some(said) if said.by == "deadline" => " because nobody answered in time".to_owned(),
        Some(said) => match &said.who {
            Some(who) => format!(" by {}", show(who)),
            None => String::new(),
        },
        None => String::new(),
    };
    refused(
        format!("{id} was {how}{by} at {when}"),
        "the first answer counts; `unstuck inbox` lists what waits",
    )
}

/// Who is at the keyboard.
pub(crate) fn user() -> String {
    let uid = nix::unistd::Uid::current();
    let known = nix::unistd::User::from_uid(uid).ok().flatten();
    known.map_or_else(|| uid.to_string(), |user| user.name)
}
