//! Tests of read access and live updates.

use std::io::Read;
use std::process::Stdio;

use super::{Client, asking};
use crate::Place;
use crate::gateway::{Serving, until};

const EXEC: [&str; 5] = ["exec", "--", "claude", "-p", "x"];

/// S4-04, S4-31: one address serves pages, API and gateway, and shows the runs of `exec`.
#[test]
fn runs_are_shown_at_the_address_of_the_gateway() {
    let place = asking();
    place.run(&EXEC, "").told(3, &[]);
    let mut client = Client::of(&place, "read");
    client.token = None;
    let run = client.run();
    assert_eq!(run["status"], "awaiting_human");
    let id = run["id"].as_str().unwrap();
    let attempts = client.get(&format!("/api/runs/{id}/attempts")).is(200);
    assert_eq!(
        attempts.json()["items"][0]["diagnosis"]["kind"],
        "auth_required"
    );
    let texts = client.get(&format!("/api/runs/{id}/attempts/1/texts"));
    let texts = texts.is(200).json();
    assert_eq!(texts["prompt"], "x");
    assert!(texts["stdout"].as_str().unwrap().contains("Not logged in"));
    let session = client.get(&format!("/api/sessions/{id}-1")).is(200).json();
    assert_eq!(
        (&session["attemptCount"], &session["isHiccup"]),
        (&1.into(), &true.into())
    );
    client.get("/api/health").is(200);
    client.get("/health").is(200);
    client.get("/openai/v2/x").is(404);
    client.get("/api/openapi.json").is(200);
    let root = client.get("/");
    let policy = root.header("content-security-policy");
    assert!(policy.is_some(), "the dashboard is at the root");
    for path in [
        "agents",
        "models",
        "budgets",
        "webhooks",
        "upstreams",
        "policy-templates",
        "projects",
    ] {
        client.get(&format!("/api/{path}")).is(200);
    }
}

/// S3-44: the link logs in a browser once and is not printed with --quiet.
#[test]
fn printed_link_logs_in_once() {
    let place = Place::new();
    let (_, told, _) = Serving::start(&place, &[]).stop();
    assert!(told.contains("dashboard  http://127.0.0.1:"), "{told}");
    let client = Client::of(&place, "read");
    let listen = format!("127.0.0.1:{}", client.serving.port);
    let link = place
        .run(&["token", "link", "--listen", &listen], "")
        .stdout;
    let (address, code) = link.trim().split_once('#').unwrap();
    assert_eq!(address, format!("http://{listen}/login"));
    let login = serde_json::json!({ "code": code });
    let client = Client {
        token: None,
        ..client
    };
    let opened = client.post("/api/login", &login).is(200);
    assert!(opened.header("set-cookie").unwrap().contains("HttpOnly"));
    client.post("/api/login", &login).is(401);
    let (_, quiet, _) = Serving::start(&place, &["--quiet"]).stop();
    assert_eq!(quiet, "");
    let mut inside = place.command(&["serve", "--listen", "127.0.0.1:0"]);
    inside
        .env("UNSTUCK_RUN", "k3v9x0m2qa")
        .stdout(Stdio::piped());
    let mut child = inside.spawn().unwrap();
    let mut told = [0; 400];
    let read = child.stdout.as_mut().unwrap().read(&mut told).unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    let told = String::from_utf8_lossy(&told[..read]);
    assert!(
        told.contains("gateway") && !told.contains("login#"),
        "{told}"
    );
}

/// S4-31: events are streamed live, and the stream ends with the server.
#[test]
fn events_are_streamed_live_until_the_server_stops() {
    let place = asking();
    let client = Client::of(&place, "read");
    let mut events = client.events();
    place.run(&EXEC, "").told(3, &[]);
    let names = [
        "run_started",
        "attempt_failed",
        "decision_made",
        "recovery_escalated",
    ];
    for name in names {
        let found = events.find(|line| line.starts_with("data:") && line.contains(name));
        assert!(found.is_some(), "{name}");
    }
    let (code, ..) = client.serving.stop();
    assert_eq!(code, Some(0));
    assert_eq!(events.last().map(|line| line.is_empty()), Some(true));
}

/// A stopped run really stops and can be resumed.
#[test]
fn run_is_stopped_remotely_and_resumed() {
    let place = Place::new();
    place.tool(
        "claude",
        "#!/bin/sh\n[ -f enough ] && echo done && exit 0; touch began; while :; do sleep 0.1; done\n",
    );
    let mut child = place.command(&["exec", "--", "claude", "-p", "x"]);
    let mut child = child
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    until("it runs", || {
        place.project().join("began").exists().then_some(())
    });
    let client = Client::of(&place, "answer");
    let run = client.run_that("running");
    let stop = format!("/api/runs/{}/stop", run["id"].as_str().unwrap());
    client.ask("POST", &stop, "", &[]).is(202);
    assert_eq!(child.wait().unwrap().code(), Some(130));
    client.run_that("interrupted");
    client.ask("POST", &stop, "", &[]).is(409);
    place.write("enough", "");
    assert_eq!(place.run(&["resume"], "").code, 0);
}
