//! On a terminal, new content is shown and confirmed once; elsewhere a message says that it is ignored.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::process::Stdio;

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

use super::SECTION;
use crate::Place;
use crate::output_snapshot::assert_output;

/// Returns the terminal output for this input, and the exit code.
fn at_terminal(place: &Place, args: &[&str], typed: &str) -> (String, i32) {
    let master: OwnedFd = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&master).unwrap();
    unlockpt(&master).unwrap();
    let name = ptsname(&master, Vec::new()).unwrap();
    let unstuck = env!("CARGO_BIN_EXE_unstuck");
    let line = [&["__tty", name.to_str().unwrap(), "--", unstuck], args].concat();
    let mut command = place.command(&line);
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let mut child = command.spawn().unwrap();
    let mut master = File::from(master);
    master.write_all(typed.as_bytes()).unwrap();
    let mut seen = Vec::new();
    let mut some = [0; 4096];
    // The end of a terminal is reported as an error.
    while let Ok(count @ 1..) = master.read(&mut some) {
        seen.extend_from_slice(&some[..count]);
    }
    let code = child.wait().unwrap().code().unwrap();
    (String::from_utf8_lossy(&seen).into_owned(), code)
}

const EXEC: [&str; 3] = ["exec", "--", "true"];
const QUESTION: &str = "Trust the current version? [y/N]";

#[test]
fn yes_is_remembered_and_asked_once() {
    let place = Place::allowing();
    let (seen, code) = at_terminal(&place, &EXEC, "y\n");
    assert_eq!(code, 0, "{seen}");
    for line in [
        "The repair rules in unstuck.toml are not trusted yet.",
        "npm ci",
        "package.json",
        QUESTION,
    ] {
        assert!(seen.contains(line), "{seen}");
    }
    assert_eq!(place.trust_status(), "trusted");
    let (seen, _) = at_terminal(&place, &EXEC, "");
    assert!(!seen.contains(QUESTION), "{seen}");
    place.write("unstuck.toml", &SECTION.replace("npm ci", "npm install"));
    let (seen, _) = at_terminal(&place, &EXEC, "yes\n");
    assert!(
        seen.contains("The repair rules in unstuck.toml changed"),
        "{seen}"
    );
    assert!(
        seen.contains("+ `npm install` runs without approval"),
        "{seen}"
    );
    assert_eq!(place.trust_status(), "trusted");
}

#[test]
fn any_other_answer_is_a_remembered_no() {
    let place = Place::allowing();
    let (seen, code) = at_terminal(&place, &EXEC, "\n");
    assert!(seen.contains(QUESTION), "{seen}");
    assert_eq!((code, place.trust_status()), (0, "declined".into()));
    let (seen, _) = at_terminal(&place, &EXEC, "");
    assert!(!seen.contains(QUESTION), "{seen}");
    assert!(seen.contains("you declined to trust them"), "{seen}");
    // Different content is asked about again.
    place.write("unstuck.toml", &SECTION.replace("npm ci", "npm install"));
    let (seen, _) = at_terminal(&place, &EXEC, "n\n");
    assert!(seen.contains(QUESTION), "{seen}");
}

#[test]
fn without_a_terminal_a_message_says_what_is_ignored() {
    let place = Place::allowing();
    let ended = place.run(&EXEC, "y\n");
    assert_eq!(ended.code, 0);
    assert_output!(place, ended.stderr);
    assert_eq!(place.trust_status(), "unknown");
}

/// S3-51: a project without repair permissions causes no question.
#[test]
fn content_that_allows_nothing_new_is_not_asked_about() {
    for text in [
        "",
        "[run]\nparallel = 2\n",
        "[recovery]\nnetwork = false\nsandbox = 'required'\n",
        "[recovery]\nenabled = false\n",
    ] {
        let place = Place::new();
        place.write("unstuck.toml", text);
        let (seen, code) = at_terminal(&place, &EXEC, "");
        assert_eq!(code, 0, "{seen}");
        assert!(!seen.contains("trust"), "{text}: {seen}");
    }
}
