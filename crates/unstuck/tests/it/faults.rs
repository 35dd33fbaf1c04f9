//! `unstuck faults`: an LLM API that fails on purpose, as users start it for their own tests.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

use crate::output_snapshot::assert_output;
use crate::{Ended, Place};

const BUSY: &str =
    "[[step]]\nrate_limit = { retry_after = 2 }\n[[step]]\nanswer = { text = \"Done\" }\n";

/// Starts a server and waits until it listens.
fn serve(place: &Place, args: &[&str]) -> (Child, String) {
    let args = [&["faults", "serve"], args].concat();
    let mut server = place
        .command(&args)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut announced = String::new();
    let mut stderr = BufReader::new(server.stderr.take().unwrap());
    stderr.read_line(&mut announced).unwrap();
    (server, announced)
}

/// Calls a model, and returns the head of the response.
fn ask(port: &str) -> String {
    let mut stream = TcpStream::connect(format!("127.0.0.1:{port}")).unwrap();
    let body = r#"{"model":"m","messages":[]}"#;
    let request = format!(
        "POST /v1/messages HTTP/1.1\r\nhost: h\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer.split_once("\r\n\r\n").unwrap().0.to_owned()
}

fn interrupt(server: Child) -> (i32, String) {
    let id = Pid::from_raw(server.id().try_into().unwrap());
    kill(id, Signal::SIGINT).unwrap();
    let ended = server.wait_with_output().unwrap();
    let stdout = String::from_utf8(ended.stdout).unwrap();
    (ended.status.code().unwrap(), stdout)
}

#[test]
fn script_is_served_until_interrupted_then_counts_are_printed() {
    let place = Place::new();
    place.write("busy.toml", BUSY);
    let (server, announced) = serve(
        &place,
        &["busy.toml", "--port-file", "port", "--log", "log.jsonl"],
    );
    let port = std::fs::read_to_string(place.project().join("port")).unwrap();
    assert!(
        announced.contains(&format!("http://127.0.0.1:{port};")),
        "{announced}"
    );
    let refused = ask(&port);
    assert!(
        refused.starts_with("HTTP/1.1 429") && refused.contains("retry-after: 2"),
        "{refused}"
    );
    assert!(ask(&port).starts_with("HTTP/1.1 200"));
    let (code, told) = interrupt(server);
    assert_eq!(code, 0);
    assert_output!(place, told);
    let log = std::fs::read_to_string(place.project().join("log.jsonl")).unwrap();
    assert_eq!(log.lines().count(), 2);
}

#[test]
fn counts_can_be_json() {
    let place = Place::new();
    place.write("busy.toml", BUSY);
    let (server, _) = serve(&place, &["busy.toml", "--port-file", "port", "--json"]);
    let port = std::fs::read_to_string(place.project().join("port")).unwrap();
    ask(&port);
    let (_, told) = interrupt(server);
    let stats: Value = serde_json::from_str(&told).unwrap();
    assert_eq!(stats["by_reply"]["rate_limit"], 1);
}

#[test]
fn invalid_script_is_rejected_with_its_line_and_the_valid_values() {
    let place = Place::new();
    place.write("wrong.toml", "[[step]]\noverloadd = {}\n");
    let Ended { code, stderr, .. } = place.run(&["faults", "serve", "wrong.toml"], "");
    assert_eq!(code, 2);
    assert_output!(place, stderr);
    let Ended { code, stderr, .. } = place.run(&["faults", "serve", "none.toml"], "");
    assert_eq!(code, 2);
    assert_output!(place, stderr);
}

/// A server that cannot start names the argument at fault.
#[test]
fn startup_errors_name_the_cause_and_the_fix() {
    let place = Place::new();
    place.write("busy.toml", BUSY);
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = taken.local_addr().unwrap().to_string();
    let mut told = String::new();
    for words in [
        &["busy.toml", "--listen", &taken][..],
        &["busy.toml", "--listen", "here"],
        &["busy.toml", "--log", "no/such/log"],
        &["busy.toml", "--port-file", "no/such/port"],
        &["/"],
    ] {
        let words = [&["faults", "serve"], words].concat();
        let ended = place.run(&words, "");
        assert_eq!(ended.code, 2, "{words:?}: {}", ended.stderr);
        told += &ended.stderr;
        told += "\n";
    }
    assert_output!(place, told);
}

#[test]
fn faults_and_examples_are_listed_and_every_example_is_valid() {
    let place = Place::new();
    let listed = place.run(&["faults", "list"], "").stdout;
    assert_output!(place, listed);
    let faults = place.json(&["faults", "list", "--json"], "");
    assert!(faults.as_array().unwrap().len() > 30);
    let one = place.run(&["faults", "list", "cut_at"], "").stdout;
    place.write("cut.toml", one.split_once("\n\n").unwrap().1);
    let examples = place.run(&["faults", "example"], "").stdout;
    let names = examples
        .lines()
        .filter_map(|line| line.split_whitespace().next());
    for name in names.chain(["cut"]) {
        let file = format!("{name}.toml");
        if name != "cut" {
            place.write(&file, &place.run(&["faults", "example", name], "").stdout);
        }
        let (server, announced) = serve(&place, &[&file]);
        assert!(
            announced.starts_with("listening on "),
            "{name}: {announced}"
        );
        assert_eq!(interrupt(server).0, 0, "{name}");
    }
    let Ended { code, stderr, .. } = place.run(&["faults", "example", "nothing"], "");
    assert_eq!(code, 2);
    assert_output!(place, stderr);
}
