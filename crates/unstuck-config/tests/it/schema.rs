//! The JSON Schema that editors use.

use serde_json::{Value, json};
use unstuck_config::schema;
use unstuck_testkit::golden::assert_golden;

fn validator() -> jsonschema::Validator {
    jsonschema::validator_for(&schema()).unwrap()
}

#[test]
fn valid_files_match_the_schema() {
    let validator = validator();
    for text in [
        "",
        "[run]\ntask = \"x\"\nparallel = 2\n",
        "[[role]]\nid = \"a\"\nagent = \"claude\"\nprompt = \"x\"\ntimeout = \"1h30m\"\n",
        "[[roles]]\nid = \"a\"\ncommand = [\"sh\"]\ndepends_on = [\"b\"]\ntimeout_seconds = 20\npolicy = \"patient\"\n",
        "[[role]]\nid = \"a\"\nagent = \"claude\"\n[role.expect]\nsections = [\"# A\"]\njson = true\nmatch = \"x\"\n",
        "[[role]]\nid = \"a\"\nagent = \"claude\"\n[role.error_recovery.timeout]\nmax_retries = 5\n",
        "[error_recovery]\nenabled = true\n[error_recovery.strategies.rate_limited]\nmax_retries = 2\n",
        "[loop]\nmax_iterations = 3\nuntil = \"DONE\"\n",
        "[loop.until]\npromise = { role = \"a\", text = \"DONE\" }\ncheck = \"make test\"\nany = true\n",
        "[policy]\ntemplate = \"patient\"\nmax_retries = 3\n[policies.night.kinds.timeout]\nmaxRetries = 1\n",
        "[prompts]\na = \"text\"\n[prompts.b]\nfile = \"b.md\"\nposition = \"context\"\n",
        "[webhooks]\non_escalation = [\"https://a.example\", { url = \"https://b.example\", format = \"slack\" }]\n",
        "[webhooks]\nallow_private = true\ndesktop = true\nnotify_command = \"tell\"\non_run_finished = { url_env = \"U\", format = \"template\", template = \"x\", digest = \"0s\" }\n",
        "[gateway]\nmax_request = \"1MiB\"\n[gateway.upstreams]\nopenai = [\"https://a.example/v1\", { url = \"https://b.example\", unsupported = [\"vision\"] }]\n",
        "[[kinds.rate_limit.rule]]\nid = \"x\"\nany = [\"x y\"]\n",
        "[[models.model]]\nid = \"m\"\nprice = { input = 1.0, output = 2.0 }\n[[models.ladder]]\nid = \"l\"\nmodels = [\"m\"]\n",
        "[recovery]\nsandbox = \"best-effort\"\n[budget]\nper_day = { usd = 5.0 }\n[stuck]\nwaiting_for_input = \"30s\"\n",
    ] {
        let value: Value = toml::from_str(text).unwrap();
        let errors: Vec<_> = validator
            .iter_errors(&value)
            .map(|error| error.to_string())
            .collect();
        assert!(errors.is_empty(), "{text}: {errors:?}");
    }
    assert!(validator.is_valid(&json!({ "$schema": "x", "roles": [] })));
}

#[test]
fn invalid_files_do_not_match_the_schema() {
    let validator = validator();
    for text in [
        "[rn]\n",
        "[run]\nparallel = \"x\"\n",
        "[run]\nparallel = 0\n",
        "[[role]]\nagent = \"claude\"\n",
        "[[role]]\nid = \"a\"\n",
        "[[role]]\nid = \"a b\"\nagent = \"claude\"\n",
        "[[role]]\nid = \"a\"\nagent = \"claude\"\ntimout = \"5m\"\n",
        "[[role]]\nid = \"a\"\nagent = \"claude\"\ntimeout = \"5\"\n",
        "[loop]\non_stuck = \"maybe\"\n",
        "[loop]\nuntil = 3\n",
        "[policy]\nmax_retry = 3\n",
        "[kinds.nothing]\nhint = \"x\"\n",
        "[webhooks]\non_escalation = \"example.org\"\n",
        "[error_recovery.strategies.timeout]\nmax_retries = -1\n",
    ] {
        let value: Value = toml::from_str(text).unwrap();
        assert!(!validator.is_valid(&value), "{text}");
    }
}

#[test]
fn every_key_has_a_description() {
    let schema = schema();
    for place in [
        "/properties",
        "/definitions/RoleSection/properties",
        "/definitions/PipelineLoopSection/properties",
    ] {
        let keys = schema.pointer(place).and_then(Value::as_object);
        for (key, one) in keys.unwrap_or_else(|| panic!("there is no {place}")) {
            let is_other_name = key.contains("_sec") || key == "$schema";
            assert!(
                is_other_name || one.get("description").is_some(),
                "{place}/{key}: {one}"
            );
        }
    }
}

#[test]
fn schema_is_the_recorded_one() {
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/tests/golden/config.schema.json"
    );
    let made = serde_json::to_string_pretty(&schema()).unwrap() + "\n";
    assert_golden(path.as_ref(), &made);
}
