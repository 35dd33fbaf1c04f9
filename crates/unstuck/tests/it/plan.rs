//! `unstuck plan`

use serde_json::json;

use crate::Place;
use crate::output_snapshot::assert_output;

const CLONE: [&str; 5] = [
    "plan",
    "--exit-code",
    "127",
    "--command",
    "git clone https://github.com/gatewaybuddy/forgekeeper",
];

/// S2-13, S2-14: classified, chain looked up, filtered, ordered, and rendered as real calls in the agreed format.
#[test]
fn clone_without_git_becomes_download_extraction_and_check() {
    let args = [&CLONE[..], &["--programs", "curl,tar,apt-get", "--json"]].concat();
    let plan = Place::new().json(&args, "bash: line 1: git: command not found");
    let first = &plan[0];
    assert_eq!(
        (
            &first["priority"],
            &first["strategy"],
            &first["confidence"],
            &first["estimatedIterations"]
        ),
        (
            &json!(1),
            &json!("alternative_command"),
            &json!(0.9),
            &json!(3)
        )
    );
    assert_eq!(
        first["fallbackChain"],
        json!(["manual_installation", "ask_user"])
    );
    let steps = first["steps"].as_array().unwrap();
    assert_eq!(steps.len(), 3);
    assert!(
        steps[0]["args"]["script"]
            .as_str()
            .unwrap()
            .contains("https://github.com/gatewaybuddy/forgekeeper/archive/refs/heads/main.tar.gz")
    );
    assert!(
        steps[1]["args"]["script"]
            .as_str()
            .unwrap()
            .contains("tar -xzf")
    );
    assert_eq!(steps[2]["tool"], "read_dir");
    for field in ["action", "tool", "args", "expectedOutcome"] {
        assert!(steps[0].get(field).is_some(), "{field}");
    }
}

#[test]
fn forbidden_commands_are_not_proposed() {
    let plan = Place::new().json(
        &[
            &CLONE[..],
            &["--forbid", "install", "--tools", "Read", "--json"],
        ]
        .concat(),
        "git: command not found",
    );
    let ids: Vec<_> = plan
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["strategy"].as_str().unwrap())
        .collect();
    assert_eq!(ids, ["ask_user"]);
}

#[test]
fn missing_file_is_matched_against_existing_names() {
    let place = Place::new();
    place.write("conf/config.yaml", "a: 1");
    let args = [
        "plan",
        "--exit-code",
        "1",
        "--command",
        "cat conf/confg.yaml",
        "--json",
    ];
    let plan = place.json(&args, "cat: conf/confg.yaml: No such file or directory");
    assert_eq!(plan[0]["strategy"], "verify_path");
    assert!(
        plan[0].to_string().contains("conf/config.yaml"),
        "{}",
        plan[0]
    );
}

#[test]
fn each_input_line_gives_one_plan() {
    let line = r#"{"id":"a","layer":"agent","tool":"claude","exit_code":124,"timed_out":true,"stdout":"x"}"#;
    let ended = Place::new().run(&["plan", "--jsonl"], line);
    let answer: serde_json::Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!(
        (&answer["id"], &answer["kind"]),
        (&json!("a"), &json!("timeout"))
    );
    assert_eq!(answer["plan"][0]["steps"][0]["tool"], "retry");
}

#[test]
fn plan_is_printed_as_a_list() {
    let place = Place::new();
    let ended = place.run(
        &[&CLONE[..], &["--programs", "curl,tar"]].concat(),
        "git: command not found",
    );
    assert_output!(place, ended.stdout);
}

#[test]
fn success_has_no_plan() {
    let place = Place::new();
    let ended = place.run(&["plan", "--tool", "cargo", "--exit-code", "0"], "");
    assert_output!(place, ended.stdout);
}
