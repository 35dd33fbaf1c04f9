//! A run keeps the project settings of its start; changes that allow or execute more are held back.

use unstuck_config::{Config, ConfigLayers};

use crate::Place;

const BEGUN: &str = r#"
[loop]
max_iterations = 4
until = { check = "make test" }
[budget]
per_run = { usd = 1.0 }
[policy]
template = "standard"
[[role]]
id = "a"
command = ["sh", "-c", "work"]
prompt = "Do it"
timeout = "20m"
env = { MODE = "safe", API_TOKEN = "zK83hs72hHs92jsQ" }
[[role]]
id = "b"
agent = "claude"
prompt = "Look"
"#;

/// Returns the configuration of a run that started with the accepted text, now that the file has this text.
fn now(text: &str) -> Config {
    let place = Place::with("unstuck.toml", BEGUN);
    let accepted = place.config().project_settings().clone();
    place.project("unstuck.toml", text);
    let layers = ConfigLayers {
        accepted: Some(accepted),
        ..place.layers()
    };
    Config::load(&layers).unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn held(text: &str) -> Vec<String> {
    let config = now(text);
    let held = config.unapproved_changes().iter();
    held.map(|change| change.key.clone()).collect()
}

#[test]
fn changes_that_execute_or_allow_more_are_held_back() {
    for (from, to, key) in [
        ("make test", "true", "loop.until.check"),
        (
            "max_iterations = 4",
            "max_iterations = 5",
            "loop.max_iterations",
        ),
        ("max_iterations = 4", "", "loop.max_iterations"),
        ("usd = 1.0", "usd = 1.5", "budget.per_run.usd"),
        ("per_run = { usd = 1.0 }", "", "budget.per_run"),
        ("\"work\"", "\"evil\"", "role.a.command"),
        ("\"20m\"", "\"21m\"", "role.a.timeout"),
        ("\"20m\"", "\"0s\"", "role.a.timeout"),
        ("timeout = \"20m\"", "", "role.a.timeout"),
        ("MODE = \"safe\"", "MODE = \"wild\"", "role.a.env.MODE"),
        (
            "MODE = \"safe\"",
            "MODE = \"safe\", LD_PRELOAD = \"x\"",
            "role.a.env.LD_PRELOAD",
        ),
        (
            "prompt = \"Look\"",
            "prompt = \"Look\"\nargs = [\"--yolo\"]",
            "role.b.args",
        ),
        (
            "prompt = \"Look\"",
            "prompt = \"Look\"\ninstances = 9",
            "role.b.instances",
        ),
        (
            "prompt = \"Look\"",
            "prompt = \"Look\"\nexpect.check = \"evil\"",
            "role.b.expect",
        ),
        ("\"standard\"", "\"patient\"", "policy.template"),
        ("[loop]", "[stuck]\nenabled = false\n[loop]", "stuck"),
        ("[loop]", "[run]\nparallel = 9\n[loop]", "run"),
        (
            "[loop]",
            "[webhooks]\non_resolved = \"https://e.example\"\n[loop]",
            "webhooks",
        ),
        (
            "[loop]",
            "[agents.x]\nbase_agent = \"claude\"\n[loop]",
            "agents",
        ),
    ] {
        let text = BEGUN.replacen(from, to, 1);
        assert_ne!(text, BEGUN, "{from}");
        assert_eq!(held(&text), [key], "{to}");
        let config = now(&text);
        let place = Place::with("unstuck.toml", BEGUN);
        let begun = place.config();
        assert_eq!(config.roles(), begun.roles(), "{to}");
        assert_eq!(config.loop_section(), begun.loop_section(), "{to}");
        assert_eq!(config.budget(), begun.budget(), "{to}");
        assert_eq!(config.run(), begun.run(), "{to}");
        assert_eq!(config.stuck(), begun.stuck(), "{to}");
        assert_eq!(config.webhooks(), begun.webhooks(), "{to}");
        assert_eq!(config.policy(), begun.policy(), "{to}");
    }
}

#[test]
fn stricter_and_display_changes_apply_at_once() {
    for (from, to) in [
        ("max_iterations = 4", "max_iterations = 3"),
        ("usd = 1.0", "usd = 0.5"),
        ("usd = 1.0", "usd = 1.0, tokens = 10"),
        ("\"20m\"", "\"90s\""),
        ("\"Look\"", "\"Look well\""),
        ("[loop]", "[run]\nparallel = 2\nheartbeat = \"1h\"\n[loop]"),
        ("[loop]", "[prompts]\nmine = \"Mind it\"\n[loop]"),
        ("[loop]", "# a remark\n[loop]"),
        ("[loop]", "[recovery]\nnetwork = false\n[loop]"),
    ] {
        let text = BEGUN.replacen(from, to, 1);
        assert_ne!(text, BEGUN, "{from}");
        assert_eq!(held(&text), [""; 0], "{to}");
    }
    let text = BEGUN.replacen("max_iterations = 4", "max_iterations = 3", 1);
    assert_eq!(now(&text).loop_section().unwrap().max_iterations, 3);
}

#[test]
fn added_and_removed_roles_need_approval() {
    let more = format!("{BEGUN}\n[[role]]\nid = \"c\"\ncommand = [\"evil\"]\n");
    assert_eq!(held(&more), ["role.c"]);
    let ids = |text: &str| -> Vec<String> {
        let config = now(text);
        config.roles().iter().map(|role| role.id.clone()).collect()
    };
    assert_eq!(ids(&more), ["a", "b"]);
    assert_eq!(now(&more).written_roles(), ["a", "b", "c"]);
    let fewer = BEGUN.split("[[role]]\nid = \"b\"").next().unwrap();
    assert_eq!(held(fewer), ["role.b"]);
    assert_eq!(ids(fewer), ["a", "b"]);
    let once = BEGUN.replacen(
        "[loop]\nmax_iterations = 4\nuntil = { check = \"make test\" }",
        "",
        1,
    );
    assert_eq!(held(&once), ["loop"]);
}

#[test]
fn differences_show_both_values_but_no_secrets() {
    let text = BEGUN.replacen("\"safe\"", "\"wild\"", 1).replacen(
        "zK83hs72hHs92jsQ",
        "pQ92kd83hLs01mzX",
        1,
    );
    let config = now(&text);
    let told: Vec<_> = config
        .unapproved_changes()
        .iter()
        .map(ToString::to_string)
        .collect();
    assert_eq!(told[0], "role.a.env.MODE: \"safe\" -> \"wild\"");
    assert!(told[1].starts_with("role.a.env.API_TOKEN: "), "{told:?}");
    for secret in ["zK83hs72hHs92jsQ", "pQ92kd83hLs01mzX"] {
        assert!(!told[1].contains(secret), "{told:?}");
    }
}

/// A newly created file is treated like a changed one.
#[test]
fn new_file_is_held_back_and_missing_file_is_an_error() {
    let place = Place::new();
    let accepted = place.config().project_settings().clone();
    place.project("unstuck.toml", BEGUN);
    let layers = ConfigLayers {
        accepted: Some(accepted),
        ..place.layers()
    };
    let config = Config::load(&layers).unwrap();
    assert!(config.roles().is_empty() && config.loop_section().is_none());
    assert!(config.unapproved_changes().len() >= 3);
    let accepted = place.config().project_settings().clone();
    std::fs::remove_file(place.path().join("project/unstuck.toml")).unwrap();
    let layers = ConfigLayers {
        accepted: Some(accepted),
        ..place.layers()
    };
    let gone = Config::load(&layers).unwrap_err().to_string();
    assert!(gone.contains("no longer exists"), "{gone}");
}

/// A project can only lower the owner's budget.
#[test]
fn project_lowers_the_owners_budget_and_never_raises_it() {
    let place = Place::with(
        "unstuck.toml",
        "[budget]\nper_run = { usd = 500.0, tokens = 5 }\nper_day = { usd = 2.0 }\n",
    );
    place.user(
        "config.toml",
        "[budget]\nper_run = { usd = 1.0, tokens = 10 }\nper_day = { usd = 9.0 }\n",
    );
    let budget = place.config().budget().clone();
    assert_eq!(
        (budget.per_run.usd, budget.per_run.tokens),
        (Some(1.0), Some(5))
    );
    assert_eq!(budget.per_day.usd, Some(2.0));
}

/// A run started by an earlier version continues without approval of keys that were only renamed.
#[test]
fn renamed_keys_are_not_held_back() {
    let place = Place::with("unstuck.toml", "[gateway]\non_loop = \"stop\"\n");
    let mut accepted = place.config().project_settings().clone();
    for file in accepted.files.values_mut() {
        *file = serde_json::json!({ "gateway": { "on_circles": "stop" } });
    }
    let held = |accepted: &unstuck_core::project_settings_snapshot::ProjectSettingsSnapshot| {
        let layers = ConfigLayers {
            accepted: Some(accepted.clone()),
            ..place.layers()
        };
        Config::load(&layers).unwrap().unapproved_changes().len()
    };
    assert_eq!(held(&accepted), 0);
    place.project("unstuck.toml", "[gateway]\non_loop = \"warn\"\n");
    assert_eq!(held(&accepted), 1);
}

/// A file that is no configuration may hold anything, such as a password, and changes are recorded where agents can read
/// them.
#[test]
fn values_of_unknown_keys_are_not_recorded() {
    const SECRET: &str = "TOPSECRETVALUE99";
    let known = "[webhooks]\non_resolved = [\"https://b.example\"]\n[[role]]\nid = \"c\"\nagent = \"claude\"\nprompt = \"Hi\"\n";
    for text in [
        format!("auths = {{ reg = {{ auth = \"{SECRET}\" }} }}\n"),
        format!("token = \"{SECRET}\"\n"),
        format!("loop = \"{SECRET}\"\n"),
        format!("webhooks = [\"{SECRET}\"]\n"),
        format!("run = {{ token = \"{SECRET}\" }}\n"),
        format!("{known}token = \"{SECRET}\"\n"),
    ] {
        let place = Place::new();
        let accepted = place.config().project_settings().clone();
        place.project("unstuck.toml", &text);
        let layers = ConfigLayers {
            accepted: Some(accepted),
            ..place.layers()
        };
        let loaded = unstuck_config::ConfigLoadResult::read(&layers).unwrap();
        let held = format!("{:?}", loaded.config.unapproved_changes());
        assert!(!held.contains(SECRET), "{text}: {held}");
        assert!(held.contains("unknown key"), "{text}: {held}");
        if text.starts_with(known) {
            assert!(
                held.contains("https://b.example") && held.contains("Hi"),
                "{held}"
            );
        }
    }
}
