//! `unstuck runs`, `show`, `logs`, `explain`: the history.

use crate::Place;
use crate::output_snapshot::assert_output;

const QUICK: &str = "[policy]\ntemplate = \"patient\"\njitter = \"none\"\nbackoffBase = 0.02\n";

fn recovered() -> Place {
    let place = Place::new();
    place.write("unstuck.toml", QUICK);
    let script = "echo x >> count; echo out; [ $(wc -l < count) -ge 2 ] || { echo '429 Too Many Requests' >&2; exit 1; }";
    assert_eq!(place.run(&["exec", "--", "sh", "-c", script], "").code, 0);
    place
}

#[test]
fn history_without_a_store_is_empty() {
    let place = Place::new();
    assert_eq!(place.json(&["runs", "--json"], ""), serde_json::json!([]));
    let ended = place.run(&["show"], "");
    assert_eq!(ended.code, 1);
    assert_output!(place, ended.stderr);
    assert!(
        !place.folder.path().join(".local").exists(),
        "looking makes nothing"
    );
}

#[test]
fn runs_are_listed_and_filtered() {
    let place = recovered();
    place.run(&["exec", "--", "true"], "");
    let all = place.json(&["runs", "--json"], "");
    assert_eq!(all[0]["status"], "succeeded");
    assert_eq!(all[1]["status"], "recovered");
    let only = |args: &[&str]| {
        let args = [&["runs", "--json"], args].concat();
        place.json(&args, "").as_array().unwrap().len()
    };
    assert_eq!(only(&["--status", "recovered"]), 1);
    assert_eq!(only(&["--kind", "rate_limit"]), 1);
    assert_eq!(only(&["--kind", "timeout"]), 0);
    assert_eq!(only(&["--project", "."]), 2);
    assert_eq!(only(&["--since", "1h"]), 2);
    assert_eq!(only(&["-n", "1"]), 1);
    let none = place.run(&["runs", "--kind", "timeout"], "").stdout;
    assert_output!(place, none);
    let wrong = place.run(&["runs", "--status", "dead"], "");
    assert_eq!(wrong.code, 2);
    assert_output!(place, wrong.stderr);
}

#[test]
fn run_is_shown_attempt_by_attempt() {
    let place = recovered();
    let shown = place.run(&["show"], "").stdout;
    // A delay of a few milliseconds may be over before it is recorded.
    let is_wait = |line: &&str| line.trim_start().starts_with("wait     until ");
    let lines: Vec<_> = shown.lines().filter(|line| !is_wait(line)).collect();
    assert_output!(place, lines.join("\n"));
    let run = place.json(&["show", "--json"], "");
    assert_eq!(run["attempts"][0]["diagnosis"]["kind"], "rate_limit");
    assert_eq!(run["attempts"][1]["outcome"], "succeeded");
    let id = run["id"].as_str().unwrap();
    assert_eq!(place.run(&["show", &id[..4]], "").code, 0);
}

#[test]
fn command_is_listed_as_typed() {
    let place = Place::new();
    let long = "x".repeat(200);
    place.run(&["exec", "--", "echo", "two words", &long], "");
    let listed = place.run(&["runs"], "").stdout;
    assert!(
        listed.contains(&format!("  echo 'two words' {long}")),
        "{listed}"
    );
}

/// The second run of that history has no end, and no process drives it.
#[test]
fn run_without_supervisor_is_crashed() {
    let place = Place::with_history();
    let told = |args: &[&str]| {
        let args = [&["--store", "history.db"], args].concat();
        place.run(&args, "").stdout
    };
    let shown = told(&["show", "k3z"]);
    assert_output!(place, shown);
    let listed = told(&["runs", "--status", "crashed"]);
    assert!(listed.starts_with("k3zzzz  crashed  "), "{listed}");
    let running = told(&["runs", "--status", "running"]);
    assert_output!(place, running);
    let json: serde_json::Value = serde_json::from_str(&told(&["show", "k3z", "--json"])).unwrap();
    assert_eq!(json["status"], "crashed");
    assert_eq!(json["state"]["state"], "crashed");
    assert_eq!(json["state"]["next"]["actor"], "human");
    assert_eq!(json["state"]["next"]["action"], "resume");
}

#[test]
fn single_attempt_is_shown_with_the_end_of_its_output() {
    let place = recovered();
    let run = place.json(&["runs", "--json"], "")[0]["id"].clone();
    let id = run.as_str().unwrap();
    let first = place.run(&["show", &format!("{id}/1")], "").stdout;
    let end = "── end of standard output ──\nout\n\n\
        ── end of standard error ──\n429 Too Many Requests\n";
    assert!(first.contains(end), "{first}");
    assert!(!first.contains("attempt 2"), "{first}");
    let second = place.json(&["show", &format!("{id}/2"), "--json"], "");
    assert_eq!(second["attempt_count"], 2);
    assert_eq!(second["attempts"].as_array().unwrap().len(), 1);
    assert_eq!(second["attempts"][0]["number"], 2);
    for number in ["3", "x", "x/y"] {
        let ended = place.run(&["show", &format!("{id}/{number}")], "");
        assert_eq!(ended.code, 1);
        assert_output!(place, ended.stderr);
    }
}

/// As binary fractions 0.1 and 0.02 add up to slightly more than 0.12.
#[test]
fn costs_are_shown_without_rounding_errors() {
    let place = Place::new();
    place.write("unstuck.toml", QUICK);
    place.tool(
        "claude",
        "#!/bin/sh\necho x >> count\nif [ $(wc -l < count) -ge 2 ]; then\n\
        echo '{\"type\":\"result\",\"subtype\":\"success\",\"is_error\":false,\"result\":\"Done.\",\"total_cost_usd\":0.02}'\nelse\n\
        echo '{\"type\":\"result\",\"subtype\":\"success\",\"is_error\":true,\"result\":\"API Error: 529 Overloaded\",\"total_cost_usd\":0.1}'; exit 1\nfi\n",
    );
    let args = [
        "exec",
        "--",
        "claude",
        "-p",
        "--output-format",
        "json",
        "work",
    ];
    assert_eq!(place.run(&args, "").code, 0);
    let cost = |text: &str| {
        let line = text
            .lines()
            .find(|line| line.starts_with("  ") && line.contains("\"cost_usd\""));
        line.unwrap_or_default()
            .trim()
            .trim_end_matches(',')
            .to_owned()
    };
    let listed = place.run(&["runs", "--json"], "").stdout;
    assert_eq!(cost(&listed), "\"cost_usd\": 0.12", "{listed}");
    let shown = place.json(&["show", "--json"], "");
    assert_eq!(shown["cost_usd"].to_string(), "0.12");
}

#[test]
fn shell_completes_statuses_and_kinds() {
    let place = Place::new();
    let completed = |words: &[&str]| {
        let mut command = place.command(&[&["--", "unstuck"], words].concat());
        command
            .env("COMPLETE", "bash")
            .env("_CLAP_COMPLETE_INDEX", words.len().to_string())
            .env("_CLAP_IFS", ",");
        String::from_utf8(command.output().unwrap().stdout).unwrap()
    };
    assert_eq!(completed(&["runs", "--status", "re"]), "recovered");
    assert_eq!(
        completed(&["runs", "--kind", "rate"]),
        "rate_limit,rate_limit_timed"
    );
    assert_eq!(
        completed(&["store", "export", "--event", "waiting"]),
        "waiting_until"
    );
}

#[test]
fn random_delays_are_explained_as_such() {
    let told = recovered().run(&["explain"], "").stdout;
    assert!(told.contains("at most 300 s\n"), "{told}");
    let place = Place::new();
    place.write(
        "unstuck.toml",
        "[policy]\ntemplate = \"patient\"\nbackoffBase = 0.02\nmaxRetries = 1\n",
    );
    let script = "echo '503 Service Unavailable' >&2; exit 1";
    place.run(&["exec", "--", "sh", "-c", script], "");
    let told = place.run(&["explain"], "").stdout;
    assert!(told.contains(" s; full jitter: random"), "{told}");
}

#[test]
fn decision_is_explained() {
    let place = recovered();
    let told = place.run(&["explain"], "").stdout;
    assert_output!(place, told);
    let id = place.json(&["runs", "--json"], "")[0]["id"]
        .as_str()
        .unwrap()
        .to_owned();
    let one = place.json(&["explain", &format!("{id}/1"), "--json"], "");
    assert_eq!(one[0]["basis"]["limits"]["retries"], 3);
    let missing = place.run(&["explain", &format!("{id}/9")], "");
    assert_eq!(missing.code, 1);
    assert_output!(place, missing.stderr);
}

#[test]
fn logs_show_the_written_output() {
    let place = recovered();
    let logs = place.run(&["logs"], "");
    assert_eq!(logs.stdout, "out\nout\n");
    assert!(
        logs.stderr.contains("429 Too Many Requests"),
        "{}",
        logs.stderr
    );
    let second = place.run(&["logs", "--attempt", "2", "-f"], "");
    assert_eq!(second.stdout, "out\n");
    let files = place.json(&["logs", "--json"], "");
    assert_eq!(files.as_array().unwrap().len(), 4);
}
