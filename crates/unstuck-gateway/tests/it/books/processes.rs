//! Processes that write to one store concurrently, and one that is killed.

use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use unstuck_core::{RunId, Timestamp};
use unstuck_gateway::GatewayRecorder;
use unstuck_store::{CallFilter, StoreLocation};

use super::{Place, Said, books, called, opened, sound};

/// The variable that names the store to a child process.
const STORE: &str = "UNSTUCK_TEST_STORE";
const CALLS: usize = 3_000;

/// Starts a process that runs one of the ignored tests here on a store.
fn process(test: &str, place: &Place) -> Child {
    #[expect(
        clippy::disallowed_methods,
        reason = "the one place in these tests that starts processes"
    )]
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args(["--exact", test, "--ignored", "--nocapture"])
        .env(STORE, place.location().path())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

fn told() -> StoreLocation {
    StoreLocation::file(PathBuf::from(std::env::var_os(STORE).unwrap()))
}

#[expect(clippy::disallowed_methods, reason = "tests read the clock, too")]
fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    Timestamp::from_seconds(0).after(since)
}

#[tokio::test]
async fn two_processes_record_to_one_store() {
    let place = Place::new();
    let writers = [(), ()].map(|()| process("books::processes::notes_many_calls", &place));
    for mut writer in writers {
        assert!(writer.wait().unwrap().success());
    }
    let store = opened(&place.location()).await;
    let all = store.calls(&CallFilter::default()).await.unwrap();
    assert_eq!(all.len(), 2 * CALLS);
    sound(&store).await;
}

#[tokio::test]
#[ignore = "started by another test as a process of its own"]
async fn notes_many_calls() {
    let store = opened(&told()).await;
    let books = books(&store, &Said::default());
    let run = RunId::new(format!("p{}", std::process::id()));
    for number in 0..CALLS {
        books.record_call(called(&run, number, now()));
        if number % 100 == 0 {
            tokio::task::yield_now().await;
        }
    }
    books.close().await;
    assert_eq!(books.dropped_count(), 0);
}

/// A kill loses at most a second of calls, and nothing that was on disk.
#[tokio::test]
async fn kill_loses_at_most_a_second_of_calls() {
    let place = Place::new();
    let mut child = process("books::processes::notes_calls_until_killed", &place);
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let noted = lines.map_while(Result::ok).filter_map(|line| {
        let (number, at) = line.strip_prefix("noted ")?.split_once(' ')?;
        Some((number.parse::<usize>().ok()?, at.parse::<i64>().ok()?))
    });
    let mut moments: Vec<(usize, i64)> = Vec::new();
    for (number, at) in noted {
        moments.push((number, at));
        if at - moments[0].1 > 2_000 {
            child.kill().unwrap();
            break;
        }
    }
    child.wait().unwrap();
    let killed = moments.last().unwrap().1;
    let old = moments.iter().filter(|(_, at)| *at <= killed - 1_000);
    let old = old.map(|(number, _)| number + 1).max().unwrap();
    let store = opened(&place.location()).await;
    let kept = store.calls(&CallFilter::default()).await.unwrap().len();
    assert!(kept >= old, "{kept} of {old} calls that were a second old");
    sound(&store).await;
}

#[tokio::test]
#[ignore = "started by another test as a process of its own, and killed"]
async fn notes_calls_until_killed() {
    let store = opened(&told()).await;
    let books = books(&store, &Said::default());
    let run = RunId::new("killed");
    // It ends by itself if nobody kills it: a failed test must not leave a process behind.
    for number in 0..20_000 {
        let at = now();
        books.record_call(called(&run, number, at));
        let line = format!("\nnoted {number} {}\n", at.millis());
        std::io::stdout().write_all(line.as_bytes()).unwrap();
        std::io::stdout().flush().unwrap();
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}
