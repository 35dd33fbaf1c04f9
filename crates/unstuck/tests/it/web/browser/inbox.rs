//! Tests of the inbox: escalations of real runs, answered with clicks, and the effects of the answers.

use serde_json::{Value, json};

use super::Desk;
use crate::Place;
use crate::gateway::{by_user, until};
use crate::web::asking;
use crate::web::previewing::{is_running, slow_repair};

const EXEC: [&str; 5] = ["exec", "--", "claude", "-p", "fix the tests"];

/// Returns the only pending escalation.
fn asked(place: &Place) -> Value {
    let inbox = place.json(&["inbox", "--json"], "");
    assert_eq!(inbox.as_array().unwrap().len(), 1, "{inbox}");
    inbox[0].clone()
}

/// Waits until all runs have ended and no escalation is pending.
fn settled(place: &Place, status: &str) {
    until(&format!("the run is {status}"), || {
        let runs = place.json(&["runs", "--json"], "");
        (runs[0]["status"] == status).then_some(())
    });
    let inbox = place.json(&["inbox", "--json"], "");
    assert_eq!(inbox, json!([]));
}

/// Opens a browser at the only pending escalation.
async fn at_question(place: &Place) -> Desk {
    let desk = Desk::open(place, &[]).await;
    desk.goto("/inbox").await;
    desk.press("a.button[href^='/inbox/']").await;
    desk.shows("#main", "Your answer").await;
    desk
}

/// S3-44: additional instructions reach the agent.
#[tokio::test(flavor = "multi_thread")]
async fn instructions_of_a_person_reach_the_agent() {
    let place = asking();
    place.run(&EXEC, "").told(3, &[]);
    place.write("login", "");
    let desk = at_question(&place).await;
    desk.picture("question").await;
    desk.fill("#note", "use the staging account").await;
    desk.press("button[value=retry]").await;
    desk.shows("[data-part=asked]", "use the staging account")
        .await;
    settled(&place, "recovered");
    let calls = place.lines("calls").join("\n");
    assert!(calls.contains("use the staging account"), "{calls}");
    desk.until("document.querySelector('button[name=answer]') === null")
        .await;
    desk.picture("question-answered").await;
    desk.goto("/inbox").await;
    desk.shows("[data-part=answered]", "auth_required").await;
    desk.shows("[data-part=open]", "Inbox empty.").await;
    desk.close().await;
}

/// S3-27, S3-44: "resolve" continues, "skip" passes the failure through, "abort" ends the run; each as its button
/// states.
#[tokio::test(flavor = "multi_thread")]
async fn each_answer_does_what_its_button_states() {
    let place = asking();
    place.run(&EXEC, "").told(3, &[]);
    let desk = at_question(&place).await;
    place.write("login", "");
    desk.press("button[value=resolve]").await;
    settled(&place, "recovered");
    std::fs::remove_file(place.project().join("login")).unwrap();
    for (value, status) in [("skip", "failed"), ("abort", "failed")] {
        place.run(&EXEC, "").told(3, &[]);
        let id = asked(&place)["id"].as_str().unwrap().to_owned();
        desk.goto(&format!("/inbox/{id}")).await;
        let before = place.lines("calls").len();
        // Irreversible answers need a confirmation; canceling it does nothing.
        match value {
            "skip" => {
                desk.press("#open-confirm-skip").await;
                desk.press("#confirm-skip [data-close]").await;
                assert_eq!(asked(&place)["id"].as_str(), Some(&*id));
                desk.press("#open-confirm-skip").await;
                desk.press("#confirm-skip button[value=skip]").await;
            }
            _ => {
                desk.press("#open-confirm-abort").await;
                desk.press("#confirm-abort [data-close]").await;
                assert_eq!(asked(&place)["id"].as_str(), Some(&*id));
                desk.press("#open-confirm-abort").await;
                desk.press("#confirm-abort button[value=abort]").await;
            }
        }
        settled(&place, status);
        assert_eq!(place.lines("calls").len(), before, "nothing is tried again");
    }
    desk.close().await;
}

/// S4-11, S4-13: a struggling agent leads to an escalation for a stronger model with its cost; one click approves it.
#[tokio::test(flavor = "multi_thread")]
async fn model_switch_is_approved_by_an_answer() {
    let place = Place::new();
    by_user(
        &place,
        "[policy]\nmaxRetries = 1\nescalateAfterRetries = 1\nautoEscalate = true\nconfirmAbove = 0\nbackoffBase = 0.01\n",
    );
    place.tool(
        "claude",
        "#!/bin/sh\necho \"$@\" >> calls; case \"$*\" in *opus*) echo done; exit 0;; esac; echo 'API Error: 529 overloaded_error'; exit 1\n",
    );
    let exec = [
        "exec",
        "--",
        "claude",
        "--model",
        "claude-sonnet-5-5",
        "-p",
        "x",
    ];
    place.run(&exec, "").told(3, &[]);
    let desk = at_question(&place).await;
    desk.shows("[data-part=asked]", "claude-sonnet-5-5").await;
    desk.shows(
        "form .answers",
        "retry with claude-opus-5-5 (about $0.15 more)",
    )
    .await;
    desk.picture("question-cost").await;
    desk.press("button[value=escalate]").await;
    settled(&place, "recovered");
    // The prompt that continues the conversation has several lines.
    let calls = place.lines("calls").join("\n");
    assert!(calls.contains("claude-opus-5-5"), "{calls}");
    desk.close().await;
}

/// Sets up a project whose check needs a directory that a repair can create.
fn broken() -> Place {
    let place = Place::new();
    place.write(
        "report.py",
        "import os, sys\nif not os.path.isdir('out/reports'):\n    sys.exit(\"report: directory 'out/reports' does not exist\")\nopen('out/reports/summary.txt', 'w').write('ok')\n",
    );
    place.write(
        "unstuck.toml",
        "[recovery]\ncooldown_seconds = 0\n[policy]\ntemplate = \"standard\"\nbackoffBase = 0.001\n",
    );
    place.run(&["trust"], "").told(0, &[]);
    let exec = [
        "exec",
        "--repair",
        "auto",
        "--",
        "sh",
        "-c",
        "python3 report.py",
    ];
    place.run(&exec, "").told(3, &[]);
    place
}

/// S3-25, S3-42: a repair is previewed on a copy, which changes nothing, and runs once it is approved.
#[tokio::test(flavor = "multi_thread")]
async fn repair_is_previewed_and_approved() {
    let place = broken();
    let desk = at_question(&place).await;
    desk.shows("[data-part=asked]", "mkdir -p out/reports")
        .await;
    desk.press("#open-preview").await;
    desk.shows("#preview", "Succeeded on a copy").await;
    desk.shows("#preview", "out/").await;
    desk.picture("preview").await;
    assert!(!place.project().join("out").exists(), "only on a copy");
    desk.press("#preview [data-close]").await;
    desk.press("button[value=approve]").await;
    settled(&place, "recovered");
    assert_eq!(place.text("out/reports/summary.txt"), "ok");
    desk.close().await;
}

/// N5: a preview shows how long it has been running, and "Cancel" ends it.
#[tokio::test(flavor = "multi_thread")]
async fn preview_shows_its_progress_and_is_canceled() {
    const COMMAND: &str = "sleep 61804";
    let place = slow_repair(COMMAND);
    let desk = at_question(&place).await;
    desk.press("#open-preview").await;
    until("the preview runs", || is_running(COMMAND).then_some(()));
    desk.until(
        "/Running on a copy… [1-9]\\d* s/.test(document.querySelector('#preview').innerText)",
    )
    .await;
    desk.picture("preview-running").await;
    desk.press("#preview [data-close]").await;
    until("the preview has ended", || {
        (!is_running(COMMAND)).then_some(())
    });
    desk.until("!document.querySelector('#preview').open").await;
    desk.close().await;
}

/// S3-26, S3-42: a rejected repair does not run.
#[tokio::test(flavor = "multi_thread")]
async fn repair_is_rejected() {
    let place = broken();
    let desk = at_question(&place).await;
    desk.fill("#note", "not this way").await;
    desk.press("button[value=reject]").await;
    desk.shows("[data-part=asked]", "not this way").await;
    until("it is told", || {
        (!place.events("recovery_resolved").is_empty()).then_some(())
    });
    assert!(place.events("recovery_started").is_empty());
    assert!(!place.project().join("out").exists());
    desk.close().await;
}

/// S3-44: browser notifications are sent if allowed, once per escalation.
#[tokio::test(flavor = "multi_thread")]
async fn browser_notifies_of_an_escalation_if_allowed() {
    let place = asking();
    let desk = Desk::open(&place, &[]).await;
    let origin = desk.url("");
    let allowed = |setting: &str| json!({"permission": {"name": "notifications"}, "setting": setting, "origin": origin});
    desk.browser
        .cdp("Browser.setPermission", allowed("prompt"))
        .await;
    // The browser has no screen for notifications, so they are recorded.
    let source = "window.notified = []; const Real = Notification; window.Notification = class extends Real { constructor(title, said) { super(title, said); notified.push(title + ': ' + said.body); } }; \
        Notification.requestPermission = async () => Real.permission; document.hasFocus = () => false;";
    desk.browser
        .cdp(
            "Page.addScriptToEvaluateOnNewDocument",
            json!({"source": source}),
        )
        .await;
    desk.goto("/inbox").await;
    desk.picture("inbox-may-tell").await;
    desk.browser
        .cdp("Browser.setPermission", allowed("granted"))
        .await;
    desk.press("[data-allow-notifications]").await;
    desk.until("document.querySelector('[data-allow-notifications]').hidden")
        .await;
    place.run(&EXEC, "").told(3, &[]);
    desk.shows("[data-part=open]", "Not logged in").await;
    desk.until("notified.length === 1").await;
    desk.until("notified[0].startsWith('unstuck needs your input: Authentication required')")
        .await;
    desk.shows("#news", "A run needs your input").await;
    desk.close().await;
}
