//! Display of the effective configuration.

use unstuck_config::{Config, ConfigValueOrigin};

use crate::{Place, role};

#[test]
fn displayed_configuration_is_equivalent() {
    let text = role(
        "a",
        "env = { \"x.y\" = \"1\" }\nexpect.match = [\"a\\\"b\", \"c\"]\ntimeout_seconds = 5",
    ) + "[loop]\nuntil = \"DONE\"\n[policy]\nmax_retries = 2\n[prompts]\np = \"two\\nlines \\t é\"\n";
    let config = Place::with("unstuck.toml", &text).config();
    let shown = config.resolved().to_toml();
    let again = Place::with("unstuck.toml", &shown).config();
    assert_eq!(again.roles(), config.roles());
    assert_eq!(again.loop_section(), config.loop_section());
    assert_eq!(again.policy(), config.policy());
    assert_eq!(again.run(), config.run());
    assert_eq!(again.prompts().unwrap(), config.prompts().unwrap());
    let commented = config.resolved().to_toml_with_origins();
    assert_eq!(
        Place::with("unstuck.toml", &commented).config().roles(),
        config.roles()
    );
}

#[test]
fn every_line_shows_its_source() {
    let place = Place::with("unstuck.toml", "[run]\nsnapshots = false\n");
    let config = place.config_with(&[("UNSTUCK_PARALLEL", "8")]);
    let shown = config.resolved().to_toml_with_origins();
    let line = |key: &str| {
        shown
            .lines()
            .find(|line| line.starts_with(key))
            .unwrap()
            .to_owned()
    };
    assert!(
        line("snapshots").ends_with("= false           # unstuck.toml:2"),
        "{shown}"
    );
    assert!(line("parallel").ends_with("# UNSTUCK_PARALLEL"), "{shown}");
    assert!(line("wait_for_human").ends_with("# built-in"), "{shown}");
}

#[test]
fn optional_sections_are_hidden_unless_set() {
    let shown = Config::default().resolved().to_toml();
    assert!(
        !shown.contains("[loop]") && !shown.contains("[recovery]"),
        "{shown}"
    );
    let config = Place::with("unstuck.toml", "[recovery]\nnetwork = false\n").config();
    let leaves = config.resolved().values();
    let sandbox = leaves
        .iter()
        .find(|leaf| leaf.path == "recovery.sandbox")
        .unwrap();
    assert_eq!(
        (sandbox.value.as_str(), &sandbox.origin),
        (Some("best-effort"), &ConfigValueOrigin::BuiltIn)
    );
}

#[test]
fn displayed_cap_is_that_of_the_policy() {
    let config = Place::with("unstuck.toml", "[policy]\ntemplate = \"critical\"\n").config();
    let shown = config.resolved().to_json();
    assert_eq!(shown["error_recovery"]["max_auto_retries"], 6);
}

#[test]
fn secrets_are_not_shown() {
    let config = Place::with(
        "unstuck.toml",
        &role(
            "a",
            "env = { DEPLOY_TOKEN = \"q7h2k9zt4mw8\", MODE = \"fast\" }",
        ),
    )
    .config();
    let effective = config.resolved();
    let (toml, json) = (effective.to_toml(), effective.to_json().to_string());
    for shown in [&toml, &json] {
        assert!(
            !shown.contains("q7h2k9zt4mw8") && shown.contains("fast"),
            "{shown}"
        );
    }
}

/// The displayed defaults are the effective ones.
#[test]
fn displayed_defaults_are_the_effective_ones() {
    let shown = Config::default().resolved().to_toml();
    let read = Place::with("unstuck.toml", &shown).config();
    let (plain, read) = (Config::default(), read);
    assert_eq!(read.run(), plain.run());
    assert_eq!(read.stuck(), plain.stuck());
    let text = role("a", "");
    let with_defaults = Place::with("unstuck.toml", &(text.clone() + &shown)).config();
    let without = Place::with("unstuck.toml", &text).config();
    let retries = |config: &Config| {
        let policy = config.policy_for(&config.roles()[0]).unwrap().policy;
        let kinds = unstuck_core::FailureKind::ALL.iter().map(|kind| {
            let file = unstuck_core::knowledge::RecoveryKnowledge::built_in()
                .kind(*kind)
                .unwrap();
            policy
                .limits(*kind, unstuck_core::FailureLayer::Agent, file, None)
                .retries
        });
        kinds.collect::<Vec<_>>()
    };
    assert_eq!(retries(&with_defaults), retries(&without));
    let chains = |config: &Config| {
        config
            .role_recovery_knowledge(&config.roles()[0])
            .unwrap()
            .into_owned()
    };
    assert_eq!(chains(&with_defaults), chains(&without));
}
