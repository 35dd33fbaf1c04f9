//! Tests of API tokens: created by humans, stored as hashes, revoked.

use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::PermissionsExt;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use super::{Client, token};
use crate::gateway::{Serving, until};
use crate::output_snapshot::assert_output;
use crate::{Place, anywhere};

/// A token is printed once, stored outside of projects for its owner alone, and valid until revoked.
#[test]
fn token_is_printed_once_and_valid_until_revoked() {
    let place = Place::new();
    let client = Client::of(&place, "admin");
    let secret = client.token.clone().unwrap();
    assert!(!anywhere(place.folder.path(), &secret), "it is on disk");
    let file = place
        .folder
        .path()
        .join(".local/state/unstuck/tokens.jsonl");
    let mode = std::fs::metadata(file).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let me = client.get("/api/me").is(200).json();
    assert_eq!(
        (&me["scope"], &me["name"]),
        (&"admin".into(), &"laptop".into())
    );
    let listed = place.json(&["token", "list", "--json"], "");
    assert_eq!(
        (&listed[0]["scope"], &listed[0]["name"]),
        (&"admin".into(), &"laptop".into())
    );
    let id = listed[0]["id"].as_str().unwrap();
    assert_eq!(place.run(&["token", "revoke", id], "").code, 0);
    client.get("/api/me").is(401);
    place
        .run(&["token", "revoke", id], "")
        .told(1, &["not found"]);
}

/// A process inside a supervised agent cannot create tokens.
#[test]
fn agent_cannot_create_a_token() {
    let place = Place::new();
    let mut inside = place.command(&["token", "create"]);
    let inside = inside
        .env("UNSTUCK_SESSION", "k3v9x0m2qa-1")
        .output()
        .unwrap();
    assert_eq!((inside.status.code(), inside.stdout.len()), (Some(1), 0));
    let said = String::from_utf8_lossy(&inside.stderr);
    assert_output!(place, said);
    let unstuck = env!("CARGO_BIN_EXE_unstuck");
    let line = format!("env -u UNSTUCK_RUN -u UNSTUCK_SESSION {unstuck} token create > stolen");
    place.run(&["exec", "--policy", "off", "--", "sh", "-c", &line], "");
    assert_eq!(place.lines("stolen").len(), 0);
    assert!(token(&place, "read").starts_with("unstuck_"));
}

/// N14: a login link requires a running server of this store; `unstuck token` without a subcommand creates no token.
#[test]
fn login_link_requires_a_running_server_of_this_store() {
    let place = Place::new();
    let none = place.run(&["token", "link"], "");
    none.told(1, &[]);
    assert_output!(place, none.stderr);
    assert_eq!(none.stdout, "");
    assert_output!(place, place.run(&["token"], "").told(0, &[]).stderr);
    assert_eq!(
        place
            .json(&["token", "list", "--json"], "")
            .as_array()
            .map(Vec::len),
        Some(0)
    );
    let client = Client::of(&place, "read");
    let port = &client.serving.port;
    let link = place.run(&["token", "link"], "");
    assert!(
        link.stdout
            .starts_with(&format!("http://127.0.0.1:{port}/login#"))
    );
    let other = ["--store", "other.db", "token", "link"];
    assert_output!(place, place.run(&other, "").told(1, &[]).stderr);
    let closed = ["token", "link", "--listen", "127.0.0.1:9"];
    assert_output!(place, place.run(&closed, "").told(1, &[]).stderr);
    let code = link.stdout.trim().split_once('#').unwrap().1.to_owned();
    let opened = client.post("/api/login", &serde_json::json!({ "code": code }));
    assert_eq!(opened.is(200).json()["scope"], "answer");
}

/// W2: the terminal of the server reports invalid tokens, ever less often; valid ones keep working.
#[test]
fn invalid_tokens_are_reported_in_the_terminal_and_valid_ones_work() {
    let place = Place::new();
    let right = token(&place, "answer");
    let mut client = Client {
        serving: Serving::start(&place, &[]),
        token: Some("unstuck_revoked".to_owned()),
    };
    for _ in 0..120 {
        let status = client.get("/api/runs").status;
        assert!([401, 429].contains(&status), "{status}");
    }
    client.token = Some(right);
    client.get("/api/runs").is(200);
    let (_, _, said) = client.serving.stop();
    let lines: Vec<_> = said
        .lines()
        .filter(|line| line.contains("invalid token from 127.0.0.1"))
        .collect();
    assert_eq!(lines.len(), 3, "{said}");
    for (line, count) in lines
        .iter()
        .zip(["a request", "10 requests", "100 requests"])
    {
        assert!(line.contains(&format!("rejected {count} with")), "{line}");
    }
}

/// M8: with a burst of 25 and a constant stream of invalid tokens, tokens, logins and the dashboard of the owner still
/// work.
#[test]
fn constant_invalid_tokens_lock_nobody_out() {
    let place = Place::new();
    let right = token(&place, "admin");
    let mut client = Client {
        serving: Serving::start(&place, &[]),
        token: Some("unstuck_guessed".to_owned()),
    };
    let link = client.serving.link();
    for _ in 0..25 {
        client.get("/api/runs");
    }
    assert_eq!(client.get("/api/runs").status, 429, "wrong ones wait");
    client.token = Some(right);
    let is_over = AtomicBool::new(false);
    let wrong = AtomicU32::new(0);
    std::thread::scope(|scope| {
        let (client, is_over, wrong) = (&client, &is_over, &wrong);
        scope.spawn(move || {
            let guessed = [("authorization", "Bearer unstuck_guessed")];
            while !is_over.load(Ordering::Relaxed) {
                let mut stream = client.send_as(None, "GET", "/api/runs", "", &guessed);
                let mut answer = String::new();
                stream.read_to_string(&mut answer).unwrap();
                assert!(answer.starts_with("HTTP/1.1 4"), "{answer}");
                wrong.fetch_add(1, Ordering::Relaxed);
            }
        });
        until("wrong tokens come", || {
            (wrong.load(Ordering::Relaxed) > 0).then_some(())
        });
        let served = || {
            for _ in 0..30 {
                client.get("/api/runs").is(200);
                client.get("/").is(200);
            }
            let code = link.split_once('#').unwrap().1;
            let opened = client.post("/api/login", &serde_json::json!({ "code": code }));
            let cookie = opened.is(200).header("set-cookie").unwrap().to_owned();
            let cookie = cookie.split(';').next().unwrap().to_owned();
            let page = client.send_as(None, "GET", "/inbox", "", &[("cookie", &cookie)]);
            let first = BufReader::new(page).lines().next().unwrap().unwrap();
            assert_eq!(first, "HTTP/1.1 200 OK");
        };
        let served = std::panic::catch_unwind(std::panic::AssertUnwindSafe(served));
        is_over.store(true, Ordering::Relaxed);
        served.unwrap();
    });
}
