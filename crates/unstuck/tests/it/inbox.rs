//! The inbox: pending requests, and answering them with single keys.

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::fd::OwnedFd;
use std::process::{Child, Stdio};
use std::time::Duration;

use anstream::adapter::strip_str;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{Pid, Signal, kill_process};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};
use serde_json::Value;

use crate::output_snapshot::assert_output;
use crate::{Ended, Place};

/// The time limit for expected output.
const PATIENCE: Duration = Duration::from_secs(30);
/// Fails with an authentication error until someone fixes it.
const LOGIN: &str =
    "test -e logged-in || { echo 'Invalid API key · Please run /login' >&2; exit 1; }";
/// Fails until a directory exists, as many programs do.
const REPORT: &str = "import os, sys\nif not os.path.isdir('out/reports'):\n    sys.exit(\"report: directory 'out/reports' does not exist\")\n";

impl Place {
    fn asks_for_login(&self) {
        let ended = self.run(&["exec", "--quiet", "--", "sh", "-c", LOGIN], "");
        assert_eq!(ended.code, 3, "{}", ended.stderr);
    }

    fn asks_for_repair(&self) {
        self.write("report.py", REPORT);
        let exec = ["exec", "--quiet", "--repair", "auto", "--"];
        let ended = self.run(&[&exec[..], &["python3", "report.py"]].concat(), "");
        assert_eq!(ended.code, 3, "{}", ended.stderr);
    }

    fn inbox(&self, args: &[&str]) -> Ended {
        self.run(&[&["inbox"], args].concat(), "")
    }

    /// Returns the ids of pending requests, oldest first.
    fn waiting(&self) -> Vec<String> {
        let listed = self.json(&["inbox", "--json"], "");
        let ids = listed.as_array().unwrap().iter();
        ids.map(|one| one["id"].as_str().unwrap().to_owned())
            .collect()
    }
}

#[test]
fn empty_inbox_is_reported() {
    let place = Place::new();
    let ended = place.inbox(&[]);
    assert_eq!(ended.code, 0);
    assert_output!(place, ended.stdout);
    assert_eq!(place.json(&["inbox", "--json"], ""), Value::Array(vec![]));
}

#[test]
fn pending_requests_are_listed_newest_first_with_their_answers() {
    let place = Place::new();
    place.asks_for_login();
    place.asks_for_repair();
    let ended = place.inbox(&[]);
    assert!(ended.stdout.lines().all(|line| line.chars().count() <= 80));
    assert_output!(place, ended.stdout);
}

#[test]
fn json_output_is_complete() {
    let place = Place::new();
    place.asks_for_repair();
    let mut listed = place.json(&["inbox", "--json"], "");
    let one = &mut listed[0];
    let created = one["created"].as_str().unwrap();
    assert!(created.starts_with("20") && created.ends_with('Z'));
    one["created"] = "MOMENT".into();
    assert_eq!(one["deadline"]["answer"], "abort");
    one["deadline"]["at"] = "MOMENT".into();
    let text = serde_json::to_string_pretty(one).unwrap();
    assert_output!(place, text);
    let id = place.waiting().remove(0);
    let mut alone = place.json(&["inbox", &id[..6], "--json"], "");
    alone["created"] = "MOMENT".into();
    alone["deadline"]["at"] = "MOMENT".into();
    assert_eq!(&alone, one);
}

/// The offered command lines work as printed, even with a custom store.
#[test]
fn each_answer_is_a_working_command_line() {
    let place = Place::new();
    let store = ["--store", "elsewhere.db"];
    let exec = ["exec", "--quiet", "--", "sh", "-c", LOGIN];
    assert_eq!(place.run(&[&store[..], &exec].concat(), "").code, 3);
    let listed = place.json(&[&store[..], &["inbox", "--json"]].concat(), "");
    let answers = listed[0]["answers"].as_array().unwrap();
    let skip = answers.iter().find(|one| one["answer"] == "skip").unwrap();
    let line = skip["command"].as_str().unwrap();
    let line = line.replace("unstuck ", "\"$UNSTUCK\" ");
    let output = place.shell(&line).output().unwrap();
    let told = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{line}: {told}");
    let left = place.json(&[&store[..], &["inbox", "--json"]].concat(), "");
    assert_eq!(left, Value::Array(vec![]));
}

/// Removes the conditions of a repair, which differ between machines.
fn without_conditions(text: &str) -> String {
    let mut is_one = false;
    let lines = text.lines().filter(|line| {
        let begins = |name: &&str| line.starts_with(*name);
        let goes_on = line.starts_with("          ");
        is_one = ["sandbox ", "network ", "env "].iter().any(begins) || is_one && goes_on;
        !is_one
    });
    lines.map(|line| format!("{line}\n")).collect()
}

#[test]
fn request_is_shown_in_full_until_answered() {
    let place = Place::new();
    place.asks_for_repair();
    let id = place.waiting().remove(0);
    let ended = place.inbox(&[&id[..6]]);
    for fact in ["sandbox   ", "network   on", "env       "] {
        assert!(ended.stdout.contains(fact), "{}", ended.stdout);
    }
    let stdout = without_conditions(&ended.stdout);
    assert_output!(place, stdout);
    assert_output!(place, place.inbox(&["zzzz"]).told(1, &[]).stderr);
    place.run(&["abort", &id, "--quiet"], "");
    place.inbox(&[&id]).told(1, &["was aborted by ", " at "]);
}

#[test]
fn only_permitted_users_may_answer() {
    let place = Place::new();
    place.write(
        "unstuck.toml",
        "[escalations.answerers]\nskip = [\"ann of somewhere\"]\n",
    );
    place.asks_for_login();
    let id = place.waiting().remove(0);
    place.run(&["skip", &id, "--quiet"], "").told(
        1,
        &[
            "answer `skip`",
            "[escalations.answerers]",
            "ann of somewhere",
        ],
    );
    assert_eq!(place.waiting(), [id]);
    place.write("unstuck.toml", "[escalations.answerers]\nskipp = []\n");
    assert_output!(place, place.inbox(&[]).told(0, &[]).stderr);
}

#[test]
fn watch_reports_every_request_and_every_answer() {
    let place = Place::new();
    place.asks_for_login();
    let mut child = place
        .command(&["inbox", "--watch", "--json"])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut next = || -> Value { serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap() };
    let first = next();
    assert_eq!(
        (&first["event"], &first["type"]),
        (&"opened".into(), &"hiccup".into())
    );
    place.asks_for_repair();
    let second = next();
    assert_eq!(second["proposal"]["command"], "mkdir -p out/reports");
    let id = first["id"].as_str().unwrap();
    place.run(&["skip", id, "--note", "not today", "--quiet"], "");
    let closed = next();
    assert_eq!(closed["event"], "closed");
    assert_eq!(
        (&closed["id"], &closed["answer"]),
        (&first["id"], &"skip".into())
    );
    assert_eq!(
        (&closed["by"], &closed["note"]),
        (&"human".into(), &"not today".into())
    );
    child.kill().unwrap();
    child.wait().unwrap();
}

fn size(columns: u16, rows: u16) -> Winsize {
    Winsize {
        ws_row: rows,
        ws_col: columns,
        ws_xpixel: 0,
        ws_ypixel: 0,
    }
}

/// A human at a terminal of 80×24.
struct Person {
    master: File,
    child: Child,
    seen: String,
}

impl Person {
    fn at(place: &Place, args: &[&str], variables: &[(&str, &str)]) -> Self {
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
        let master: OwnedFd = openpt(flags).unwrap();
        grantpt(&master).unwrap();
        unlockpt(&master).unwrap();
        tcsetwinsize(&master, size(80, 24)).unwrap();
        let name = ptsname(&master, Vec::new()).unwrap();
        let unstuck = env!("CARGO_BIN_EXE_unstuck");
        let line = [&["__tty", name.to_str().unwrap(), "--", unstuck], args].concat();
        let mut command = place.command(&line);
        command
            .envs(variables.iter().copied())
            .env("TERM", "xterm-256color")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        Self {
            child: command.spawn().unwrap(),
            master: File::from(master),
            seen: String::new(),
        }
    }

    /// Reads more output; returns false at the end.
    fn read(&mut self) -> bool {
        let mut ready = [PollFd::new(&self.master, PollFlags::IN)];
        let patience = PATIENCE.try_into().unwrap();
        let count = poll(&mut ready, Some(&patience)).unwrap();
        assert!(count > 0, "nothing more comes after {}", self.seen);
        let mut some = [0; 4096];
        match self.master.read(&mut some) {
            Ok(count @ 1..) => {
                self.seen.push_str(&String::from_utf8_lossy(&some[..count]));
                true
            }
            // The end of a terminal is reported as an error.
            _ => false,
        }
    }

    /// Waits for new output with this text.
    fn sees(&mut self, text: &str) -> &mut Self {
        while !strip_str(&self.seen).to_string().contains(text) {
            assert!(self.read(), "{text} is not in {}", self.seen);
        }
        self
    }

    fn types(&mut self, keys: &str) -> &mut Self {
        self.seen.clear();
        self.master.write_all(keys.as_bytes()).unwrap();
        self
    }

    /// Waits for the end, and returns the exit code.
    fn leaves(&mut self) -> i32 {
        while self.read() {}
        self.child.wait().unwrap().code().unwrap()
    }
}

/// S0-24, S3-42 in part: after one key the run continues while the human reads the rest.
#[test]
fn request_is_opened_and_answered_with_one_key() {
    let place = Place::new();
    place.asks_for_login();
    place.write("logged-in", "");
    let mut person = Person::at(&place, &["inbox"], &[]);
    person.sees("1 pending request");
    person.types("\r").sees("retry; you fixed it manually");
    person
        .types("d")
        .sees("in the background")
        .sees("succeeded");
    assert_eq!(person.types("q").leaves(), 0);
    assert_eq!(place.json_of_run("state.json")["status"], "recovered");
    assert_eq!(place.waiting(), [""; 0]);
}

/// S0-15: instructions typed in the inbox are the role's next context.
#[test]
fn role_is_retried_with_typed_instructions() {
    let place = Place::new();
    let script = "grep staging || { echo 'Invalid API key · Please run /login' >&2; exit 1; }";
    let role = format!(
        "[[role]]\nid = \"tester\"\nagent = \"command\"\ncommand = [\"sh\", \"-c\", \"\"\"{script}\"\"\"]\nprompt = \"Test it.\"\n"
    );
    place.write("unstuck.toml", &role);
    assert_eq!(place.run(&["run", "--quiet"], "").code, 3);
    let asked = place.json(&["inbox", "--json"], "");
    assert_eq!(asked[0]["role"], "tester");
    let mut person = Person::at(&place, &["inbox"], &[]);
    person.sees("1 pending request");
    person.types("\r").sees("t  retry");
    person.types("t").sees("Enter send");
    person.types("use the staging key\r").sees("succeeded");
    assert_eq!(person.types("q").leaves(), 0);
    assert_eq!(place.json_of_run("state.json")["status"], "recovered");
}

#[test]
fn repair_is_previewed_and_approved() {
    let place = Place::new();
    place.asks_for_repair();
    let mut person = Person::at(&place, &["inbox"], &[]);
    person.sees("1 pending request");
    person.types("\r").sees("p  preview");
    person.types("p").sees("on a copy of the project");
    // Without a sandbox, it says so.
    person.sees("any other key to close");
    person.types("q").sees("a  approve");
    person.types("a").sees("succeeded");
    assert_eq!(person.types("q").leaves(), 0);
    assert!(place.project().join("out/reports").exists());
}

#[test]
fn new_requests_appear_and_answers_of_others_are_shown() {
    let place = Place::new();
    let mut person = Person::at(&place, &["inbox", "--watch"], &[]);
    person.sees("no pending requests");
    place.asks_for_login();
    person.sees("Invalid API");
    person.types("\r").sees("x  abort");
    let id = place.waiting().remove(0);
    place.run(&["skip", &id, "--quiet"], "");
    person.sees("was skipped by ");
    assert_eq!(person.types("qq").leaves(), 0);
}

#[test]
fn terminal_is_restored_at_every_exit() {
    let place = Place::new();
    place.asks_for_login();
    let mut person = Person::at(&place, &["inbox"], &[]);
    person.sees("1 pending request");
    assert_eq!(person.types("\u{3}").leaves(), 130);
    assert!(person.seen.contains("\u{1b}[?1049l"), "{:?}", person.seen);
    let mut person = Person::at(&place, &["inbox"], &[]);
    person.sees("1 pending request");
    person.seen.clear();
    let pid = Pid::from_raw(i32::try_from(person.child.id()).unwrap()).unwrap();
    kill_process(pid, Signal::TERM).unwrap();
    assert_eq!(person.leaves(), 143);
    assert!(person.seen.contains("\u{1b}[?1049l"), "{:?}", person.seen);
}

#[test]
fn lost_connection_leaves_nothing_behind() {
    let place = Place::new();
    place.asks_for_login();
    let mut person = Person::at(&place, &["inbox"], &[]);
    person.sees("1 pending request");
    let Person {
        master, mut child, ..
    } = person;
    drop(master);
    assert!(!child.wait().unwrap().success());
}

#[test]
fn resized_terminal_is_redrawn() {
    let place = Place::new();
    place.asks_for_login();
    let mut person = Person::at(&place, &["inbox"], &[]);
    person.sees("Invalid API").sees("q quit");
    person.seen.clear();
    tcsetwinsize(&person.master, size(50, 10)).unwrap();
    person.sees("sh -c '…").sees("q quit");
    assert!(person.seen.contains("\u{1b}[10;1H"), "{:?}", person.seen);
    assert_eq!(person.types("q").leaves(), 0);
}

#[test]
fn colors_can_be_disabled() {
    let place = Place::new();
    place.asks_for_login();
    let mut person = Person::at(&place, &["inbox"], &[("NO_COLOR", "1")]);
    person.sees("q quit");
    assert!(person.seen.contains("> just now"), "{:?}", person.seen);
    let is_style = |part: &&str| {
        let end = part.trim_start_matches(|c: char| c.is_ascii_digit() || c == ';');
        end.starts_with('m')
    };
    let styles = person.seen.split("\u{1b}[").skip(1).filter(is_style);
    assert_eq!(styles.count(), 0, "{:?}", person.seen);
    assert_eq!(person.types("q").leaves(), 0);
}

/// N29: one key and a `y` abort all requests of a project.
#[test]
fn all_requests_of_a_project_are_aborted_by_one_key() {
    let place = Place::new();
    for code in ["4", "5"] {
        let exec = ["exec", "--", "sh", "-c", &format!("exit {code}")];
        place.run(&exec, "").told(3, &[]);
    }
    let mut person = Person::at(&place, &["inbox"], &[]);
    person.sees("q quit");
    person.types("X").sees("abort all 2 requests of project");
    person
        .types("y")
        .sees("2 aborted")
        .sees("no pending requests");
    assert_eq!(person.types("q").leaves(), 0);
    assert_eq!(place.json(&["inbox", "--json"], ""), serde_json::json!([]));
}
