//! `unstuck serve`: a shared gateway.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::json;

use unstuck_faults::FaultServer;

use super::{QUICK, Serving, api, asked, by_user, until};
use crate::Place;

fn upstream(api: &FaultServer) -> String {
    format!("anthropic={}", api.url())
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
    for line in [
        format!("export ANTHROPIC_BASE_URL=http://127.0.0.1:{port}/anthropic"),
        format!("export OPENAI_BASE_URL=http://127.0.0.1:{port}/openai/v1"),
        format!("export GOOGLE_GEMINI_BASE_URL=http://127.0.0.1:{port}/gemini"),
    ] {
        assert!(out.contains(&line), "{line} in {out}");
    }
    for part in [
        "API call failed: server_overloaded",
        "(retry 1 of 2)",
        "(retry 2 of 2)",
        "API call recovered (3 tries)",
        "1 call, 1 recovered, 0 failed",
    ] {
        assert!(err.contains(part), "{part} in {err}");
    }
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
    assert!(out.contains("x-unstuck-token"), "{out}");
    assert!(!out.contains("0123456789abcdef") && !err.contains("0123456789abcdef"));
}

#[test]
fn serve_errors_state_the_next_step() {
    let place = Place::new();
    place.write("short", "abc\n");
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = taken.local_addr().unwrap().to_string();
    for (words, told) in [
        (
            vec!["--listen", &taken],
            "--listen 127.0.0.1:0 takes a free port",
        ),
        (vec!["--listen", "0.0.0.0:0"], "--token-file FILE"),
        (vec!["--listen", "nowhere"], "such as 127.0.0.1:4141"),
        (vec!["--upstream", "anthropic=https://"], "it names no host"),
        (
            vec!["--upstream", "anthropic=https://me:secret@x"],
            "no name and no password",
        ),
        (vec!["--upstream", "anthropic=ftp://x"], "http://"),
        (
            vec!["--upstream", "bedrock=http://x"],
            "anthropic, openai, gemini",
        ),
        (vec!["--upstream", "http://x"], "PROTOCOL=URL"),
        (
            vec![
                "--listen",
                "127.0.0.1:0",
                "--port-file",
                "no/such/folder/port",
            ],
            "cannot write the port",
        ),
        (vec!["--token-file", "missing"], "cannot read missing"),
        (vec!["--token-file", "short"], "at least 16 characters"),
        (vec!["--policy", "nonsense"], "there is no policy"),
    ] {
        let words = [&["serve"][..], &words].concat();
        let ended = place.run(&words, "");
        assert_eq!(ended.code, 2, "{words:?}: {}", ended.stderr);
        assert!(ended.stderr.contains(told), "{words:?}: {}", ended.stderr);
    }
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
    let told = err.find_map(|line| line.ok().filter(|line| line.contains("under way")));
    assert!(told.is_some_and(|told| told.contains("Ctrl-C ends them at once")));
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
        refused.stdout.contains("by all sessions of today"),
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
    let why = "is not asked instead: it would cost about $";
    assert!(err.contains("passed over: anthropic-2 ("), "{err}");
    assert!(err.contains(why), "{err}");
    let runs = place.json(&["runs", "--json"], "");
    let shown = place.run(&["show", runs[0]["id"].as_str().unwrap()], "");
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
    missing.told(2, &["SPARE_KEY is not set", "export SPARE_KEY"]);
}
