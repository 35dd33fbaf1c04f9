//! Tests of the settings page: the configuration is shown and webhooks can be tested.

use super::Desk;
use crate::Place;
use crate::gateway::by_user;
use crate::webhook::Server;

/// S3-24: budgets, webhooks, agents and prices are shown; a click sends a test notification.
#[tokio::test(flavor = "multi_thread")]
async fn webhook_is_tested_with_a_click() {
    let place = Place::new();
    place.tool("claude", "#!/bin/sh\necho '2.1.0 (Claude Code)'\n");
    let server = Server::start("127.0.0.1:0", Some(200));
    by_user(
        &place,
        &format!(
            "[budget]\nper_day = {{ usd = 20 }}\n[webhooks]\nallow_private = true\non_escalation = \"http://{}/hook\"\n",
            server.at
        ),
    );
    let desk = Desk::open(&place, &[]).await;
    desk.goto("/settings").await;
    desk.shows("[data-part=budgets]", "$20").await;
    desk.shows("#main", "2.1.0").await;
    desk.shows("#main", "claude-opus-5-5").await;
    desk.picture("settings").await;
    desk.press("form[data-api$='/test'] button").await;
    desk.shows("form[data-api$='/test'] .says", "200").await;
    let got = server.next();
    assert_eq!(got.path, "/hook");
    assert!(got.body.contains("escalation"), "{}", got.body);
    desk.close().await;
}

/// Commands suggested on empty pages work as printed.
#[tokio::test(flavor = "multi_thread")]
async fn hints_name_existing_commands() {
    let place = Place::new();
    let desk = Desk::open(&place, &[]).await;
    let mut hints = Vec::new();
    for path in [
        "/",
        "/inbox",
        "/runs",
        "/failures",
        "/policies",
        "/settings",
        "/login",
        "/nowhere",
    ] {
        desk.browser.page.goto(&desk.url(path)).await.unwrap();
        let found = desk
            .says("[...document.querySelectorAll('#main code')].map((one) => one.textContent)")
            .await;
        hints.extend(
            found
                .as_array()
                .unwrap()
                .iter()
                .map(|one| one.as_str().unwrap().to_owned()),
        );
    }
    let commands: Vec<_> = hints
        .iter()
        .filter(|hint| hint.starts_with("unstuck "))
        .collect();
    assert!(commands.len() > 5, "{hints:?}");
    for hint in commands {
        let line = hint
            .split(" -- ")
            .next()
            .unwrap()
            .replacen("unstuck", "\"$UNSTUCK\"", 1);
        let tried = place.shell(&format!("{line} --help")).output().unwrap();
        assert!(
            tried.status.success(),
            "{hint}: {}",
            String::from_utf8_lossy(&tried.stderr)
        );
    }
    let configured: Vec<_> = hints.iter().filter(|hint| hint.starts_with('[')).collect();
    assert_eq!(configured.len(), 2, "{hints:?}");
    for hint in configured {
        by_user(&place, hint);
        place.run(&["config", "check"], "").told(0, &[]);
    }
    desk.browser.close().await;
}
