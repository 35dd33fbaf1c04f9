//! What is told, in one shape for all occasions; formats make of it what their readers understand.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use unstuck_core::Timestamp;
use unstuck_core::views::SessionStatus;

use crate::event::NotificationEvent;
use crate::text::first_line;

/// More lines than anyone reads in one message.
const MAX_LISTED: usize = 10;

/// What is told.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct NotificationMessage {
    /// Its id, the same at each try.
    #[serde(default)]
    pub id: String,
    /// The occasion.
    #[serde(rename = "type")]
    pub occasion: NotificationEvent,
    /// When it happened.
    pub timestamp: Timestamp,
    /// The run.
    pub run: String,
    /// The root folder of its project.
    pub project: String,
    /// The role, in a pipeline.
    pub role: Option<String>,
    /// The run again, by the name that loops know it by.
    pub loop_id: String,
    /// The iteration of a loop, or the attempt of a single command.
    pub iteration: u32,
    /// The id of the question, where it is about one.
    pub question: Option<String>,
    /// The kind of failure.
    pub kind: Option<String>,
    /// What made unstuck ask, `HICCUP` for instance.
    pub trigger: Option<String>,
    /// Recognises the same failure again.
    pub fingerprint: Option<String>,
    /// How a run ended.
    pub outcome: Option<String>,
    /// The state of the session, or of the run where it is about a whole pipeline.
    #[serde(default)]
    pub state: Option<SessionStatus>,
    /// All of it in one line.
    pub title: String,
    /// Why, in a few lines.
    pub text: String,
    /// The line by which the failure was recognised.
    pub evidence: Option<String>,
    /// The command that is proposed.
    pub proposal: Option<String>,
    /// What can be answered, each as a command line, the likeliest first.
    pub answers: Map<String, Value>,
    /// Where more is to be seen.
    pub url: Option<String>,
    /// How many messages this one stands for.
    #[serde(default = "default_count")]
    pub count: usize,
    /// What those were, where it is more than one.
    #[serde(default)]
    pub messages: Vec<DigestItem>,
}

/// One of several messages that are sent as one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DigestItem {
    /// Its id.
    pub id: String,
    /// When it happened.
    pub timestamp: Timestamp,
    /// The run.
    pub run: String,
    /// All of it in one line.
    pub title: String,
}

fn default_count() -> usize {
    1
}

impl NotificationMessage {
    /// Several messages about the same as one, the oldest first; none if there are none.
    ///
    /// It has the id of the newest: where one more has come in between two tries, it is another message.
    pub fn digest(mut all: Vec<Self>) -> Option<Self> {
        let count = all.len();
        if count <= 1 {
            return all.pop();
        }
        let messages: Vec<_> = all.iter().map(Self::to_digest_item).collect();
        let newest = all.pop()?;
        let lines = messages.iter().take(MAX_LISTED);
        let mut text: Vec<_> = lines.map(|told| format!("• {}", told.title)).collect();
        if count > MAX_LISTED {
            text.push(format!("… and {} more", count - MAX_LISTED));
        }
        text.push(format!("The newest: {}", first_line(&newest.text, 300)));
        Some(Self {
            title: format!("{count} times: {}", newest.title),
            text: text.join("\n"),
            count,
            messages,
            ..newest
        })
    }

    fn to_digest_item(&self) -> DigestItem {
        DigestItem {
            id: self.id.clone(),
            timestamp: self.timestamp,
            run: self.run.clone(),
            title: self.title.clone(),
        }
    }

    /// All of it as a person reads it, without the title.
    pub fn body(&self) -> String {
        let mut parts = vec![self.text.clone()];
        parts.extend(self.evidence.clone());
        let proposal = self.proposal.as_ref();
        parts.extend(proposal.map(|command| format!("Proposed: {command}")));
        let answers: Vec<_> = self.answer_lines().collect();
        if !answers.is_empty() {
            parts.push(answers.join("\n"));
        }
        parts.retain(|part| !part.is_empty());
        parts.join("\n\n")
    }

    /// What can be answered, a line each.
    pub(crate) fn answer_lines(&self) -> impl Iterator<Item = String> {
        let answers = self.answers.iter();
        answers.map(|(answer, line)| format!("{answer}: {}", line.as_str().unwrap_or_default()))
    }
}

impl NotificationMessage {
    /// A message that tells of nothing, to try whether messages arrive.
    pub fn sample(occasion: NotificationEvent, now: Timestamp) -> Self {
        let (title, outcome) = match occasion {
            NotificationEvent::Escalation => ("shop: builder needs your word for a repair", None),
            NotificationEvent::Resolved => (
                "shop: builder: a question was answered (approve)",
                Some("approve"),
            ),
            NotificationEvent::Recovered => (
                "shop: builder recovered after lockfile_drift",
                Some("recovered"),
            ),
            NotificationEvent::RunFinished => ("shop: the pipeline is done", Some("succeeded")),
        };
        let asks = occasion == NotificationEvent::Escalation;
        let answers = [
            ("approve", "unstuck approve sample-e1"),
            ("reject", "unstuck reject sample-e1"),
        ];
        let answers = answers.map(|(answer, line)| (answer.to_owned(), Value::from(line)));
        Self {
            id: format!("sample.{}.{}", occasion, now.millis()),
            occasion,
            timestamp: now,
            run: "sample".into(),
            project: "/home/me/shop".into(),
            role: Some("builder".into()),
            loop_id: "sample".into(),
            iteration: 1,
            question: asks.then(|| "sample-e1".into()),
            kind: Some("lockfile_drift".into()),
            trigger: asks.then(|| "RECOVERY".into()),
            fingerprint: Some("sample".into()),
            outcome: outcome.map(str::to_owned),
            state: None,
            title: title.into(),
            text: "This is a test of unstuck's messages. Nothing has happened.".into(),
            evidence: Some("error: the lock file needs to be updated".into()),
            proposal: asks.then(|| "npm install".into()),
            answers: if asks {
                answers.into_iter().collect()
            } else {
                Map::new()
            },
            url: None,
            count: 1,
            messages: Vec::new(),
        }
    }
}
