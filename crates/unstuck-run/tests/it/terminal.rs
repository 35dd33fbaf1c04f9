//! Tests of a user at a terminal: the keys reach the child, and the terminal is restored.
//!
//! Each test runs a guest behind a pseudo-terminal: this very program, which supervises a child of its own there.

use std::fs::File;
use std::io::Write;
use std::os::fd::AsFd;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::watch;
use unstuck_run::process::{
    AttemptStopRequest, OutputSink, ProcessResult, ProcessSpec, Stdin, StreamWiring,
};

use crate::support::{eventually, supervisor};

/// A sink that forwards all output to the terminal of the guest.
struct Screen;

impl OutputSink for Screen {
    fn on_stdout(&mut self, bytes: &[u8]) {
        std::io::stdout().write_all(bytes).unwrap();
        std::io::stdout().flush().unwrap();
    }

    fn on_stderr(&mut self, bytes: &[u8]) {
        self.on_stdout(bytes);
    }
}

/// Not a test: the guest. It supervises the command in a variable.
#[tokio::test]
#[ignore = "it is the guest of other tests"]
async fn guest() {
    let Some(line) = std::env::var_os("GUEST_LINE") else {
        return;
    };
    let mut supervisor = supervisor();
    let mut stdin = Stdin::inherited().unwrap();
    let (_keep, stop) = watch::channel(AttemptStopRequest::Continue);
    let mut spec = ProcessSpec::shell(line);
    // A test that relies on the grace period must not pass by waiting for it.
    spec.limits.grace = Duration::from_secs(600);
    if std::env::var_os("GUEST_TTY").is_some() {
        spec.wiring = StreamWiring::Pty;
    }
    let ended = supervisor
        .run(&spec, &mut stdin, &mut Screen, stop)
        .await
        .unwrap();
    let terminal = std::io::stdin();
    let has_it =
        rustix::termios::tcgetpgrp(terminal.as_fd()).unwrap() == rustix::process::getpgrp();
    let modes = rustix::termios::tcgetattr(terminal.as_fd())
        .unwrap()
        .local_modes;
    println!(
        "guest: {:?} interrupted={} foreground={has_it} echo={} stopped={}",
        ended.status,
        ended.was_interrupted,
        modes.contains(rustix::termios::LocalModes::ECHO),
        ended.was_stopped,
    );
}

/// The output on the guest's terminal.
#[derive(Clone, Default)]
struct Shown(Arc<Mutex<Vec<u8>>>);

impl Shown {
    fn text(&self) -> String {
        String::from_utf8_lossy(&self.0.lock().unwrap()).into_owned()
    }
}

impl OutputSink for Shown {
    fn on_stdout(&mut self, bytes: &[u8]) {
        self.0.lock().unwrap().extend_from_slice(bytes);
    }

    fn on_stderr(&mut self, bytes: &[u8]) {
        self.on_stdout(bytes);
    }
}

/// Runs a guest with this child (`stty` makes it wait until it has the terminal), and types each text once the word
/// before it is shown.
async fn sit_at(
    mut spec: ProcessSpec,
    child: &str,
    typed: &[(&str, &[u8])],
) -> (ProcessResult, String) {
    spec.wiring = StreamWiring::Pty;
    // A guest that cannot be stopped fails the test instead of blocking it.
    spec.limits.timeout = Some(Duration::from_secs(60));
    spec.env.push(("GUEST_LINE".into(), child.into()));
    let (read, write) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC).unwrap();
    let mut keyboard = File::from(write);
    let mut stdin = Stdin::from_descriptor(read).unwrap();
    let shown = Shown::default();
    let person = async {
        for (word, keys) in typed {
            eventually(word, || shown.text().contains(word)).await;
            keyboard.write_all(keys).unwrap();
        }
        // A program that still reads then would wait forever.
        keyboard
    };
    let (_keep, stop) = watch::channel(AttemptStopRequest::Continue);
    let (mut supervisor, mut sink) = (supervisor(), shown.clone());
    let run = supervisor.run(&spec, &mut stdin, &mut sink, stop);
    let (ended, _keyboard) = tokio::join!(run, person);
    (ended.unwrap(), shown.text())
}

const GUEST: [&str; 4] = ["--exact", "terminal::guest", "--ignored", "--nocapture"];

fn guest_spec() -> ProcessSpec {
    ProcessSpec::new(std::env::current_exe().unwrap()).with_args(GUEST)
}

/// Returns a guest that gives its child a terminal of its own.
fn guest_with_tty() -> ProcessSpec {
    let mut spec = guest_spec();
    spec.env.push(("GUEST_TTY".into(), "1".into()));
    spec
}

#[tokio::test]
async fn interrupt_stops_the_child_even_if_it_handles_the_signal() {
    for (trap, status) in [
        ("exit 5", "Exited(5)"),
        ("exit 0", "Exited(0)"),
        ("", "Signaled(15)"),
    ] {
        let child =
            format!("trap '{trap}' INT; stty echo; echo ready; while :; do sleep 0.05; done");
        for spec in [guest_spec(), guest_with_tty()] {
            let (ended, text) = sit_at(spec, &child, &[("ready", b"\x03")]).await;
            let told = text.lines().find(|line| line.contains("guest: "));
            let told = told.unwrap_or_default();
            // The shell decides if the trap or our own request is faster.
            let is_either = told.contains(status) || told.contains("Signaled(15)");
            assert!(is_either && told.contains("interrupted=true"), "{text}");
            assert!(told.contains("foreground=true"), "{text}");
            assert!(told.contains("stopped=true"), "{text}");
            assert!(ended.status.is_success(), "{text}");
        }
    }
}

#[tokio::test]
async fn second_interrupt_ends_the_child_at_once() {
    // A terminal may drop output at the moment of an interrupt, so it is repeated.
    let child = "trap '' INT; trap 'word=asked' TERM; stty echo; echo ready; while :; do echo $word; sleep 0.05; done";
    for spec in [guest_spec(), guest_with_tty()] {
        let keys: [(&str, &[u8]); 2] = [("ready", b"\x03"), ("asked", b"\x03")];
        let (ended, text) = sit_at(spec, child, &keys).await;
        assert!(
            text.contains("guest: Signaled(9) interrupted=true foreground=true"),
            "{text}"
        );
        assert!(ended.status.is_success(), "{text}");
    }
}

#[tokio::test]
async fn child_in_raw_mode_gets_the_interrupt_as_a_key() {
    let child = "stty raw -echo; echo ready; dd bs=1 count=1 2>/dev/null | od -An -tx1; exit 3";
    for spec in [guest_spec(), guest_with_tty()] {
        let (_, text) = sit_at(spec, child, &[("ready", b"\x03")]).await;
        assert!(text.contains(" 03"), "{text}");
        assert!(
            text.contains("guest: Exited(3) interrupted=false foreground=true"),
            "{text}"
        );
        assert!(text.contains("stopped=false"), "{text}");
    }
}

#[tokio::test]
async fn signal_to_the_childs_group_does_not_stop_the_reaper() {
    let child = "trap 'echo caught' TERM; stty echo; echo ready; kill -TERM 0; kill -TSTP 0; echo goes-on; exit 3";
    let (_, text) = sit_at(guest_spec(), child, &[("ready", b"")]).await;
    assert!(text.contains("goes-on"), "{text}");
    assert!(
        text.contains("guest: Exited(3) interrupted=false foreground=true"),
        "{text}"
    );
}

#[tokio::test]
async fn stop_of_the_childs_group_does_not_hang() {
    let child = "stty echo; echo ready; read a; kill -STOP 0; echo goes-on; exit 3";
    let (_, text) = sit_at(guest_spec(), child, &[("ready", b"\n")]).await;
    assert!(text.contains("goes-on"), "{text}");
    assert!(text.contains("guest: Exited(3)"), "{text}");
}

#[tokio::test]
async fn child_that_kills_its_group_is_reported_as_killed() {
    let child = "stty echo; echo ready; read a; kill -KILL 0; echo goes-on; exit 3";
    let (_, text) = sit_at(guest_spec(), child, &[("ready", b"\n")]).await;
    assert!(!text.contains("goes-on"), "{text}");
    assert!(
        text.contains("guest: Signaled(9) interrupted=false foreground=true"),
        "{text}"
    );
}

#[tokio::test]
async fn child_that_leads_its_own_group_has_the_terminal() {
    // `timeout` becomes the leader of a group, which must not take the terminal away from it.
    let child = "exec timeout 60 sh -c 'stty echo; echo ready; read a; echo got-$a; exit 3'";
    let (_, text) = sit_at(guest_spec(), child, &[("ready", b"hello\n")]).await;
    assert!(text.contains("got-hello"), "{text}");
    assert!(text.contains("guest: Exited(3)"), "{text}");
}

#[tokio::test]
async fn interrupt_reaches_the_child_and_is_reported_as_one() {
    // A shell loses an interrupt that arrives while it starts a command, so the test waits until it is past that.
    let (ended, text) = sit_at(
        guest_spec(),
        "stty echo; echo rea''dy; exec sed -u s/^/runs-/",
        &[("ready", b"here\n"), ("runs-here", b"\x03")],
    )
    .await;
    assert!(
        text.contains("guest: Signaled(2) interrupted=true foreground=true"),
        "{text}"
    );
    assert!(ended.status.is_success(), "{text}");
}

#[tokio::test]
async fn child_reads_typed_text_and_the_terminal_is_restored() {
    let (_, text) = sit_at(
        guest_spec(),
        "stty -echo; echo rea''dy; read a; echo got-$a; exit 3",
        &[("ready", b"hello\n")],
    )
    .await;
    assert!(text.contains("got-hello"), "{text}");
    assert!(
        text.contains("guest: Exited(3) interrupted=false foreground=true echo=true"),
        "{text}"
    );
}

/// Returns a shell with job control that runs a guest and continues it as soon as it is stopped.
fn guest_in_shell() -> ProcessSpec {
    let shell = format!(
        "set -m; '{}' {}; echo shell-is-back; fg >/dev/null",
        std::env::current_exe().unwrap().display(),
        GUEST.join(" ")
    );
    ProcessSpec::new("bash").with_args(["-c", &shell])
}

#[tokio::test]
async fn interrupt_is_handled_after_a_keyboard_suspend() {
    let (ended, text) = sit_at(
        guest_in_shell(),
        "trap '' INT; stty echo; echo ready; read a; echo got-$a; while :; do sleep 0.05; done",
        &[
            ("ready", b"\x1a"),
            ("shell-is-back", b"hello\n"),
            ("got-hello", b"\x03"),
        ],
    )
    .await;
    assert!(ended.status.is_success(), "{text}");
    assert!(
        text.contains("guest: Signaled(15) interrupted=true foreground=true"),
        "{text}"
    );
}

#[tokio::test]
async fn keyboard_suspend_stops_the_job_and_fg_continues_it() {
    let (ended, text) = sit_at(
        guest_in_shell(),
        "stty echo; echo rea''dy; read a; echo got-$a",
        &[("ready", b"\x1a"), ("shell-is-back", b"hello\n")],
    )
    .await;
    assert!(ended.status.is_success(), "{text}");
    assert!(text.contains("got-hello"), "{text}");
    assert!(
        text.contains("guest: Exited(0) interrupted=false foreground=true"),
        "{text}"
    );
}

#[tokio::test]
async fn suspend_without_a_shell_does_not_hang() {
    let (ended, text) = sit_at(
        guest_spec(),
        "echo rea''dy; kill -STOP $$; echo on-we-''go",
        &[("ready", b"")],
    )
    .await;
    assert!(ended.status.is_success(), "{text}");
    assert!(text.contains("on-we-go"), "{text}");
}
