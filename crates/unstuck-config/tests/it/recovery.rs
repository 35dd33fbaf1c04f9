//! The effect of `[error_recovery]` and role settings on limits and strategies.

use unstuck_config::Config;
use unstuck_core::knowledge::{AttemptChange, RecoveryKnowledge};
use unstuck_core::{FailureKind, FailureLayer};

use crate::{Place, role};

fn config(text: &str) -> Config {
    Place::with("unstuck.toml", text).config()
}

/// Returns the number of retries of a kind for the role `a`, in the agent layer.
fn retries(config: &Config, kind: FailureKind) -> u32 {
    let policy = config.policy_for(config.role("a").unwrap()).unwrap().policy;
    let file = RecoveryKnowledge::built_in().kind(kind).unwrap();
    policy.limits(kind, FailureLayer::Agent, file, None).retries
}

/// Returns the strategies of a kind for the role `a`, in order.
fn chain(config: &Config, kind: FailureKind) -> Vec<String> {
    let playbook = config
        .role_recovery_knowledge(config.role("a").unwrap())
        .unwrap();
    let links = playbook.kind(kind).unwrap().chain.iter();
    let fits = |layers: &[FailureLayer]| layers.is_empty() || layers.contains(&FailureLayer::Agent);
    links
        .filter(|link| fits(&link.layers))
        .map(|link| link.strategy.clone())
        .collect()
}

/// S1-12 to S1-14, S1-32: by default each kind has its own limits.
#[test]
fn role_has_the_default_policy_and_kind_limits() {
    let config = config(&role("a", ""));
    let made = config.policy_for(config.role("a").unwrap()).unwrap();
    assert_eq!(made.policy.id, "resilient");
    assert_eq!(made.origins["policy"], "template `resilient`");
    assert!(made.policy.give_up_after.is_some());
    assert_eq!(retries(&config, FailureKind::Timeout), 2);
    assert_eq!(retries(&config, FailureKind::MissingSections), 3);
    assert_eq!(retries(&config, FailureKind::EmptyOutput), 2);
}

/// A retry limit for all kinds is a count limit, with the matching delays.
#[test]
fn retry_cap_selects_the_counting_template() {
    let config = config(&(role("a", "") + "[error_recovery]\nmax_auto_retries = 3\n"));
    let made = config.policy_for(config.role("a").unwrap()).unwrap();
    assert_eq!(made.policy.id, "pipeline");
    assert_eq!(
        (made.policy.max_retries, made.policy.give_up_after),
        (3, None)
    );
}

/// A single key restores the default of the founding documents, for all roles or one.
#[test]
fn policy_can_be_selected_by_name() {
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

/// S1-32: the smaller of the cap and a kind's own number applies.
#[test]
fn cap_bounds_settings_for_all_roles() {
    let capped = config(
        &(role("a", "")
            + "[error_recovery]\nmax_auto_retries = 1\n[error_recovery.strategies.timeout]\nmax_retries = 5\n"),
    );
    assert_eq!(retries(&capped, FailureKind::Timeout), 1);
    assert_eq!(retries(&capped, FailureKind::MissingSections), 1);
    let made = capped.policy_for(capped.role("a").unwrap()).unwrap();
    assert_eq!(
        made.origins["kinds.timeout.maxRetries"],
        "error_recovery.max_auto_retries (unstuck.toml:7)"
    );
    assert!(capped.warnings()[0].to_string().contains("caps it at 1"));
    let raised = config(
        &(role("a", "")
            + "[error_recovery]\nmax_auto_retries = 6\n[error_recovery.strategies.timeout]\nmax_retries = 5\n"),
    );
    assert_eq!(retries(&raised, FailureKind::Timeout), 5);
    assert_eq!(retries(&raised, FailureKind::MissingSections), 3);
}

/// S1-33: retries exclude the first attempt, attempts include it.
#[test]
fn attempts_are_retries_plus_one() {
    let config = config(&role(
        "a",
        "[role.error_recovery.timeout]\nmax_attempts = 5",
    ));
    assert_eq!(retries(&config, FailureKind::Timeout), 4);
    let value = config.value("role.a.error_recovery").unwrap();
    assert_eq!(
        value,
        serde_json::json!({ "timeout": { "max_retries": 4 } })
    );
}

/// S1-33: a role's own number may exceed the cap.
#[test]
fn role_setting_may_exceed_the_cap() {
    let text = role(
        "a",
        "[role.error_recovery.timeout]\nmax_retries = 5\ntimeout_multiplier = 2.0",
    ) + "[error_recovery]\nmax_auto_retries = 3\n";
    let config = config(&text);
    assert_eq!(retries(&config, FailureKind::Timeout), 5);
    let made = config.policy_for(config.role("a").unwrap()).unwrap();
    assert_eq!(
        made.policy.kinds[&FailureKind::Timeout].timeout_multiplier,
        Some(2.0)
    );
    assert_eq!(
        made.origins["kinds.timeout.maxRetries"],
        "role.a.error_recovery.timeout.max_retries (unstuck.toml:6)"
    );
}

#[test]
fn disabled_recovery_is_the_policy_off() {
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
fn role_policy_overrides_project_and_environment_overrides_both() {
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
fn chains_are_built_in_by_default() {
    let config = config(&role("a", ""));
    let playbook = config
        .role_recovery_knowledge(config.role("a").unwrap())
        .unwrap();
    assert_eq!(&*playbook, RecoveryKnowledge::built_in());
}

/// S1-32: a disabled prompt change is no longer made; the strategy's other changes stay.
#[test]
fn disabled_change_is_removed_from_the_chain() {
    let text = role(
        "a",
        "[role.error_recovery.timeout]\nsimplify_prompt = false\n[role.error_recovery.missing_sections]\nemphasize_format = false\n[role.error_recovery.empty_output]\nreduce_max_chars = false",
    );
    let config = config(&text);
    assert_eq!(
        chain(&config, FailureKind::Timeout),
        ["longer_timeout", "fresh_session_more_time", "ask_user"]
    );
    assert_eq!(
        chain(&config, FailureKind::MissingSections),
        ["retry_with_error_context", "next_model", "ask_user"]
    );
    let playbook = config
        .role_recovery_knowledge(config.role("a").unwrap())
        .unwrap();
    let first = &chain(&config, FailureKind::EmptyOutput)[0];
    assert_eq!(
        playbook.strategy(first).unwrap().changes,
        [AttemptChange::Prompt("explicit_output".into())]
    );
}

#[test]
fn enabled_change_is_added_to_the_chain() {
    let config = config(&role(
        "a",
        "[role.error_recovery.cli_crash]\nsimplify_prompt = true",
    ));
    assert_eq!(chain(&config, FailureKind::CliCrash)[0], "focus_on_core");
}

/// S1-33: the prompt template of a role comes first; the timeout is still extended.
#[test]
fn project_prompt_template_comes_first() {
    let text = role(
        "a",
        "[role.error_recovery.timeout]\ncustom_prompt_modifier = \"implementer_timeout_prompt\"",
    ) + "[prompts]\nimplementer_timeout_prompt = \"Do half of it. {{ error }}\"\n";
    let place = Place::with("unstuck.toml", &text);
    assert_eq!(place.problems(), Vec::<String>::new());
    let config = place.config();
    let first = &chain(&config, FailureKind::Timeout)[0];
    let playbook = config
        .role_recovery_knowledge(config.role("a").unwrap())
        .unwrap();
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
fn chain_order_can_be_set() {
    use unstuck_core::decision::{SuccessRates, rank_chain};
    let ids = "[\"fresh_session\", \"longer_timeout\", \"ask_user\"]";
    let config = config(
        &(role("a", "") + &format!("[error_recovery.strategies.timeout]\nstrategies = {ids}\n")),
    );
    let playbook = config
        .role_recovery_knowledge(config.role("a").unwrap())
        .unwrap();
    let links = &playbook.kind(FailureKind::Timeout).unwrap().chain;
    let asks = |id: &str| playbook.strategy(id).unwrap().requires_human;
    let ranked = rank_chain(
        FailureKind::Timeout,
        FailureLayer::Agent,
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
