//! `unstuck runs`, `show`, `logs`, `explain`: what happened, afterwards.

use crate::Place;

const QUICK: &str = "[policy]\ntemplate = \"patient\"\njitter = \"none\"\nbackoffBase = 0.02\n";

fn recovered() -> Place {
    let place = Place::new();
    place.write("unstuck.toml", QUICK);
    let script = "echo x >> count; echo out; [ $(wc -l < count) -ge 2 ] || { echo '429 Too Many Requests' >&2; exit 1; }";
    assert_eq!(place.run(&["exec", "--", "sh", "-c", script], "").code, 0);
    place
}

/// Times, ids and durations are other ones each time.
fn steady(text: &str, place: &Place) -> String {
    let run = place.json(&["runs", "--json"], "")[0]["id"]
        .as_str()
        .unwrap()
        .to_owned();
    let text = text
        .replace(&run, "RUNRUNRUNR")
        .replace(&run[..6], "RUNRUN");
    let text = text.replace(&place.folder.path().display().to_string(), "~");
    let digits = |word: &str| word.len() == 8 && word.matches(':').count() == 2;
    let took = |line: &str| match line.split_once(" after ") {
        Some((before, rest)) if rest.contains(" s") && !line.contains("done after") => {
            format!("{before} after N s")
        }
        Some(("recovered", _)) => "recovered after N s: …".to_owned(),
        _ => line.to_owned(),
    };
    let lines = text.lines().map(took);
    let lines = lines.map(|line| {
        let words = line
            .split(' ')
            .map(|word| if digits(word) { "HH:MM:SS" } else { word });
        words.collect::<Vec<_>>().join(" ")
    });
    lines.collect::<Vec<_>>().join("\n")
}

#[test]
fn without_a_store_the_history_is_empty() {
    let place = Place::new();
    assert_eq!(place.json(&["runs", "--json"], ""), serde_json::json!([]));
    let ended = place.run(&["show"], "");
    assert_eq!(ended.code, 1);
    assert!(ended.stderr.contains("no runs yet"), "{}", ended.stderr);
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
    let wrong = place.run(&["runs", "--status", "dead"], "");
    assert_eq!(wrong.code, 2);
    assert!(wrong.stderr.contains("awaiting_human"), "{}", wrong.stderr);
}

#[test]
fn a_run_is_shown_attempt_by_attempt() {
    let place = recovered();
    let shown = place.run(&["show"], "");
    insta::assert_snapshot!(steady(&shown.stdout, &place));
    let run = place.json(&["show", "--json"], "");
    assert_eq!(run["attempts"][0]["diagnosis"]["kind"], "rate_limit");
    assert_eq!(run["attempts"][1]["outcome"], "succeeded");
    let id = run["id"].as_str().unwrap();
    assert_eq!(place.run(&["show", &id[..4]], "").code, 0);
}

#[test]
fn a_decision_is_explained() {
    let place = recovered();
    let told = place.run(&["explain"], "").stdout;
    for part in [
        "rule rate_limit/",
        "[policy] in",
        "3 retries at each level",
        "chosen: same",
        "draw ",
    ] {
        assert!(told.contains(part), "{part} in {told}");
    }
    let id = place.json(&["runs", "--json"], "")[0]["id"]
        .as_str()
        .unwrap()
        .to_owned();
    let one = place.json(&["explain", &format!("{id}/1"), "--json"], "");
    assert_eq!(one[0]["made_from"]["limits"]["retries"], 3);
    let missing = place.run(&["explain", &format!("{id}/9")], "");
    assert_eq!(missing.code, 1);
    assert!(
        missing.stderr.contains("no attempt 9"),
        "{}",
        missing.stderr
    );
}

#[test]
fn logs_show_what_was_written() {
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
