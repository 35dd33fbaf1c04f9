//! Held sessions of `unstuck serve`, and humans who release them.

use std::io::{Read, Write};
use std::net::TcpStream;

use serde_json::{Value, json};
use unstuck_faults::FaultServer;

use super::{Serving, api, by_user, until};
use crate::Place;
use crate::webhook::Server;

const ANSWERS: &str = "[[step]]\nanswer = { text = \"Go on.\", input_tokens = 1000, output_tokens = 100 }\ntimes = \"always\"\n";
const HOLDS: &str = "[gateway]\non_loop = \"hold\"\n[gateway.loop_detection]\nrepeats = 3\n[gateway.timeouts]\nclient_wait = \"300ms\"\n";

fn serving(place: &Place, api: &FaultServer) -> Serving {
    let upstream = format!("anthropic={}", api.url());
    Serving::start(place, &["--upstream", &upstream])
}

/// Sends a request as one client, and returns the status and the body.
fn post(serving: &Serving, messages: &[Value]) -> (u16, String) {
    let body = json!({"model": "claude-sonnet-5-5", "max_tokens": 9, "tools": [{"name": "Bash"}], "messages": messages});
    let body = body.to_string();
    let mut stream = TcpStream::connect(format!("127.0.0.1:{}", serving.port)).unwrap();
    write!(
        stream,
        "POST /s/looper/anthropic/v1/messages HTTP/1.1\r\nhost: 127.0.0.1\r\nx-api-key: k\r\nconnection: close\r\n\
         content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    )
    .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let status = answer[9..12].parse().unwrap();
    (status, answer)
}

/// Adds one more turn with the same tool call and result.
fn turn(messages: &mut Vec<Value>) {
    let id = format!("toolu_{}", messages.len());
    messages.push(json!({"role": "assistant", "content": [{"type": "tool_use", "id": id, "name": "Bash", "input": {"command": "ls"}}]}));
    messages.push(json!({"role": "user", "content": [{"type": "tool_result", "tool_use_id": id, "content": "a.txt"}]}));
}

/// Repeats until the session is refused.
fn circle(serving: &Serving) -> (Vec<Value>, String) {
    let mut messages = vec![json!({"role": "user", "content": "fix the tests"})];
    for _ in 0..10 {
        turn(&mut messages);
        let (status, answer) = post(serving, &messages);
        if status != 200 {
            return (messages, answer);
        }
    }
    panic!("it was never held");
}

/// Returns the only open escalation.
fn question(place: &Place) -> Value {
    until("a question waits", || {
        let inbox = place.json(&["inbox", "--json"], "");
        (inbox.as_array()?.len() == 1).then(|| inbox[0].clone())
    })
}

/// The loop is in the inbox, and one answer releases it.
#[test]
fn looping_session_waits_in_the_inbox_until_released() {
    let (place, api) = (Place::new(), api(ANSWERS));
    by_user(&place, HOLDS);
    let serving = serving(&place, &api);
    let (messages, refused) = circle(&serving);
    for part in ["loop detected", "unstuck inbox", "x-should-retry: true"] {
        assert!(refused.contains(part), "{part} in {refused}");
    }
    assert_ne!(post(&serving, &messages).0, 200, "it stays held");
    let asked = question(&place);
    assert_eq!(asked["type"], "stuck", "{asked}");
    let id = asked["id"].as_str().unwrap();
    let shown = place.run(&["inbox", id], "");
    for part in ["The same call of `Bash`", "unblock its calls", "looper"] {
        assert!(shown.stdout.contains(part), "{part} in {}", shown.stdout);
    }
    let resolved = place.run(&["resolve", id], "");
    assert_eq!(resolved.code, 0, "{}{}", resolved.stdout, resolved.stderr);
    until("the next call passes", || {
        (post(&serving, &messages).0 == 200).then_some(())
    });
    assert_eq!(place.json(&["runs", "--json"], "")[0]["status"], "running");
    // A new loop is a new escalation, and a stronger model may be the answer.
    let (messages, _) = circle(&serving);
    let next = question(&place);
    assert_ne!(next["id"], asked["id"]);
    let moved = place.run(&["escalate", next["id"].as_str().unwrap()], "");
    assert_eq!(moved.code, 0, "{}{}", moved.stdout, moved.stderr);
    until("calls go to the stronger model", || {
        let newest = api.requests().last()?.model.clone();
        (post(&serving, &messages).0 == 200 && newest == "claude-opus-5-5").then_some(())
    });
    let (_, _, said) = serving.stop();
    assert!(said.contains(&format!("unstuck resolve {id}")), "{said}");
    assert_eq!(place.json(&["inbox", "--json"], ""), json!([]));
}

/// Without configuration, `serve` holds a repetitive conversation and nothing else: neither equal requests nor agents
/// with the same task.
#[test]
fn serve_holds_a_repetitive_conversation_by_default() {
    let (place, api) = (Place::new(), api(ANSWERS));
    by_user(&place, "[gateway.timeouts]\nclient_wait = \"300ms\"\n");
    let serving = serving(&place, &api);
    let task = json!({"role": "user", "content": "fix the tests"});
    for _ in 0..12 {
        assert_eq!(post(&serving, std::slice::from_ref(&task)).0, 200);
    }
    for number in 0..12 {
        let mut begun = vec![task.clone()];
        turn(&mut begun);
        begun[1]["content"][0]["id"] = json!(format!("toolu_{number}"));
        let words = json!({"type": "text", "text": "I look. ".repeat(number)});
        begun[1]["content"].as_array_mut().unwrap().insert(0, words);
        assert_eq!(post(&serving, &begun).0, 200, "agent {number}");
    }
    assert_eq!(place.json(&["inbox", "--json"], ""), json!([]));
    let (_, held) = circle(&serving);
    assert!(held.contains("loop detected"), "{held}");
    assert_eq!(question(&place)["type"], "stuck");
    serving.stop();
}

/// S3-42: the notification targets for escalations of runs also get those of the gateway, while it serves.
#[test]
fn held_session_is_notified_like_other_escalations() {
    let (place, api) = (Place::new(), api(ANSWERS));
    let server = Server::start("127.0.0.1:0", Some(200));
    let hook = format!(
        "[webhooks]\nallow_private = true\non_escalation = \"http://{}/hook\"\n",
        server.at
    );
    by_user(&place, &format!("{hook}{HOLDS}"));
    let serving = serving(&place, &api);
    circle(&serving);
    let told = server.next().json();
    let asked = question(&place);
    assert_eq!(told["question"], asked["id"], "{told}");
    assert_eq!(
        (&told["type"], &told["kind"]),
        (&json!("escalation"), &json!("stuck"))
    );
    assert_eq!(told["title"], "looper: loop detected", "{told}");
    let evidence = told["evidence"].as_str().unwrap();
    assert!(evidence.contains("The same call of `Bash`"), "{told}");
    // The answer is a command line that can be typed.
    let line = told["answers"]["manual"].as_str().unwrap_or_default();
    assert!(line.starts_with("unstuck resolve "), "{told}");
    serving.stop();
    by_user(
        &place,
        &format!("{hook}[gateway.budgets]\nper_session = 0.000001\n"),
    );
    let poor = self::serving(&place, &api);
    let once = vec![json!({"role": "user", "content": "hello"})];
    assert_eq!((post(&poor, &once).0, post(&poor, &once).0), (200, 402));
    let told = server.next().json();
    assert_eq!(
        told["title"], "looper needs approval to spend more",
        "{told}"
    );
    poor.stop();
}

#[test]
fn aborted_session_stays_rejected() {
    let (place, api) = (Place::new(), api(ANSWERS));
    by_user(&place, HOLDS);
    let serving = serving(&place, &api);
    let (messages, _) = circle(&serving);
    let asked = question(&place);
    let aborted = place.run(&["abort", asked["id"].as_str().unwrap()], "");
    assert_eq!(aborted.code, 0, "{}", aborted.stderr);
    until("it is refused for good", || {
        let (status, answer) = post(&serving, &messages);
        assert_ne!(status, 200);
        answer.contains("x-should-retry: false").then_some(())
    });
    serving.stop();
}

/// S4-35: with `ask` a human may let a session spend its budget once more, and only with `ask`.
#[test]
fn exhausted_budget_waits_in_the_inbox() {
    let once = vec![json!({"role": "user", "content": "hello"})];
    let (place, api) = (Place::new(), api(ANSWERS));
    by_user(&place, "[gateway.budgets]\nper_session = 0.000001\n");
    let first = serving(&place, &api);
    assert_eq!(post(&first, &once).0, 200);
    assert_eq!(post(&first, &once).0, 402);
    let asked = question(&place);
    assert_eq!(asked["type"], "cost_confirmation", "{asked}");
    let approved = place.run(&["approve", asked["id"].as_str().unwrap()], "");
    assert_eq!(approved.code, 0, "{}", approved.stderr);
    until("the next call passes", || {
        (post(&first, &once).0 == 200).then_some(())
    });
    first.stop();
}
