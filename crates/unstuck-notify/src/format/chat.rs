//! Messages for chats. What others wrote must not reach all members of a channel, nor look like a link.

use serde_json::json;

use crate::message::NotificationMessage;
use crate::text::truncate;

/// Discord takes no longer message.
const DISCORD_MAX: usize = 2000;
/// Slack shortens longer ones by itself, in the middle.
const SLACK_MAX: usize = 3000;

/// A message for Slack, and for what understands the same.
pub(super) fn slack(message: &NotificationMessage) -> String {
    let plain = |text: &str| {
        let text = text.replace('&', "&amp;").replace('<', "&lt;");
        text.replace('>', "&gt;")
    };
    let text = lines(message, &plain, "*", SLACK_MAX);
    json!({ "text": text }).to_string()
}

/// A message for Discord; nobody is called by what is in it.
pub(super) fn discord(message: &NotificationMessage) -> String {
    let text = lines(message, &str::to_owned, "**", DISCORD_MAX);
    json!({
        "username": "unstuck",
        "content": text,
        "allowed_mentions": { "parse": [] },
    })
    .to_string()
}

fn lines(
    message: &NotificationMessage,
    plain: &dyn Fn(&str) -> String,
    bold: &str,
    most: usize,
) -> String {
    let block = |text: &str| format!("```\n{}\n```", plain(&text.replace("```", "'''")));
    let mut parts = vec![format!("{bold}{}{bold}", plain(&message.title))];
    if !message.text.is_empty() {
        parts.push(plain(&truncate(&message.text, 900)));
    }
    let evidence = message.evidence.as_deref();
    parts.extend(evidence.map(|line| block(&truncate(line, 300))));
    let proposal = message.proposal.as_deref();
    parts.extend(proposal.map(|command| format!("Proposed:\n{}", block(&truncate(command, 300)))));
    let answers: Vec<_> = message.answer_lines().collect();
    if !answers.is_empty() {
        parts.push(block(&answers.join("\n")));
    }
    truncate(&parts.join("\n"), most)
}
