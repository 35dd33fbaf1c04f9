//! `unstuck serve`: a shared gateway.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::json;

use unstuck_faults::FaultServer;

use super::{QUICK, Serving, api, asked, by_user, until};
use crate::Place;
use crate::output_snapshot::assert_output;

fn upstream(api: &FaultServer) -> String {
    format!("anthropic={}", api.url())
}

/// Returns the output of `serve` without the dashboard's link, which contains a random key.
fn without_link(out: &str) -> &str {
    out.find("unstuck gateway").map_or(out, |at| &out[at..])
}

/// S4-01, S4-04: a failed call is retried, and the count is visible.
#[test]
fn failed_call_is_retried_invisibly_and_reported() {
    let place = Place::new();
    place.write("unstuck.toml", QUICK);
    let api =
        api("[[step]]\noverloaded = {}\ntimes = 2\n[[step]]\nanswer = { text = \"Done.\" }\n");
    let serving = Serving::start(&place, &["--upstream", &upstream(&api)]);
    let answer = serving.ask(&place);
    assert_eq!(answer.code, 0, "{}{}", answer.stdout, answer.stderr);
    assert!(answer.stdout.contains("Done."), "{}", answer.stdout);
    assert_eq!(asked(&api), 3);
    let (port, file) = (serving.port.clone(), serving.file.clone());
    let (code, out, err) = serving.stop();
    assert_eq!(code, Some(0), "{err}");
    let url = format!("http://127.0.0.1:{port}/anthropic");
    assert!(out.contains(&url), "{url} in {out}");
    assert_output!(place, without_link(&out));
    assert_output!(place, err);
    assert!(!err.contains('\x1b'), "{err}");
    assert!(!file.exists(), "the door is closed");
    // The events are in the history.
    let runs = place.json(&["runs", "--json"], "");
    assert_eq!(runs.as_array().unwrap().len(), 1, "{runs}");
}

#[test]
fn quiet_serve_prints_nothing_and_uses_the_fallback() {
    let place = Place::new();
    place.write("unstuck.toml", QUICK);
    let down = api("[[step]]\nserver_error = {}\ntimes = \"always\"\n");
    let spare = api("[[step]]\nanswer = { text = \"From the spare.\" }\ntimes = \"always\"\n");
    let words = [
        "--quiet",
        "--upstream",
        &upstream(&down),
        "--upstream",
        &upstream(&spare),
    ];
    let serving = Serving::start(&place, &words);
    let answer = serving.ask(&place);
    assert!(
        answer.stdout.contains("From the spare."),
        "{}",
        answer.stdout
    );
    let (code, out, err) = serving.stop();
    assert_eq!((code, out.as_str(), err.as_str()), (Some(0), "", ""));
}

#[test]
fn token_is_required_from_others() {
    let place = Place::new();
    let api = api("[[step]]\nanswer = { text = \"Done.\" }\ntimes = \"always\"\n");
    place.write("token", "0123456789abcdef0123456789abcdef\n");
    let serving = Serving::start(
        &place,
        &["--token-file", "token", "--upstream", &upstream(&api)],
    );
    let answer = serving.ask(&place);
    assert_ne!(answer.code, 0, "{}", answer.stdout);
    assert_eq!(asked(&api), 0);
    let (_, out, err) = serving.stop();
    assert_output!(place, without_link(&out));
    assert!(!out.contains("0123456789abcdef") && !err.contains("0123456789abcdef"));
}

#[test]
fn serve_errors_state_the_next_step() {
    let place = Place::new();
    place.write("short", "abc\n");
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = taken.local_addr().unwrap().to_string();
    let mut told = String::new();
    for words in [
        &["--listen", &taken][..],
        &["--listen", "0.0.0.0:0"],
        &["--listen", "nowhere"],
        &["--upstream", "anthropic=https://"],
        &["--upstream", "anthropic=https://me:secret@x"],
        &["--upstream", "anthropic=ftp://x"],
        &["--upstream", "bedrock=http://x"],
        &["--upstream", "http://x"],
        &[
            "--listen",
            "127.0.0.1:0",
            "--port-file",
            "no/such/folder/port",
        ],
        &["--token-file", "missing"],
        &["--token-file", "short"],
        &["--policy", "nonsense"],
    ] {
        let words = [&["serve"], words].concat();
        let ended = place.run(&words, "");
        assert_eq!(ended.code, 2, "{words:?}: {}", ended.stderr);
        told += &ended.stderr;
    }
    assert_output!(place, told);
}

/// Ctrl-C during a stream reports how long the stop takes; a second Ctrl-C stops at once. The usage so far is recorded,
/// and the client gets an error in its protocol.
#[test]
#[expect(clippy::disallowed_methods, reason = "how long another process takes")]
fn second_interrupt_cuts_streams_off_and_loses_nothing() {
    let place = Place::new();
    let api = api("[[step]]\nstall_at = { after = 4 }\ntimes = \"always\"\n");
    let mut serving = Serving::start(&place, &["--upstream", &upstream(&api)]);
    let body = r#"{"model":"claude-sonnet-5-5","max_tokens":9,"stream":true,"messages":[{"role":"user","content":"x"}]}"#;
    let mut client = TcpStream::connect(format!("127.0.0.1:{}", serving.port)).unwrap();
    write!(
        client,
        "POST /anthropic/v1/messages HTTP/1.1\r\nhost: 127.0.0.1\r\nx-api-key: k\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    )
    .unwrap();
    let mut begun = [0; 4096];
    let read = client.read(&mut begun).unwrap();
    assert!(begun[..read].starts_with(b"HTTP/1.1 200"), "it has begun");
    let begin = Instant::now();
    serving.signal(Signal::INT);
    let mut err = BufReader::new(serving.child.stderr.take().unwrap()).lines();
    let told = err.find_map(|line| line.ok().filter(|line| line.contains("active calls")));
    assert!(told.is_some_and(|told| told.contains("Ctrl-C to abort them")));
    serving.signal(Signal::INT);
    assert_eq!(serving.child.wait().unwrap().code(), Some(0));
    assert!(
        begin.elapsed() < Duration::from_secs(4),
        "{:?}",
        begin.elapsed()
    );
    let mut rest = String::new();
    client.read_to_string(&mut rest).unwrap();
    assert!(rest.contains("event: error"), "{rest}");
    assert!(rest.contains("the gateway was stopped"), "{rest}");
    assert!(!rest.contains("message_stop"), "{rest}");
    let spent = place.json(&["cost", "--by", "session", "--json"], "");
    assert_eq!(
        (&spent[0]["calls"], &spent[0]["failed"]),
        (&json!(1), &json!(1)),
        "{spent}"
    );
}

/// S4-35: spending of one process reduces the day's budget of another, within a moment.
#[test]
fn day_budget_is_shared_by_all_processes() {
    let place = Place::new();
    let api = api(
        "[[step]]\nanswer = { text = \"Done.\", input_tokens = 1000, output_tokens = 100 }\ntimes = \"always\"\n",
    );
    by_user(
        &place,
        "[gateway.budgets]\nper_day = 0.000001\non_reached = \"stop\"\n",
    );
    let words = ["--upstream", &upstream(&api)];
    let (one, other) = (
        Serving::start(&place, &words),
        Serving::start(&place, &words),
    );
    assert_eq!(one.ask(&place).code, 0);
    let refused = until("the other one refuses", || {
        let answer = other.ask(&place);
        (answer.code != 0).then_some(answer)
    });
    assert!(
        refused.stdout.contains("for all sessions today"),
        "{}",
        refused.stdout
    );
    one.stop();
    other.stop();
    let later = Serving::start(&place, &words);
    assert_ne!(
        later.ask(&place).code,
        0,
        "it is known from the first call on"
    );
    later.stop();
}

/// S4-35: a fallback that exceeds the budget is skipped, and the reason is visible, now and later.
#[test]
fn fallback_over_budget_is_reported() {
    let place = Place::new();
    place.write("unstuck.toml", QUICK);
    let down = api("[[step]]\nserver_error = {}\ntimes = \"always\"\n");
    let spare = api("[[step]]\nanswer = { text = \"Dear.\" }\ntimes = \"always\"\n");
    by_user(&place, "[gateway.budgets]\nper_session = 0.000001\n");
    let words = [
        "--upstream",
        &upstream(&down),
        "--upstream",
        &upstream(&spare),
    ];
    let serving = Serving::start(&place, &words);
    assert_ne!(serving.ask(&place).code, 0);
    assert_eq!((asked(&down), asked(&spare)), (3, 0));
    let (_, _, err) = serving.stop();
    assert_output!(place, err);
    let runs = place.json(&["runs", "--json"], "");
    let shown = place.run(&["show", runs[0]["id"].as_str().unwrap()], "");
    let why = "was skipped: would cost about $";
    assert!(shown.stdout.contains(why), "{}", shown.stdout);
}

/// The user's own configuration lists the upstreams in order, each with its own key and its own model names.
#[test]
fn configured_upstreams_are_fallbacks_of_each_other() {
    let place = Place::new();
    place.write("unstuck.toml", QUICK);
    let down = api("[[step]]\nserver_error = {}\ntimes = \"always\"\n");
    let spare = api(
        "[[step]]\nwhen = { key = \"sk-of-the-spare\", model = \"inhouse\" }\nanswer = { text = \"From the spare.\" }\ntimes = \"always\"\n",
    );
    let entry = format!(
        "{{ name = \"spare\", url = \"{}\", key_env = \"SPARE_KEY\", models = {{ \"claude-sonnet-5-5\" = \"inhouse\" }} }}",
        spare.url()
    );
    by_user(
        &place,
        &format!(
            "[gateway.upstreams]\nanthropic = [\"{}\", {entry}]\n",
            down.url()
        ),
    );
    let serving = Serving::start_with(&place, &[], &[("SPARE_KEY", "sk-of-the-spare")]);
    let words = [
        "__demo-agent",
        "--model",
        "claude-sonnet-5-5",
        "-p",
        "hello",
    ];
    let mut command = place.command(&words);
    let url = format!("http://127.0.0.1:{}/anthropic", serving.port);
    let answer = super::ended(command.env("FAULTS_API_URL", url));
    assert!(
        answer.stdout.contains("From the spare."),
        "{}",
        answer.stdout
    );
    assert_eq!((asked(&down), asked(&spare)), (3, 1));
    serving.stop();
    let missing = place.run(&["serve", "--listen", "127.0.0.1:0"], "");
    missing.told(2, &[]);
    assert_output!(place, missing.stderr);
}
