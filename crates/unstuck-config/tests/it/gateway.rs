//! `[gateway]`: its values, and which files may set them.

use std::time::Duration;

use unstuck_config::Config;
use unstuck_config::section::{GatewaySection, MissingUpstreamFeature, OnBudgetReached, OnLoop};

use crate::Place;

fn by_user(text: &str) -> Place {
    let place = Place::new();
    place.user("config.toml", text);
    place
}

#[test]
fn defaults_apply_without_the_section() {
    let config = Config::default();
    assert_eq!(config.gateway(), &GatewaySection::default());
    let shown = by_user(&config.resolved().to_toml()).config();
    assert_eq!(shown.gateway(), config.gateway());
    let gateway = config.gateway();
    assert!(gateway.enabled && !gateway.retry_bad_output && !gateway.route_around_refusals);
    assert_eq!(gateway.listen.to_string(), "127.0.0.1:4141");
    assert_eq!(gateway.max_request, 64 << 20);
    assert_eq!(gateway.budgets.on_reached, OnBudgetReached::Ask);
}

#[test]
fn user_can_set_everything() {
    let place = by_user(
        r#"
        [gateway]
        listen = "127.0.0.1:0"
        on_loop = "note"
        max_request = "1MiB"
        [gateway.timeouts]
        client_wait = "1s"
        [gateway.budgets]
        per_session = 5
        per_day = 20.5
        on_reached = "stop"
        [gateway.loop_detection]
        repeats = 3
        [gateway.upstreams]
        gemini = "https://one.example"
        anthropic = ["https://a.example", { name = "spare", url = "https://b.example/x", key_env = "SPARE_KEY", unsupported = ["tools"], context = 1000, models = { a = "b" } }]
        "#,
    );
    let config = place.config();
    assert_eq!(config.check(), []);
    let gateway = config.gateway();
    assert_eq!(gateway.timeouts.hold, Duration::from_secs(1));
    assert_eq!(gateway.timeouts.stall, Duration::from_secs(90));
    assert_eq!(gateway.watch.repeats, 3);
    assert_eq!(
        (gateway.budgets.session, gateway.budgets.day),
        (Some(5.0), Some(20.5))
    );
    assert_eq!(gateway.upstreams.gemini[0].url, "https://one.example");
    let [first, spare] = &gateway.upstreams.anthropic[..] else {
        panic!("{:?}", gateway.upstreams);
    };
    assert_eq!(first.url, "https://a.example");
    assert_eq!(spare.name.as_deref(), Some("spare"));
    assert_eq!(spare.key_env.as_deref(), Some("SPARE_KEY"));
    assert_eq!(spare.missing, [MissingUpstreamFeature::Tools]);
    let origin = config.origin("gateway.budgets.per_session").unwrap();
    assert!(origin.to_string().contains("config.toml:9"), "{origin}");
}

/// An agent can write the project's file, and the user's keys are sent to the configured upstreams.
#[test]
fn project_cannot_set_upstreams() {
    for (line, key) in [
        (
            "upstreams.anthropic = \"https://evil.example\"",
            "gateway.upstreams",
        ),
        ("listen = \"0.0.0.0:80\"", "gateway.listen"),
        ("enabled = false", "gateway.enabled"),
        (
            "route_around_refusals = true",
            "gateway.route_around_refusals",
        ),
        ("loop_detection.repeats = 0", "gateway.loop_detection"),
    ] {
        let text = format!("[gateway]\n{line}\n");
        let place = Place::with("unstuck.toml", &text);
        let problems = place.problems().join("\n");
        assert!(
            problems.contains("only in your own configuration"),
            "{key}: {problems}"
        );
        assert!(problems.contains("unstuck.toml:2"), "{key}: {problems}");
        let read = unstuck_config::ConfigLoadResult::read(&place.layers()).unwrap();
        assert_eq!(read.config.gateway(), &GatewaySection::default(), "{key}");
    }
}

#[test]
fn project_only_tightens_limits() {
    let place = by_user(
        "[gateway]\non_loop = \"hold\"\nbudgets = { per_session = 5, per_day = 10, on_reached = \"stop\" }\n",
    );
    place.project(
        "unstuck.toml",
        "[gateway]\non_loop = \"warn\"\nbudgets = { per_session = 50, per_day = 2, on_reached = \"ask\" }\n",
    );
    let config = place.config();
    let gateway = config.gateway();
    assert_eq!(gateway.on_loop, OnLoop::Hold);
    assert_eq!(gateway.budgets.session, Some(5.0));
    assert_eq!(gateway.budgets.day, Some(2.0));
    assert_eq!(gateway.budgets.on_reached, OnBudgetReached::Stop);
    place.project("unstuck.toml", "[gateway]\non_loop = \"stop\"\n");
    assert_eq!(place.config().gateway().on_loop, OnLoop::Stop);
    let alone = Place::with("unstuck.toml", "[gateway.budgets]\nper_session = 1\n").config();
    assert_eq!(alone.gateway().budgets.session, Some(1.0));
}

#[test]
fn errors_are_reported_with_their_location() {
    for (line, told) in [
        (
            "upstreams.openai = \"api.example/v1\"",
            "must begin with https:// or http://",
        ),
        (
            "upstreams.openai = \"https://me:secret@x.example\"",
            "must not contain a password",
        ),
        (
            "upstreams.openai = { url = \"https://x.example\", key_env = \"sk-abc\" }",
            "must be the name of an environment variable",
        ),
        (
            "upstreams.opnai = \"https://x.example\"",
            "did you mean `openai`",
        ),
        ("max_request = \"64\"", "a size in quotes"),
        ("listen = \"4141\"", "an address with a port"),
        ("on_loop = \"panic\"", "on_loop"),
        ("timeouts.client_wait = \"0s\"", "must be greater than 0"),
        ("budgets.per_session = -1", "0 or more"),
    ] {
        let problems = by_user(&format!("[gateway]\n{line}\n"))
            .problems()
            .join("\n");
        assert!(problems.contains(told), "{line}: {problems}");
        assert!(problems.contains("config.toml:2"), "{line}: {problems}");
        assert!(!problems.contains("sk-abc\" must"), "{problems}");
    }
}

/// Names of earlier versions are accepted for one version, each reported with its line and its replacement.
#[test]
fn deprecated_names_apply_with_a_warning() {
    let old = by_user(
        r#"[gateway]
on_circles = "note"
[gateway.watch]
repeats = 3
slow_repeats = 31
empty_answers = 4
no_shrink = 5
refill = 6
shortest_full = 7
no_progress = 8
storm = 9
storm_time = "10s"
[gateway.timeouts]
response = "11s"
whole = "12s"
hold = "13s"
probe = "14s"
request = "15s"
[gateway.budgets]
session = 5
day = 20.5
[gateway.upstreams]
anthropic = ["https://a.example", { url = "https://b.example", lacks = ["tools"] }]
openai = { url = "https://c.example", lacks = ["vision"] }
[prompts]
ours = { text = "x", place = "context" }
"#,
    );
    let new = by_user(
        r#"[gateway]
on_loop = "note"
[gateway.loop_detection]
repeats = 3
slow_tool_repeats = 31
empty_responses = 4
failed_compactions = 5
compaction_window = 6
min_context_tokens = 7
no_progress_responses = 8
conversation_storm = 9
conversation_storm_window = "10s"
[gateway.timeouts]
response_headers = "11s"
full_response = "12s"
client_wait = "13s"
probe_interval = "14s"
client_request = "15s"
[gateway.budgets]
per_session = 5
per_day = 20.5
[gateway.upstreams]
anthropic = ["https://a.example", { url = "https://b.example", unsupported = ["tools"] }]
openai = { url = "https://c.example", unsupported = ["vision"] }
[prompts]
ours = { text = "x", position = "context" }
"#,
    );
    assert_eq!(old.problems(), Vec::<String>::new());
    let (old, new) = (old.config(), new.config());
    assert_ne!(new.gateway(), &GatewaySection::default());
    assert_eq!(old.gateway(), new.gateway());
    assert_eq!(old.prompts().unwrap(), new.prompts().unwrap());
    assert_eq!(old.resolved().to_toml(), new.resolved().to_toml());
    assert_eq!(new.old_names(), []);
    let told: Vec<_> = old
        .old_names()
        .iter()
        .map(|one| {
            let line = one.location.as_ref().map_or(0, |place| place.line);
            format!("{line}: {}", one.message)
        })
        .collect();
    assert_eq!(told.len(), 20, "{told:#?}");
    for expected in [
        "2: `gateway.on_circles` is deprecated, use `gateway.on_loop`",
        "3: `gateway.watch` is deprecated, use `gateway.loop_detection`",
        "7: `gateway.loop_detection.no_shrink` is deprecated, use `gateway.loop_detection.failed_compactions`",
        "16: `gateway.timeouts.hold` is deprecated, use `gateway.timeouts.client_wait`",
        "23: `gateway.upstreams.anthropic.2.lacks` is deprecated, use `gateway.upstreams.anthropic.2.unsupported`",
        "26: `prompts.ours.place` is deprecated, use `prompts.ours.position`",
    ] {
        assert!(
            told.iter().any(|one| one == expected),
            "{expected}\n{told:#?}"
        );
    }
}

/// A deprecated name in one file is overridden by the new name in another; both in one file is an error.
#[test]
fn deprecated_and_new_names_are_the_same_key() {
    let place = by_user("[gateway]\non_loop = \"hold\"\n");
    place.project("unstuck.toml", "[gateway]\non_circles = \"warn\"\n");
    assert_eq!(place.config().gateway().on_loop, OnLoop::Hold);
    place.project("unstuck.toml", "[gateway]\non_circles = \"stop\"\n");
    assert_eq!(place.config().gateway().on_loop, OnLoop::Stop);
    let problems = by_user("[gateway]\non_loop = \"hold\"\non_circles = \"warn\"\n").problems();
    assert_eq!(problems.len(), 1, "{problems:?}");
    assert!(
        problems[0].contains("config.toml:3:1: `gateway.on_loop`: `on_circles` was renamed"),
        "{problems:?}"
    );
}
