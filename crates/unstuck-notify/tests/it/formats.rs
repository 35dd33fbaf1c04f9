//! Message formats.

use unstuck_notify::{
    NotificationEvent, NotificationFormat, NotificationMessage, check_template, render,
};

use crate::samples::{START, later};

fn question() -> NotificationMessage {
    NotificationMessage {
        id: "k3v9.4.1".into(),
        evidence: Some("error: <!channel> @everyone ```lock``` & more".into()),
        ..NotificationMessage::sample(NotificationEvent::Escalation, START)
    }
}

fn body(format: &NotificationFormat, message: &NotificationMessage) -> String {
    render(format, message).unwrap().body
}

/// Returns the `text` or `content` of a chat message.
fn chat(format: &NotificationFormat, key: &str) -> String {
    let value: serde_json::Value = serde_json::from_str(&body(format, &question())).unwrap();
    value[key].as_str().unwrap().to_owned()
}

#[test]
fn slack_message_mentions_nobody_and_shows_answers() {
    insta::assert_snapshot!(chat(&NotificationFormat::Slack, "text"), @r"
    *shop: builder needs approval for a repair*
    This is a test notification from unstuck. No action is required.
    ```
    error: &lt;!channel&gt; @everyone '''lock''' &amp; more
    ```
    Proposed:
    ```
    npm install
    ```
    ```
    approve: unstuck approve sample-e1
    reject: unstuck reject sample-e1
    ```
    ");
}

#[test]
fn discord_message_mentions_nobody_and_fits_the_limit() {
    insta::assert_snapshot!(chat(&NotificationFormat::Discord, "content"), @r"
    **shop: builder needs approval for a repair**
    This is a test notification from unstuck. No action is required.
    ```
    error: <!channel> @everyone '''lock''' & more
    ```
    Proposed:
    ```
    npm install
    ```
    ```
    approve: unstuck approve sample-e1
    reject: unstuck reject sample-e1
    ```
    ");
    let json = body(&NotificationFormat::Discord, &question());
    assert!(
        json.contains(r#""allowed_mentions":{"parse":[]}"#),
        "{json}"
    );
    let long = NotificationMessage {
        text: "y".repeat(5000),
        title: "z".repeat(5000),
        ..question()
    };
    let json: serde_json::Value =
        serde_json::from_str(&body(&NotificationFormat::Discord, &long)).unwrap();
    assert!(json["content"].as_str().unwrap().chars().count() <= 2000);
}

#[test]
fn text_format_is_readable() {
    insta::assert_snapshot!(body(&NotificationFormat::Text, &question()), @r"
    shop: builder needs approval for a repair

    This is a test notification from unstuck. No action is required.

    error: <!channel> @everyone ```lock``` & more

    Proposed: npm install

    approve: unstuck approve sample-e1
    reject: unstuck reject sample-e1
    ");
}

#[test]
fn ntfy_title_and_priority_are_valid_headers() {
    let ascii = render(&NotificationFormat::Ntfy, &question()).unwrap();
    let header = |name: &str| {
        let found = ascii.headers.iter().find(|(known, _)| *known == name);
        found.unwrap().1.clone()
    };
    assert_eq!(header("title"), "shop: builder needs approval for a repair");
    assert_eq!(
        (&*header("priority"), &*header("tags")),
        ("high", "raised_hand")
    );
    let umlaut = NotificationMessage {
        title: "Bücher\nX: y".into(),
        ..question()
    };
    let rendered = render(&NotificationFormat::Ntfy, &umlaut).unwrap();
    assert_eq!(rendered.headers[0].1, "=?UTF-8?B?QsO8Y2hlcgpYOiB5?=");
}

#[test]
fn template_renders_the_users_text() {
    let template = |text: &str| NotificationFormat::Template {
        text: text.into(),
        content_type: "application/json".into(),
    };
    let text = r#"{"summary": {{ title | json }}, "run": {{ run | json }}, "n": {{ count }}}"#;
    let rendered = render(&template(text), &question()).unwrap();
    assert_eq!(
        rendered.body,
        r#"{"summary": "shop: builder needs approval for a repair", "run": "sample", "n": 1}"#
    );
    assert_eq!(rendered.content_type, "application/json");
    assert_eq!(check_template(text), Ok(()));
    let told = |text: &str| check_template(text).unwrap_err().to_string();
    assert!(
        told("a\n{{ titel }}").contains("line 2"),
        "{}",
        told("a\n{{ titel }}")
    );
    assert!(told("{{ title").contains("line 1"));
    assert!(
        told("{% for a in range(100000) %}{% for b in range(9999) %}x{% endfor %}{% endfor %}")
            .len()
            < 200
    );
}

/// Repeated requests about the same subject are one message, with their number and the first lines.
#[test]
fn digest_shows_count_and_messages() {
    let all = (0..23).map(|n| NotificationMessage {
        id: format!("r{n}.4.1"),
        run: format!("r{n}"),
        timestamp: later(n),
        title: format!("shop: run {n} needs your input"),
        ..question()
    });
    let digest = NotificationMessage::digest(all.collect()).unwrap();
    assert_eq!(
        (&*digest.id, digest.count, digest.messages.len()),
        ("r22.4.1", 23, 23)
    );
    insta::assert_snapshot!(format!("{}\n{}", digest.title, digest.text), @r"
    23 times: shop: run 22 needs your input
    • shop: run 0 needs your input
    • shop: run 1 needs your input
    • shop: run 2 needs your input
    • shop: run 3 needs your input
    • shop: run 4 needs your input
    • shop: run 5 needs your input
    • shop: run 6 needs your input
    • shop: run 7 needs your input
    • shop: run 8 needs your input
    • shop: run 9 needs your input
    … and 13 more
    Latest: This is a test notification from unstuck. No action is required.
    ");
    assert_eq!(NotificationMessage::digest(Vec::new()), None);
    assert_eq!(
        NotificationMessage::digest(vec![question()]),
        Some(question())
    );
}
