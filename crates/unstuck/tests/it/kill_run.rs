//! A pipeline that is killed at any moment can be resumed, and ends with the same result.

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::Duration;

use serde_json::Value;

use crate::Place;

/// Each role builds its output from those it depends on, and takes a moment.
const ROLE: &str =
    r#"in=$(grep '^IN:' | cksum); sleep 0.03; echo "$UNSTUCK_ROLE $UNSTUCK_ITERATION $in""#;

/// Six roles, three iterations; the middle ones run in parallel.
const ROLES: [(&str, &[&str]); 6] = [
    ("plan", &[]),
    ("api", &["plan"]),
    ("page", &["plan"]),
    ("build", &["api", "page"]),
    ("test", &["build"]),
    ("docs", &["build"]),
];

fn pipeline() -> Place {
    let place = Place::new();
    let mut text = "[loop]\nmax_iterations = 3\n".to_owned();
    for (id, needs) in ROLES {
        let quoted: Vec<_> = needs.iter().map(|need| format!("{need:?}")).collect();
        let inputs: Vec<_> = needs
            .iter()
            .map(|need| format!("IN: {{{{ outputs.{need} }}}}"))
            .collect();
        text.push_str(&format!(
            "[[role]]\nid = {id:?}\nneeds = [{}]\ncommand = [\"sh\", \"-c\", '''{ROLE}''', {:?}]\nprompt = \"\"\"\n{}\nIN: {{{{ iteration }}}}\n\"\"\"\n",
            quoted.join(", "),
            place.folder.path(),
            inputs.join("\n"),
        ));
    }
    place.write("unstuck.toml", &text);
    place
}

/// Returns the outputs of all roles in all iterations.
fn outputs(place: &Place) -> BTreeMap<String, String> {
    let runs = place.project().join(".unstuck/runs");
    let run = std::fs::read_dir(runs).unwrap().next().unwrap().unwrap();
    let mut outputs = BTreeMap::new();
    for (id, _) in ROLES {
        for iteration in 1..=3 {
            let name = format!("roles/{id}/iteration-{iteration}/output.md");
            let text = std::fs::read_to_string(run.path().join(&name)).unwrap();
            outputs.insert(name, text);
        }
    }
    outputs
}

/// Returns the roles that were restarted although they had succeeded.
fn done_twice(place: &Place) -> Vec<String> {
    let mut done = BTreeSet::new();
    let mut again = Vec::new();
    for line in place.of_run("events.jsonl").lines() {
        let event: Value = serde_json::from_str(line).unwrap();
        let session = event["session"].as_str().unwrap_or_default().to_owned();
        let part = format!("{} {}", event["role"], event["iteration"]);
        match event["event"].as_str().unwrap() {
            "session_started" if done.contains(&part) => again.push(part),
            "attempt_started" if done.contains(&session) => again.push(session),
            "session_finished" if event["outcome"] == "succeeded" => {
                done.extend([part, session]);
            }
            _ => {}
        }
    }
    again
}

/// Returns the processes still running for this place.
fn left(folder: &Path) -> Vec<String> {
    let marked = folder.display().to_string();
    let mut left = Vec::new();
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let line = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
        let line = String::from_utf8_lossy(&line).into_owned();
        if line.contains(&marked) && line.contains("cksum") {
            left.push(line);
        }
    }
    left
}

fn start(place: &Place, args: &[&str]) -> Child {
    let mut command = place.command(args);
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped());
    command.spawn().unwrap()
}

/// Kills the process after this many steps; returns whether it had ended before.
fn ended_or_killed(child: &mut Child, steps: u64) -> bool {
    for _ in 0..steps {
        if let Some(status) = child.try_wait().unwrap() {
            assert_eq!(status.code(), Some(0), "{}", said(child));
            return true;
        }
        pause();
    }
    child.kill().unwrap();
    let status = child.wait().unwrap();
    status.signal().is_none() && status.success()
}

fn said(child: &mut Child) -> String {
    let mut text = String::new();
    if let Some(stderr) = &mut child.stderr {
        std::io::Read::read_to_string(stderr, &mut text).unwrap();
    }
    text
}

#[expect(
    clippy::disallowed_methods,
    reason = "the moment of the kill is the point of the test"
)]
fn pause() {
    std::thread::sleep(Duration::from_millis(5));
}

/// The number of rounds; small by default.
#[expect(
    clippy::disallowed_methods,
    reason = "how long to test is asked for by the environment"
)]
fn rounds() -> u64 {
    let asked = std::env::var("UNSTUCK_KILLS");
    let asked = asked.ok().and_then(|asked| asked.parse().ok());
    asked.unwrap_or(4)
}

/// S1-29: however unstuck ends, completed work is neither lost nor repeated.
#[test]
fn kill_at_any_moment_of_a_pipeline_loses_nothing() {
    let undisturbed = pipeline();
    assert_eq!(undisturbed.run(&["run", "-q"], "").code, 0);
    let expected = outputs(&undisturbed);
    let (mut kills, mut seed) = (0_u64, 7_u64);
    for round in 0..rounds() {
        let place = pipeline();
        let mut args: &[&str] = &["run", "-q"];
        loop {
            let mut child = start(&place, args);
            // Spread over the duration of a whole run, from its start on.
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            if ended_or_killed(&mut child, 1 + (seed >> 33) % 120) {
                break;
            }
            kills += 1;
            match &place.json(&["runs", "--json"], "")[0]["status"] {
                // The kill came before anything was written.
                Value::Null => args = &["run", "-q"],
                // The kill came between its last output and its exit.
                status if status == "succeeded" || status == "recovered" => break,
                _ => args = &["resume", "-q"],
            }
        }
        let run = &place.json(&["runs", "--json"], "")[0];
        assert!(
            ["succeeded", "recovered"].contains(&run["status"].as_str().unwrap()),
            "round {round}: {run}"
        );
        assert_eq!(outputs(&place), expected, "round {round}");
        assert_eq!(done_twice(&place), Vec::<String>::new(), "round {round}");
        assert_eq!(
            left(place.folder.path()),
            Vec::<String>::new(),
            "round {round}"
        );
    }
    println!("{kills} kills in {} rounds", rounds());
}
