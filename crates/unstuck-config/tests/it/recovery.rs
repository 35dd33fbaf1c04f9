//! What `[error_recovery]` and the roles come to: how far to go, and in which ways.

use unstuck_config::Config;
use unstuck_core::knowledge::{AttemptChange, Playbook};
use unstuck_core::{Kind, Layer};

use crate::{Place, role};

fn config(text: &str) -> Config {
    Place::with("unstuck.toml", text).config()
}

/// How many retries a kind has for the role `a`, in the layer of agents.
fn retries(config: &Config, kind: Kind) -> u32 {
    let policy = config.policy_for(config.role("a").unwrap()).unwrap().policy;
    let file = Playbook::built_in().kind(kind).unwrap();
    policy.limits(kind, Layer::Agent, file, None).retries
}

/// The strategies of a kind for the role `a`, in their order.
fn chain(config: &Config, kind: Kind) -> Vec<String> {
    let playbook = config.playbook_for(config.role("a").unwrap()).unwrap();
    let links = playbook.kind(kind).unwrap().chain.iter();
    let fits = |layers: &[Layer]| layers.is_empty() || layers.contains(&Layer::Agent);
    links
        .filter(|link| fits(&link.layers))
        .map(|link| link.strategy.clone())
        .collect()
}

/// S1-12 to S1-14, S1-32: without a word about it, each kind has its own limits.
#[test]
fn a_role_has_the_default_policy_and_the_kinds_own_limits() {
    let config = config(&role("a", ""));
    let made = config.policy_for(config.role("a").unwrap()).unwrap();
    assert_eq!(made.policy.id, "resilient");
    assert_eq!(made.origins["policy"], "the template `resilient`");
    assert!(made.policy.give_up_after.is_some());
    assert_eq!(retries(&config, Kind::Timeout), 2);
    assert_eq!(retries(&config, Kind::MissingSections), 3);
    assert_eq!(retries(&config, Kind::EmptyOutput), 2);
}

/// A number of retries for all kinds is a count limit, with the waits that it was made for.
#[test]
fn a_cap_on_retries_brings_the_template_that_counts_them() {
    let config = config(&(role("a", "") + "[error_recovery]\nmax_auto_retries = 3\n"));
    let made = config.policy_for(config.role("a").unwrap()).unwrap();
    assert_eq!(made.policy.id, "pipeline");
    assert_eq!(
        (made.policy.max_retries, made.policy.give_up_after),
        (3, None)
    );
}

/// One word brings back the default of the founding documents, for all and for one role.
#[test]
fn a_policy_can_be_named_in_one_word() {
    let all = config(&("policy = \"standard\"\n".to_owned() + &role("a", "")));
    let policy = all.policy().unwrap();
    assert_eq!(
        (policy.id.as_str(), policy.max_retries, policy.give_up_after),
        ("standard", 3, None)
    );
    let one = config(&role("a", "policy = \"standard\""));
    let made = one.policy_for(one.role("a").unwrap()).unwrap();
    assert_eq!(made.policy.id, "standard");
}

/// S1-32: of the cap and a kind's own number the smaller one counts.
#[test]
fn the_cap_bounds_what_is_said_for_all_roles() {
    let capped = config(
        &(role("a", "")
            + "[error_recovery]\nmax_auto_retries = 1\n[error_recovery.strategies.timeout]\nmax_retries = 5\n"),
    );
    assert_eq!(retries(&capped, Kind::Timeout), 1);
    assert_eq!(retries(&capped, Kind::MissingSections), 1);
    let made = capped.policy_for(capped.role("a").unwrap()).unwrap();
    assert_eq!(
        made.origins["kinds.timeout.maxRetries"],
        "error_recovery.max_auto_retries (unstuck.toml:7)"
    );
    assert!(
        capped.warnings()[0]
            .to_string()
            .contains("the smaller one counts")
    );
    let raised = config(
        &(role("a", "")
            + "[error_recovery]\nmax_auto_retries = 6\n[error_recovery.strategies.timeout]\nmax_retries = 5\n"),
    );
    assert_eq!(retries(&raised, Kind::Timeout), 5);
    assert_eq!(retries(&raised, Kind::MissingSections), 3);
}

/// S1-33: retries count after the first try; attempts count it too.
#[test]
fn attempts_are_retries_and_the_first_try() {
    let config = config(&role(
        "a",
        "[role.error_recovery.timeout]\nmax_attempts = 5",
    ));
    assert_eq!(retries(&config, Kind::Timeout), 4);
    let value = config.value("role.a.error_recovery").unwrap();
    assert_eq!(
        value,
        serde_json::json!({ "timeout": { "max_retries": 4 } })
    );
}

/// S1-33: a role's own number may exceed the cap.
#[test]
fn a_roles_word_stands_above_the_cap() {
    let text = role(
        "a",
        "[role.error_recovery.timeout]\nmax_retries = 5\ntimeout_multiplier = 2.0",
    ) + "[error_recovery]\nmax_auto_retries = 3\n";
    let config = config(&text);
    assert_eq!(retries(&config, Kind::Timeout), 5);
    let made = config.policy_for(config.role("a").unwrap()).unwrap();
    assert_eq!(
        made.policy.kinds[&Kind::Timeout].timeout_multiplier,
        Some(2.0)
    );
    assert_eq!(
        made.origins["kinds.timeout.maxRetries"],
        "role.a.error_recovery.timeout.max_retries (unstuck.toml:6)"
    );
}

#[test]
fn recovery_that_is_switched_off_is_the_policy_off() {
    let config =
        config(&(role("a", "policy = \"patient\"") + "[error_recovery]\nenabled = false\n"));
    let made = config.policy_for(config.role("a").unwrap()).unwrap();
    assert!(!made.policy.enabled);
    assert_eq!(
        made.origins["policy"],
        "error_recovery.enabled (unstuck.toml:7)"
    );
}

#[test]
fn a_roles_policy_wins_over_the_projects_and_the_environment_over_both() {
    let text = role("a", "policy = \"patient\"") + "[policy]\ntemplate = \"thrifty\"\n";
    let place = Place::with("unstuck.toml", &text);
    let id = |config: &Config| {
        config
            .policy_for(config.role("a").unwrap())
            .unwrap()
            .policy
            .id
    };
    assert_eq!(id(&place.config()), "patient");
    assert_eq!(
        id(&place.config_with(&[("UNSTUCK_POLICY", "critical")])),
        "critical"
    );
    place.project(
        "unstuck.toml",
        &(role("a", "policy = { maxRetries = 8 }") + "[policy]\ntemplate = \"thrifty\"\n"),
    );
    let config = place.config();
    let policy = config.policy_for(config.role("a").unwrap()).unwrap().policy;
    assert_eq!((policy.max_retries, policy.backoff_base), (8, 2.0));
}

#[test]
fn without_a_word_the_chains_are_the_known_ones() {
    let config = config(&role("a", ""));
    let playbook = config.playbook_for(config.role("a").unwrap()).unwrap();
    assert_eq!(&*playbook, Playbook::built_in());
}

/// S1-32: a prompt change that is switched off is no longer made; what else the way changes stays.
#[test]
fn a_change_that_is_switched_off_leaves_the_chain() {
    let text = role(
        "a",
        "[role.error_recovery.timeout]\nsimplify_prompt = false\n[role.error_recovery.missing_sections]\nemphasize_format = false\n[role.error_recovery.empty_output]\nreduce_max_chars = false",
    );
    let config = config(&text);
    assert_eq!(
        chain(&config, Kind::Timeout),
        ["longer_timeout", "fresh_session_more_time", "ask_user"]
    );
    assert_eq!(
        chain(&config, Kind::MissingSections),
        ["retry_with_error_context", "next_model", "ask_user"]
    );
    let playbook = config.playbook_for(config.role("a").unwrap()).unwrap();
    let first = &chain(&config, Kind::EmptyOutput)[0];
    assert_eq!(
        playbook.strategy(first).unwrap().changes,
        [AttemptChange::Prompt("explicit_output".into())]
    );
}

#[test]
fn a_change_that_is_switched_on_enters_a_chain_that_lacks_it() {
    let config = config(&role(
        "a",
        "[role.error_recovery.cli_crash]\nsimplify_prompt = true",
    ));
    assert_eq!(chain(&config, Kind::CliCrash)[0], "focus_on_core");
}

/// S1-33: the prompt template that a role names comes first; the time is still raised.
#[test]
fn a_prompt_template_of_the_project_comes_first() {
    let text = role(
        "a",
        "[role.error_recovery.timeout]\ncustom_prompt_modifier = \"implementer_timeout_prompt\"",
    ) + "[prompts]\nimplementer_timeout_prompt = \"Do half of it. {{ error }}\"\n";
    let place = Place::with("unstuck.toml", &text);
    assert_eq!(place.problems(), Vec::<String>::new());
    let config = place.config();
    let first = &chain(&config, Kind::Timeout)[0];
    let playbook = config.playbook_for(config.role("a").unwrap()).unwrap();
    let name = "implementer_timeout_prompt";
    assert_eq!(
        playbook.strategy(first).unwrap().changes,
        [
            AttemptChange::Prompt(name.into()),
            AttemptChange::Timeout(1.5)
        ]
    );
    assert!(config.prompts().unwrap().names().any(|known| known == name));
}

#[test]
fn a_chain_can_be_named_in_ones_own_order() {
    use unstuck_core::decision::{SuccessRates, rank_chain};
    let ids = "[\"fresh_session\", \"longer_timeout\", \"ask_user\"]";
    let config = config(
        &(role("a", "") + &format!("[error_recovery.strategies.timeout]\nstrategies = {ids}\n")),
    );
    let playbook = config.playbook_for(config.role("a").unwrap()).unwrap();
    let links = &playbook.kind(Kind::Timeout).unwrap().chain;
    let asks = |id: &str| playbook.strategy(id).unwrap().asks_person;
    let ranked = rank_chain(
        Kind::Timeout,
        Layer::Agent,
        links,
        &SuccessRates::empty(),
        asks,
    );
    let ids: Vec<_> = ranked
        .iter()
        .map(|one| one.entry.strategy.as_str())
        .collect();
    assert_eq!(ids, ["fresh_session", "longer_timeout", "ask_user"]);
}
