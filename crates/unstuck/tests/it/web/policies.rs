//! Tests of policies set over the REST API.

use serde_json::json;

use super::{Client, token};
use crate::Place;
use crate::gateway::{Serving, api, by_user};

/// A command that fails temporarily and counts its executions.
const EXEC: [&str; 5] = [
    "exec",
    "--",
    "sh",
    "-c",
    "echo x >> tries; echo 'connect: connection refused' >&2; exit 1",
];

/// S4-16, S4-26: a stored policy applies to the next run and is shown with its source; concurrent changes are rejected.
#[test]
fn stored_policy_applies_to_the_next_run() {
    let place = Place::new();
    by_user(
        &place,
        "[policy]\nmaxRetries = 2\nbackoffBase = 0.01\nmaxBackoff = 0.02\n",
    );
    let client = Client::of(&place, "admin");
    let got = client.get("/api/retry-policy").is(200);
    assert_eq!(
        (&got.json()["maxRetries"], got.header("x-unstuck-origin")),
        (&2.into(), Some("configured"))
    );
    let etag = got.header("etag").unwrap().to_owned();
    let policy = json!({"template": "standard", "maxRetries": 1, "backoffBase": 0.01, "maxBackoff": 0.02, "jitter": "none"});
    client
        .ask("PUT", "/api/retry-policy", &policy.to_string(), &[])
        .is(428);
    let wrong = json!({"maxRetries": -1});
    let wrong = client
        .put("/api/retry-policy", &wrong, &etag)
        .is(422)
        .json();
    assert_eq!(wrong["errors"][0]["field"], "maxRetries", "{wrong}");
    let set = client.put("/api/retry-policy", &policy, &etag).is(200);
    assert_eq!(set.header("x-unstuck-origin"), Some("set"));
    client.put("/api/retry-policy", &policy, &etag).is(412);
    let shown = place.run(&["config", "show", "--origin"], "").stdout;
    let line = shown
        .lines()
        .find(|line| line.starts_with("maxRetries = 1"));
    assert!(
        line.is_some_and(|line| line.contains("set over REST by laptop")),
        "{shown}"
    );
    place.run(&EXEC, "");
    assert_eq!(place.lines("tries").len(), 2, "one retry");
    let off = ["exec", "--policy", "off", "--", "sh", "-c", EXEC[4]];
    place.run(&off, "");
    assert_eq!(place.lines("tries").len(), 3, "flags count more");
    let etag = set.header("etag").unwrap();
    client
        .ask("DELETE", "/api/retry-policy", "", &[("if-match", etag)])
        .is(200);
    place.run(&EXEC, "");
    assert_eq!(place.lines("tries").len(), 6, "the file counts again");
}

/// S4-26: a stored policy immediately applies to calls of the gateway, even in existing sessions.
#[test]
fn stored_policy_applies_to_the_next_call() {
    let place = Place::new();
    by_user(
        &place,
        "[policy]\njitter = \"none\"\nbackoffBase = 0.01\nmaxBackoff = 0.02\nmaxRetries = 2\n",
    );
    let api = api("[[step]]\nserver_error = {}\ntimes = \"always\"\n");
    let upstream = format!("anthropic={}", api.url());
    let client = Client {
        token: Some(token(&place, "admin")),
        serving: Serving::start(&place, &["--quiet", "--upstream", &upstream]),
    };
    let tries = || {
        let call = json!({"model": "claude-sonnet-5-5", "max_tokens": 9, "messages": [{"role": "user", "content": "x"}]});
        let before = api.requests().len();
        client.post("/s/one/anthropic/v1/messages", &call).is(500);
        api.requests().len() - before
    };
    assert_eq!(tries(), 3);
    let etag = client.get("/api/retry-policy").is(200);
    let once = json!({"maxRetries": 0});
    let set = client.put("/api/retry-policy", &once, etag.header("etag").unwrap());
    assert_eq!(tries(), 1);
    let etag = set.is(200);
    let etag = etag.header("etag").unwrap();
    client
        .ask("DELETE", "/api/retry-policy", "", &[("if-match", etag)])
        .is(200);
    assert_eq!(tries(), 3, "the file counts again");
}

/// A failed change leaves everything as it was and can be repeated once the file is fixed.
#[test]
fn policy_is_not_saved_while_the_configuration_is_broken() {
    let place = Place::new();
    let client = Client::of(&place, "admin");
    let before = client.get("/api/retry-policy").is(200);
    let etag = before.header("etag").unwrap();
    place.write("unstuck.toml", "[policy\n");
    let once = json!({"maxRetries": 0});
    let refused = client.put("/api/retry-policy", &once, etag).is(503).json();
    let told = refused["detail"].as_str().unwrap();
    assert!(told.contains("unstuck.toml"), "{told}");
    place.write("unstuck.toml", "");
    client.put("/api/retry-policy", &once, etag).is(200);
}

/// S4-27: a project's stored policy takes precedence over its file, and applies only there.
#[test]
fn project_has_its_own_policy() {
    let place = Place::new();
    place.write(
        "unstuck.toml",
        "[policy]\nmaxRetries = 2\nbackoffBase = 0.01\nmaxBackoff = 0.02\n",
    );
    place.run(&EXEC, "");
    assert_eq!(place.lines("tries").len(), 3);
    let client = Client::of(&place, "admin");
    let projects = client.get("/api/projects").is(200).json();
    let path = format!(
        "/api/projects/{}/retry-policy",
        projects["items"][0]["id"].as_str().unwrap()
    );
    let got = client.get(&path).is(200);
    assert_eq!(got.header("x-unstuck-origin"), Some("configured"));
    let policy = json!({"maxRetries": 0});
    client
        .put(&path, &policy, got.header("etag").unwrap())
        .is(200);
    place.run(&EXEC, "");
    assert_eq!(place.lines("tries").len(), 4, "no retry");
    let got = client.get("/api/retry-policy").is(200);
    assert_eq!(got.header("x-unstuck-origin"), Some("built_in"));
}
