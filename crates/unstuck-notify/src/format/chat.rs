//! Chat messages. Text from others must not mention all members of a channel, nor look like a link.

use serde_json::json;

use crate::message::NotificationMessage;
use crate::sanitize_text::truncate;

/// The maximum message length of Discord.
const DISCORD_MAX: usize = 2000;
/// The length above which Slack shortens a message in the middle.
const SLACK_MAX: usize = 3000;

/// Returns a message for Slack and compatible services.
pub(super) fn slack(message: &NotificationMessage) -> String {
    let plain = |text: &str| {
        let text = text.replace('&', "&amp;").replace('<', "&lt;");
        text.replace('>', "&gt;")
    };
    let text = lines(message, &plain, "*", SLACK_MAX);
    json!({ "text": text }).to_string()
}

/// Returns a message for Discord; mentions in it are disabled.
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
