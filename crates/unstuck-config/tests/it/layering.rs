//! Layers: the effective value and its source.

use std::fs;

use unstuck_config::{Config, ConfigLayers, PolicyScope, StoredPolicy};
use unstuck_core::FailureKind;

use crate::{Place, role};

fn origin(config: &Config, path: &str) -> String {
    let origin = config.origin(path);
    origin.map_or_else(|| "-".to_owned(), |origin| origin.to_string())
}

#[test]
fn later_layers_win_key_by_key() {
    let place = Place::new();
    place.user("config.yaml", "run:\n  parallel: 2\n  snapshots: false\n");
    place.project(
        "unstuck.toml",
        "[run]\nparallel = 3\ntask = \"from the project\"\n",
    );
    let named = place.path().join("more.json");
    fs::write(&named, r#"{"run": {"task": "named"}}"#).unwrap();
    let config = Config::load(&ConfigLayers {
        explicit_file: Some(named.clone()),
        ..place.layers()
    })
    .unwrap();
    let run = config.run();
    assert_eq!(run.task.as_deref(), Some("named"));
    assert_eq!((run.parallel, run.snapshots), (3, false));
    assert_eq!(origin(&config, "run.parallel"), "unstuck.toml:2");
    assert_eq!(
        origin(&config, "run.task"),
        format!("{}:1", named.display())
    );
    assert!(origin(&config, "run.snapshots").ends_with("user/config.yaml:3"));
    assert_eq!(origin(&config, "run.wait_for_human"), "-");
    assert_eq!(config.files().len(), 3);
}

#[test]
fn environment_overrides_files_but_creates_no_loop() {
    let place = Place::with("unstuck.toml", "[run]\nparallel = 3\n");
    let variables = [
        ("UNSTUCK_PARALLEL", "8"),
        ("UNSTUCK_TASK", "42"),
        ("UNSTUCK_MAX_ITERATIONS", "2"),
    ];
    let config = place.config_with(&variables);
    assert_eq!(config.run().parallel, 8);
    assert_eq!(config.run().task.as_deref(), Some("42"));
    assert_eq!(origin(&config, "run.parallel"), "UNSTUCK_PARALLEL");
    assert!(config.loop_section().is_none());
    place.project("unstuck.toml", "[loop]\nmax_iterations = 9\n");
    assert_eq!(
        place
            .config_with(&variables)
            .loop_section()
            .unwrap()
            .max_iterations,
        2
    );
}

#[test]
fn later_role_with_the_same_id_changes_single_fields() {
    let place = Place::new();
    place.user(
        "config.toml",
        &(role("a", "timeout = \"5m\"\nneeds = [\"b\"]") + &role("b", "")),
    );
    place.project(
        "unstuck.toml",
        &format!(
            "[[role]]\nid = \"a\"\ntimeout = \"9m\"\ndepends_on = []\n{}",
            role("c", "")
        ),
    );
    let config = place.config();
    let ids: Vec<_> = config.roles().iter().map(|role| role.id.as_str()).collect();
    assert_eq!(ids, ["a", "b", "c"]);
    let a = config.role("a").unwrap();
    assert_eq!(a.timeout.unwrap().as_secs(), 540);
    assert_eq!((a.agent.as_str(), a.needs.len()), ("claude", 0));
    assert_eq!(origin(&config, "role.a.timeout"), "unstuck.toml:3");
    assert!(origin(&config, "role.a.agent").ends_with("config.toml:3"));
}

#[test]
fn rules_of_both_layers_apply() {
    let place = Place::new();
    let rule = |id: &str, text: &str| {
        format!("[[kinds.rate_limit.rule]]\nid = \"{id}\"\nany = [\"{text}\"]\n")
    };
    place.user(
        "config.toml",
        &(rule("one", "first text") + &rule("two", "second text")),
    );
    place.project(
        "unstuck.toml",
        &rule("one", "other text").replace("rate_limit", "rate_limited"),
    );
    let knowledge = place.config().classifier().unwrap().knowledge().clone();
    let rules = &knowledge.kind(FailureKind::RateLimit).rule;
    let any = |id: &str| format!("{:?}", rules.iter().find(|rule| rule.id == id).unwrap());
    assert!(any("two").contains("second text"));
    assert!(any("one").contains("other text") && !any("one").contains("first text"));
}

#[test]
fn repairs_of_both_layers_extend_the_built_in_ones() {
    let place = Place::new();
    let need = |id: &str, text: &str| {
        format!(
            "[[repairs.requirement]]\nid = \"{id}\"\nrequires = \"generated\"\ncategory = \"environment\"\nany = [\"{text}\"]\ncause = \"c\"\noutcome = \"o\"\n"
        )
    };
    place.user(
        "config.toml",
        &(need("one", "first text") + &need("two", "second text")),
    );
    place.project("unstuck.toml", &need("one", "other text"));
    let config = place.config();
    let book = config.repair_catalog().unwrap();
    let ids: Vec<_> = book.requirement_ids().collect();
    assert!(
        ids.contains(&"node_package_missing"),
        "what is built in stays"
    );
    for id in ["one", "two"] {
        assert_eq!(ids.iter().filter(|known| **known == id).count(), 1, "{id}");
    }
}

#[test]
fn later_policy_changes_keys_unless_it_names_a_template() {
    let place = Place::new();
    place.user(
        "config.toml",
        "[policy]\nmax_retries = 9\nbackoffBase = 2\n",
    );
    place.project("unstuck.toml", "[policy]\nmaxRetries = 4\n");
    let config = place.config();
    let policy = config.policy().unwrap();
    assert_eq!((policy.max_retries, policy.backoff_base), (4, 2.0));
    assert_eq!(origin(&config, "policy.maxRetries"), "unstuck.toml:2");
    place.project("unstuck.toml", "[policy]\ntemplate = \"thrifty\"\n");
    assert_eq!(place.config().policy().unwrap().max_retries, 1);
}

#[test]
fn explicit_file_that_is_the_project_file_is_read_once() {
    let place = Place::with(
        "unstuck.toml",
        "[[kinds.timeout.sample]]\nlayer = \"tool\"\nexit_code = 124\n",
    );
    let config = Config::load(&ConfigLayers {
        explicit_file: Some(place.path().join("project/../project/unstuck.toml")),
        ..place.layers()
    })
    .unwrap();
    assert_eq!(config.files().len(), 1);
}

#[test]
fn only_the_user_can_trust_projects() {
    let place = Place::new();
    place.user("config.toml", "trust_project_config = true\n");
    assert!(place.config().trusts_projects());
    place.project("unstuck.toml", "trust_project_config = true\n");
    assert!(place.problems()[0].contains("only in your own configuration"));
}

#[test]
fn project_adds_targets_and_silences_none() {
    let place = Place::new();
    place.user(
        "config.toml",
        "[webhooks]\non_escalation = \"https://mine.example\"\ndesktop = true\n",
    );
    place.project(
        "unstuck.toml",
        "[webhooks]\non_escalation = { url = \"https://ours.example\", digest = \"1m\" }\n",
    );
    let config = place.config();
    let hooks = config.webhooks();
    let urls: Vec<_> = hooks.on_escalation.iter().map(|hook| &hook.url).collect();
    let both = ["https://mine.example", "https://ours.example"];
    assert_eq!(urls, both.map(|url| Some(url.to_owned())).each_ref());
    assert!(hooks.desktop && !hooks.allow_private);
    place.project("unstuck.toml", "[webhooks]\non_escalation = []\n");
    assert_eq!(place.config().webhooks().on_escalation.len(), 1);
    let allowed = place.config_with(&[("UNSTUCK_WEBHOOKS_ALLOW_PRIVATE", "true")]);
    assert!(allowed.webhooks().allow_private);
}

/// S4-16: a stored policy for all projects applies before a project's file, one for the project after it.
#[test]
fn stored_policy_applies_in_its_layer() {
    let place = Place::new();
    place.user(
        "config.toml",
        "[policy]\nmaxRetries = 1\njitter = \"none\"\n",
    );
    let set = |of, retries: u32| StoredPolicy {
        scope: of,
        policy: serde_json::json!({"maxRetries": retries, "maxCost": null}),
        origin: "set over REST by anna".to_owned(),
    };
    let counted = |set: Vec<StoredPolicy>| {
        let layers = ConfigLayers {
            stored_policies: set,
            ..place.layers()
        };
        let config = Config::load(&layers).unwrap();
        let from = origin(&config, "policy.maxRetries");
        (config.policy().unwrap().max_retries, from)
    };
    let (everybody, own) = (set(PolicyScope::Everybody, 5), set(PolicyScope::Project, 7));
    let from_rest = "set over REST by anna".to_owned();
    assert_eq!(counted(vec![everybody.clone()]), (5, from_rest.clone()));
    place.project("unstuck.toml", "[policy]\nmaxRetries = 2\n");
    let of_file = (2, "unstuck.toml:2".to_owned());
    assert_eq!(counted(vec![everybody.clone()]), of_file);
    assert_eq!(counted(vec![own, everybody]), (7, from_rest));
    let broken = StoredPolicy {
        policy: serde_json::json!({"maxRetries": "many"}),
        ..set(PolicyScope::Project, 0)
    };
    let layers = ConfigLayers {
        stored_policies: vec![broken],
        ..place.layers()
    };
    let told = Config::load(&layers).unwrap_err().to_string();
    assert!(
        told.contains("set over REST by anna: `policy.maxRetries`"),
        "{told}"
    );
}
