//! Sleeping sessions: their wake time, their cost, changes meanwhile, and exclusive access.

use std::time::{Duration, SystemTime};

use serde_json::Value;

use super::{QUICK, executions};
use crate::Place;
use crate::eventually;
use crate::output_snapshot::assert_output;
use crate::run::Running;

const CLAUDE: [&str; 7] = [
    "exec",
    "--no-gateway",
    "--",
    "claude",
    "-p",
    "do the work",
    "--verbose",
];

/// Installs a Claude Code that logs its command lines, hits a usage limit at first, and succeeds when resumed.
fn limited(place: &Place, resets: &str, first: &str, then: &str) {
    place.tool(
        "claude",
        &format!(
            r#"#!/bin/sh
echo x >> count; echo "$*" | tr '\n' ' ' >> lines; echo >> lines
case "$*" in
*--resume*) {then} echo '{{"type":"result","is_error":false,"result":"all done","session_id":"11-22"}}'; exit 0;;
esac
{first}
echo '{{"type":"result","is_error":true,"api_error_status":429,"result":"Claude AI usage limit reached|'{resets}'","session_id":"11-22"}}'; exit 1
"#
        ),
    );
}

fn in_seconds(seconds: u32) -> String {
    format!("$(($(date +%s)+{seconds}))")
}

/// Returns one assistant message of a long conversation.
fn long_conversation(model: &str) -> String {
    format!(
        r#"echo '{{"type":"assistant","message":{{"model":"{model}","content":[{{"type":"text","text":"I read all of it."}}],"usage":{{"input_tokens":1000,"cache_read_input_tokens":148000,"output_tokens":1000}}}},"session_id":"11-22"}}'"#
    )
}

/// A reset time without a date belongs to the day on which it was printed, also if it is read after a resume.
#[test]
fn reset_time_keeps_its_day_after_a_resume() {
    let place = Place::new();
    place.write("unstuck.toml", QUICK);
    let script = "echo x >> count; [ -e up ] && echo done && exit 0; echo ready; sleep 60";
    let mut running = super::stops::start(&place, &["exec", "--", "sh", "-c", script]);
    assert_eq!(super::stops::first_line(&mut running), "ready\n");
    running.kill().unwrap();
    running.wait().unwrap();
    place.write("up", "");
    // As if the child had exited unattended, yesterday.
    let runs = place.state().join("runs");
    let run = std::fs::read_dir(runs).unwrap().next().unwrap().unwrap();
    let folder = run.path().join("attempt-1");
    let printed = "5-hour limit reached - resets 11:59pm (UTC)\n";
    for (name, text) in [("stdout.log", printed), ("stderr.log", "")] {
        std::fs::write(folder.join(name), text).unwrap();
        let file = std::fs::File::options()
            .append(true)
            .open(folder.join(name));
        let yesterday = yesterday_morning();
        file.unwrap().set_modified(yesterday).unwrap();
    }
    let state = place.folder.path().join(".local/state/unstuck/unstuck.d");
    let session = format!("{}-1", run.file_name().to_string_lossy());
    std::fs::create_dir_all(&state).unwrap();
    std::fs::write(state.join(format!("{session}-1.exit")), "{\"exited\":1}").unwrap();
    let resumed = place.run(&["resume"], "");
    assert_eq!(resumed.code, 0, "{}", resumed.stderr);
    assert!(
        resumed.stderr.contains("rate_limit_timed"),
        "{}",
        resumed.stderr
    );
    assert_eq!(executions(&place), 2);
}

/// Returns ten in the morning of the day before (UTC).
fn yesterday_morning() -> SystemTime {
    const DAY: u64 = 24 * 3600;
    #[expect(
        clippy::disallowed_methods,
        reason = "files have times of the real clock"
    )]
    let now = SystemTime::now();
    let now = now
        .duration_since(SystemTime::UNIX_EPOCH)
        .unwrap()
        .as_secs();
    SystemTime::UNIX_EPOCH + Duration::from_secs(now - now % DAY - DAY + 10 * 3600)
}

/// The cost of resuming a long conversation is shown before.
#[test]
fn cost_of_resuming_a_long_conversation_is_shown_before() {
    for (model, price) in [
        ("claude-opus-5-5", "$0.60"),
        ("local-large", "price unknown"),
    ] {
        let place = Place::new();
        place.write("unstuck.toml", QUICK);
        limited(&place, &in_seconds(900), &long_conversation(model), "");
        let mut running = Running::start(&place, &CLAUDE);
        let told = format!("about 150k tokens are re-read, {price}");
        running.until(&format!("continuing the conversation afterwards: {told}"));
        let shown = place.run(&["show"], "");
        assert!(shown.stdout.contains(&told), "{}", shown.stdout);
        let shown = place.json(&["show", "--json"], "");
        let reread = &shown["attempts"][0]["wait"]["reread"];
        assert_eq!(reread["tokens"], 150_000, "{shown}");
        assert_eq!(
            reread["usd"].is_null(),
            price == "price unknown",
            "{reread}"
        );
        let listed = place.json(&["runs", "--json"], "");
        assert_eq!(listed[0]["wait"]["reread"], *reread);
        running.interrupt();
        running.end();
    }
}

/// An open escalation shows the cost of continuing the conversation.
#[test]
fn escalation_shows_the_cost_of_resuming_the_conversation() {
    let place = Place::new();
    place.write("unstuck.toml", QUICK);
    let ends = format!(
        "{}; echo 'Invalid API key · Please run /login'; exit 1",
        long_conversation("claude-opus-5-5")
    );
    limited(&place, "0", &ends, "");
    place.run(&CLAUDE, "").told(3, &[]);
    let asked = place.json(&["inbox", "--json"], "");
    assert_eq!(asked[0]["reread"]["tokens"], 150_000, "{asked}");
    let id = asked[0]["id"].as_str().unwrap();
    let whole = place.run(&["inbox", id], "");
    assert_output!(place, whole.stdout);
}

/// A conversation is told about files that changed while it slept.
#[test]
fn changed_work_tree_is_reported_to_the_agent() {
    for changes in [true, false] {
        let place = Place::new();
        place.write("unstuck.toml", QUICK);
        place.write(".gitignore", ".unstuck\nlines\ncount\n");
        place.write("code.txt", "one\n");
        crate::run::git(&place, &["init", "-q"]);
        crate::run::git(&place, &["add", "-A"]);
        crate::run::git(&place, &["commit", "-qm", "first"]);
        limited(&place, &in_seconds(3), "", "");
        let mut running = Running::start(&place, &CLAUDE);
        running.until("rate_limit_timed");
        if changes {
            place.write("code.txt", "two\n");
        }
        running.end().told(0, &[]);
        let second = &place.lines("lines")[1];
        assert!(second.contains("--resume"), "{second}");
        let told = second.contains("Files in the work tree have changed");
        assert_eq!(told, changes, "{second}");
    }
}

/// Two runs with the same conversation never continue it at the same time.
#[test]
fn conversation_is_continued_by_one_run_at_a_time() {
    let place = Place::new();
    place.write("unstuck.toml", QUICK);
    let alone = "mkdir busy || echo twice >> overlap; sleep 2; rmdir busy;";
    limited(&place, &in_seconds(2), "", alone);
    let first = Running::start(&place, &CLAUDE);
    let second = Running::start(&place, &CLAUDE);
    let (first, second) = (first.end(), second.end());
    assert_eq!((first.code, second.code), (0, 0));
    assert!(!place.project().join("overlap").exists());
    let told = format!("{}{}", first.stderr, second.stderr);
    assert!(told.contains("is in use elsewhere"), "{told}");
    let lines = place.lines("lines");
    let warned = lines
        .iter()
        .filter(|line| line.contains("was continued elsewhere"));
    assert_eq!(warned.count(), 1, "{lines:?}");
}

/// A human or an agent that continues the conversation itself has priority.
#[test]
fn conversation_in_use_elsewhere_is_not_resumed() {
    let place = Place::new();
    place.write(
        "unstuck.toml",
        &format!("{QUICK}[run]\nheartbeat = \"1s\"\n"),
    );
    let transcript = place.folder.path().join(".claude/projects/p/11-22.jsonl");
    limited(&place, &in_seconds(2), "", "");
    let mut running = Running::start(&place, &CLAUDE);
    running.until("rate_limit_timed");
    std::fs::create_dir_all(transcript.parent().unwrap()).unwrap();
    std::fs::write(&transcript, "{}\n").unwrap();
    let file = std::fs::File::options()
        .append(true)
        .open(&transcript)
        .unwrap();
    // It is being written to all the time.
    let later = file.metadata().unwrap().modified().unwrap() + Duration::from_secs(3600);
    file.set_modified(later).unwrap();
    running.until("is in use elsewhere");
    running.until("still waiting until");
    assert_eq!(executions(&place), 1);
    let status = place.json(&["status", "--json"], "");
    assert_eq!(status[0]["state"]["state"], "waiting", "{status}");
    assert_eq!(status[0]["state"]["reason"], "lock_held", "{status}");
    assert!(status[0]["state"]["until"].is_string(), "{status}");
    assert!(status[0]["state"]["next"]["at"].is_null(), "{status}");
    let shown = place.run(&["status"], "").stdout;
    assert!(shown.contains("conversation in use"), "{shown}");
    let retry = place.run(&["retry", status[0]["id"].as_str().unwrap()], "");
    assert_ne!(retry.code, 0, "{}", retry.stdout);
    assert!(
        retry.stderr.contains("waits for its conversation") && retry.stderr.contains("stop"),
        "{}",
        retry.stderr
    );
    std::fs::remove_file(&transcript).unwrap();
    running.end().told(0, &[]);
    assert_eq!(executions(&place), 2);
}

/// A conversation that stays in use elsewhere is left to a human and never resumed anyway.
#[test]
fn endless_use_of_a_conversation_elsewhere_is_escalated() {
    let place = Place::new();
    place.write("unstuck.toml", &format!("{QUICK}maxElapsed = \"3s\"\n"));
    let transcript = place.folder.path().join(".claude/projects/p/11-22.jsonl");
    let used = format!(
        "mkdir -p {0}; touch -d '+1 hour' {1}",
        transcript.parent().unwrap().display(),
        transcript.display()
    );
    limited(&place, &in_seconds(1), &used, "");
    let ended = place.run(&CLAUDE, "");
    assert_eq!(ended.code, 3, "{}", ended.stderr);
    assert_eq!(executions(&place), 1);
    let asked = place.json(&["inbox", "--json"], "");
    assert_eq!(asked[0]["kind"], "lock_held", "{asked}");
    let reason = asked[0]["reason"].as_str().unwrap();
    assert!(
        reason.contains("conversation 11-22 was in use elsewhere for 3 s"),
        "{reason}"
    );
    // An answer continues with the same conversation.
    std::fs::remove_file(&transcript).unwrap();
    place.run(&["resolve", "--last"], "");
    assert_eq!(executions(&place), 2);
    assert!(place.lines("lines")[1].contains("--resume"));
}

/// A run that crashes repeatedly without progress is left to a human.
#[test]
fn crashing_run_is_not_resumed_endlessly() {
    let place = Place::new();
    place.write("unstuck.toml", QUICK);
    let script = "echo x >> count; sleep 60";
    for round in 1..=3 {
        let args: &[&str] = match round {
            1 => &["exec", "--", "sh", "-c", script],
            _ => &["resume"],
        };
        let mut child = super::stops::start(&place, args);
        eventually(|| {
            let count = std::fs::read_to_string(place.project().join("count"));
            count.unwrap_or_default().lines().count() >= round
        });
        child.kill().unwrap();
        child.wait().unwrap();
    }
    let ended = place.run(&["resume", "--all"], "");
    assert_eq!(ended.code, 1, "{}{}", ended.stdout, ended.stderr);
    assert_output!(place, ended.stdout);
    let runs: Value = place.json(&["runs", "--json"], "");
    assert_eq!(runs[0]["status"], "crashed");
}
