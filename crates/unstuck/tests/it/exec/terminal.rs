//! The display of a wait at a terminal and in a log, and the ways to end it.

use std::io::{Read, Write};
use std::process::{Child, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use unstuck_faults::FaultServer;

use crate::Place;
use crate::gateway::{api, by_user, claude};
use crate::run::Running;

/// Fails while there is no file `up`.
const DOWN: &str =
    "echo x >> ran; [ -e up ] && echo done && exit 0; echo '503 Service Unavailable' >&2; exit 1";

/// A policy that waits for ten minutes.
const LONG_WAITS: &str = "[policy]\njitter = \"none\"\nbackoffBase = 600\nmaxBackoff = 600\n";

/// A process at a terminal, which an outer unstuck provides.
struct Terminal {
    child: Child,
    pieces: Receiver<Vec<u8>>,
    shown: String,
}

impl Terminal {
    fn start(place: &Place, args: &[&str]) -> Self {
        Self::start_with(place, args, &[])
    }

    fn start_with(place: &Place, args: &[&str], env: &[(&str, &str)]) -> Self {
        let outer = ["exec", "--policy", "off", "--tty", "--"];
        let inner = [env!("CARGO_BIN_EXE_unstuck"), "--store", "inner.db"];
        let mut command = place.command(&[&outer[..], &inner, args].concat());
        let mut child = command
            .env("TERM", "xterm")
            .envs(env.iter().copied())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut stdout = child.stdout.take().unwrap();
        let (sender, pieces) = channel();
        std::thread::spawn(move || {
            let mut piece = [0; 4096];
            while let Ok(count @ 1..) = stdout.read(&mut piece) {
                if sender.send(piece[..count].to_vec()).is_err() {
                    break;
                }
            }
        });
        Self {
            child,
            pieces,
            shown: String::new(),
        }
    }

    /// Waits until all of these texts were shown.
    #[track_caller]
    fn until(&mut self, parts: &[&str]) {
        // The live line is drawn every second, so the output never ends.
        let mut pieces = 0..200;
        while !parts.iter().all(|part| self.shown.contains(part)) {
            let more = pieces
                .next()
                .and_then(|_| self.pieces.recv_timeout(Duration::from_secs(60)).ok());
            match more.ok_or(()) {
                Ok(piece) => self.shown.push_str(&String::from_utf8_lossy(&piece)),
                Err(_) => panic!("{parts:?} was not shown: {}", self.shown),
            }
        }
    }

    fn press(&mut self, keys: &[u8]) {
        self.child.stdin.as_mut().unwrap().write_all(keys).unwrap();
    }

    fn end(mut self) -> Option<i32> {
        self.child.wait().unwrap().code()
    }
}

/// The live line counts down, and shows the deadline and how to continue at once or stop.
#[test]
fn wait_counts_down_and_enter_ends_it() {
    let place = Place::new();
    place.write("unstuck.toml", LONG_WAITS);
    let mut terminal = Terminal::start(&place, &["exec", "--", "sh", "-c", DOWN]);
    terminal.until(&[
        "attempt 2 in 9 min 5",
        "gives up at",
        "Enter to retry, Ctrl-C to stop",
    ]);
    place.write("up", "");
    terminal.press(b"\r");
    terminal.until(&["retrying now, as requested", "done"]);
    assert_eq!(terminal.end(), Some(0));
    assert_eq!(place.lines("ran").len(), 2);
}

#[test]
fn ctrl_c_stops_a_wait() {
    let place = Place::new();
    place.write("unstuck.toml", LONG_WAITS);
    let mut terminal = Terminal::start(&place, &["exec", "--", "sh", "-c", DOWN]);
    terminal.until(&["attempt 2 in 9 min 5"]);
    terminal.press(b"\x03");
    assert_eq!(terminal.end(), Some(130));
}

/// The live display of a pipeline shows the same for a waiting role.
#[test]
fn waiting_role_shows_its_deadline_and_how_to_stop() {
    let place = Place::new();
    let role = format!(
        "[[role]]\nid = \"a\"\nagent = \"command\"\ncommand = [\"sh\", \"-c\", \"cat >/dev/null; {DOWN}\"]\nprompt = \"x\"\n"
    );
    place.write("unstuck.toml", &format!("{role}\n{LONG_WAITS}"));
    let mut terminal = Terminal::start(&place, &["run"]);
    terminal.until(&[
        "attempt 2 in ",
        "gives up at",
        "unstuck retry",
        "Ctrl-C to stop",
    ]);
    terminal.press(b"\x03");
    assert_eq!(terminal.end(), Some(130));
}

/// Installs a Claude Code whose first API call is held for five minutes, and returns its API.
pub(super) fn held_claude(place: &Place) -> FaultServer {
    claude(place);
    by_user(place, "[gateway.timeouts]\nclient_wait = \"9m\"\n");
    api(
        "[[step]]\nstatus = { code = 503 }\n\n[[step]]\nanswer = { text = \"Done.\" }\ntimes = \"always\"\n",
    )
}

/// A policy whose waits are as long as a client can be held.
pub(super) const HELD: &str = "[policy]\njitter = \"none\"\nbackoffBase = 300\nmaxBackoff = 300\n";

/// A wait inside the gateway is shown like any other, and Enter ends it although the agent has the terminal.
#[test]
fn held_api_call_counts_down_and_enter_ends_it() {
    let place = Place::new();
    place.write("unstuck.toml", HELD);
    let api = held_claude(&place);
    let url = api.url();
    let env = [("ANTHROPIC_BASE_URL", &*url)];
    let args = ["exec", "--", "claude", "-p", "do the work"];
    let mut terminal = Terminal::start_with(&place, &args, &env);
    terminal.until(&[
        "API retry in 4 min 5",
        "gives up at",
        "Enter to retry, Ctrl-C to stop",
    ]);
    terminal.press(b"\r");
    terminal.until(&["retrying now, as requested", "API call recovered"]);
    assert_eq!(terminal.end(), Some(0));
    assert_eq!(api.requests().len(), 2);
}

/// The live display of a pipeline shows the wait of a role's API call, too.
#[test]
fn held_api_call_of_a_role_shows_its_deadline_and_how_to_stop() {
    let place = Place::new();
    let role = "[[role]]\nid = \"a\"\nagent = \"claude\"\nprompt = \"Do the work.\"\n";
    place.write("unstuck.toml", &format!("{role}\n{HELD}"));
    let api = held_claude(&place);
    let url = api.url();
    let env = [("ANTHROPIC_BASE_URL", &*url)];
    let mut terminal = Terminal::start_with(&place, &["run"], &env);
    terminal.until(&[
        "API retry in 4 min 5",
        "gives up at",
        "unstuck retry",
        "Ctrl-C to stop",
    ]);
    terminal.press(b"\x03");
    assert_eq!(terminal.end(), Some(130));
}

/// A log repeats now and then that it still waits, and the possible actions.
#[test]
fn log_repeats_that_it_still_waits() {
    let place = Place::new();
    place.write(
        "unstuck.toml",
        &format!("[run]\nheartbeat = \"1s\"\n{LONG_WAITS}"),
    );
    let mut running = Running::start(&place, &["exec", "--", "sh", "-c", DOWN]);
    running.until(": server_error, attempt 2 in 9 min");
    running.until("still waiting");
    running.interrupt();
    let ended = running.end();
    let told = ended.stderr;
    for part in ["gives up at", "unstuck stop", "unstuck retry"] {
        assert!(told.contains(part), "{part} in {told}");
    }
}
