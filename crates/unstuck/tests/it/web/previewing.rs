//! Tests of previews over the REST API.

use serde_json::json;

use super::Client;
use crate::Place;
use crate::gateway::until;

/// Returns true if a process with this command line runs on the machine.
pub(super) fn is_running(command: &str) -> bool {
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let mut lines = processes.filter_map(|one| std::fs::read(one.path().join("cmdline")).ok());
    let wanted = format!("{}\0", command.replace(' ', "\0"));
    lines.any(|line| line == wanted.as_bytes())
}

/// Returns a place with a request for a repair that takes very long.
pub(super) fn slow_repair(command: &str) -> Place {
    let place = Place::new();
    place.write("unstuck.toml", "[policy]\nbackoffBase = 0.01\n");
    let proposal = json!({
        "version": 1,
        "timestamp": "2026-11-16T05:36:33Z",
        "category": "dependency",
        "severity": "blocking",
        "diagnosis": { "error_pattern": "boom", "root_cause": "it is not there", "evidence": ["boom"] },
        "recovery": { "command": command, "timeout_seconds": 600, "expected_outcome": "it works", "confidence": "high" },
    });
    place.write("recovery.json", &proposal.to_string());
    let agent = "cp recovery.json \"$UNSTUCK_RECOVERY_FILE\"; echo 'zork: boom' >&2; exit 9";
    let exec = ["exec", "--repair", "auto", "--", "sh", "-c", agent];
    place.run(&exec, "").told(3, &[]);
    place
}

/// N5: a client that closes its connection cancels its preview, and nothing of it keeps running.
#[test]
fn preview_is_canceled_when_its_client_goes_away() {
    const COMMAND: &str = "sleep 61803";
    let place = slow_repair(COMMAND);
    let client = Client::of(&place, "answer");
    let asked = client.get("/api/escalations").is(200).json()["items"][0].clone();
    let path = format!("/api/escalations/{}/preview", asked["id"].as_str().unwrap());
    let connection = client.send("POST", &path, "", &[("content-length", "0")]);
    until("the preview runs", || is_running(COMMAND).then_some(()));
    drop(connection);
    until("the preview has ended", || {
        (!is_running(COMMAND)).then_some(())
    });
}
