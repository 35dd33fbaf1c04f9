//! A killed process loses no acknowledged data.

use std::collections::BTreeMap;
use std::io::Write;
use std::os::unix::process::ExitStatusExt;
use std::process::Stdio;

use unstuck_core::FailureKind;
use unstuck_core::event::RunId;
use unstuck_store::{MaintenanceReport, MaintenanceTask, Store, StoreOptions};

use super::processes::{lines, process, told};
use crate::contract::{Place, wait};
use crate::samples::{append, attempt_started, end, failed, run, started};

const KILLS: usize = 30;

#[test]
fn acknowledged_events_survive_kill_9() {
    let place = Place::new();
    let mut acknowledged: BTreeMap<String, u64> = BTreeMap::new();
    for kill in 0..KILLS {
        let mut child = process(&[], "sqlite::crash::writes_until_killed", &place.location())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut kept = lines(&mut child).filter_map(|line| acknowledgement(&line));
        // Any varying number will do: the kill hits whatever is happening then.
        let enough = (kill * 7919 + 13) % 97;
        acknowledged.extend(kept.by_ref().take(enough));
        child.kill().unwrap();
        acknowledged.extend(kept);
        assert_eq!(
            child.wait().unwrap().signal(),
            Some(9),
            "it ended by itself"
        );
    }
    assert!(acknowledged.len() > 4, "too little was written");
    all_there(&place, &acknowledged);
}

fn all_there(place: &Place, acknowledged: &BTreeMap<String, u64>) {
    let store = wait(place.open());
    for (run, seq) in acknowledged {
        let events = wait(store.load(&RunId::new(run))).unwrap();
        assert!(
            events.len() as u64 >= *seq,
            "{run}: {} of {seq}",
            events.len()
        );
    }
    let checked = wait(store.maintain(MaintenanceTask::Check)).unwrap();
    assert!(matches!(checked, MaintenanceReport::Checked { findings, .. } if findings.is_empty()));
}

/// Returns the run and number that a line acknowledges; `None` for lines of the test harness.
fn acknowledgement(line: &str) -> Option<(String, u64)> {
    let words: Vec<_> = line.split(' ').collect();
    match words[..] {
        ["kept", run, seq] => Some((run.to_owned(), seq.parse().ok()?)),
        _ => None,
    }
}

#[test]
#[ignore = "started by another test as a process of its own, and killed"]
fn writes_until_killed() {
    wait(async {
        let store = Store::open(&told(), StoreOptions::default()).await.unwrap();
        let writers = (0..4).map(|number| writes(store.clone(), std::process::id() * 10 + number));
        let writers: Vec<_> = writers.map(tokio::spawn).collect();
        for writer in writers {
            writer.await.unwrap();
        }
    });
}

async fn writes(store: Store, number: u32) {
    let run = run(number);
    store.append(append(&run, [started(&run)])).await.unwrap();
    // The process exits by itself if nobody kills it, so that a failing test leaves nothing behind.
    for number in 0..100_000 {
        let limited = failed(end(&run, 20, Some(0.01), None), FailureKind::RateLimit);
        let events = append(&run, [attempt_started(&run, number), limited]);
        let kept = store.append(events).await.unwrap();
        let last = kept.last().unwrap();
        let line = format!("\nkept {} {}\n", last.run, last.seq);
        std::io::stdout().write_all(line.as_bytes()).unwrap();
        std::io::stdout().flush().unwrap();
    }
}
