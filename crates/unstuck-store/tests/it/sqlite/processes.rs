//! Child processes: this test binary, running a single helper test.

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use futures_util::StreamExt;
use unstuck_store::{
    EventLogEntry, EventLogOffset, MaintenanceReport, MaintenanceTask, Store, StoreError,
    StoreLocation, StoreOptions,
};

use crate::contract::{Place, wait};
use crate::samples::{append, attempt_started, run, started};

/// The variable that passes the store to a child process.
const STORE: &str = "UNSTUCK_TEST_STORE";

/// Returns the store this process was started for.
pub(super) fn told() -> StoreLocation {
    StoreLocation::file(PathBuf::from(std::env::var_os(STORE).unwrap()))
}

/// Returns a command that runs one of the ignored helper tests on a store, perhaps through another program.
pub(super) fn process(by: &[&str], test: &str, location: &StoreLocation) -> Command {
    let program = std::env::current_exe().unwrap();
    let first = by.first().map_or_else(|| program.clone(), PathBuf::from);
    #[expect(
        clippy::disallowed_methods,
        reason = "the one place in these tests that starts processes"
    )]
    let mut command = Command::new(first);
    command.args(by.iter().skip(1));
    if !by.is_empty() {
        command.arg(program);
    }
    command.args(["--exact", test, "--ignored", "--nocapture"]);
    command.env(STORE, location.path());
    command
}

/// Returns the lines a process writes after the preamble of the test harness.
pub(super) fn lines(child: &mut Child) -> impl Iterator<Item = String> + use<> {
    let output = BufReader::new(child.stdout.take().unwrap());
    output.lines().map_while(Result::ok)
}

const WRITERS: u32 = 4;
const APPENDS: u32 = 40;

#[test]
fn several_processes_write_to_the_same_runs() {
    let place = Place::new();
    let shared = run(0);
    let store = wait(place.open());
    wait(store.append(append(&shared, [started(&shared)]))).unwrap();
    let writers: Vec<_> = (0..WRITERS)
        .map(|_| {
            process(
                &[],
                "sqlite::processes::writes_to_a_shared_run",
                &place.location(),
            )
            .stdout(Stdio::null())
            .spawn()
            .unwrap()
        })
        .collect();
    for number in 0..APPENDS {
        wait(store.append(append(&shared, [attempt_started(&shared, number)]))).unwrap();
    }
    for mut writer in writers {
        assert!(writer.wait().unwrap().success());
    }
    let events = wait(store.load(&shared)).unwrap();
    assert_eq!(events.len() as u32, 1 + (WRITERS + 1) * APPENDS);
    let checked = wait(store.maintain(MaintenanceTask::Check)).unwrap();
    assert!(matches!(checked, MaintenanceReport::Checked { findings, .. } if findings.is_empty()));
}

/// Several processes write, each at its own pace: a follower sees every event once, in order.
#[test]
fn writes_of_other_processes_are_followed() {
    let place = Place::new();
    let shared = run(0);
    let store = wait(place.open());
    wait(store.append(append(&shared, [started(&shared)]))).unwrap();
    let begin = || async { store.follow(Some(EventLogOffset::default())).await.unwrap() };
    let (mut one, mut other) = (Box::pin(wait(begin())), Box::pin(wait(begin())));
    let writer = "sqlite::processes::writes_to_a_shared_run";
    let spawned = |_| {
        let mut process = process(&[], writer, &place.location());
        process.stdout(Stdio::null()).spawn().unwrap()
    };
    let writers: Vec<_> = (0..WRITERS).map(spawned).collect();
    let all = (1 + WRITERS * APPENDS) as usize;
    for news in [&mut one, &mut other] {
        let mut told: Vec<EventLogEntry> = Vec::new();
        while told.len() < all {
            told.extend(wait(news.next()).unwrap().unwrap());
        }
        let places: Vec<u64> = told.iter().map(|event| event.offset.number()).collect();
        assert_eq!(places, (1..=all as u64).collect::<Vec<_>>());
        let seqs: Vec<u64> = told.iter().map(|event| event.record.seq).collect();
        assert_eq!(seqs, places, "one run, told in its own order too");
    }
    for mut writer in writers {
        assert!(writer.wait().unwrap().success());
    }
}

#[test]
#[ignore = "started by another test as a process of its own"]
fn writes_to_a_shared_run() {
    wait(async {
        let store = Store::open(&told(), StoreOptions::default()).await?;
        for number in 0..APPENDS {
            store
                .append(append(&run(0), [attempt_started(&run(0), number)]))
                .await?;
        }
        store.close().await
    })
    .unwrap_or_else(|error: StoreError| panic!("{error}"));
}
