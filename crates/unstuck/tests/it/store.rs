//! `unstuck store`

use std::fs;

use unstuck_core::event::{
    Event, RunFinished, RunId, RunKind, RunOutcome, RunStarted, SessionSpec,
};
use unstuck_core::{RetryPolicy, Timestamp};
use unstuck_store::{RunEventBatch, Store, StoreLocation, StoreOptions};

use crate::Place;
use crate::output_snapshot::assert_output;

impl Place {
    /// A store with one old finished run and an unfinished one; its file is `history.db` in the project.
    pub(crate) fn with_history() -> Self {
        let place = Self::new();
        let location = StoreLocation::file(place.project().join("history.db"));
        let work = async {
            let store = Store::open(&location, StoreOptions::default())
                .await
                .unwrap();
            for (run, end) in [("k3v9x0m2qa", Some(finished())), ("k3zzzzzzzz", None)] {
                let run = RunId::new(run);
                let events = [started(&run)].into_iter().chain(end);
                let append =
                    RunEventBatch::new(run, Timestamp::from_seconds(1_700_000_000), events);
                store.append(append).await.unwrap();
            }
            store.close().await.unwrap();
        };
        let runtime = tokio::runtime::Builder::new_current_thread().build();
        runtime.unwrap().block_on(work);
        place
    }

    fn store(&self, args: &[&str]) -> crate::Ended {
        self.run(&[&["--store", "history.db", "store"], args].concat(), "")
    }
}

fn started(run: &RunId) -> Event {
    Event::from(Box::new(RunStarted {
        head: None,
        project: "/home/me/shop".into(),
        kind: RunKind::Command(Box::new(SessionSpec {
            cwd: "/home/me/shop".into(),
            command: vec!["claude".into()],
            agent: None,
            model: None,
            session: run.session_id(1),
            policy: RetryPolicy::default(),
            origins: Default::default(),
            timeout_ms: None,
            idle_timeout_ms: None,
            options: serde_json::Value::Null,
            unrepeatable_reason: None,
            knowledge: "0.1.0".into(),
        })),
    }))
}

fn finished() -> Event {
    Event::from(RunFinished {
        outcome: RunOutcome::Succeeded,
        exit_code: 0,
        reason: "It is done.".into(),
        attempts: 1,
        retry_count: 0,
        recovery_level: None,
        cost_usd: Some(0.0),
        duration_ms: 5,
    })
}

#[test]
fn store_is_in_the_state_directory_by_default() {
    let place = Place::new();
    let home = place
        .project()
        .parent()
        .unwrap()
        .join(".local/state/unstuck/unstuck.db");
    let told = place.run(&["store", "path"], "").stdout;
    assert_eq!(told.trim_end(), home.to_str().unwrap());
    assert_eq!(place.store(&["path"]).stdout, "history.db\n");
    assert!(!home.exists(), "asking makes nothing");
}

#[test]
fn missing_store_is_an_empty_history() {
    let place = Place::new();
    for args in [
        &["check"][..],
        &["vacuum"],
        &["export"],
        &["prune", "--older-than", "1d"],
    ] {
        let ended = place.store(args);
        assert_eq!((ended.code, ended.stderr.as_str()), (0, ""), "{args:?}");
    }
    assert_eq!(place.store(&["check", "--json"]).stdout, "[]\n");
    assert!(!place.project().join("history.db").exists());
}

#[test]
fn sound_store_is_reported_with_its_size() {
    let place = Place::with_history();
    let checked = place.store(&["check"]);
    assert_output!(place, checked.stdout);
    assert_eq!(place.store(&["check", "--json"]).stdout, "[]\n");
    assert!(place.store(&["vacuum"]).stdout.contains(" MB (was "));
}

#[test]
fn damage_is_listed_and_is_an_error() {
    let place = Place::with_history();
    let file = rusqlite::Connection::open(place.project().join("history.db")).unwrap();
    file.execute("DELETE FROM runs WHERE id = 'k3zzzzzzzz'", [])
        .unwrap();
    drop(file);
    let checked = place.store(&["check"]);
    assert_eq!(checked.code, 2);
    assert_output!(place, checked.stdout);
    assert_output!(place, checked.stderr);
    let listed: serde_json::Value =
        serde_json::from_str(&place.store(&["check", "--json"]).stdout).unwrap();
    assert_eq!(listed[0]["subject"], "k3zzzzzzzz");
}

#[test]
fn export_writes_one_event_per_line() {
    let place = Place::with_history();
    let lines = |args: &[&str]| {
        let ended = place.store(args);
        assert_eq!((ended.code, ended.stderr.as_str()), (0, ""), "{args:?}");
        ended.stdout.lines().map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(lines(&["export"]).len(), 3);
    assert_eq!(lines(&["export", "--run", "k3v"]).len(), 2);
    assert_eq!(lines(&["export", "--since", "1h"]).len(), 0);
    assert_eq!(lines(&["export", "--project", "/home/me/shop"]).len(), 3);
    let ends = lines(&["export", "--event", "run_finished"]);
    assert!(ends[0].starts_with(
        r#"{"v":2,"run":"k3v9x0m2qa","seq":2,"at":"2023-11-14T22:13:20Z","event":"run_finished""#
    ));
    for prefix in ["k3", "x"] {
        let ended = place.store(&["export", "--run", prefix]);
        assert_eq!(ended.code, 1);
        assert_output!(place, ended.stderr);
    }
}

#[test]
fn export_finds_a_project_by_any_of_its_directories() {
    let place = Place::new();
    place.write("unstuck.toml", "");
    place.write("src/empty", "");
    assert_eq!(place.run(&["exec", "--", "true"], "").code, 0);
    let lines = |folder: &str| {
        let ended = place.run(&["store", "export", "--project", folder], "");
        (ended.code, ended.stdout.lines().count())
    };
    let all = place.run(&["store", "export"], "").stdout.lines().count();
    assert!(all > 0);
    assert_eq!((lines("."), lines("src")), ((0, all), (0, all)));
    assert_eq!((lines(".."), lines("nowhere")), ((0, 0), (2, 0)));
}

#[test]
fn unknown_event_is_rejected_with_a_suggestion() {
    let place = Place::with_history();
    let ended = place.store(&["export", "--event", "attempt_faild"]);
    assert_eq!((ended.code, ended.stdout.as_str()), (2, ""));
    assert_output!(place, ended.stderr);
}

#[test]
fn every_reading_command_reports_a_damaged_store_alike() {
    let place = Place::with_history();
    assert_eq!(place.store(&["vacuum"]).code, 0);
    let file = place.project().join("history.db");
    let mut bytes = fs::read(&file).unwrap();
    bytes.iter_mut().skip(8192).for_each(|byte| *byte = 0xa5);
    fs::write(&file, bytes).unwrap();
    let told = place.store(&["check"]).stderr;
    assert_output!(place, told);
    for command in ["runs", "show", "logs", "explain"] {
        let ended = place.run(&["--store", "history.db", command], "");
        assert_eq!((ended.code, &ended.stderr), (2, &told), "{command}");
    }
}

#[test]
fn only_finished_runs_are_pruned() {
    let place = Place::with_history();
    let pruned = place.store(&["prune", "--older-than", "30d"]).stdout;
    assert_output!(place, pruned);
    assert_output!(place, place.store(&["check"]).stdout);
    assert_eq!(place.store(&["prune", "--older-than", "soon"]).code, 2);
}

#[test]
fn file_that_is_not_a_store_is_reported_with_a_hint() {
    let place = Place::new();
    place.write("history.db", "a shopping list, and a long one\n");
    let ended = place.store(&["check"]);
    assert_eq!(ended.code, 2);
    assert_output!(place, ended.stderr);
    let kept = fs::read_to_string(place.project().join("history.db")).unwrap();
    assert_eq!(kept, "a shopping list, and a long one\n");
    let refused = place.run(
        &["--store", "postgres://me:secret@db/x", "store", "check"],
        "",
    );
    assert!(!refused.stderr.contains("secret"), "{}", refused.stderr);
    assert_output!(place, refused.stderr);
}
