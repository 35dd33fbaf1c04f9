//! Configuration commands and user-defined knowledge.

use crate::Place;
use crate::output_snapshot::assert_output;

const RULE: &str = "[[kinds.server_overloaded.rule]]\nid = \"ours\"\nany = [\"the cluster is catching its breath\"]\n";

#[test]
fn project_can_add_rules() {
    let place = Place::new();
    let text = "The cluster is catching its breath";
    let kind = |place: &Place| {
        place.json(&["classify", "--exit-code", "1", "--json"], text)["kind"].clone()
    };
    assert_eq!(kind(&place), "unknown");
    place.write("unstuck.toml", RULE);
    assert_eq!(kind(&place), "server_overloaded");
}

#[test]
fn explicit_file_overrides_the_project() {
    let place = Place::new();
    place.write("unstuck.toml", "[policy]\nmaxRetries = 1\n");
    let more = place.write("more.toml", "[policies.night]\ntemplate = \"patient\"\nmaxRetries = 9\n[policy]\ntemplate = \"night\"\nmaxRetries = 7\n");
    let policy = |args: &[&str]| place.json(&[&["policy", "show", "--json"], args].concat(), "");
    assert_eq!(policy(&[])["maxRetries"], 1);
    let layered = place.write(
        "layered.toml",
        "[policies.a]\ntemplate = \"z\"\n[policies.z]\nmaxRetries = 8\n",
    );
    let built_on = place.json(
        &[
            "policy",
            "show",
            "a",
            "--json",
            "--config",
            layered.to_str().unwrap(),
        ],
        "",
    );
    assert_eq!(built_on["maxRetries"], 8);
    let named = policy(&["--config", more.to_str().unwrap()]);
    assert_eq!(
        (&named["maxRetries"], &named["backoffBase"]),
        (&7.into(), &5.0.into())
    );
}

#[test]
fn configuration_errors_show_their_location() {
    let place = Place::new();
    let mut told = String::new();
    for text in [
        "[kinds.rate_limt]\nhint = \"x\"\n",
        "[kinds.rate_limit]\nhnit = \"x\"\n",
        "[[kinds.rate_limit.rule]]\nid = \"x\"\nany = ['/a(/']\n",
        "[[kinds.rate_limit.rule]]\nid = \"x\"\nany = ['/abc(/']\n",
        "[policy]\nmaxRetries = -3\n",
        "[[kinds.rate_limit.chain]]\nstrategy = \"nope\"\nconfidence = 0.5\n",
        "[[kinds.rate_limit.rule]]\nany = [\"x y\"]\n",
        "[[kinds.rate_limit.rule]]\nid = \"x\"\n",
        "[[kinds.rate_limit.rule]]\nid = \"x\"\nany = [\"x y\"]\nconfidence = 7\n",
        "[policy]\ntemplate = \"patiant\"\n",
        "oops",
    ] {
        place.write("unstuck.toml", text);
        let ended = place.run(&["plan", "--exit-code", "1"], "x");
        assert_eq!(ended.code, 2, "{text}");
        told += &ended.stderr;
        told += "\n";
    }
    assert_output!(place, told);
    let ended = place.run(&["kinds", "--config", "gone.toml"], "");
    assert_eq!(ended.code, 2);
}

/// A valid pipeline.
const PIPELINE: &str = r##"
[run]
task = "tidy up"

[[role]]
id = "planner"
agent = "claude"
prompt = "Plan: {{ task }}"
expect.sections = ["# Plan"]

[[role]]
id = "builder"
agent = "codex"
prompt_file = "prompts/builder.md"
needs = ["planner"]

[[role]]
id = "tester"
command = ["make", "test"]
needs = ["planner"]

[loop]
max_iterations = 5
until = "<promise>DONE</promise>"

[recovery]
auto_approve = ["npm install"]
"##;

#[test]
fn valid_configuration_is_summarized() {
    let place = Place::new();
    let none = place.run(&["config", "check"], "");
    assert_eq!(none.code, 0);
    assert_output!(place, none.stdout);
    place.write("unstuck.toml", PIPELINE);
    place.write("prompts/builder.md", "{{ outputs.planner }}{{ feedback }}");
    let ended = place.run(&["config", "check"], "");
    assert_eq!((ended.code, ended.stderr.as_str()), (0, ""));
    assert_output!(place, ended.stdout);
}

/// S1-08: an undefined variable or a missing file is detected before anything runs.
#[test]
fn every_error_is_reported_with_its_line() {
    let place = Place::new();
    let wrong = PIPELINE
        .replace("{{ task }}", "{{ tsak }}")
        .replace("\"codex\"", "\"codx\"")
        .replace("max_iterations = 5", "max_iteratons = 5");
    place.write("unstuck.toml", &wrong);
    let ended = place.run(&["config", "check"], "");
    assert_eq!(ended.code, 2);
    assert_output!(place, ended.stderr);
    // This location reads like a time of day, and is redacted.
    assert!(ended.stderr.contains("unstuck.toml:14:15: "));
    let alone = place.write(
        "alone.yaml",
        "role:\n  - id: a\n    agent: claude\n    prompt: x\n",
    );
    let alone = alone.to_str().unwrap();
    let ended = place.run(&["config", "check", alone], "");
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    assert_eq!(place.run(&["config", "check", "gone.toml"], "").code, 2);
}

#[test]
fn effective_values_are_shown_with_their_source() {
    let place = Place::new();
    place.write("unstuck.json", r#"{"run": {"parallel": 2}}"#);
    let shown = place.run(&["config", "show", "--origin"], "");
    assert_eq!((shown.code, shown.stderr.as_str()), (0, ""));
    let line = |key: &str| {
        shown
            .stdout
            .lines()
            .find(|line| line.starts_with(key))
            .unwrap()
    };
    assert!(line("parallel = 2 ").ends_with("# unstuck.json:1"));
    assert!(line("snapshots = true ").ends_with("# built-in"));
    let json = place.json(&["config", "show", "--json"], "");
    assert_eq!(json["run"]["parallel"], 2);
    let rows = place.json(&["config", "show", "--json", "--origin"], "");
    assert_eq!(rows[0]["id"], "run.parallel");
    assert_eq!(rows[0]["origin"], "unstuck.json:1");
}

#[test]
fn project_configuration_may_be_json_or_yaml_but_only_one_file() {
    let place = Place::new();
    place.write("unstuck.yaml", "policy:\n  max_retries: 9\n");
    let policy = place.json(&["policy", "show", "--json"], "");
    assert_eq!(policy["maxRetries"], 9);
    place.write("unstuck.json", "{}");
    let ended = place.run(&["policy", "show"], "");
    assert_eq!(ended.code, 2);
    assert_output!(place, ended.stderr);
}

#[test]
fn schema_is_printed_for_editors() {
    let place = Place::new();
    // A broken configuration must not block access to the schema that explains it.
    place.write("unstuck.toml", "oops");
    let schema = place.json(&["config", "schema"], "");
    assert_eq!(
        schema["properties"]["run"]["description"],
        "Settings of the run."
    );
}

/// The check reports what a run would reject, and notes what it would ask for.
#[test]
fn check_finds_what_a_run_would_reject() {
    let place = Place::new();
    place.write("answer.json", r#"{"type": "nothing"}"#);
    place.write(
        "unstuck.toml",
        r#"
[[role]]
id = "a"
agent = "codex"
prompt = "{{ taks }} and {{ outputs.b }}"
allowed_tools = ["Bash"]
expect.json = "answer.json"

[[role]]
id = "tester"
command = ["make", "test"]
"#,
    );
    let ended = place.run(&["config", "check"], "");
    assert_eq!(ended.code, 2);
    assert_output!(place, ended.stderr);
    assert_eq!(place.run(&["run"], "").code, 2);
}

#[test]
fn requirements_of_a_run_are_noted() {
    let place = Place::new();
    let role = "[[role]]\nid = \"a\"\ncommand = [\"cat\"]\nprompt = \"Do {{ task }}\"\n";
    place.write("unstuck.toml", role);
    let ended = place.run(&["config", "check"], "");
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    assert_output!(place, ended.stdout);
    place.write("unstuck.toml", &format!("run.task = \"it\"\n{role}"));
    let ended = place.run(&["config", "check"], "");
    assert!(!ended.stdout.contains("note"), "{}", ended.stdout);
    place.write(
        "unstuck.toml",
        "[loop]\n[[role]]\nid = \"a\"\ncommand = [\"cat\"]\n",
    );
    let ended = place.run(&["config", "check"], "");
    assert_output!(place, ended.stdout);
}

/// A deprecated key still applies; every command except quiet ones warns with the line and the new name.
#[test]
fn deprecated_keys_cause_a_warning() {
    let place = Place::new();
    place.write(
        "unstuck.toml",
        "\n[prompts.ours]\ntext = \"x\"\nplace = \"context\"\n",
    );
    let ended = place.run(&["policy", "show"], "");
    assert_eq!(ended.code, 0);
    assert_output!(place, ended.stderr);
    let quiet = place.run(&["exec", "--quiet", "--", "true"], "");
    assert_eq!((quiet.code, quiet.stderr.as_str()), (0, ""));
    let check = place.run(&["config", "check"], "");
    assert_eq!(check.code, 0);
    assert_output!(place, check.stdout);
    let shown = place.run(&["config", "show", "--origin"], "");
    let line = shown
        .stdout
        .lines()
        .find(|line| line.starts_with("position = "));
    assert!(
        line.is_some_and(|line| line.ends_with("# unstuck.toml:4")),
        "{}",
        shown.stdout
    );
}

#[test]
fn missing_file_is_reported_as_not_found() {
    let place = Place::new();
    for args in [
        &["config", "check", "nosuch.toml"][..],
        &["--config", "nosuch.toml", "runs"],
    ] {
        let ended = place.run(args, "");
        ended.told(2, &["nosuch.toml: file not found"]);
    }
}
