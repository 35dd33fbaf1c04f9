//! Tests of a child behind a pseudo-terminal.

use unstuck_run::process::{ChildExitStatus, ProcessSpec, Stdin, StreamWiring};

use crate::support::{run, run_with};

fn behind_pty(spec: ProcessSpec) -> ProcessSpec {
    ProcessSpec {
        wiring: StreamWiring::Pty,
        ..spec
    }
}

#[tokio::test]
async fn every_stream_is_a_terminal_in_its_own_session() {
    let line = "test -t 0 && test -t 1 && test -t 2 && stty size && echo err >&2 && exec 3</dev/tty && exit 4";
    let ended = run(&behind_pty(ProcessSpec::shell(line))).await;
    assert_eq!(
        ended.status,
        ChildExitStatus::Exited(4),
        "{}",
        ended.stdout.text()
    );
    assert!(ended.stdout.text().ends_with("err\r\n"));
    let size = ended.stdout.text();
    let numbers: Vec<u16> = size
        .lines()
        .next()
        .unwrap()
        .split(' ')
        .map(|number| number.parse().unwrap())
        .collect();
    assert!(numbers.len() == 2 && numbers.iter().all(|number| *number > 0));
    assert_eq!(ended.stderr.total(), 0);
}

#[tokio::test]
async fn typed_input_arrives_and_ends() {
    let mut stdin = Stdin::from_bytes(b"hello\n".to_vec());
    let ended = run_with(
        &behind_pty(ProcessSpec::shell("read a; echo got $a; cat")),
        &mut stdin,
    )
    .await;
    assert_eq!(ended.status, ChildExitStatus::Exited(0));
    assert!(
        ended.stdout.text().contains("got hello\r\n"),
        "{}",
        ended.stdout.text()
    );
}

#[tokio::test]
async fn missing_program_behind_a_terminal_is_not_found() {
    let ended = run(&behind_pty(ProcessSpec::new("no-such-program-here"))).await;
    assert!(
        matches!(ended.status, ChildExitStatus::NotFound(_)),
        "{:?}",
        ended.status
    );
}
