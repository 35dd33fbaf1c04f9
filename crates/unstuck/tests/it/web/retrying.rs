//! Tests of sessions that are retried over the REST API and manually.

use serde_json::json;

use super::Client;
use crate::output_snapshot::assert_output;
use crate::{Place, eventually};

/// An agent that fails with a message until a file exists.
const CLAUDE: &str = "#!/bin/sh\necho \"$@\" >> calls; [ -f fixed ] && echo done && exit 0\n\
    echo 'halfway through'; echo 'error: the database is locked by migration 7' >&2; exit 9\n";

/// Sets up a run that failed and ended without automatic retries.
fn failed() -> Place {
    let place = Place::new();
    place.tool("claude", CLAUDE);
    let exec = [
        "exec",
        "--policy",
        "off",
        "--",
        "claude",
        "-p",
        "fix the tests",
    ];
    place.run(&exec, "").told(9, &[]);
    place
}

/// S4-06, S4-07, S4-08, S4-10, S4-28: a retry with the error, in the same run, keeps the history.
#[test]
fn failed_session_is_retried_with_its_error_and_instructions() {
    let place = failed();
    let client = Client::of(&place, "answer");
    let session = format!("/api/sessions/{}-1", client.run()["id"].as_str().unwrap());
    let options =
        json!({"withContext": true, "message": "wait for the migration", "timeout": "20m"});
    let told = client
        .post(&format!("{session}/retry-prompt"), &options)
        .is(200)
        .json();
    assert_eq!(
        (&told["original"], &told["timeoutMs"]),
        (&"fix the tests".into(), &1_200_000.into())
    );
    let prompt = told["prompt"].as_str().unwrap();
    for part in [
        "locked by migration 7",
        "halfway through",
        "do not repeat",
        "wait for the migration",
        "fix the tests",
    ] {
        assert!(prompt.contains(part), "{part} in {prompt}");
    }
    place.write("fixed", "");
    let started = client
        .post(&format!("{session}/retry"), &options)
        .is(202)
        .json();
    assert_eq!(started["run"], client.run()["id"]);
    client.run_that("recovered");
    let calls = place.lines("calls").join("\n");
    for part in ["locked by migration 7", "wait for the migration"] {
        assert!(calls.contains(part), "{part} in {calls}");
    }
    let told = client.get(&session).is(200).json();
    assert_eq!(
        (&told["attemptCount"], &told["errorCount"]),
        (&2.into(), &1.into())
    );
    client.post(&format!("{session}/retry"), &json!({})).is(409);
}

/// S4-06: a human may replace the whole prompt.
#[test]
fn edited_prompt_is_sent_unchanged() {
    let place = failed();
    let client = Client::of(&place, "answer");
    let session = format!("/api/sessions/{}-1", client.run()["id"].as_str().unwrap());
    place.write("fixed", "");
    let options = json!({"prompt": "only fix the first test"});
    client.post(&format!("{session}/retry"), &options).is(202);
    client.run_that("recovered");
    let calls = place.lines("calls");
    assert!(
        calls[1].ends_with("-p only fix the first test"),
        "{calls:?}"
    );
    client
        .post(&format!("{session}/retry"), &json!({"timeout": "soon"}))
        .is(422);
}

/// S4-06: the same with one command.
#[test]
fn failed_run_is_retried_manually() {
    let place = failed();
    let run = place.json(&["runs", "--json"], "")[0]["id"].clone();
    let run = run.as_str().unwrap();
    let shown = place.run(&["retry", run, "--context", "--show"], "");
    assert!(
        shown.stdout.contains("locked by migration 7"),
        "{}",
        shown.stdout
    );
    assert_eq!(place.lines("calls").len(), 1, "nothing was done");
    place.write("fixed", "");
    let again = ["retry", &run[..5], "--say", "wait for the migration"];
    assert_output!(place, place.run(&again, "").told(0, &[]).stderr);
    assert!(
        place
            .lines("calls")
            .join("\n")
            .contains("wait for the migration")
    );
    assert_output!(place, place.run(&again, "").told(1, &[]).stderr);
    let mut inside = place.command(&["retry", run, "--context"]);
    let inside = inside.env("UNSTUCK_RUN", "x").output().unwrap();
    assert_eq!(inside.status.code(), Some(1));
}

/// A plain command has no prompt to extend but can be run again.
#[test]
fn plain_command_is_retried_unchanged() {
    let place = Place::new();
    let exec = [
        "exec",
        "--policy",
        "off",
        "--",
        "sh",
        "-c",
        "[ -f fixed ] || exit 9",
    ];
    place.run(&exec, "").told(9, &[]);
    let client = Client::of(&place, "answer");
    let session = format!("/api/sessions/{}-1", client.run()["id"].as_str().unwrap());
    client
        .post(&format!("{session}/retry"), &json!({"message": "be nice"}))
        .is(409);
    place.write("fixed", "");
    client
        .post(&format!("{session}/retry"), &json!({"timeout": "5m"}))
        .is(202);
    client.run_that("recovered");
}

/// S4-28: a failed role of a pipeline is retried with instructions, and succeeded roles are not re-run.
#[test]
fn role_is_retried_with_instructions() {
    let place = Place::new();
    let role = |id: &str, needs: &str, line: &str| {
        format!(
            "[[role]]\nid = \"{id}\"\nneeds = [{needs}]\ncommand = [\"sh\", \"-c\", '''{line}''']\nprompt = \"Do it.\"\n"
        )
    };
    let fine = "cat >/dev/null; echo a >> calls; echo ok";
    let fails = "cat >> told; echo b >> calls; [ -f fixed ] && echo ok && exit 0; echo 'error: no such table' >&2; exit 9";
    let roles = [role("a", "", fine), role("b", "\"a\"", fails)].concat();
    place.write(
        "unstuck.toml",
        &format!("[policy]\nenabled = false\n{roles}"),
    );
    place.run(&["run", "--no-gateway"], "");
    let client = Client::of(&place, "answer");
    let run = client.run();
    let told = client.get(&format!("/api/runs/{}", run["id"].as_str().unwrap()));
    let told = told.is(200).json();
    let sessions = told["sessions"].as_array().unwrap();
    let failed = sessions.iter().find(|one| one["role"] == "b").unwrap();
    let session = format!("/api/sessions/{}", failed["id"].as_str().unwrap());
    place.write("fixed", "");
    let options = json!({"withContext": true, "message": "create the table first"});
    let prompt = client.post(&format!("{session}/retry-prompt"), &options);
    let prompt = prompt.is(200).json();
    assert!(prompt["original"].as_str().unwrap().starts_with("Do it."));
    client.post(&format!("{session}/retry"), &options).is(202);
    client.run_that("recovered");
    assert_eq!(place.lines("calls"), ["a", "b", "b"]);
    let told = place.text("told");
    for part in ["create the table first", "no such table"] {
        assert!(told.contains(part), "{part} in {told}");
    }
}

/// Of concurrent requests for a retry one is accepted and the others are rejected.
#[test]
fn one_of_three_concurrent_retries_is_accepted() {
    let place = failed();
    place.tool(
        "claude",
        "#!/bin/sh\necho \"$@\" >> calls; while [ ! -f fixed ]; do sleep 0.05; done; echo done\n",
    );
    let client = Client::of(&place, "answer");
    let session = format!("/api/sessions/{}-1", client.run()["id"].as_str().unwrap());
    let path = format!("{session}/retry");
    let retry = || client.post(&path, &json!({})).status;
    let mut statuses = std::thread::scope(|scope| {
        let all: Vec<_> = (0..3).map(|_| scope.spawn(retry)).collect();
        let all = all.into_iter().map(|one| one.join().unwrap());
        all.collect::<Vec<_>>()
    });
    statuses.sort_unstable();
    assert_eq!(statuses, [202, 409, 409]);
    place.write("fixed", "");
    client.run_that("recovered");
    assert_eq!(place.lines("calls").len(), 2, "one attempt was made");
}

/// H4 over REST: a retry uses the configuration that the run began with, and shows later changes.
#[test]
fn retry_compares_the_project_configuration_before_using_it() {
    let place = Place::new();
    let script = "cat >/dev/null; echo ran >> ran; [ -f login ] || { echo 'Not logged in · Please run /login'; exit 1; }; while [ ! -e go ]; do sleep 0.01; done; echo ok";
    let config = |check: &str| {
        format!(
            "[[role]]\nid = \"worker\"\ncommand = [\"sh\", \"-c\", '''{script}''']\nexpect.check = \"{check}\"\n"
        )
    };
    place.write("unstuck.toml", &config("test -e ran"));
    place.run(&["run"], "").told(3, &[]);
    place.write("login", "");
    place.write("unstuck.toml", &config("touch pwned"));
    let client = Client::of(&place, "answer");
    let session = format!("/api/sessions/{}-1", client.run()["id"].as_str().unwrap());
    client.post(&format!("{session}/retry"), &json!({})).is(202);
    let mut open = json!([]);
    eventually(|| {
        open = client.get("/api/escalations").is(200).json();
        open.to_string().contains("role.worker.expect.check")
    });
    let asked = open["items"].as_array().unwrap();
    assert_eq!(
        asked[0]["settings"][0],
        json!({"key": "role.worker.expect.check", "before": "\"test -e ran\"", "after": "\"touch pwned\""})
    );
    let page = client.get(&format!("/inbox/{}", asked[0]["id"].as_str().unwrap()));
    assert!(page.is(200).body.contains("touch pwned"));
    place.write("go", "");
    client.run_that("recovered");
    assert_eq!(place.lines("ran").len(), 2);
    assert!(!place.project().join("pwned").exists());
}
