//! Answers of people to what they are asked, wherever they give them.

use std::path::Path;
use std::sync::Arc;

use anyhow::Result;
use unstuck_core::Recorded;
use unstuck_core::decision::Changed;
use unstuck_core::episode::{RunFold, RunView};
use unstuck_core::event::RunId;
use unstuck_core::guard::show;
use unstuck_core::question::Answer;
use unstuck_run::drive::{self, Announcer, Ending, Finished, RunError, Said, Scribe};
use unstuck_store::{Answered, Question, QuestionFilter, Standing, StoreError};

use crate::choosing::Candidates;
use crate::config::Config;
use crate::history::History;
use crate::inside::only_a_person;
use crate::notifying::Notifying;
use crate::place::{current_project, project_of};
use crate::report::{forbidden, refused};
use crate::session::Session;
use crate::show_text::one_line;
use crate::supervise::state_folder;
use crate::{clock, environment, runtime, trusting};

/// So many ids are named where several could be meant.
const NAMED: usize = 8;

/// What follows from an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Given {
    /// The process that drives the run hears it.
    Heard,
    /// Nobody drives the run: somebody has to take it up.
    Waits,
    /// Nothing was held up by the question.
    Noted,
    /// The run has ended; why, in a few words.
    Ended(String),
}

/// Which escalation a person means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Which<'a> {
    /// The one whose id, or whose run's id, begins like this.
    Id(&'a str),
    /// The newest one of this project.
    Newest,
    /// The only one of this project.
    Only,
}

/// The questions that wait, the newest first; those whose time is over are settled before.
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
            for lapsed in drive::lapse(&scribe, filter, now).await? {
                end_lapsed(scribe, &lapsed, session).await?;
            }
            found = store.questions(filter).await?;
        }
        store.close().await?;
        Ok(found)
    })
}

/// Ends the run of a question whose default answer was to end it; a process that drives the run does so itself.
async fn end_lapsed(scribe: Scribe<'_>, lapsed: &Question, session: &Session<'_>) -> Result<()> {
    let deadline = lapsed.asked.shown.deadline;
    let events = scribe.store.load(&lapsed.run).await?;
    let Some(deadline) = deadline.filter(|one| ends_run(one.answer, &events)) else {
        return Ok(());
    };
    let said = Said {
        answer: deadline.answer,
        note: "nobody answered in time",
        who: None,
    };
    match end_run(scribe, &lapsed.run, &said, session).await {
        Err(RunError::Driven { .. } | RunError::NotResumable { .. }) => Ok(()),
        done => Ok(done.map(drop)?),
    }
}

/// Whether an answer ends the whole run: nothing of it is left to do.
fn ends_run(answer: Answer, events: &[Recorded]) -> bool {
    let is_single = || RunFold::fold(events).is_some_and(|run| run.view.roles.is_none());
    match answer {
        Answer::Abort => true,
        Answer::Skip => is_single(),
        _ => false,
    }
}

async fn end_run(
    scribe: Scribe<'_>,
    run: &RunId,
    said: &Said<'_>,
    session: &Session<'_>,
) -> Result<Finished, RunError> {
    let ending = Ending {
        scribe,
        redactor: &environment::redactor(),
        state: &state_folder(session.store),
    };
    ending.end(run, said).await
}

/// The question that is meant.
pub(crate) fn find(which: Which<'_>, answer: Answer, session: &Session<'_>) -> Result<Question> {
    match which {
        Which::Id(id) => {
            let id = &id.to_ascii_lowercase();
            let filter = QuestionFilter {
                prefix: Some(id.clone()),
                ..QuestionFilter::default()
            };
            let mut found = open(&filter, session)?;
            if found.iter().any(|one| one.asked.id == *id) {
                found.retain(|one| one.asked.id == *id);
            }
            one_of(found, id, session)
        }
        Which::Newest | Which::Only => of_project(which, answer, session),
    }
}

/// The question of this project that can be answered so; where there are several, a person has to say which.
fn of_project(which: Which<'_>, answer: Answer, session: &Session<'_>) -> Result<Question> {
    let all = open(&QuestionFilter::default(), session)?;
    let project = current_project();
    let (mut here, elsewhere): (Vec<_>, Vec<_>) =
        all.into_iter().partition(|one| one.project == project);
    let open_here = here.len();
    here.retain(|one| one.asked.shown.allows(answer));
    let chosen = match (here.len(), which) {
        (0, _) => return Err(nothing_here(answer, open_here, elsewhere.len())),
        (1, _) | (_, Which::Newest) => 0,
        _ => {
            let candidates = Candidates {
                what: "open requests in this project",
                lines: here.iter().map(candidate).collect(),
                hint: format!("name one: `unstuck {answer} ID`; `--last` means the newest"),
            };
            candidates.choose()?
        }
    };
    Ok(here.swap_remove(chosen))
}

/// A question on one line: its id, and what is asked.
fn candidate(question: &Question) -> String {
    let asked = &question.asked;
    let about = asked.shown.command.as_deref().unwrap_or(&asked.shown.doing);
    let about = one_line(about, 70);
    let ago = clock::ago(question.at, clock::now().at);
    format!("{}  {ago}  {}  {about}", asked.id, asked.kind)
}

fn nothing_here(answer: Answer, open_here: usize, elsewhere: usize) -> anyhow::Error {
    let message = match open_here {
        0 => "no open request in this project".to_owned(),
        1 => format!("the open request of this project cannot be answered with {answer}"),
        n => format!("none of the {n} open requests of this project can be answered with {answer}"),
    };
    let hint = match (open_here, elsewhere) {
        (0, 0) => "`unstuck resume` continues an interrupted run".to_owned(),
        (0, n) => format!(
            "{n} in other projects: `unstuck inbox` lists them, `unstuck {answer} ID` answers one"
        ),
        _ => "`unstuck inbox` lists the possible answers".to_owned(),
    };
    refused(message, hint)
}

fn one_of(mut found: Vec<Question>, id: &str, session: &Session<'_>) -> Result<Question> {
    match (found.len(), found.pop()) {
        (1, Some(question)) => Ok(question),
        (0, _) => Err(nothing_waits(id, session)?),
        (_, last) => {
            let ids = found.iter().chain(&last).map(|one| one.asked.id.clone());
            let some: Vec<_> = ids.take(NAMED).collect();
            let more = match (found.len() + 1).saturating_sub(NAMED) {
                0 => String::new(),
                more => format!(" or {more} more: `unstuck inbox` lists them"),
            };
            Err(refused(
                format!(
                    "`{}` is the beginning of several questions",
                    one_line(id, 40)
                ),
                format!("one of {}{more}", some.join(", ")),
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
    let newest = all.first();
    let answered = newest.and_then(|one| Some((one.asked.id.clone(), one.answered.clone()?)));
    Ok(match answered {
        Some((id, answered)) => too_late(&id, &answered),
        None => refused(
            format!(
                "there is no question whose id starts with `{}`",
                one_line(id, 40)
            ),
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
        let given = record(scribe, question, &said, giving.changes, session).await;
        store.close().await?;
        given
    })
}

/// Writes an answer down, and ends the run where that is what it means.
async fn record(
    scribe: Scribe<'_>,
    question: &Question,
    said: &Said<'_>,
    changes: &[Changed],
    session: &Session<'_>,
) -> Result<Given> {
    let events = scribe.store.load(&question.run).await?;
    let ends = ends_run(said.answer, &events);
    if !ends && !question.asked.lets_it_go_on() && !is_driven(session, &question.run).await? {
        can_continue(question, &events, session)?;
    }
    let now = clock::now().at;
    let given = drive::answer_with(&scribe, question, said, changes, now).await;
    given.map_err(|error| told(error, question))?;
    if question.asked.lets_it_go_on() {
        return Ok(Given::Noted);
    }
    if is_driven(session, &question.run).await? {
        return Ok(Given::Heard);
    }
    if !ends {
        return Ok(Given::Waits);
    }
    match end_run(scribe, &question.run, said, session).await {
        Ok(finished) => Ok(Given::Ended(finished.end.reason)),
        Err(RunError::Driven { .. }) => Ok(Given::Heard),
        Err(error) => Err(told(error, question)),
    }
}

/// Refuses an answer after which the run could not continue, before it is used up.
fn can_continue(question: &Question, events: &[Recorded], session: &Session<'_>) -> Result<()> {
    let Some(why) = drive::why_not_resumable(events, &state_folder(session.store)) else {
        return Ok(());
    };
    let id = &question.asked.id;
    Err(refused(
        format!("run {} cannot be resumed: {why}", question.run.short()),
        format!("`unstuck abort {id}` ends it; then start the command again"),
    ))
}

/// What came of aborting several runs.
#[derive(Debug, Default)]
pub(crate) struct AbortedAll {
    /// How many were aborted.
    pub(crate) count: usize,
    /// Why the others were not.
    pub(crate) refused: Vec<anyhow::Error>,
}

/// Aborts the run of each of these requests that is still open; each is told once it is recorded.
pub(crate) fn abort_each(
    questions: &[Question],
    note: &str,
    config: &Config,
    session: &Session<'_>,
    mut told: impl FnMut(&Question, &Given) -> Result<()>,
) -> Result<AbortedAll> {
    let mut aborted = AbortedAll::default();
    for question in questions {
        // A run that has several open requests ended with the first of them.
        if !question.asked.shown.allows(Answer::Abort) || !is_open(question, session)? {
            continue;
        }
        match give(question, Answer::Abort, note, config, session) {
            Ok(given) => {
                aborted.count += 1;
                told(question, &given)?;
            }
            Err(error) => aborted.refused.push(error),
        }
    }
    Ok(aborted)
}

fn is_open(question: &Question, session: &Session<'_>) -> Result<bool> {
    let filter = QuestionFilter {
        run: Some(question.run.clone()),
        ..QuestionFilter::default()
    };
    let open = open(&filter, session)?;
    Ok(open.iter().any(|one| one.asked.id == question.asked.id))
}

/// Ends a run that nobody supervises and that has no open question, for the person at the keyboard.
pub(crate) fn abort_run(
    run: &RunView,
    note: &str,
    config: &Config,
    session: &Session<'_>,
) -> Result<String> {
    let who = user();
    is_person()?;
    is_allowed(&run.project, Answer::Abort, &who, config, session)?;
    let said = Said {
        answer: Answer::Abort,
        note,
        who: Some(&who),
    };
    let short = run.id.short();
    runtime::block_on(async {
        let redactor = Arc::new(environment::redactor());
        let store = crate::store::open(session.store, redactor).await?;
        let notifying = Notifying::of_project(&run.project, session);
        let scribe = Scribe {
            store: &store,
            announcer: notifying.as_ref().map(|hooks| hooks as &dyn Announcer),
        };
        let ended = end_run(scribe, &run.id, &said, session).await;
        store.close().await?;
        match ended {
            Ok(finished) => Ok(finished.end.reason),
            Err(RunError::Driven { pid, .. }) => Err(refused(
                format!("run {short} is active (pid {pid})"),
                format!("`unstuck stop {short}` stops it; it can be aborted then"),
            )),
            Err(RunError::NotResumable { why, .. }) => Err(refused(
                format!("run {short} cannot be aborted: {why}"),
                format!("`unstuck show {short}` shows how it ended"),
            )),
            Err(RunError::Store(error)) => Err(crate::store::explained(error)),
            Err(error) => Err(error.into()),
        }
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
    is_person()?;
    let id = &question.asked.id;
    if !question.asked.shown.allows(answer) {
        let choices = question.asked.shown.choices.iter();
        let names: Vec<_> = choices.map(|one| one.answer.name()).collect();
        let hint = format!("it can be answered with {}", names.join(", "));
        let hint = match &question.asked.shown.unrepeatable {
            Some(why) => format!("the run cannot be resumed ({why}); {hint}"),
            None => hint,
        };
        return Err(refused(format!("{answer} is no answer to {id}"), hint));
    }
    is_allowed(&question.project, answer, who, config, session)
}

/// Agents do not answer for people.
fn is_person() -> Result<()> {
    match trusting::inside_an_agent() {
        None => Ok(()),
        Some(why) => Err(only_a_person("answer", &why)),
    }
}

/// Whether somebody may give this answer in a project.
fn is_allowed(
    project: &str,
    answer: Answer,
    who: &str,
    config: &Config,
    session: &Session<'_>,
) -> Result<()> {
    let here = std::env::current_dir().unwrap_or_default();
    let project = Path::new(project);
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
