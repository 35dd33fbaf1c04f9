//! A store on a full disk: the command runs, plain retries continue, and everything is recorded when there is space
//! again.
//!
//! The test mounts its own small disk in a mount namespace.

use serde_json::Value;

use crate::Place;

use super::QUICK;

/// Runs a line for `sh` with a small disk at `small`, and the store on it at `$STORE`.
fn with_small_disk(line: &str) -> (Place, String) {
    let place = Place::new();
    place.write("unstuck.toml", QUICK);
    place.write("small/nothing", "");
    let line = format!("mount -t tmpfs -o size=2m small small && {{ {line}\n}}");
    let mut command = place.program("unshare", &["--mount"]);
    let output = command
        .args(["sh", "-c", &line])
        .env("UNSTUCK", env!("CARGO_BIN_EXE_unstuck"))
        .env("STORE", "small/unstuck.db")
        .env("XDG_RUNTIME_DIR", place.folder.path())
        .output()
        .unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(
        !stderr.contains("unshare:") && !stderr.contains("mount:"),
        "{stderr}"
    );
    (place, stderr)
}

/// Shell lines that fill the small disk, and that free space again.
const FILL: &str = "cat /dev/zero > small/filler 2>/dev/null;";
const FREE: &str = "rm small/filler;";

fn only_run(place: &Place) -> Value {
    let runs: Value = serde_json::from_str(&place.text("runs.json")).unwrap();
    assert_eq!(runs.as_array().unwrap().len(), 1, "{runs}");
    runs[0].clone()
}

const LIST: &str = "\"$UNSTUCK\" --store \"$STORE\" runs --json > runs.json;";

/// Tests that only root can run: they mount a disk.
mod root {
    use super::*;

    #[test]
    fn run_continues_on_a_full_disk_and_is_recorded_later() {
        let script = format!(
            "echo x >> count; case $(wc -l < count) in \
         1) {FILL} echo 503 Service Unavailable >&2; exit 1;; \
         2) echo 503 Service Unavailable >&2; exit 1;; \
         *) {FREE} echo done;; esac"
        );
        let (place, told) = with_small_disk(&format!(
            "\"$UNSTUCK\" --store \"$STORE\" exec -- sh -c '{script}'; echo $? > code; {LIST}"
        ));
        assert_eq!(place.text("code"), "0", "{told}");
        assert!(
            told.contains("small/unstuck.db: the disk is full"),
            "{told}"
        );
        assert!(told.contains("the store is writable again"), "{told}");
        let run = only_run(&place);
        assert_eq!(
            (&run["status"], &run["attempts"]),
            (&"recovered".into(), &3.into()),
            "{run}"
        );
    }

    #[test]
    fn no_repair_runs_on_a_full_disk() {
        let repaired = |fill: &str| {
            let check = format!(
                "{fill} [ -d out/reports ] || {{ echo \"report: directory '\\''out/reports'\\'' does not exist\" >&2; exit 1; }}"
            );
            let (place, told) = with_small_disk(&format!(
                "printf '[recovery]\\nauto_approve = [\"mkdir -p out/reports\"]\\n' >> unstuck.toml; \
             \"$UNSTUCK\" trust >/dev/null; \
             \"$UNSTUCK\" --store \"$STORE\" exec --repair auto -- sh -c '{check}'"
            ));
            (place.project().join("out/reports").exists(), told)
        };
        let (with_room, told) = repaired("");
        assert!(with_room, "{told}");
        let (without, told) = repaired(FILL);
        assert!(!without, "{told}");
        assert!(told.contains("is full"), "{told}");
        assert!(told.contains("cannot record the end of run"), "{told}");
    }

    #[test]
    fn model_is_not_switched_on_a_full_disk() {
        let policy = "[policy]\\ntemplate = \"critical\"\\njitter = \"none\"\\nbackoffBase = 0.02\\nescalateAfterRetries = 1\\n";
        let models = |before: &str, meanwhile: &str| {
            let agent = format!("#!/bin/sh\\n{meanwhile} echo \"$*\" >> calls\\nexit 0\\n");
            let (place, told) = with_small_disk(&format!(
                "printf '{policy}' > unstuck.toml; printf '{agent}' > claude; chmod +x claude; {before} \
                 \"$UNSTUCK\" --store \"$STORE\" exec --no-gateway -- ./claude -p x --model claude-haiku-5-5"
            ));
            let calls = place.lines("calls");
            let others = calls
                .iter()
                .filter(|call| call.contains("sonnet") || call.contains("opus"));
            (calls.len(), others.count(), told)
        };
        let (_, others, told) = models("", "");
        assert!(others > 0, "{told}");
        for (before, meanwhile) in [("", FILL), (FILL, "")] {
            let (calls, others, told) = models(before, meanwhile);
            assert!(told.contains("is full"), "{told}");
            assert!(calls > 1, "{told}");
            assert_eq!(others, 0, "{told}");
        }
    }

    #[test]
    fn command_runs_without_a_writable_store() {
        let (place, told) = with_small_disk(&format!(
            "{FILL} \"$UNSTUCK\" --store \"$STORE\" exec -- sh -c 'echo ran > ran; {FREE}'; echo $? > code; {LIST}"
        ));
        assert_eq!(place.text("code"), "0", "{told}");
        assert_eq!(place.text("ran"), "ran");
        assert!(told.contains("running the command anyway"), "{told}");
        assert!(told.contains("the store is writable again"), "{told}");
        assert_eq!(only_run(&place)["status"], "succeeded");
    }

    #[test]
    fn unrecorded_run_is_named_with_its_directory() {
        let (place, told) = with_small_disk(&format!(
            "{FILL} \"$UNSTUCK\" --store \"$STORE\" exec --policy off -- sh -c 'exit 7'; echo $? > code"
        ));
        assert_eq!(place.text("code"), "7", "{told}");
        let hint = told
            .split("Show the run with: unstuck ")
            .nth(1)
            .unwrap_or_default();
        let words: Vec<_> = hint.split_whitespace().collect();
        let shown = place.run(&words, "");
        assert!(shown.stdout.contains("exit 7"), "{told}{}", shown.stderr);
    }

    /// The end of a run that the store could not write is in it after the next command, once there is space.
    #[test]
    fn next_command_records_a_missing_run_end() {
        let (place, told) = with_small_disk(&format!(
            "\"$UNSTUCK\" --store \"$STORE\" exec -- sh -c '{FILL} echo done'; echo $? > code; {LIST} cp runs.json before.json; {FREE} {LIST}"
        ));
        assert_eq!(place.text("code"), "0", "{told}");
        assert!(
            told.contains("the next unstuck command records it"),
            "{told}"
        );
        let before: Value = serde_json::from_str(&place.text("before.json")).unwrap();
        assert_eq!(before[0]["status"], "crashed", "{before}");
        assert_eq!(only_run(&place)["status"], "succeeded", "{told}");
        let left = std::fs::read_dir(place.folder.path()).unwrap();
        let left = left.filter(|one| {
            let name = one.as_ref().unwrap().file_name();
            name.to_string_lossy().starts_with("unstuck-")
        });
        assert_eq!(left.count(), 0, "nothing is left elsewhere");
    }

    /// This also applies to a run that had to be recorded elsewhere from its start.
    #[test]
    fn next_command_imports_a_run_recorded_elsewhere() {
        let (place, told) = with_small_disk(&format!(
            "{FILL} \"$UNSTUCK\" --store \"$STORE\" exec -- echo ran; {FREE} {LIST}"
        ));
        assert_eq!(only_run(&place)["status"], "succeeded", "{told}");
    }
}
