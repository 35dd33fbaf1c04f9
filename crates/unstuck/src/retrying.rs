//! Trying a session again because a person wants it: what is to be different, what would be sent, and who is told.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use unstuck_core::decision::Changed;
use unstuck_core::episode::{RunView, SessionView, Status};
use unstuck_core::event::{Event, Recorded, SessionId, WaitEnded, WaitEndedBy};
use unstuck_core::question::Answer;
use unstuck_core::{Recovery, RunId};
use unstuck_run::drive::{Announcer, Foresight, Scribe, WantedAgain, WouldSend, want_again};
use unstuck_store::{Append, Question, QuestionFilter};

use crate::answering::{self, Given, Giving};
use crate::config::{self, Config};
use crate::history::History;
use crate::inside::only_a_person;
use crate::notifying::Notifying;
use crate::report::refused;
use crate::run_words::is_clients;
use crate::session::Session;
use crate::supervise::{ConfiguredKnown, state_folder};
use crate::{clock, environment, runtime, trusting};

/// The template that tells an agent what went wrong.
const ERROR_CONTEXT: &str = "error_context";

/// What a person wants to be different.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Different {
    /// Whether the prompt tells what went wrong.
    pub(crate) context: bool,
    /// Their words.
    pub(crate) words: String,
    /// The whole prompt, as they have written it.
    pub(crate) prompt: Option<String>,
    pub(crate) model: Option<String>,
    pub(crate) timeout: Option<Duration>,
}

impl Different {
    /// What that changes, without their words.
    fn changes_but_words(&self, recovery: &Recovery) -> Vec<Changed> {
        let context = self.context && self.prompt.is_none();
        let mut changes = Vec::new();
        changes.extend(context.then(|| Changed::Prompt(ERROR_CONTEXT.to_owned())));
        changes.extend(self.prompt.clone().map(Changed::Text));
        let from = recovery.model().unwrap_or("unknown");
        let model = self.model.as_deref().filter(|model| *model != from);
        changes.extend(model.map(|to| Changed::Model {
            from: from.to_owned(),
            to: to.to_owned(),
        }));
        let before = recovery.spec().timeout_ms.map(|millis| millis / 1000);
        changes.extend(self.timeout.map(|time| Changed::Timeout {
            from_seconds: before,
            to_seconds: time.as_secs().max(1),
        }));
        changes
    }

    /// All that it changes.
    fn changes(&self, recovery: &Recovery) -> Vec<Changed> {
        let mut changes = self.changes_but_words(recovery);
        // Who writes the whole prompt has said in it what they want to say.
        if !self.words.trim().is_empty() && self.prompt.is_none() {
            changes.insert(0, Changed::Words(self.words.clone()));
        }
        changes
    }

    fn changes_prompt(&self) -> bool {
        self.context || self.prompt.is_some() || !self.words.trim().is_empty()
    }
}

/// What follows from a retry.
#[derive(Debug)]
pub(crate) enum Follows {
    /// Somebody who drives the run hears it.
    Heard,
    /// Somebody has to take the run up, and run these roles again.
    Waits { restart: Vec<String> },
}

/// A session that is to be tried again, and where it stands.
pub(crate) struct Subject {
    pub(crate) run: RunView,
    pub(crate) session: SessionView,
    events: Vec<Recorded>,
    is_driven: bool,
    /// What it waits for.
    question: Option<Question>,
    config: Config,
}

impl Subject {
    /// The session that is meant by its id.
    pub(crate) fn find(id: &SessionId, session: &Session<'_>) -> Result<Self> {
        let none = || {
            refused(
                format!("there is no session {}", id.as_str()),
                "`unstuck show RUN` tells the sessions of a run",
            )
        };
        let (run, _) = id.as_str().rsplit_once('-').ok_or_else(none)?;
        Self::of_run(&RunId::new(run), Some(id), session)
    }

    /// The session of a run that is meant: the one that is named, or else the newest that did not succeed.
    pub(crate) fn of_run(
        run: &RunId,
        id: Option<&SessionId>,
        session: &Session<'_>,
    ) -> Result<Self> {
        let (run, events, is_driven) = runtime::block_on(async {
            let history = History::open(session.store).await?;
            let found = history.find(Some(run.as_str())).await?;
            let events = history.events(&found.id).await?;
            let is_driven = history.drives(&found.id, clock::now().at).await?;
            Ok((found, events, is_driven))
        })?;
        let mut sessions = SessionView::all(&events).into_iter();
        let is_success =
            |one: &SessionView| matches!(one.status, Status::Succeeded | Status::Recovered);
        let meant = match id {
            Some(id) => sessions.find(|one| one.id == *id),
            None => sessions.rfind(|one| !is_success(one)),
        };
        let none = || {
            refused(
                format!(
                    "run {} has nothing to try again: it is done",
                    run.id.short()
                ),
                "`unstuck resume --restart ROLE` runs a role again; `unstuck exec` starts anew",
            )
        };
        let meant = meant.ok_or_else(none)?;
        let question = question_of(&meant, &run.id, session)?;
        Ok(Self {
            config: config::load_in(Path::new(&run.project), session.sources())?,
            session: meant,
            run,
            events,
            is_driven,
            question,
        })
    }

    /// The question that it waits for, if it waits for one.
    pub(crate) fn question(&self) -> Option<&Question> {
        self.question.as_ref()
    }

    /// Whether somebody drives its run at this moment.
    pub(crate) fn is_driven(&self) -> bool {
        self.is_driven
    }

    /// What counts in its project.
    pub(crate) fn config(&self) -> &Config {
        &self.config
    }

    /// All that happened in its run.
    pub(crate) fn events(&self) -> &[Recorded] {
        &self.events
    }

    /// The root folder of its project.
    pub(crate) fn project(&self) -> PathBuf {
        PathBuf::from(&self.run.project)
    }

    /// What would be sent.
    pub(crate) fn would_send(
        &self,
        different: &Different,
        session: &Session<'_>,
    ) -> Result<WouldSend> {
        let (recovery, would) = self.foreseen(different, session)?;
        self.is_possible(different, &recovery, &would)?;
        Ok(would)
    }

    fn foreseen(
        &self,
        different: &Different,
        session: &Session<'_>,
    ) -> Result<(Recovery, WouldSend)> {
        let known = ConfiguredKnown::new(&self.config, self.config.agents());
        let foresight = Foresight {
            known: &known,
            state: &state_folder(session.store),
            project: Path::new(&self.run.project),
            events: &self.events,
        };
        let recovery = foresight.standing(&self.session.id).ok_or_else(|| {
            refused(
                format!("{} is a client's own session", self.session.id.as_str()),
                "only its client can try again",
            )
        })?;
        let would = foresight.of(&recovery, &different.changes(&recovery), clock::now().at)?;
        Ok((recovery, would))
    }

    /// Whether what is wanted can be done to what it runs.
    fn is_possible(
        &self,
        different: &Different,
        recovery: &Recovery,
        would: &WouldSend,
    ) -> Result<()> {
        if let Some(why) = &recovery.spec().unrepeatable {
            return Err(refused(
                format!("{} cannot be tried again: {why}", self.session.id.as_str()),
                "start it anew",
            ));
        }
        if different.changes_prompt() && !would.takes_prompt {
            return Err(refused(
                "it is no agent whose prompt is known, so nothing can be told to it",
                "leave out words and error context: the same command is tried again",
            ));
        }
        if different.model.is_some() && !would.takes_model {
            return Err(refused(
                "its model cannot be set from outside",
                "leave the model out, or change the command",
            ));
        }
        Ok(())
    }

    /// Tries it again: answers what it asks, or writes down that it is wanted.
    pub(crate) fn retry(
        &self,
        different: &Different,
        who: &str,
        session: &Session<'_>,
    ) -> Result<Follows> {
        if let Some(why) = trusting::inside_an_agent() {
            return Err(only_a_person("have something tried again", &why));
        }
        if is_clients(&self.run) && self.question.is_none() {
            return Err(refused(
                format!("{} is a client's own session", self.session.id.as_str()),
                "only its client can try again",
            ));
        }
        let (recovery, would) = self.foreseen(different, session)?;
        self.is_possible(different, &recovery, &would)?;
        match &self.question {
            Some(question) => self.answer(question, different, &recovery, who, session),
            None => self.want(different, &recovery, who, session),
        }
    }

    fn answer(
        &self,
        question: &Question,
        different: &Different,
        recovery: &Recovery,
        who: &str,
        session: &Session<'_>,
    ) -> Result<Follows> {
        let words = match different.prompt {
            Some(_) => "",
            None => different.words.as_str(),
        };
        let giving = Giving {
            answer: match words.trim().is_empty() {
                true => Answer::Resolve,
                false => Answer::Retry,
            },
            note: words,
            who,
            changes: &different.changes_but_words(recovery),
        };
        let given = answering::give_as(question, &giving, &self.config, session)?;
        Ok(match given {
            Given::Heard | Given::Noted | Given::Ended(_) => Follows::Heard,
            Given::Waits => Follows::Waits {
                restart: Vec::new(),
            },
        })
    }

    /// Refuses a session of an iteration that is over: the loop has gone on, and would go on instead of it.
    fn is_current(&self) -> Result<()> {
        let newest = self.run.iteration;
        let own = self.session.part.as_ref().map(|part| part.iteration);
        let (Some(own), Some(newest)) = (own, newest.filter(|_| own != newest)) else {
            return Ok(());
        };
        Err(refused(
            format!(
                "{} belongs to iteration {own}, and its run is at iteration {newest}",
                self.session.id.as_str()
            ),
            format!(
                "`unstuck resume {}` goes on with the run",
                self.run.id.short()
            ),
        ))
    }

    fn want(
        &self,
        different: &Different,
        recovery: &Recovery,
        who: &str,
        session: &Session<'_>,
    ) -> Result<Follows> {
        let id = self.session.id.as_str();
        let is_same = different == &Different::default();
        if self.is_driven && self.session.status == Status::Waiting && is_same {
            return self.end_wait(session);
        }
        if self.is_driven {
            return Err(refused(
                format!("{id} is at work at this moment"),
                "stop its run first, or wait until it has ended",
            ));
        }
        self.is_current()?;
        let changes = different.changes(recovery);
        if matches!(self.session.status, Status::Succeeded | Status::Recovered) {
            let role = self.session.part.as_ref().map(|part| part.role.clone());
            return match role {
                Some(role) if changes.is_empty() => Ok(Follows::Waits {
                    restart: vec![role],
                }),
                Some(_) => Err(refused(
                    format!("{id} is done, and is only run again as it is"),
                    "leave the options out: the role is run again, with all that depend on it",
                )),
                None => Err(refused(format!("{id} is done"), "start it anew")),
            };
        }
        runtime::block_on(async {
            let redactor = Arc::new(environment::redactor());
            let store = crate::store::open(session.store, redactor).await?;
            let notifying = Notifying::of_project(&self.run.project, session);
            let scribe = Scribe {
                store: &store,
                announcer: notifying.as_ref().map(|hooks| hooks as &dyn Announcer),
            };
            let wanted = WantedAgain {
                run: &self.run.id,
                session: &self.session.id,
                changes: &changes,
                note: &different.words,
                who: Some(who),
            };
            want_again(&scribe, &wanted, clock::now().at).await?;
            store.close().await.map_err(crate::store::explained)
        })?;
        Ok(Follows::Waits {
            restart: Vec::new(),
        })
    }
}

impl Subject {
    /// The process that drives it goes on at once.
    fn end_wait(&self, session: &Session<'_>) -> Result<Follows> {
        runtime::block_on(async {
            let redactor = Arc::new(environment::redactor());
            let store = crate::store::open(session.store, redactor).await?;
            let ended = WaitEnded {
                session: Some(self.session.id.clone()),
                by: WaitEndedBy::Person,
            };
            let events = [Event::from(ended)];
            let append = Append::new(self.run.id.clone(), clock::now().at, events);
            store
                .append(append)
                .await
                .map_err(crate::store::explained)?;
            store.close().await.map_err(crate::store::explained)
        })?;
        Ok(Follows::Heard)
    }
}

/// The question that a session waits for.
fn question_of(
    meant: &SessionView,
    run: &RunId,
    session: &Session<'_>,
) -> Result<Option<Question>> {
    let filter = QuestionFilter {
        run: Some(run.clone()),
        ..QuestionFilter::default()
    };
    let is_about = |one: &Question| {
        one.asked.session.as_ref() == Some(&meant.id) && !one.asked.lets_it_go_on()
    };
    let found = answering::open(&filter, session)?;
    in_the_way(&found, meant)?;
    Ok(found.into_iter().find(is_about))
}

/// A retry answers what its own session asks and nothing else, and never a question about money.
fn in_the_way(open: &[Question], meant: &SessionView) -> Result<()> {
    let is_own = |one: &&Question| one.asked.session.as_ref() == Some(&meant.id);
    let money = open.iter().find(|one| one.asked.is_about_budget());
    let of_run = open
        .iter()
        .find(|one| one.asked.session.is_none() && !one.asked.lets_it_go_on());
    let is_asked = open.iter().any(|one| is_own(&one));
    if let Some(question) = money.or(of_run.filter(|_| !is_asked)) {
        let (id, run) = (&question.asked.id, question.run.short());
        return Err(refused(
            format!(
                "run {run} waits for an answer, which a retry does not give: {}",
                question.asked.reason
            ),
            format!("`unstuck inbox {id}` shows it and what can be answered"),
        ));
    }
    Ok(())
}
