//! Notifications: a real server receives the events of real runs.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc::{self, Receiver};
use std::time::Duration;

use serde_json::Value;

use crate::Place;
use crate::output_snapshot::assert_output;

const LOGIN: &str =
    "test -f signed-in || { echo 'Invalid API key · Please run /login' >&2; exit 1; }";

/// One request: path, headers in lower case, body.
pub(crate) struct Got {
    pub(crate) path: String,
    headers: Vec<String>,
    pub(crate) body: String,
}

impl Got {
    pub(crate) fn header(&self, name: &str) -> &str {
        let mut headers = self.headers.iter();
        let found = headers.find_map(|line| line.strip_prefix(&format!("{name}: ")));
        found.unwrap_or_default()
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap()
    }
}

/// A server that records requests.
pub(crate) struct Server {
    pub(crate) at: SocketAddr,
    got: Receiver<Got>,
}

impl Server {
    /// Starts a server that responds with this status; with `None` it never responds.
    pub(crate) fn start(at: &str, status: Option<u16>) -> Self {
        let listener = TcpListener::bind(at).unwrap();
        let at = listener.local_addr().unwrap();
        let (sender, got) = mpsc::channel();
        std::thread::spawn(move || {
            let mut open = Vec::new();
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                // The test may be over.
                let _ = sender.send(read(&stream));
                if let Some(status) = status {
                    let answer = format!("HTTP/1.1 {status} so\r\ncontent-length: 0\r\n\r\n");
                    stream.write_all(answer.as_bytes()).unwrap();
                }
                open.push(stream);
            }
        });
        Self { at, got }
    }

    pub(crate) fn next(&self) -> Got {
        self.got.recv_timeout(Duration::from_secs(30)).unwrap()
    }

    /// Returns all requests; their senders have exited.
    pub(crate) fn all(&self) -> Vec<Got> {
        self.got.try_iter().collect()
    }
}

fn read(stream: &TcpStream) -> Got {
    let mut reader = BufReader::new(stream);
    let mut lines = Vec::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        if line.trim().is_empty() {
            break;
        }
        lines.push(line.trim().to_owned());
    }
    let path = lines.remove(0).split(' ').nth(1).unwrap().to_owned();
    let mut got = Got {
        path,
        headers: lines,
        body: String::new(),
    };
    let length = got.header("content-length").parse().unwrap();
    reader.take(length).read_to_string(&mut got.body).unwrap();
    got
}

/// A place whose user configuration has this section.
fn place(section: &str) -> Place {
    let place = Place::new();
    configure(&place, section);
    place
}

fn configure(place: &Place, section: &str) {
    let folder = place.folder.path().join(".config/unstuck");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(
        folder.join("config.toml"),
        format!("[webhooks]\n{section}\n"),
    )
    .unwrap();
}

/// Asserts the exit code and these parts of the output.
#[track_caller]
fn prints(place: &Place, args: &[&str], code: i32, parts: &[&str]) {
    let ended = place.run(args, "");
    assert_eq!(ended.code, code, "{}{}", ended.stdout, ended.stderr);
    for part in parts {
        assert!(ended.stdout.contains(part), "{part} in {}", ended.stdout);
    }
}

fn fails(place: &Place) {
    let ended = place.run(&["exec", "--", "sh", "-c", LOGIN], "");
    assert_eq!(ended.code, 3, "{}", ended.stderr);
}

/// S3-04, S3-24, S3-42 (AC-9): when human input is needed, the webhook of `on_escalation` fires.
#[test]
fn escalation_reaches_its_webhook() {
    let server = Server::start("127.0.0.1:0", Some(200));
    let place = place(&format!(
        "allow_private = true\non_escalation = \"http://{}/hook\"",
        server.at
    ));
    fails(&place);
    let [got] = &server.all()[..] else {
        panic!("one question is one message");
    };
    let asked = place.json_of_run("escalation.json");
    let json = got.json();
    assert_eq!(got.path, "/hook");
    assert_eq!(
        (&json["type"], &json["kind"]),
        (&"escalation".into(), &"auth_required".into())
    );
    assert_eq!(
        (&json["question"], &json["trigger"]),
        (&asked["id"], &asked["trigger"])
    );
    assert_eq!(json["evidence"], asked["evidence"]);
    assert_eq!(json["id"], got.header("webhook-id"));
    // The answer is a command line that can be typed.
    let line = json["answers"]["manual"].as_str().unwrap();
    place.write("signed-in", "");
    let words: Vec<_> = line.split(' ').skip(1).collect();
    assert_output!(place, place.run(&words, "").told(0, &[]).stderr);
}

#[test]
fn answers_recoveries_and_ends_are_reported() {
    let server = Server::start("127.0.0.1:0", Some(200));
    let at = server.at;
    let place = place(&format!(
        "allow_private = true\non_resolved = \"http://{at}/resolved\"\n\
         on_recovered = \"http://{at}/recovered\"\non_run_finished = \"http://{at}/finished\""
    ));
    fails(&place);
    assert_eq!(server.all().len(), 0, "nothing is at its end yet");
    place.write("signed-in", "");
    assert_eq!(place.run(&["resume"], "").code, 0);
    let mut told: Vec<_> = server
        .all()
        .iter()
        .map(|got| format!("{} {}", got.path, got.json()["title"].as_str().unwrap()))
        .collect();
    told.sort();
    assert_eq!(
        told,
        [
            "/finished project: sh succeeded after a failure",
            "/recovered project: sh recovered after auth_required",
            "/resolved project: sh: request answered (manual)",
        ]
    );
}

/// The proposed repair is reported, and the request contains the command and how to approve it.
#[test]
fn proposed_repair_is_reported_with_its_command() {
    let server = Server::start("127.0.0.1:0", Some(200));
    let at = server.at;
    let place = place(&format!(
        "allow_private = true\non_escalation = \"http://{at}/asked\"\non_resolved = \"http://{at}/resolved\""
    ));
    place.write(".env.example", "SHOP_PORT=3000\n");
    let check = "test -f .env || { echo 'SHOP_PORT is not set' >&2; exit 1; }";
    let ended = place.run(&["repair", "--", "sh", "-c", check], "");
    assert_eq!(ended.code, 3, "{}", ended.stderr);
    let asked = server.next().json();
    assert_eq!(asked["trigger"], "RECOVERY");
    assert_eq!(asked["proposal"], "cp .env.example .env");
    let line = asked["answers"]["approve"].as_str().unwrap();
    let words: Vec<_> = line.split(' ').skip(1).collect();
    let ended = place.run(&words, "");
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    let resolved = server.next();
    assert_eq!(
        (&*resolved.path, &resolved.json()["outcome"]),
        ("/resolved", &"approve".into())
    );
    assert_eq!(resolved.json()["question"], asked["question"]);
}

/// The server is down at the time, and nothing is lost: the next process sends the message, with the same id.
#[test]
fn failed_delivery_stays_in_the_outbox() {
    let server = Server::start("127.0.0.1:0", Some(503));
    let section = format!(
        "allow_private = true\non_escalation = \"http://{}/\"",
        server.at
    );
    let place = place(&section);
    fails(&place);
    let first = server.next();
    let listed = place.json(&["webhook", "list", "--json"], "");
    assert_eq!(listed[0]["id"], first.header("webhook-id"));
    assert_eq!(listed[0]["state"], "waiting");
    assert_eq!(
        listed[0]["last_error"],
        "server returned 503 Service Unavailable"
    );
    let parts = ["failed", "503", "retrying after"];
    prints(&place, &["webhook", "flush"], 1, &parts);
    assert_eq!(
        server.next().header("webhook-id"),
        first.header("webhook-id")
    );
}

/// The process is killed while it sends: the message is kept, with the id that the server has seen.
#[test]
fn killed_process_loses_no_message() {
    let server = Server::start("127.0.0.1:0", None);
    let place = place(&format!(
        "allow_private = true\non_escalation = \"http://{}/\"",
        server.at
    ));
    let mut child = place
        .command(&["exec", "--quiet", "--", "sh", "-c", LOGIN])
        .spawn()
        .unwrap();
    let got = server.next();
    child.kill().unwrap();
    child.wait().unwrap();
    let listed = place.json(&["webhook", "list", "--json"], "");
    assert_eq!(listed.as_array().unwrap().len(), 1);
    assert_eq!(listed[0]["state"], "waiting");
    assert_eq!(listed[0]["id"], got.header("webhook-id"));
}

/// A project, which agents can write, reaches no private networks and runs no commands.
#[test]
fn project_reaches_no_private_network() {
    let server = Server::start("127.0.0.1:0", Some(200));
    let place = Place::new();
    let hook = format!("[webhooks]\non_escalation = \"http://{}/\"\n", server.at);
    place.write("unstuck.toml", &hook);
    fails(&place);
    assert_eq!(server.all().len(), 0);
    let parts = [
        "failed permanently",
        "127.0.0.1 is an address of this machine",
        "allow_private = true",
    ];
    prints(&place, &["webhook", "list"], 0, &parts);
    place.write(
        "unstuck.toml",
        &format!("{hook}notify_command = \"touch owned\"\n"),
    );
    let ended = place.run(&["exec", "--", "sh", "-c", LOGIN], "");
    ended.told(2, &[]);
    assert_output!(place, ended.stderr);
}

#[test]
fn notify_command_receives_the_message() {
    let place = place("notify_command = \"cat > told.json; echo $UNSTUCK_EVENT > told.txt\"");
    fails(&place);
    assert_eq!(place.text("told.txt"), "escalation");
    let told: Value = serde_json::from_str(&place.text("told.json")).unwrap();
    assert_eq!(
        told["title"],
        "project: sh needs your input (auth_required)"
    );
}

#[test]
fn desktop_notification_is_shown_where_available() {
    let place = place("desktop = true");
    fails(&place);
    let listed = place.run(&["webhook", "list"], "");
    assert_output!(place, listed.told(0, &[]).stdout);
    let file = place.project().join("shown");
    let script = format!("#!/bin/sh\nprintf '%s\\n' \"$@\" > '{}'\n", file.display());
    place.tool("notify-send", &script);
    fails(&place);
    let shown = place.lines("shown");
    assert_eq!(shown[..2], ["--app-name=unstuck", "--urgency"]);
    assert!(
        shown.contains(&"project: sh needs your input (auth_required)".to_owned()),
        "{shown:?}"
    );
}

#[test]
fn webhook_test_reports_the_response_of_each_target() {
    let (good, bad) = (
        Server::start("127.0.0.1:0", Some(200)),
        Server::start("127.0.0.1:0", Some(404)),
    );
    let place = place(&format!(
        "allow_private = true\non_escalation = [\"http://{}/a\", \"http://{}/b\"]\n\
         on_run_finished = {{ url = \"http://{}/c\", format = \"ntfy\" }}",
        good.at, bad.at, good.at
    ));
    let parts = [
        "ok",
        "200",
        "failed",
        "server returned 404 Not Found",
        "run_finished",
    ];
    prints(&place, &["webhook", "test"], 1, &parts);
    let got = good.all();
    assert_eq!((&*got[0].path, &*got[1].path), ("/a", "/c"));
    assert!(got[0].body.contains("No action is required"));
    let only = ["webhook", "test", "--on", "run_finished"];
    assert_eq!(place.run(&only, "").code, 0);
    let url = format!("http://{}/named", good.at);
    prints(
        &Place::new(),
        &["webhook", "test", "--url", &url],
        0,
        &["ok"],
    );
    let unset = Place::new();
    assert_output!(
        unset,
        unset.run(&["webhook", "test"], "").told(2, &[]).stderr
    );
    let listed = place.run(&["webhook", "list"], "");
    assert_output!(place, listed.told(0, &[]).stdout);
}

#[test]
fn template_is_checked_before_anything_runs() {
    let place = place(
        "on_escalation = { url = \"https://a.example\", format = \"template\", template = \"{{ titel }}\" }",
    );
    assert_output!(
        place,
        place.run(&["config", "check"], "").told(2, &[]).stderr
    );
}
