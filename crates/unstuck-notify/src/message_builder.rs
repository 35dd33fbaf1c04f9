//! Builds messages: a pure function of new events and the previous state.

use std::path::Path;
use std::time::Duration;

use serde_json::{Map, Value};
use unstuck_core::Timestamp;
use unstuck_core::duration::HumanDuration;
use unstuck_core::event::{
    EscalationKind, EscalationOpened, EscalationResolved, Event, EventRecord, RunFinished,
    RunOutcome, SessionFinished, SessionParked, VERSION,
};
use unstuck_core::views::{RunProjection, SessionStatusSummary, SessionSummary};
use unstuck_store::NewOutboxMessage;

use crate::event::NotificationEvent;
use crate::message::NotificationMessage;
use crate::sanitize_text::{first_line, sanitize};
use crate::target::NotificationTarget;

/// The program name of gateway client sessions; the client's name follows it.
const GATEWAY_PROGRAM: &str = "(gateway)";
/// The maximum length of a title.
const MAX_TITLE: usize = 160;
/// The maximum length of a text, an excerpt or a command.
const MAX_TEXT: usize = 1500;

/// A subscription of a target to an event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotificationSubscription {
    /// The event.
    pub event: NotificationEvent,
    /// The target.
    pub target: NotificationTarget,
    /// The time during which further messages about the same subject are collected into one.
    pub window: Duration,
}

/// All subscriptions.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct NotificationSubscriptions {
    /// The subscriptions.
    pub list: Vec<NotificationSubscription>,
    /// The suffix of command lines in messages that selects the store: ` --store FILE`, or empty.
    pub store_option: String,
}

impl NotificationSubscriptions {
    /// Returns the messages for events about to be written; `run` is the state before them.
    pub fn build_messages(
        &self,
        run: &RunProjection,
        events: &[Event],
        at: Timestamp,
    ) -> Vec<NewOutboxMessage> {
        if self.list.is_empty() || !events.iter().any(is_notifiable) {
            return Vec::new();
        }
        let mut run = run.clone();
        let mut outgoing = Vec::new();
        for (place, event) in events.iter().enumerate() {
            if !matches!(event, Event::RunStarted(_)) {
                run.apply(&EventRecord {
                    version: VERSION,
                    run: run.summary.id.clone(),
                    seq: run.summary.seq + 1,
                    at,
                    event: event.clone(),
                });
            }
            for news in self.messages_for_event(&run, event, at) {
                outgoing.extend(self.for_subscribers(place, &news));
            }
        }
        outgoing
    }

    fn for_subscribers(
        &self,
        event: usize,
        news: &DraftMessage,
    ) -> impl Iterator<Item = NewOutboxMessage> {
        let meant = self.list.iter();
        let meant = meant.filter(|hook| hook.event == news.message.event);
        // Both consist of strings, lists and numbers, which always serialize.
        meant.filter_map(move |hook| {
            Some(NewOutboxMessage {
                event,
                event_name: hook.event.name().to_owned(),
                target: serde_json::to_value(&hook.target).ok()?,
                body: serde_json::to_value(&news.message).ok()?,
                group: news.group.clone(),
                window: hook.window,
            })
        })
    }

    /// Returns the messages for an event that has been applied.
    fn messages_for_event(
        &self,
        run: &RunProjection,
        event: &Event,
        at: Timestamp,
    ) -> Vec<DraftMessage> {
        let teller = MessageBuilder {
            run,
            at,
            store_option: &self.store_option,
        };
        match event {
            Event::EscalationOpened(asked) => vec![teller.escalation_message(asked)],
            Event::EscalationResolved(answer) if answer.is_by_human() => {
                vec![teller.resolution_message(answer)]
            }
            Event::SessionParked(parked) => vec![teller.parked_message(parked)],
            Event::SessionFinished(end) => teller.role_recovery_message(end).into_iter().collect(),
            Event::RunFinished(end) => teller.run_end_messages(end),
            _ => Vec::new(),
        }
    }
}

fn is_notifiable(event: &Event) -> bool {
    matches!(
        event,
        Event::EscalationOpened(_)
            | Event::EscalationResolved(_)
            | Event::SessionParked(_)
            | Event::SessionFinished(_)
            | Event::RunFinished(_)
    )
}

/// A message and its group.
struct DraftMessage {
    message: NotificationMessage,
    group: String,
}

/// Builds messages about one run at one moment.
struct MessageBuilder<'a> {
    run: &'a RunProjection,
    at: Timestamp,
    store_option: &'a str,
}

impl MessageBuilder<'_> {
    fn escalation_message(&self, asked: &EscalationOpened) -> DraftMessage {
        let session = self.session_of(asked);
        let what = match asked.escalation_kind {
            EscalationKind::Hiccup => {
                format!(
                    "{} needs your input ({})",
                    self.subject(session),
                    asked.kind
                )
            }
            EscalationKind::RecoveryApprovalRequired => {
                format!("{} needs approval for a repair", self.subject(session))
            }
            EscalationKind::CostConfirmation => {
                format!("{} needs approval to spend more", self.subject(session))
            }
            EscalationKind::Stuck => format!("{}: loop detected", self.subject(session)),
        };
        let repair = asked.repair.as_deref();
        let repair = repair.and_then(|id| self.run.repairs.get(id));
        let mut message = NotificationMessage {
            request: Some(asked.id.clone()),
            question: Some(asked.id.clone()),
            kind: Some(asked.kind.name().to_owned()),
            trigger: Some(asked.trigger.clone()),
            text: sanitize(&asked.reason, MAX_TEXT),
            proposal: repair.map(|repair| sanitize(&repair.proposed.command, MAX_TEXT)),
            answers: self.answer_commands(asked),
            ..self.base_message(NotificationEvent::Escalation, session, &what)
        };
        // If no attempt has failed, the request itself provides the details.
        let shown = sanitize(&asked.details.evidence, MAX_TEXT);
        let evidence = message.evidence.take().or(Some(shown));
        message.evidence = evidence.filter(|line| !line.is_empty());
        let group = match &message.fingerprint {
            Some(fingerprint) => format!("escalation {fingerprint}"),
            None => format!("escalation {} {}", asked.kind, self.run.summary.project),
        };
        DraftMessage { message, group }
    }

    /// No action is required yet, but subscribers of requests want to know before the deadline.
    fn parked_message(&self, parked: &SessionParked) -> DraftMessage {
        let session = self.run.session(parked.session.as_ref());
        let who = self.subject(session);
        let what = format!("{who} is parked ({}); no action required yet", parked.kind);
        let message = NotificationMessage {
            kind: Some(parked.kind.name().to_owned()),
            text: sanitize(&parked.reason, MAX_TEXT),
            ..self.base_message(NotificationEvent::Escalation, session, &what)
        };
        let group = format!("parked {} {}", parked.kind, self.run.summary.project);
        DraftMessage { message, group }
    }

    /// Returns the session of a request; `None` if it is about a whole pipeline.
    fn session_of(&self, asked: &EscalationOpened) -> Option<&SessionSummary> {
        let is_known = asked.session.is_some() || self.run.pipeline.is_none();
        is_known.then(|| self.run.session(asked.session.as_ref()))?
    }

    /// Returns the available answers as command lines.
    fn answer_commands(&self, asked: &EscalationOpened) -> Map<String, Value> {
        let (id, run) = (&asked.id, &self.run.summary.id);
        let choices = asked.details.options.iter();
        let answers = choices.map(|one| (one.answer.method(), format!("{} {id}", one.answer)));
        let answers = answers.chain([("explain", format!("explain {run}"))]);
        let line = |words: String| Value::from(format!("unstuck {words}{}", self.store_option));
        answers
            .map(|(answer, words)| (answer.to_owned(), line(words)))
            .collect()
    }

    fn resolution_message(&self, answer: &EscalationResolved) -> DraftMessage {
        let session = self.run.session(answer.session.as_ref());
        let what = format!(
            "{}: request answered ({})",
            self.subject(session),
            answer.method
        );
        let message = NotificationMessage {
            request: answer.id.clone(),
            question: answer.id.clone(),
            outcome: Some(answer.method.clone()),
            text: sanitize(&answer.note, MAX_TEXT),
            ..self.base_message(NotificationEvent::Resolved, session, &what)
        };
        let group = format!("resolved {}", self.run.summary.id);
        DraftMessage { message, group }
    }

    fn role_recovery_message(&self, end: &SessionFinished) -> Option<DraftMessage> {
        let session = self.run.session(Some(&end.session));
        (end.outcome == RunOutcome::Recovered).then(|| self.recovery_message(session, &end.reason))
    }

    fn recovery_message(&self, session: Option<&SessionSummary>, reason: &str) -> DraftMessage {
        let kind = session.and_then(|session| session.last_error);
        let after = kind.map(|kind| format!(" after {kind}"));
        let what = format!(
            "{} recovered{}",
            self.subject(session),
            after.unwrap_or_default()
        );
        let message = NotificationMessage {
            outcome: Some(RunOutcome::Recovered.name().to_owned()),
            text: sanitize(reason, MAX_TEXT),
            ..self.base_message(NotificationEvent::Recovered, session, &what)
        };
        let group = match &message.fingerprint {
            Some(fingerprint) => format!("recovered {fingerprint}"),
            None => format!("recovered {}", self.run.summary.project),
        };
        DraftMessage { message, group }
    }

    /// A run that needs input has not ended; the request is reported instead.
    fn run_end_messages(&self, end: &RunFinished) -> Vec<DraftMessage> {
        if end.outcome == RunOutcome::AwaitingHuman {
            return Vec::new();
        }
        let sole = self
            .run
            .session(None)
            .filter(|_| self.run.pipeline.is_none());
        let recovered = (end.outcome == RunOutcome::Recovered && sole.is_some())
            .then(|| self.recovery_message(sole, &end.reason));
        let what = format!("{} {}", self.subject(sole), outcome_text(end.outcome));
        let took = HumanDuration(Duration::from_millis(end.duration_ms));
        let cost = match end.cost_usd {
            Some(usd) if usd > 0.0 => Some(format!(", ${usd:.2}")),
            Some(_) => None,
            None => Some(", cost unknown".to_owned()),
        };
        let text = format!("{}\n{took}{}", end.reason, cost.unwrap_or_default());
        let message = NotificationMessage {
            outcome: Some(end.outcome.name().to_owned()),
            text: sanitize(&text, MAX_TEXT),
            ..self.base_message(NotificationEvent::RunFinished, sole, &what)
        };
        let group = format!("run_finished {}", self.run.summary.id);
        recovered
            .into_iter()
            .chain([DraftMessage { message, group }])
            .collect()
    }

    /// Returns the subject: the role, agent, program or pipeline.
    fn subject(&self, session: Option<&SessionSummary>) -> String {
        let role = session.and_then(|session| session.part.as_ref());
        if let Some(part) = role {
            return part.role.clone();
        }
        let agent = session.and_then(|session| session.agent.clone());
        let program = || program_name(&self.run.summary.command);
        match &self.run.pipeline {
            Some(_) => "pipeline".to_owned(),
            None => agent.or_else(program).unwrap_or_else(|| "a run".to_owned()),
        }
    }

    /// Returns the fields common to all messages.
    fn base_message(
        &self,
        event: NotificationEvent,
        session: Option<&SessionSummary>,
        what: &str,
    ) -> NotificationMessage {
        let view = &self.run.summary;
        let failed = session.and_then(|session| session.diagnosis.as_deref());
        let iteration = match &self.run.pipeline {
            Some(pipeline) => pipeline.iteration(),
            None => session.map_or(0, |session| session.attempts),
        };
        let role = session.and_then(|session| session.part.as_ref());
        let project = Path::new(&view.project).file_name();
        let project = project.map(|name| format!("{}: ", name.to_string_lossy()));
        // Sessions of gateway clients have no role.
        let project = project.unwrap_or_default();
        NotificationMessage {
            id: String::new(),
            event,
            timestamp: self.at,
            run: view.id.to_string(),
            project: view.project.clone(),
            role: role.map(|part| part.role.clone()),
            loop_id: view.id.to_string(),
            iteration,
            request: None,
            question: None,
            kind: failed.map(|failed| failed.kind.name().to_owned()),
            trigger: None,
            fingerprint: failed.map(|failed| failed.fingerprint.clone()),
            outcome: None,
            // The process that writes the event supervises the run.
            state: Some(match session {
                Some(session) => SessionStatusSummary::for_session(session, false),
                None => SessionStatusSummary::for_run(view, true),
            }),
            title: first_line(&format!("{project}{what}"), MAX_TITLE),
            text: String::new(),
            evidence: failed
                .map(|failed| sanitize(&failed.evidence.line, MAX_TEXT))
                .filter(|line| !line.is_empty()),
            proposal: None,
            answers: Map::new(),
            url: None,
            count: 1,
            messages: Vec::new(),
        }
    }
}

/// Returns the display name of a command.
fn program_name(command: &[String]) -> Option<String> {
    match command {
        [first, client, ..] if first == GATEWAY_PROGRAM => Some(client.clone()),
        [first, ..] => {
            let name = Path::new(first).file_name()?;
            Some(name.to_string_lossy().into_owned())
        }
        [] => None,
    }
}

fn outcome_text(outcome: RunOutcome) -> &'static str {
    match outcome {
        RunOutcome::Succeeded => "succeeded",
        RunOutcome::Recovered => "succeeded after a failure",
        RunOutcome::Failed => "failed",
        RunOutcome::AwaitingHuman => "needs your input",
        RunOutcome::Interrupted => "was interrupted",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_named_by_file_name_and_clients_by_their_own_name() {
        let called = |words: &[&str]| {
            let words: Vec<_> = words.iter().map(|word| (*word).to_owned()).collect();
            program_name(&words).unwrap_or_default()
        };
        assert_eq!(called(&["/usr/bin/make", "all"]), "make");
        assert_eq!(
            called(&[GATEWAY_PROGRAM, "python-httpx/1.0"]),
            "python-httpx/1.0"
        );
        assert_eq!(called(&[]), "");
    }
}
