//! What agents, clients and repositories write is text, wherever it is shown.

use std::fs;

use serde_json::json;

use super::Desk;
use crate::Place;
use crate::gateway::{api, by_user, until};

/// What would run, load or move something if it were taken for markup.
const HOSTILE: &str = "<img src=x onerror=wrong.push(1)><script>wrong.push(2)</script>'\"><b>";

/// A place in which every name and text that others choose is hostile.
fn hostile() -> Place {
    let place = Place::new();
    by_user(&place, "[policy]\nmaxRetries = 0\n");
    place.tool(
        "claude",
        "#!/bin/sh\ncat 1>&2 hostile; echo 'Not logged in · Please run /login'; cat hostile; exit 7\n",
    );
    let hostile = HOSTILE.replace('/', "\u{2215}");
    let project = place.folder.path().join(&hostile);
    fs::create_dir(&project).unwrap();
    for folder in [project.clone(), place.project()] {
        fs::write(
            folder.join("hostile"),
            format!("Invalid API key {HOSTILE}\n"),
        )
        .unwrap();
    }
    let exec = ["exec", "--", "claude", "--model", HOSTILE, "-p", HOSTILE];
    let mut command = place.command(&exec);
    assert_eq!(
        command.current_dir(project).output().unwrap().status.code(),
        Some(3)
    );
    let config = json!({
        "role": [{"id": "b", "model": HOSTILE, "agent": "command", "command": ["sh", "-c", "cat hostile >&2; exit 9", "{model}"], "prompt": HOSTILE}],
        "policy": {"enabled": false, "name": HOSTILE, "description": HOSTILE},
    });
    place.write("unstuck.json", &config.to_string());
    place.run(&["run", "--task", HOSTILE], "");
    place
}

/// S4-31: nothing of it runs, nothing of it is refused by the browser, and all of it can be read, on every page.
#[tokio::test(flavor = "multi_thread")]
async fn what_strangers_write_is_only_text() {
    let place = hostile();
    let api = api("[[step]]\nserver_error = {}\ntimes = \"always\"\n");
    let upstream = format!("anthropic={}", api.url());
    let Some(desk) = Desk::open(&place, &["--upstream", &upstream]).await else {
        return;
    };
    let body = json!({"model": HOSTILE, "max_tokens": 9, "messages": [{"role": "user", "content": HOSTILE}]});
    let status = desk.posted("/s/client/anthropic/v1/messages", body).await;
    assert_eq!(status, 500);
    let runs = until("the call is written down", || {
        let runs = place.json(&["runs", "--json"], "");
        (runs.as_array()?.len() == 3).then_some(runs)
    });
    let mut pages = [
        "/",
        "/inbox",
        "/runs",
        "/failures",
        "/policies",
        "/settings",
    ]
    .map(str::to_owned)
    .to_vec();
    for run in runs.as_array().unwrap() {
        let id = run["id"].as_str().unwrap();
        pages.extend([format!("/runs/{id}"), format!("/sessions/{id}-1")]);
    }
    let inbox = place.json(&["inbox", "--json"], "");
    pages.push(format!("/inbox/{}", inbox[0]["id"].as_str().unwrap()));
    let project =
        "encodeURIComponent([...document.querySelectorAll('#project option')].at(-1).value)";
    desk.goto("/failures").await;
    let project = desk.says(project).await;
    pages.push(format!("/policies?project={}", project.as_str().unwrap()));
    pages.push(format!(
        "/failures?model={}",
        "%3Cimg%20src%3Dx%20onerror%3Dwrong.push(1)%3E"
    ));
    let mut seen = 0;
    for path in pages {
        desk.goto(&path).await;
        desk.says("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
            .await;
        desk.until("window.wrong.length === 0").await;
        let foreign =
            "document.querySelectorAll('main img, main script, main b, iframe, [onerror]').length";
        assert_eq!(desk.says(foreign).await, 0, "{path}");
        let shown = desk
            .says("document.body.innerText.includes('<img src=x onerror')")
            .await;
        seen += i32::from(shown == true);
        if path == "/" || path == "/failures" {
            desk.picture(&format!("strangers{}", path.replace('/', "-")))
                .await;
        }
    }
    assert!(seen >= 8, "it is shown on {seen} pages only");
    desk.goto(&format!(
        "/sessions/{}-1",
        inbox[0]["run"].as_str().unwrap()
    ))
    .await;
    desk.press("#open-retry").await;
    desk.until("document.getElementById('retry-prompt')?.value.includes('<script>')")
        .await;
    desk.press("#retry [data-close]").await;
    desk.press("#open-escalate").await;
    desk.until("!document.querySelector('#escalate').innerText.includes('Loading')")
        .await;
    desk.picture("strangers-session").await;
    desk.close().await;
}
