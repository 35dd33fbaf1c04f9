//! The notification message, one shape for all events; formats render it.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use unstuck_core::Timestamp;
use unstuck_core::views::SessionStatusSummary;

use crate::event::NotificationEvent;
use crate::sanitize_text::first_line;

/// The maximum number of messages listed in a digest.
const MAX_LISTED: usize = 10;

/// A notification message.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct NotificationMessage {
    /// The message id, stable across attempts.
    #[serde(default)]
    pub id: String,
    /// The event.
    #[serde(rename = "type")]
    pub event: NotificationEvent,
    /// The time of the event.
    pub timestamp: Timestamp,
    /// The run.
    pub run: String,
    /// The project root.
    pub project: String,
    /// The role, in a pipeline.
    pub role: Option<String>,
    /// The run id again, under the name used for loops.
    pub loop_id: String,
    /// The iteration of a loop, or the attempt of a single command.
    pub iteration: u32,
    /// The id of the request, if the message is about one.
    #[serde(default)]
    pub request: Option<String>,
    /// The same id under its name in earlier versions.
    #[serde(default)]
    pub question: Option<String>,
    /// The kind of failure.
    pub kind: Option<String>,
    /// The trigger of the request, for example `HICCUP`.
    pub trigger: Option<String>,
    /// The fingerprint that identifies the same failure.
    pub fingerprint: Option<String>,
    /// The outcome of the run.
    pub outcome: Option<String>,
    /// The status of the session, or of the run if the message is about a pipeline.
    #[serde(default)]
    pub state: Option<SessionStatusSummary>,
    /// The summary in one line.
    pub title: String,
    /// The explanation in a few lines.
    pub text: String,
    /// The line that identified the failure.
    pub evidence: Option<String>,
    /// The proposed command.
    pub proposal: Option<String>,
    /// The available answers as command lines, the most likely first.
    pub answers: Map<String, Value>,
    /// The link to details.
    pub url: Option<String>,
    /// The number of messages this one represents.
    #[serde(default = "default_count")]
    pub count: usize,
    /// The represented messages, if there are several.
    #[serde(default)]
    pub messages: Vec<DigestItem>,
}

/// One of several messages sent as one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DigestItem {
    /// The message id.
    pub id: String,
    /// The time of the event.
    pub timestamp: Timestamp,
    /// The run.
    pub run: String,
    /// The summary in one line.
    pub title: String,
}

fn default_count() -> usize {
    1
}

impl NotificationMessage {
    /// Combines messages on the same subject, oldest first; `None` if there are none.
    ///
    /// The digest has the id of the newest message: if another one arrives between two attempts, it is a different
    /// message.
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
        text.push(format!("Latest: {}", first_line(&newest.text, 300)));
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

    /// Returns the readable text without the title.
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

    /// Returns the available answers, one per line.
    pub(crate) fn answer_lines(&self) -> impl Iterator<Item = String> {
        let answers = self.answers.iter();
        answers.map(|(answer, line)| format!("{answer}: {}", line.as_str().unwrap_or_default()))
    }
}

impl NotificationMessage {
    /// Returns a test message without content.
    pub fn sample(event: NotificationEvent, now: Timestamp) -> Self {
        let (title, outcome) = match event {
            NotificationEvent::Escalation => ("shop: builder needs approval for a repair", None),
            NotificationEvent::Resolved => {
                ("shop: builder: request answered (approve)", Some("approve"))
            }
            NotificationEvent::Recovered => (
                "shop: builder recovered after lockfile_drift",
                Some("recovered"),
            ),
            NotificationEvent::RunFinished => ("shop: pipeline succeeded", Some("succeeded")),
        };
        let asks = event == NotificationEvent::Escalation;
        let answers = [
            ("approve", "unstuck approve sample-e1"),
            ("reject", "unstuck reject sample-e1"),
        ];
        let answers = answers.map(|(answer, line)| (answer.to_owned(), Value::from(line)));
        Self {
            id: format!("sample.{}.{}", event, now.millis()),
            event,
            timestamp: now,
            run: "sample".into(),
            project: "/home/me/shop".into(),
            role: Some("builder".into()),
            loop_id: "sample".into(),
            iteration: 1,
            request: asks.then(|| "sample-e1".into()),
            question: asks.then(|| "sample-e1".into()),
            kind: Some("lockfile_drift".into()),
            trigger: asks.then(|| "RECOVERY".into()),
            fingerprint: Some("sample".into()),
            outcome: outcome.map(str::to_owned),
            state: None,
            title: title.into(),
            text: "This is a test notification from unstuck. No action is required.".into(),
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
