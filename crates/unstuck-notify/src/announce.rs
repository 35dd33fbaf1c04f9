//! What is to be told about events: a pure function of them and of what was known before.

use std::path::Path;
use std::time::Duration;

use serde_json::{Map, Value};
use unstuck_core::Timestamp;
use unstuck_core::duration::Human;
use unstuck_core::episode::{RunFold, SessionStatus, SessionView};
use unstuck_core::event::{
    EscalationKind, Event, Outcome, Recorded, RecoveryEscalated, RecoveryResolved, RunFinished,
    SessionFinished, SessionParked, VERSION,
};
use unstuck_store::Outgoing;

use crate::message::Message;
use crate::occasion::Occasion;
use crate::target::Target;
use crate::text::{clean, first_line};

/// What stands where the program of other runs does, in those of clients of the gateway; what the client is called follows.
const GATEWAY: &str = "(gateway)";
/// The longest title.
const TITLE: usize = 160;
/// The longest text, piece of evidence or command.
const TEXT: usize = 1500;

/// Someone who is told about something.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hook {
    /// What they are told about.
    pub on: Occasion,
    /// Where they are told.
    pub target: Target,
    /// How long further messages about the same are collected into one.
    pub window: Duration,
}

/// Everyone who is told about something.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Hooks {
    /// They.
    pub list: Vec<Hook>,
    /// What command lines in messages end with, so that they find the store: ` --store FILE`, or nothing.
    pub option: String,
}

impl Hooks {
    /// What is to be told about events that are about to be written; `run` is what was known before them.
    pub fn announce(&self, run: &RunFold, events: &[Event], at: Timestamp) -> Vec<Outgoing> {
        if self.list.is_empty() || !events.iter().any(is_told) {
            return Vec::new();
        }
        let mut run = run.clone();
        let mut outgoing = Vec::new();
        for (place, event) in events.iter().enumerate() {
            if !matches!(event, Event::RunStarted(_)) {
                run.record(&Recorded {
                    version: VERSION,
                    run: run.view.id.clone(),
                    seq: run.view.seq + 1,
                    at,
                    event: event.clone(),
                });
            }
            for news in self.news(&run, event, at) {
                outgoing.extend(self.addressed(place, &news));
            }
        }
        outgoing
    }

    fn addressed(&self, event: usize, news: &News) -> impl Iterator<Item = Outgoing> {
        let meant = self.list.iter();
        let meant = meant.filter(|hook| hook.on == news.message.occasion);
        // Both are made of texts, lists and numbers, which have no reason to fail.
        meant.filter_map(move |hook| {
            Some(Outgoing {
                event,
                occasion: hook.on.name().to_owned(),
                target: serde_json::to_value(&hook.target).ok()?,
                body: serde_json::to_value(&news.message).ok()?,
                group: news.group.clone(),
                window: hook.window,
            })
        })
    }

    /// What an event means to people, now that it is known.
    fn news(&self, run: &RunFold, event: &Event, at: Timestamp) -> Vec<News> {
        let teller = Teller {
            run,
            at,
            option: &self.option,
        };
        match event {
            Event::RecoveryEscalated(asked) => vec![teller.asked(asked)],
            Event::RecoveryResolved(answer) if answer.is_by_person() => {
                vec![teller.answered(answer)]
            }
            Event::SessionParked(parked) => vec![teller.parked(parked)],
            Event::SessionFinished(end) => teller.role_recovered(end).into_iter().collect(),
            Event::RunFinished(end) => teller.ended(end),
            _ => Vec::new(),
        }
    }
}

fn is_told(event: &Event) -> bool {
    matches!(
        event,
        Event::RecoveryEscalated(_)
            | Event::RecoveryResolved(_)
            | Event::SessionParked(_)
            | Event::SessionFinished(_)
            | Event::RunFinished(_)
    )
}

/// A message, and what it is grouped by.
struct News {
    message: Message,
    group: String,
}

/// Tells about one run at one moment.
struct Teller<'a> {
    run: &'a RunFold,
    at: Timestamp,
    option: &'a str,
}

impl Teller<'_> {
    fn asked(&self, asked: &RecoveryEscalated) -> News {
        let session = self.session_of(asked);
        let what = match asked.question {
            EscalationKind::Hiccup => format!("{} needs you ({})", self.who(session), asked.kind),
            EscalationKind::RecoveryApprovalRequired => {
                format!("{} needs your word for a repair", self.who(session))
            }
            EscalationKind::CostConfirmation => {
                format!("{} needs your word for more money", self.who(session))
            }
            EscalationKind::Stuck => format!("{} goes in circles", self.who(session)),
        };
        let repair = asked.repair.as_deref();
        let repair = repair.and_then(|id| self.run.repairs.named(id));
        let mut message = Message {
            question: Some(asked.id.clone()),
            kind: Some(asked.kind.name().to_owned()),
            trigger: Some(asked.trigger.clone()),
            text: clean(&asked.reason, TEXT),
            proposal: repair.map(|repair| clean(&repair.proposed.command, TEXT)),
            answers: self.answers(asked),
            ..self.message(Occasion::Escalation, session, &what)
        };
        // What no attempt has failed of is known from the question itself.
        let shown = clean(&asked.shown.evidence, TEXT);
        let evidence = message.evidence.take().or(Some(shown));
        message.evidence = evidence.filter(|line| !line.is_empty());
        let group = match &message.fingerprint {
            Some(fingerprint) => format!("escalation {fingerprint}"),
            None => format!("escalation {} {}", asked.kind, self.run.view.project),
        };
        News { message, group }
    }

    /// Nobody has to act, but whoever is told of questions wants to know before the time for all is over.
    fn parked(&self, parked: &SessionParked) -> News {
        let session = self.run.session(parked.session.as_ref());
        let who = self.who(session);
        let what = format!("{who} is parked ({}), nobody is asked yet", parked.kind);
        let message = Message {
            kind: Some(parked.kind.name().to_owned()),
            text: clean(&parked.reason, TEXT),
            ..self.message(Occasion::Escalation, session, &what)
        };
        let group = format!("parked {} {}", parked.kind, self.run.view.project);
        News { message, group }
    }

    /// The session that a question is about; none where it is about a whole pipeline.
    fn session_of(&self, asked: &RecoveryEscalated) -> Option<&SessionView> {
        let is_known = asked.session.is_some() || self.run.pipeline.is_none();
        is_known.then(|| self.run.session(asked.session.as_ref()))?
    }

    /// What can be answered, each as a command line.
    fn answers(&self, asked: &RecoveryEscalated) -> Map<String, Value> {
        let (id, run) = (&asked.id, &self.run.view.id);
        let choices = asked.shown.choices.iter();
        let answers = choices.map(|one| (one.answer.method(), format!("{} {id}", one.answer)));
        let answers = answers.chain([("explain", format!("explain {run}"))]);
        let line = |words: String| Value::from(format!("unstuck {words}{}", self.option));
        answers
            .map(|(answer, words)| (answer.to_owned(), line(words)))
            .collect()
    }

    fn answered(&self, answer: &RecoveryResolved) -> News {
        let session = self.run.session(answer.session.as_ref());
        let what = format!(
            "{}: a question was answered ({})",
            self.who(session),
            answer.method
        );
        let message = Message {
            question: answer.id.clone(),
            outcome: Some(answer.method.clone()),
            text: clean(&answer.note, TEXT),
            ..self.message(Occasion::Resolved, session, &what)
        };
        let group = format!("resolved {}", self.run.view.id);
        News { message, group }
    }

    fn role_recovered(&self, end: &SessionFinished) -> Option<News> {
        let session = self.run.session(Some(&end.session));
        (end.outcome == Outcome::Recovered).then(|| self.recovered(session, &end.reason))
    }

    fn recovered(&self, session: Option<&SessionView>, reason: &str) -> News {
        let kind = session.and_then(|session| session.last_error);
        let after = kind.map(|kind| format!(" after {kind}"));
        let what = format!(
            "{} recovered{}",
            self.who(session),
            after.unwrap_or_default()
        );
        let message = Message {
            outcome: Some(Outcome::Recovered.name().to_owned()),
            text: clean(reason, TEXT),
            ..self.message(Occasion::Recovered, session, &what)
        };
        let group = match &message.fingerprint {
            Some(fingerprint) => format!("recovered {fingerprint}"),
            None => format!("recovered {}", self.run.view.project),
        };
        News { message, group }
    }

    /// A run that waits for a person has not ended; they are told what is asked instead.
    fn ended(&self, end: &RunFinished) -> Vec<News> {
        if end.outcome == Outcome::AwaitingHuman {
            return Vec::new();
        }
        let sole = self
            .run
            .session(None)
            .filter(|_| self.run.pipeline.is_none());
        let recovered = (end.outcome == Outcome::Recovered && sole.is_some())
            .then(|| self.recovered(sole, &end.reason));
        let what = format!("{} {}", self.who(sole), ended_words(end.outcome));
        let took = Human(Duration::from_millis(end.duration_ms));
        let cost = match end.cost_usd {
            Some(usd) if usd > 0.0 => Some(format!(", {usd:.2} USD")),
            Some(_) => None,
            None => Some(", cost unknown".to_owned()),
        };
        let text = format!("{}\n{took}{}", end.reason, cost.unwrap_or_default());
        let message = Message {
            outcome: Some(end.outcome.name().to_owned()),
            text: clean(&text, TEXT),
            ..self.message(Occasion::RunFinished, sole, &what)
        };
        let group = format!("run_finished {}", self.run.view.id);
        recovered
            .into_iter()
            .chain([News { message, group }])
            .collect()
    }

    /// Who it is about: the role, the agent, the program or the pipeline.
    fn who(&self, session: Option<&SessionView>) -> String {
        let role = session.and_then(|session| session.part.as_ref());
        if let Some(part) = role {
            return part.role.clone();
        }
        let agent = session.and_then(|session| session.agent.clone());
        let program = || program(&self.run.view.command);
        match &self.run.pipeline {
            Some(_) => "the pipeline".to_owned(),
            None => agent.or_else(program).unwrap_or_else(|| "a run".to_owned()),
        }
    }

    /// What every message says.
    fn message(&self, occasion: Occasion, session: Option<&SessionView>, what: &str) -> Message {
        let view = &self.run.view;
        let failed = session.and_then(|session| session.diagnosis.as_deref());
        let iteration = match &self.run.pipeline {
            Some(pipeline) => pipeline.iteration(),
            None => session.map_or(0, |session| session.attempts),
        };
        let role = session.and_then(|session| session.part.as_ref());
        let project = Path::new(&view.project).file_name();
        let project = project.map(|name| format!("{}: ", name.to_string_lossy()));
        // The sessions of the gateway's clients belong to none.
        let project = project.unwrap_or_default();
        Message {
            id: String::new(),
            occasion,
            timestamp: self.at,
            run: view.id.to_string(),
            project: view.project.clone(),
            role: role.map(|part| part.role.clone()),
            loop_id: view.id.to_string(),
            iteration,
            question: None,
            kind: failed.map(|failed| failed.kind.name().to_owned()),
            trigger: None,
            fingerprint: failed.map(|failed| failed.fingerprint.clone()),
            outcome: None,
            // Whoever writes what happened supervises the run.
            state: Some(match session {
                Some(session) => SessionStatus::of_session(session, false),
                None => SessionStatus::of_run(view, true),
            }),
            title: first_line(&format!("{project}{what}"), TITLE),
            text: String::new(),
            evidence: failed
                .map(|failed| clean(&failed.evidence.line, TEXT))
                .filter(|line| !line.is_empty()),
            proposal: None,
            answers: Map::new(),
            url: None,
            count: 1,
            messages: Vec::new(),
        }
    }
}

/// What a command is called for people.
fn program(command: &[String]) -> Option<String> {
    match command {
        [first, client, ..] if first == GATEWAY => Some(client.clone()),
        [first, ..] => {
            let name = Path::new(first).file_name()?;
            Some(name.to_string_lossy().into_owned())
        }
        [] => None,
    }
}

fn ended_words(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Succeeded => "is done",
        Outcome::Recovered => "is done, after a failure",
        Outcome::Failed => "failed",
        Outcome::AwaitingHuman => "waits for a person",
        Outcome::Interrupted => "was stopped",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_called_by_its_name_and_a_client_as_it_calls_itself() {
        let called = |words: &[&str]| {
            let words: Vec<_> = words.iter().map(|word| (*word).to_owned()).collect();
            program(&words).unwrap_or_default()
        };
        assert_eq!(called(&["/usr/bin/make", "all"]), "make");
        assert_eq!(called(&[GATEWAY, "python-httpx/1.0"]), "python-httpx/1.0");
        assert_eq!(called(&[]), "");
    }
}
