//! Tests that every attempt gets the same standard input.

use std::fs::File;
use std::io::{Seek, SeekFrom, Write};
use std::os::fd::OwnedFd;

use unstuck_run::process::{KnownStdinContents, ProcessError, ProcessSpec, Stdin};

use crate::support::{again, run_with, supervisor};

fn pipe() -> (OwnedFd, File) {
    let (read, write) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC).unwrap();
    (read, File::from(write))
}

#[tokio::test]
async fn pipe_is_replayed_to_the_second_attempt_and_continues() {
    let (read, mut write) = pipe();
    let mut stdin = Stdin::from_descriptor(read).unwrap();
    let mut supervisor = supervisor();
    write.write_all(b"one\ntwo\n").unwrap();
    let first = again(
        &mut supervisor,
        &ProcessSpec::shell("read a; echo $a; exit 1"),
        &mut stdin,
    )
    .await
    .unwrap();
    assert_eq!(first.stdout.text(), "one\n");
    assert_eq!(stdin.contents(), KnownStdinContents::Incomplete);
    write.write_all(b"three\n").unwrap();
    drop(write);
    for _ in 0..2 {
        let ended = again(&mut supervisor, &ProcessSpec::new("cat"), &mut stdin)
            .await
            .unwrap();
        assert_eq!(ended.stdout.text(), "one\ntwo\nthree\n");
    }
    assert_eq!(
        stdin.contents(),
        KnownStdinContents::Complete(b"one\ntwo\nthree\n".to_vec())
    );
}

#[tokio::test]
async fn file_is_read_from_the_same_offset_by_every_attempt() {
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(b"skipped\nkept\n").unwrap();
    file.seek(SeekFrom::Start(8)).unwrap();
    let mut stdin = Stdin::from_descriptor(file.into()).unwrap();
    let mut supervisor = supervisor();
    for _ in 0..2 {
        let ended = again(&mut supervisor, &ProcessSpec::new("cat"), &mut stdin)
            .await
            .unwrap();
        assert_eq!(ended.stdout.text(), "kept\n");
    }
    assert_eq!(
        stdin.contents(),
        KnownStdinContents::Complete(b"kept\n".to_vec())
    );
}

#[tokio::test]
async fn large_known_input_arrives_completely() {
    let bytes = vec![b'z'; 3_000_000];
    let mut stdin = Stdin::from_bytes(bytes);
    let ended = run_with(&ProcessSpec::shell("wc -c"), &mut stdin).await;
    assert_eq!(ended.stdout.text().trim(), "3000000");
}

#[tokio::test]
async fn child_that_does_not_read_causes_no_wait() {
    let mut stdin = Stdin::from_bytes(vec![b'z'; 3_000_000]);
    let ended = run_with(&ProcessSpec::new("true"), &mut stdin).await;
    assert!(ended.status.is_success());
}

#[tokio::test]
async fn too_large_input_passes_once_and_is_refused_the_second_time() {
    let (read, mut write) = pipe();
    let mut stdin = Stdin::from_descriptor(read).unwrap();
    let size = 9 * 1024 * 1024;
    let writer = std::thread::spawn(move || write.write_all(&vec![b'y'; size]));
    let mut supervisor = supervisor();
    let ended = again(&mut supervisor, &ProcessSpec::shell("wc -c"), &mut stdin)
        .await
        .unwrap();
    writer.join().unwrap().unwrap();
    assert_eq!(ended.stdout.text().trim(), size.to_string());
    assert_eq!(stdin.contents(), KnownStdinContents::TooLarge);
    let result = again(&mut supervisor, &ProcessSpec::new("cat"), &mut stdin).await;
    assert!(matches!(result, Err(ProcessError::StdinNotReplayable)));
}

#[tokio::test]
async fn empty_input_ends_at_once() {
    let mut stdin = Stdin::from_descriptor(File::open("/dev/null").unwrap().into()).unwrap();
    assert_eq!(stdin.contents(), KnownStdinContents::Nothing);
    let ended = run_with(&ProcessSpec::new("cat"), &mut stdin).await;
    assert!(ended.status.is_success());
}
