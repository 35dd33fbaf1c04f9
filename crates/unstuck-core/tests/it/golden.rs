//! Stored events as written by each version: files that every later version must still read.

mod samples;

use std::path::Path;

use unstuck_core::decision::RecoveryActionSelection;
use unstuck_core::event::{Event, EventRecord, RunId, VERSION};
use unstuck_testkit::golden::assert_golden;

/// The events that this version writes.
const EVENTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/events-v2.jsonl");
/// The same events as version 1 wrote them. Never rewritten.
const EVENTS_V1: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/events-v1.jsonl");

fn recorded(path: &str) -> String {
    std::fs::read_to_string(path).unwrap()
}

/// Returns the samples as lines of one run, one second apart.
fn lines() -> String {
    let line = |(seq, event): (u64, Event)| {
        let at = samples::later(seq);
        let run = RunId::new(samples::RUN);
        let recorded = EventRecord {
            version: VERSION,
            run,
            seq,
            at,
            event,
        };
        serde_json::to_string(&recorded).unwrap() + "\n"
    };
    (1..).zip(samples::all()).map(line).collect()
}

/// Parses the lines of a file into events.
fn events(text: &str) -> Vec<Event> {
    let parse = |line| serde_json::from_str::<EventRecord>(line).unwrap().event;
    text.lines().map(parse).collect()
}

#[test]
fn events_are_written_as_recorded() {
    assert_golden(Path::new(EVENTS), &lines());
}

#[test]
fn recorded_events_round_trip_byte_for_byte() {
    for line in recorded(EVENTS).lines() {
        let read: EventRecord = serde_json::from_str(line).unwrap();
        assert!(!matches!(read.event, Event::Unknown(_)), "{line}");
        assert_eq!(serde_json::to_string(&read).unwrap(), line);
    }
}

#[test]
fn recorded_events_are_read_as_the_values_that_were_written() {
    assert_eq!(events(&recorded(EVENTS)), samples::all());
}

#[test]
fn events_of_version_1_are_read_as_the_values_that_were_written() {
    let mut expected = samples::all();
    expected.iter_mut().for_each(forget_selection);
    assert_eq!(events(&recorded(EVENTS_V1)), expected);
}

/// Version 1 did not record the eligible actions.
fn forget_selection(event: &mut Event) {
    match event {
        Event::DecisionMade(made) => made.decision.selection = RecoveryActionSelection::default(),
        Event::CallFailed(failed) => failed.decision.selection = RecoveryActionSelection::default(),
        _ => {}
    }
}

#[test]
fn every_kind_of_event_is_recorded() {
    let text = recorded(EVENTS);
    let mut seen = [false; 31];
    for line in text.lines() {
        let read: EventRecord = serde_json::from_str(line).unwrap();
        let Some(index) = index(&read.event) else {
            panic!("{line}");
        };
        seen[index] = true;
    }
    assert_eq!(seen.len(), Event::NAMES.len());
    let missing = seen.iter().position(|seen| !seen);
    assert_eq!(missing.map(|index| Event::NAMES[index]), None);
}

/// Returns the index of an event's kind in [`Event::NAMES`]. A new kind does not compile until it has a sample.
fn index(event: &Event) -> Option<usize> {
    Some(match event {
        Event::RunStarted(_) => 0,
        Event::RunResumed(_) => 1,
        Event::IterationStarted(_) => 2,
        Event::IterationFinished(_) => 3,
        Event::OutputReused(_) => 4,
        Event::SessionStarted(_) => 5,
        Event::SessionFinished(_) => 6,
        Event::AttemptStarted(_) => 7,
        Event::AttemptFailed(_) => 8,
        Event::AttemptSucceeded(_) => 9,
        Event::AttemptInterrupted(_) => 10,
        Event::DecisionMade(_) => 11,
        Event::WaitStarted(_) => 12,
        Event::WaitEnded(_) => 13,
        Event::SessionParked(_) => 14,
        Event::CallFailed(_) => 15,
        Event::CallHeld(_) => 16,
        Event::CallResumed(_) => 17,
        Event::CallFinished(_) => 18,
        Event::ModelSwitched(_) => 19,
        Event::RepairProposed(_) => 20,
        Event::RepairRejected(_) => 21,
        Event::RepairApproved(_) => 22,
        Event::RepairStarted(_) => 23,
        Event::RepairExecuted(_) => 24,
        Event::RepairFailed(_) => 25,
        Event::EscalationOpened(_) => 26,
        Event::EscalationResolved(_) => 27,
        Event::ConfigReloaded(_) => 28,
        Event::ConfigRejected(_) => 29,
        Event::RunFinished(_) => 30,
        Event::Unknown(_) => return None,
    })
}
