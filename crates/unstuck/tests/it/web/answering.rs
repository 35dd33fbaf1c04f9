//! Tests of escalations answered over the REST API.

use std::process::Stdio;

use serde_json::{Value, json};

use super::{Client, asking};
use crate::Place;
use crate::gateway::until;

const EXEC: [&str; 5] = ["exec", "--", "claude", "-p", "x"];

/// S3-44: an escalation is answered with a token, and its run resumes although no process was waiting.
#[test]
fn answer_resumes_a_run_without_a_process() {
    let place = asking();
    place.run(&EXEC, "").told(3, &[]);
    place.write("login", "");
    let client = Client::of(&place, "answer");
    let asked = client.get("/api/escalations").is(200).json();
    let (asked, id) = (
        &asked["items"][0],
        asked["items"][0]["id"].as_str().unwrap(),
    );
    assert!(
        asked["evidence"]
            .as_str()
            .unwrap()
            .contains("Not logged in")
    );
    let path = format!("/api/escalations/{id}/answer");
    let stale = json!({"answer": "resolve", "hash": "another"});
    client.post(&path, &stale).is(412);
    client.post(&path, &json!({"answer": "approve"})).is(422);
    let answer =
        json!({"answer": "retry", "note": "use the staging account", "hash": asked["hash"]});
    let taken = client.post(&path, &answer).is(200).json();
    assert_eq!(
        taken["escalation"]["outcome"]["resolution"]["user"],
        "laptop"
    );
    assert!(
        taken["nextAction"]
            .as_str()
            .unwrap()
            .contains("continues in process"),
        "{taken}"
    );
    let run = client.run_that("recovered");
    assert!(
        place
            .lines("calls")
            .join("\n")
            .contains("use the staging account")
    );
    // The process prints it once it is recorded.
    until("it is told", || {
        let told = std::fs::read_to_string(place.run_folder().join("resumed.log"));
        told.unwrap().contains("recovered").then_some(())
    });
    client.post(&path, &answer).is(409);
    let attempts = format!("/api/runs/{}/attempts", run["id"].as_str().unwrap());
    let attempts = client.get(&attempts).json();
    assert_eq!(attempts["items"].as_array().map(Vec::len), Some(2));
}

/// The REST API shows the conditions under which a repair would run, as the inbox does, and the answer is bound to
/// them.
#[test]
fn repair_escalation_states_its_conditions() {
    let place = Place::new();
    place.write(
        "unstuck.toml",
        "[policy]\njitter = \"none\"\nbackoffBase = 0.01\n",
    );
    let command = "git submodule update --init";
    let proposal = json!({
        "version": 1,
        "timestamp": "2026-11-16T05:36:33Z",
        "category": "dependency",
        "severity": "blocking",
        "diagnosis": { "error_pattern": "boom", "root_cause": "it is not there", "evidence": ["boom"] },
        "recovery": { "command": command, "expected_outcome": "it works", "confidence": "high" },
    });
    place.write("recovery.json", &proposal.to_string());
    let agent = "cp recovery.json \"$UNSTUCK_RECOVERY_FILE\"; echo 'zork: boom' >&2; exit 9";
    let exec = ["exec", "--repair", "auto", "--", "sh", "-c", agent];
    let mut asking = place.command(&exec);
    asking.env("DEPLOY_TOKEN", "correct-horse-battery-9");
    assert_eq!(asking.output().unwrap().status.code(), Some(3));
    let recorded = &place.events("recovery_escalated")[0];
    let client = Client::of(&place, "answer");
    let asked = client.get("/api/escalations").is(200).json()["items"][0].clone();
    assert_eq!(asked["command"], command);
    let conditions = &asked["conditions"];
    for key in ["sandbox", "missing", "network", "variables", "effects"] {
        let known = match &recorded["conditions"][key] {
            Value::Null => &json!([]),
            known => known,
        };
        assert_eq!(&conditions[key], known, "{key}: {asked}");
    }
    assert_eq!(conditions["sandbox"], "full", "{asked}");
    assert_eq!(conditions["network"], true);
    let variables = conditions["variables"].as_array().unwrap();
    assert!(variables.contains(&"PATH".into()), "{asked}");
    assert!(!variables.contains(&"DEPLOY_TOKEN".into()), "{asked}");
    assert!(conditions["effects"].to_string().contains("submodules"));
    assert!(!asked.to_string().contains("correct-horse"), "{asked}");
    // The single escalation shows the same, and one without a repair has no conditions.
    let id = asked["id"].as_str().unwrap();
    let one = client.get(&format!("/api/escalations/{id}")).is(200).json();
    assert_eq!(one["conditions"], *conditions);
    let stale = json!({"answer": "approve", "hash": "of other conditions"});
    client
        .post(&format!("/api/escalations/{id}/answer"), &stale)
        .is(412);
}

/// A run that waits in another process receives the answer.
#[test]
fn waiting_process_receives_the_answer() {
    let place = asking();
    let mut waiting = place.command(&["exec", "--wait", "--", "claude", "-p", "x"]);
    let mut child = waiting
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let client = Client::of(&place, "answer");
    crate::gateway::until("it asks", || {
        let asked = client.get("/api/escalations").json();
        asked["items"][0]["id"].as_str().map(str::to_owned)
    });
    place.write("login", "");
    let asked = client.get("/api/escalations").json();
    let id = asked["items"][0]["id"].as_str().unwrap();
    let taken = client.post(
        &format!("/api/escalations/{id}/answer"),
        &json!({"answer": "resolve"}),
    );
    assert!(
        taken.is(200).json()["nextAction"]
            .as_str()
            .unwrap()
            .contains("the waiting process continues")
    );
    assert!(child.wait().unwrap().success());
}

/// Agents run on this machine, too: nothing changes without a token that allows it.
#[test]
fn answering_requires_a_token() {
    let place = asking();
    place.run(&EXEC, "").told(3, &[]);
    let mut client = Client::of(&place, "read");
    let asked = client.get("/api/escalations").json();
    let path = format!(
        "/api/escalations/{}/answer",
        asked["items"][0]["id"].as_str().unwrap()
    );
    let answer = json!({"answer": "abort"});
    client.post(&path, &answer).is(403);
    client.token = None;
    let refused = client.post(&path, &answer).is(401);
    assert!(
        refused
            .header("content-type")
            .unwrap()
            .contains("problem+json")
    );
    client.token = Some("unstuck_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA".to_owned());
    client.post(&path, &answer).is(401);
    client.token = None;
    assert_eq!(client.run()["status"], "awaiting_human");
}

/// Answers over REST ignore the webhooks and the permitted users that an agent writes while its run waits.
#[test]
fn answer_and_retry_ignore_settings_written_during_the_run() {
    for retry in [false, true] {
        let place = asking();
        place.run(&EXEC, "").told(3, &[]);
        let client = Client::of(&place, "answer");
        let asked = client.get("/api/escalations").is(200).json()["items"][0].clone();
        place.write("unstuck.toml", crate::answers::WRITTEN);
        place.write("login", "");
        if retry {
            let run = place.json(&["runs", "--json"], "")[0]["id"].clone();
            let path = format!("/api/sessions/{}-1/retry", run.as_str().unwrap());
            client.post(&path, &json!({})).is(202);
        } else {
            let path = format!("/api/escalations/{}/answer", asked["id"].as_str().unwrap());
            let answer = json!({"answer": "resolve", "hash": asked["hash"]});
            client.post(&path, &answer).is(200);
        }
        client.run_that("recovered");
        let listed = place.run(&["webhook", "list", "--all"], "");
        assert!(!listed.stdout.contains("evil.example"), "{}", listed.stdout);
    }
}
