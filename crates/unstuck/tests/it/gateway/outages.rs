//! Clients of `unstuck serve` while an API is down or limited: their requests, and the visibility of their waits.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use serde_json::{Value, json};
use unstuck_faults::FaultServer;

use super::{Serving, api, by_user, until};
use crate::Place;

const GOOD: &str = "[[step]]\nanswer = { text = \"Done.\" }\ntimes = \"always\"\n";

/// Requests a stream as a client of that name, in a separate thread, and returns everything received.
fn ask(serving: &Serving, client: &'static str, session: &str) -> JoinHandle<String> {
    let body = json!({"model": "claude-sonnet-5-5", "max_tokens": 9, "stream": true, "messages": [{"role": "user", "content": "x"}]});
    let body = body.to_string();
    let request = format!(
        "POST /s/{session}/anthropic/v1/messages HTTP/1.1\r\nhost: 127.0.0.1\r\nx-api-key: k\r\nconnection: close\r\n\
         user-agent: {client}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    let address = format!("127.0.0.1:{}", serving.port);
    thread::spawn(move || {
        let mut stream = TcpStream::connect(address).unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    })
}

fn serving(place: &Place, api: &FaultServer) -> Serving {
    let upstream = format!("anthropic={}", api.url());
    Serving::start(place, &["--upstream", &upstream])
}

/// Two processes of one store share the probes of an upstream that is down, and the recovery seen by one is known to
/// the other.
#[test]
fn two_processes_share_one_probe() {
    // By itself goose sends four requests, and the gateway at most one more: further requests of four sessions are
    // probes.
    const SESSIONS: [&str; 4] = ["a", "b", "c", "d"];
    const OWN: usize = SESSIONS.len() * 5;
    const PROBES: usize = 7;
    let place = Place::new();
    by_user(
        &place,
        "[policy]\nmaxBackoff = 0.5\n[gateway.timeouts]\nprobe_interval = \"3s\"\n",
    );
    let failing = OWN + PROBES;
    let api = api(&format!(
        "[[step]]\nstatus = {{ code = 503 }}\ntimes = {failing}\n\n{GOOD}"
    ));
    let both = [serving(&place, &api), serving(&place, &api)];
    let asked = SESSIONS.iter().enumerate();
    let asked: Vec<_> = asked
        .map(|(number, session)| ask(&both[number % 2], "goose/1.52.0", session))
        .collect();
    for answer in asked {
        let answer = answer.join().unwrap();
        assert!(answer.contains("message_stop"), "{answer}");
        assert!(!answer.contains("event: error"), "{answer}");
    }
    let requests = api.requests();
    let times: Vec<Duration> = requests
        .iter()
        .map(|request| request.at.since(requests[0].at))
        .collect();
    // A probe permit is given every three seconds; it may be used late, because a circuit is open, but not early. A session's own
    // requests may come between the first probes, so only the last gaps are measured: two processes that do not share the
    // permit would need half of the time.
    const GAPS: usize = 3;
    let took = times[failing - 1].saturating_sub(times[failing - 1 - GAPS]);
    let least = Duration::from_secs(3) * (GAPS as u32 - 1);
    assert!(
        took >= least,
        "{GAPS} gaps within {took:?} instead of {least:?}: {times:?}"
    );
    assert_eq!(requests.len(), failing + SESSIONS.len(), "{times:?}");
    both.into_iter().for_each(|serving| drop(serving.stop()));
}

/// Returns the state of the only run, from every view.
fn states(place: &Place, serving: &Serving) -> [Value; 3] {
    let mut stream = TcpStream::connect(format!("127.0.0.1:{}", serving.port)).unwrap();
    let host = format!("127.0.0.1:{}", serving.port);
    write!(
        stream,
        "GET /api/runs HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n"
    )
    .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let start = answer.find('{').unwrap();
    let end = answer.rfind('}').unwrap();
    let listed: Value = serde_json::from_str(&answer[start..=end]).unwrap();
    [
        place.json(&["runs", "--json"], "")[0].clone(),
        place.json(&["status", "--json"], "")[0].clone(),
        listed["items"][0].clone(),
    ]
}

/// A client whose call waits in the gateway is shown as waiting, with end, reason and source; and as running when its
/// call is sent.
#[test]
fn waiting_client_is_shown_as_waiting() {
    let place = Place::new();
    let api = api(&format!(
        "[[step]]\nrate_limit = {{ retry_after = 8 }}\n\n[[step]]\nslow_first_token = {{ wait = \"8s\" }}\n\n{GOOD}"
    ));
    let serving = serving(&place, &api);
    let asked = ask(&serving, "python-httpx/1.0", "one");
    let waits = until("the client is shown as waiting", || {
        let runs = place.json(&["runs", "--status", "waiting", "--json"], "");
        runs.as_array().and_then(|runs| runs.first().cloned())
    });
    for run in [vec![waits], states(&place, &serving).to_vec()].concat() {
        let state = &run["state"];
        assert_eq!(state["state"], "waiting", "{run}");
        assert_eq!(state["source"], "header", "{run}");
        assert_eq!(state["next"]["actor"], "gateway", "{run}");
        assert!(
            state["until"].is_string() || state["until"].is_number(),
            "{run}"
        );
        let reason = state["reason"].as_str().unwrap();
        assert!(reason.starts_with("rate_limit"), "{run}");
    }
    let shown = place.run(&["status"], "").stdout;
    assert!(shown.contains("held in the gateway"), "{shown}");
    until("the second try is under way", || {
        (api.requests().len() == 2).then_some(())
    });
    until("the client is shown as running", || {
        let states = states(&place, &serving);
        states
            .iter()
            .all(|run| run["state"]["state"] == "running")
            .then_some(())
    });
    assert!(!asked.is_finished(), "it was still under way");
    assert!(asked.join().unwrap().contains("message_stop"));
    serving.stop();
}

/// A client that waits for a limit hit by another client is shown as waiting, too.
#[test]
fn client_waiting_for_the_limit_of_another_is_shown_as_waiting() {
    let place = Place::new();
    let api = api(&format!(
        "[[step]]\nrate_limit = {{ retry_after = 8 }}\n\n{GOOD}"
    ));
    let serving = serving(&place, &api);
    let first = ask(&serving, "python-httpx/1.0", "one");
    until("the limit is met", || {
        (api.requests().len() == 1).then_some(())
    });
    let second = ask(&serving, "python-httpx/1.0", "two");
    let waits = until("both are shown as waiting", || {
        let runs = place.json(&["runs", "--status", "waiting", "--json"], "");
        runs.as_array().filter(|runs| runs.len() == 2).cloned()
    });
    for run in &waits {
        assert_eq!(run["state"]["next"]["actor"], "gateway", "{run}");
        assert_eq!(run["state"]["source"], "header", "{run}");
    }
    for asked in [first, second] {
        assert!(asked.join().unwrap().contains("message_stop"));
    }
    serving.stop();
}
