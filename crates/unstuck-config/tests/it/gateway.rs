//! `[gateway]`: what it says, and whose word counts.

use std::time::Duration;

use unstuck_config::Config;
use unstuck_config::section::{GatewaySection, Lack, OnCircles, OnReached};

use crate::Place;

fn by_user(text: &str) -> Place {
    let place = Place::new();
    place.user("config.toml", text);
    place
}

#[test]
fn without_the_section_the_defaults_count() {
    let config = Config::default();
    assert_eq!(config.gateway(), &GatewaySection::default());
    let shown = by_user(&config.effective().to_toml()).config();
    assert_eq!(shown.gateway(), config.gateway());
    let gateway = config.gateway();
    assert!(gateway.enabled && !gateway.retry_bad_output && !gateway.route_around_refusals);
    assert_eq!(gateway.listen.to_string(), "127.0.0.1:4141");
    assert_eq!(gateway.max_request, 64 << 20);
    assert_eq!(gateway.budgets.on_reached, OnReached::Ask);
}

#[test]
fn the_user_says_all_of_it() {
    let place = by_user(
        r#"
        [gateway]
        listen = "127.0.0.1:0"
        on_circles = "note"
        max_request = "1MiB"
        [gateway.timeouts]
        hold = "1s"
        [gateway.budgets]
        session = 5
        day = 20.5
        on_reached = "stop"
        [gateway.watch]
        repeats = 3
        [gateway.upstreams]
        gemini = "https://one.example"
        anthropic = ["https://a.example", { name = "spare", url = "https://b.example/x", key_env = "SPARE_KEY", lacks = ["tools"], context = 1000, models = { a = "b" } }]
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
    assert_eq!(spare.lacks, [Lack::Tools]);
    let origin = config.origin("gateway.budgets.session").unwrap();
    assert!(origin.to_string().contains("config.toml:9"), "{origin}");
}

/// An agent can write the project's file, and the user's keys go where the gateway is told.
#[test]
fn a_project_tells_nobody_where_keys_go() {
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
        ("watch.repeats = 0", "gateway.watch"),
    ] {
        let text = format!("[gateway]\n{line}\n");
        let place = Place::with("unstuck.toml", &text);
        let problems = place.problems().join("\n");
        assert!(
            problems.contains("only the user's own configuration"),
            "{key}: {problems}"
        );
        assert!(problems.contains("unstuck.toml:2"), "{key}: {problems}");
        let read = unstuck_config::Loaded::read(&place.layers()).unwrap();
        assert_eq!(read.config.gateway(), &GatewaySection::default(), "{key}");
    }
}

#[test]
fn a_project_narrows_and_never_widens() {
    let place = by_user(
        "[gateway]\non_circles = \"hold\"\nbudgets = { session = 5, day = 10, on_reached = \"stop\" }\n",
    );
    place.project(
        "unstuck.toml",
        "[gateway]\non_circles = \"warn\"\nbudgets = { session = 50, day = 2, on_reached = \"ask\" }\n",
    );
    let config = place.config();
    let gateway = config.gateway();
    assert_eq!(gateway.on_circles, OnCircles::Hold);
    assert_eq!(gateway.budgets.session, Some(5.0));
    assert_eq!(gateway.budgets.day, Some(2.0));
    assert_eq!(gateway.budgets.on_reached, OnReached::Stop);
    place.project("unstuck.toml", "[gateway]\non_circles = \"stop\"\n");
    assert_eq!(place.config().gateway().on_circles, OnCircles::Stop);
    let alone = Place::with("unstuck.toml", "[gateway.budgets]\nsession = 1\n").config();
    assert_eq!(alone.gateway().budgets.session, Some(1.0));
}

#[test]
fn mistakes_are_told_where_they_stand() {
    for (line, told) in [
        (
            "upstreams.openai = \"api.example/v1\"",
            "must begin with https:// or http://",
        ),
        (
            "upstreams.openai = \"https://me:secret@x.example\"",
            "holds a password",
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
        ("on_circles = \"panic\"", "on_circles"),
        ("timeouts.hold = \"0s\"", "must be more than nothing"),
        ("budgets.session = -1", "0 or more"),
    ] {
        let problems = by_user(&format!("[gateway]\n{line}\n"))
            .problems()
            .join("\n");
        assert!(problems.contains(told), "{line}: {problems}");
        assert!(problems.contains("config.toml:2"), "{line}: {problems}");
        assert!(!problems.contains("sk-abc\" must"), "{problems}");
    }
}
