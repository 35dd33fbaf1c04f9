//! Tests of model switches over the REST API.

use serde_json::{Value, json};

use super::Client;
use crate::Place;

/// S4-11, S4-12, S4-29: the first request returns the cost, the confirmed one switches the model, and the session shows
/// the switch.
#[test]
fn model_switch_is_estimated_first_and_done_when_confirmed() {
    let place = Place::new();
    place.tool(
        "claude",
        "#!/bin/sh\necho \"$@\" >> calls; case \"$*\" in *opus*) echo done; exit 0;; esac; echo 'Not logged in · Please run /login'; exit 7\n",
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
    let client = Client::of(&place, "answer");
    let session = format!("/api/sessions/{}-1", client.run()["id"].as_str().unwrap());
    let told = client
        .post(&format!("{session}/escalate"), &json!({}))
        .is(200)
        .json();
    let estimate = &told["estimate"];
    assert_eq!(estimate["fromModel"], "claude-sonnet-5-5");
    assert_eq!(estimate["toModel"], "claude-opus-5-5");
    assert!(estimate["formula"].as_str().unwrap().contains("USD"));
    assert!(estimate["preserved"].as_str().unwrap().contains("history"));
    assert_eq!(
        (&told["change"], place.lines("calls").len()),
        (&Value::Null, 1)
    );
    let done = client.post(&format!("{session}/escalate"), &json!({"confirm": true}));
    assert_eq!(done.is(200).json()["change"]["toModel"], "claude-opus-5-5");
    client.run_that("recovered");
    // The prompt that continues the conversation has several lines.
    let calls = place.lines("calls").join("\n");
    assert!(calls.contains("claude-opus-5-5"), "{calls}");
    let told = client.get(&session).is(200).json();
    assert_eq!(told["model"], "claude-opus-5-5");
    assert_eq!(told["modelChanges"][0]["reason"], "manual");
}
