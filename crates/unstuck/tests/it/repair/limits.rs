//! Limits on the number, duration and frequency of repairs.

use super::project;

/// A check that misses another directory each time it runs.
const ONE_MORE: &str = "n=$(ls -d out* 2>/dev/null | wc -l); [ $n -ge 9 ] && exit 0; python3 -c \"open('out$n/x', 'w')\"";

/// S3-19, S3-41: above the maximum number a human is asked.
#[test]
fn automatic_repairs_are_limited() {
    let entries: Vec<_> = (0..6).map(|n| format!("'mkdir -p out{n}'")).collect();
    let place = project(&format!(
        "auto_approve = [{}]\nmax_auto_recoveries_per_run = 2",
        entries.join(", ")
    ));
    let ended = place.go(&["exec", "--repair", "auto", "--", "sh", "-c", ONE_MORE]);
    ended.told(3, &["2 of 2 automatic repairs"]);
    assert_eq!(place.events("recovery_executed").len(), 2);
    assert!(!place.project().join("out2").exists());
}

/// S3-20: the next repair waits for the cooldown, and then runs.
#[test]
fn second_repair_waits_for_the_cooldown() {
    let place = project("auto_approve = ['mkdir -p out0', 'mkdir -p out1']");
    let config = place
        .text("unstuck.toml")
        .replace("cooldown_seconds = 0", "cooldown_seconds = 1");
    place.write("unstuck.toml", &config);
    place.go(&["trust"]).told(0, &[]);
    let two = "n=$(ls -d out* 2>/dev/null | wc -l); [ $n -ge 2 ] && exit 0; python3 -c \"open('out$n/x', 'w')\"";
    let ended = place.go(&["exec", "--repair", "auto", "--", "sh", "-c", two]);
    ended.told(0, &["repairing in "]);
    let started = place.events("recovery_started");
    let at = |one: &serde_json::Value| {
        one["at"]
            .as_str()
            .unwrap()
            .parse::<jiff::Timestamp>()
            .unwrap()
    };
    let apart = at(&started[1]).duration_since(at(&started[0]));
    assert!(apart.as_millis() >= 1000, "{apart:?}");
}

/// S3-49: a hanging repair is killed, with its process tree.
#[test]
fn hanging_repair_is_killed() {
    let place = project("auto_approve = ['mkdir -p out/reports']");
    place.write(
        "recovery.json",
        &super::proposals::document("sleep 600", Some(1)),
    );
    let check = "cp recovery.json \"$UNSTUCK_RECOVERY_FILE\"; false";
    place.write(
        "unstuck.toml",
        &place
            .text("unstuck.toml")
            .replace("['mkdir", "['sleep 600', 'mkdir"),
    );
    place.go(&["trust"]).told(0, &[]);
    let ended = place.go(&[
        "exec",
        "--repair",
        "auto",
        "--retries",
        "0",
        "--",
        "sh",
        "-c",
        check,
    ]);
    assert_ne!(ended.code, 0);
    let failed = &place.events("recovery_failed")[0];
    assert!(
        failed["error"].as_str().unwrap().contains("timed out"),
        "{failed}"
    );
}
