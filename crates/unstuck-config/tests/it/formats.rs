//! The same configuration in TOML, JSON and YAML.

use std::time::Duration;

use unstuck_config::section::{JsonRequirement, OnFailedAttempt, OnStuckPipelineLoop};
use unstuck_config::{Config, ConfigError};
use unstuck_core::FailureKind;
use unstuck_core::loop_detection::AgentLoopLimits;

use crate::Place;

const TOML: &str = r##"
[run]
task = "make it work"
on_failed_attempt = "rollback"

[[role]]
id = "planner"
agent = "claude"
model = "sonnet"
prompt = "Plan: {{ task }}"
expect.sections = ["# Plan"]

[[role]]
id = "builder"
command = ["sh", "-c", "cat"]
depends_on = ["planner"]
timeout_seconds = 1200
idle_timeout = "5m"
max_output_chars = 9000
env = { MODE = "fast" }
policy = "patient"
[role.expect]
json = "answer.schema.json"
match = "done"
[role.error_recovery.timeout]
max_retries = 5
custom_prompt_modifier = "shorter"

[loop]
max_iterations = 7
until = "<promise>DONE</promise>"
on_stuck = "stop"

[prompts]
shorter = "Be quick. {{ error }}"

[budget]
per_run = { usd = 2.5, tokens = 1000 }

[webhooks]
on_escalation = "https://example.org/hook"
"##;

const JSON: &str = r##"{
  "$schema": "./unstuck.schema.json",
  "run": {"task": "make it work", "on_failed_attempt": "rollback"},
  "roles": [
    {"id": "planner", "agent": "claude", "model": "sonnet", "prompt": "Plan: {{ task }}", "expect": {"sections": ["# Plan"]}},
    {
      "id": "builder", "command": ["sh", "-c", "cat"], "needs": ["planner"], "timeout": "20m", "idle_timeout": "5m",
      "max_output": 9000, "env": {"MODE": "fast"}, "policy": {"template": "patient"},
      "expect": {"json": "answer.schema.json", "match": ["done"]},
      "error_recovery": {"TIMEOUT": {"max_retries": 5, "custom_prompt_modifier": "shorter"}}
    }
  ],
  "loop": {"max_iterations": 7, "until": {"promise": {"text": "<promise>DONE</promise>"}}, "on_stuck": "stop"},
  "prompts": {"shorter": {"text": "Be quick. {{ error }}"}},
  "budget": {"per_run": {"usd": 2.5, "tokens": 1000}},
  "webhooks": {"on_escalation": [{"url": "https://example.org/hook"}]}
}"##;

const YAML: &str = r##"
run:
  task: make it work
  on_failed_attempt: rollback
roles:
  - id: planner
    agent: claude
    model: sonnet
    prompt: "Plan: {{ task }}"
    expect:
      sections: ["# Plan"]
  - id: builder
    command: [sh, -c, cat]
    needs: [planner]
    timeout: 20m
    idle_timeout: 5m
    max_output: 9000
    env:
      MODE: fast
    policy: patient
    expect:
      json: answer.schema.json
      match: done
    error_recovery:
      timeout:
        max_retries: 5
        custom_prompt_modifier: shorter
loop:
  max_iterations: 7
  until:
    promise: <promise>DONE</promise>
  on_stuck: stop
prompts:
  shorter: Be quick. {{ error }}
budget:
  per_run:
    usd: 2.5
    tokens: 1000
webhooks:
  on_escalation:
    - https://example.org/hook
"##;

/// S1-34: roles with their dependencies, under either name of the key.
#[test]
fn all_three_formats_are_equivalent() {
    let toml = Place::with("unstuck.toml", TOML).config();
    for (name, text) in [
        ("unstuck.json", JSON),
        ("unstuck.yaml", YAML),
        ("unstuck.yml", YAML),
    ] {
        let place = Place::with(name, text);
        let other = place.config();
        let mut roles = other.roles().to_vec();
        // Paths are relative to the file's directory, which differs from test to test.
        assert_eq!(
            roles[1].expect.json,
            JsonRequirement::Schema(place.path().join("project/answer.schema.json"))
        );
        roles[1].expect.json = toml.roles()[1].expect.json.clone();
        assert_eq!(roles, toml.roles(), "{name}");
        assert_eq!(other.run(), toml.run(), "{name}");
        assert_eq!(other.loop_section(), toml.loop_section(), "{name}");
        assert_eq!(other.budget(), toml.budget(), "{name}");
        assert_eq!(other.webhooks(), toml.webhooks(), "{name}");
        assert_eq!(other.prompts().unwrap(), toml.prompts().unwrap(), "{name}");
    }
}

#[test]
fn every_section_is_read() {
    let config = Place::with("unstuck.toml", TOML).config();
    assert_eq!(config.run().on_failed_attempt, OnFailedAttempt::Rollback);
    let builder = config.role("builder").unwrap();
    assert_eq!(builder.agent, "command");
    assert_eq!(builder.needs, ["planner"]);
    assert_eq!(builder.timeout, Some(Duration::from_mins(20)));
    assert_eq!(builder.max_output, Some(9000));
    assert_eq!(builder.expect.matches, ["done"]);
    assert_eq!(
        builder.error_recovery[&FailureKind::Timeout].max_retries,
        Some(5)
    );
    let looping = config.loop_section().unwrap();
    assert_eq!((looping.max_iterations, looping.stuck_after), (7, 3));
    assert_eq!(looping.on_stuck, OnStuckPipelineLoop::Stop);
    let promise = looping.until.promise.as_ref().unwrap();
    assert_eq!(promise.text, "<promise>DONE</promise>");
    assert_eq!(config.budget().per_run.usd, Some(2.5));
    assert_eq!(
        config.webhooks().on_escalation[0].url.as_deref(),
        Some("https://example.org/hook")
    );
}

#[test]
fn unset_values_have_defaults() {
    let config = Place::new().config();
    let run = config.run();
    assert_eq!(
        (run.parallel, run.snapshots, run.wait_for_human),
        (4, true, false)
    );
    assert!(
        config.roles().is_empty() && config.loop_section().is_none() && config.recovery().is_none()
    );
    assert_eq!(*config.stuck(), AgentLoopLimits::default());
    assert!(config.error_recovery().enabled && config.error_recovery().save_checkpoint_on_failure);
}

#[test]
fn two_files_in_one_directory_are_rejected() {
    let place = Place::with("unstuck.toml", "");
    place.project("unstuck.yaml", "");
    let error = place.load().unwrap_err();
    assert!(matches!(&error, ConfigError::TwoFiles { .. }));
    let text = error.to_string();
    assert!(
        text.contains("unstuck.toml") && text.contains("unstuck.yaml"),
        "{text}"
    );
}

#[test]
fn yaml_anchors_and_aliases_work() {
    let text = "role:\n  - &first\n    id: a\n    agent: claude\n    prompt: x\n  - <<: *first\n    id: b\n";
    let config = Place::with("unstuck.yaml", text).config();
    assert_eq!(config.role("b").unwrap().agent, "claude");
}

#[test]
fn empty_file_sets_nothing() {
    for name in ["unstuck.toml", "unstuck.yaml"] {
        assert!(
            Place::with(name, "# nothing yet\n")
                .config()
                .roles()
                .is_empty(),
            "{name}"
        );
    }
    assert_eq!(
        Place::with("unstuck.json", "[]").problems(),
        ["unstuck.json:1:1: the configuration must be a table\n  |\n1 | []\n  | ^^"]
    );
}

#[test]
fn user_defined_agents_and_models_are_added() {
    let place = Place::new();
    place.user(
        "config.toml",
        r#"
        [agents.mine]
        title = "Mine"
        names = ["mine"]
        [[models.model]]
        id = "claude-opus-5-5"
        price = { input = 1.0, output = 2.0 }
        [[models.model]]
        id = "local-7b"
        provider = "ollama"
        context = 8000
        [[models.ladder]]
        id = "house"
        models = ["local-7b", "claude-opus-5-5"]
        "#,
    );
    let config = place.config();
    assert_eq!(config.agents().get("mine").unwrap().title(), "Mine");
    assert!(config.agents().get("claude").is_some());
    let catalog = config.catalog();
    let opus = catalog.find("opus").unwrap();
    assert_eq!(opus.price.as_ref().unwrap().output, 2.0);
    assert_eq!(opus.context, Some(1_000_000));
    assert_eq!(catalog.next_model("local-7b").unwrap(), "claude-opus-5-5");
    assert_eq!(catalog.next_model("haiku").unwrap(), "claude-sonnet-5-5");
}

#[test]
fn prompts_can_be_in_separate_files() {
    let place = Place::with(
        "unstuck.toml",
        "[prompts.ours]\nfile = \"ours.md\"\nposition = \"context\"\n[[role]]\nid = \"a\"\nagent = \"claude\"\nprompt_file = \"a.md\"\n",
    );
    place
        .project("ours.md", "Mind {{ error }}")
        .project("a.md", "Do {{ task }}");
    let config = place.config();
    let role = config.role("a").unwrap();
    assert_eq!(role.prompt_file, Some(place.path().join("project/a.md")));
    assert_eq!(
        config.prompt_template(role).unwrap().as_deref(),
        Some("Do {{ task }}")
    );
    assert!(config.prompts().unwrap().names().any(|name| name == "ours"));
    assert_eq!(place.problems(), Vec::<String>::new());
}

#[test]
fn every_core_limit_can_be_set() {
    let text = "[stuck]\nenabled = false\nrepeats = 2\noutput_repeats = 9\nmessage_repeats = 6\nwindow = 30\nwaiting_for_input = \"2m\"\n";
    let set = AgentLoopLimits {
        enabled: false,
        repeats: 2,
        output_repeats: 9,
        message_repeats: 6,
        window: 30,
        waiting_for_input: Duration::from_mins(2),
    };
    assert_eq!(*Place::with("unstuck.toml", text).config().stuck(), set);
}

#[test]
fn agent_can_be_based_on_a_later_one() {
    let text = "[agents.a]\nbase_agent = \"b\"\n[agents.b]\ncall.command = [\"bee\"]\n";
    let config = Place::with("unstuck.toml", text).config();
    let agent = config.agents().get("a").unwrap();
    assert_eq!(agent.file().call.program(), Some("bee"));
}

/// Older keys of repairs, agents and strategies have the same values as the current ones, each with a warning.
#[test]
#[expect(clippy::too_many_lines, reason = "two whole configurations")]
fn deprecated_keys_of_repairs_agents_and_strategies_load() {
    let old = Place::with(
        "unstuck.toml",
        r#"[strategies.call_us]
title = "Call us"
asks = true
[agents.mine]
like = "claude"
insists = true
silence = "5s"
call.folders = ["~/bin"]
call.base_url = { needs = ["MY_KEY"], unless = [{ env = "MY_URL", holds = "corp" }] }
run = { words = ["run"], others = ["login"], never = ["-i"] }
session.word = "resume"
output.input_tokens = [{ at = ["/in"], less = ["/cached"], same = "/id", take = "all" }]
[[repairs.manager]]
name = "ours"
ecosystem = "ours"
folders = ["pkgs"]
usual = true
command = [{ states = ["missing"], run = "ours get", lacks = ["ours.off"] }]
[[repairs.program]]
names = ["ours"]
wants = ["ours.toml"]
valued = ["-o"]
folder = ["-C"]
loose = ["--force"]
does = [
  { verb = "get", works = ["install", "make_folder"], of = "all", of_options = ["-o"], places = ["pkgs"], things = ["ours"], named = true, finds = true },
]
[[repairs.word]]
words = ["ours"]
work = "make_folder"
[[repairs.place]]
names = ["ours-out"]
holds = "output"
beside = ["ours.toml"]
remade = true
[[repairs.never]]
id = "ours_denied"
any = ["ours is broken"]
reason = "ask us"
[[repairs.forbidden]]
id = "ours_forbidden"
any = ["ours wipe"]
reason = "it deletes data"
[[repairs.need]]
id = "ours_missing"
needs = "folder"
category = "environment"
any = ["ours is missing"]
mentioned = true
found = ["*.ours"]
remade = true
things = ["ours"]
path_is = ["there", "folder", "empty_folder"]
cause = "c"
outcome = "o"
command = [{ run = "mkdir {{ folder }}" }]
[[repairs.sample]]
tool = "ours"
folders = ["pkgs"]
"#,
    );
    let new = Place::with(
        "unstuck.toml",
        r#"[strategies.call_us]
title = "Call us"
requires_human = true
[agents.mine]
base_agent = "claude"
ignores_no_retry = true
silent_wait = "5s"
call.program_directories = ["~/bin"]
call.base_url = { required_env = ["MY_KEY"], unless = [{ env = "MY_URL", contains = "corp" }] }
run = { subcommands = ["run"], other_subcommands = ["login"], excluded_flags = ["-i"] }
session.subcommand = "resume"
output.input_tokens = [{ at = ["/in"], subtract = ["/cached"], same_as_last = "/id", selection = "all" }]
[[repairs.manager]]
name = "ours"
ecosystem = "ours"
directories = ["pkgs"]
default = true
command = [{ states = ["missing"], run = "ours get", has_not = ["ours.off"] }]
[[repairs.program]]
names = ["ours"]
required_files = ["ours.toml"]
value_options = ["-o"]
directory_options = ["-C"]
loose_options = ["--force"]
calls = [
  { verb = "get", effects = ["install", "make_directory"], targets = "all", target_options = ["-o"], target_paths = ["pkgs"], resources = ["ours"], names_packages = true, finds_program = true },
]
[[repairs.script_name]]
words = ["ours"]
effect = "make_directory"
[[repairs.generated_path]]
names = ["ours-out"]
contents = "output"
siblings = ["ours.toml"]
rebuilt_automatically = true
[[repairs.denied_failure]]
id = "ours_denied"
any = ["ours is broken"]
reason = "ask us"
[[repairs.denied_command]]
id = "ours_forbidden"
any = ["ours wipe"]
reason = "it deletes data"
[[repairs.requirement]]
id = "ours_missing"
requires = "directory"
category = "environment"
any = ["ours is missing"]
any_mentioned_path = true
path_patterns = ["*.ours"]
rebuilt_automatically = true
resources = ["ours"]
path_is = ["exists", "directory", "empty_directory"]
cause = "c"
outcome = "o"
command = [{ run = "mkdir {{ folder }}" }]
[[repairs.sample]]
tool = "ours"
directories = ["pkgs"]
"#,
    );
    let (old, new) = (old.config(), new.config());
    assert_eq!(
        format!("{:?}", old.agents().get("mine")),
        format!("{:?}", new.agents().get("mine"))
    );
    assert_eq!(
        format!("{:?}", old.repair_catalog().unwrap()),
        format!("{:?}", new.repair_catalog().unwrap())
    );
    let strategy = |config: &Config| config.playbook().strategy("call_us").cloned();
    old.prepare().unwrap();
    new.prepare().unwrap();
    assert!(strategy(&old).unwrap().requires_human);
    assert_eq!(strategy(&old), strategy(&new));
    assert_eq!(new.old_names(), []);
    let told: Vec<_> = old.old_names().iter().map(|one| &one.message).collect();
    assert_eq!(told.len(), 44, "{told:#?}");
    for expected in [
        "`strategies.call_us.asks` is deprecated, use `strategies.call_us.requires_human`",
        "`agents.mine.like` is deprecated, use `agents.mine.base_agent`",
        "`agents.mine.output.input_tokens.1.less` is deprecated, use `agents.mine.output.input_tokens.1.subtract`",
        "`repairs.need` is deprecated, use `repairs.requirement`",
        "`repairs.program.1.calls.1.works` is deprecated, use `repairs.program.1.calls.1.effects`",
    ] {
        assert!(told.iter().any(|one| *one == expected), "{told:#?}");
    }
}
