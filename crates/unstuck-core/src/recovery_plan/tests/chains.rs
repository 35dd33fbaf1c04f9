//! Tests of the knowledge: chains, limits and strategies match the requirements.

use std::collections::BTreeSet;

use super::*;
use crate::failure::{Category, RecoveryLevel};
use crate::knowledge::AttemptChange;

fn chain(kind: FailureKind, layer: FailureLayer) -> Vec<(String, f64)> {
    let recovery_knowledge = RecoveryKnowledge::built_in().clone();
    let links = recovery_knowledge.chain(kind, layer);
    links
        .map(|link| (link.strategy.clone(), link.confidence))
        .collect()
}

/// The knowledge about a kind in a layer.
struct Rule {
    retries: Option<u32>,
    backoff_multiplier: Option<f64>,
    /// The changes of the first strategy of the chain.
    changes: Vec<AttemptChange>,
}

fn rule(kind: FailureKind, layer: FailureLayer) -> Rule {
    let recovery_knowledge = RecoveryKnowledge::built_in();
    let defaults = recovery_knowledge.kind(kind).unwrap().layer_defaults(layer);
    let first = recovery_knowledge.chain(kind, layer).next();
    let first = first.map(|link| recovery_knowledge.strategy(&link.strategy).unwrap());
    Rule {
        retries: defaults.retries,
        backoff_multiplier: defaults.backoff_multiplier,
        changes: first.map_or_else(Vec::new, |first| first.changes.clone()),
    }
}

/// The requirements, in the given priority.
const AGREED: &str = "
command_not_found: alternative_command 0.9, manual_installation 0.6, ask_user 0.9
tool_not_found: use_available_alternative 0.8, decompose_into_basic_tools 0.7, ask_user_to_enable_tool 0.6
permission_denied: try_sandbox_directory 0.9, check_permissions 0.5, ask_user_for_permissions 0.8
timeout: reduce_scope 0.8, increase_timeout 0.6, stream_results 0.7, background_execution 0.5
file_not_found: verify_path 0.9, create_missing_file 0.6, ask_user_for_path 0.8
invalid_arguments: fix_parameter_types 1, check_schema 0.9, simplify_arguments 0.7
syntax_error: fix_syntax 0.8, use_simpler_command 0.9, try_alternative_syntax 0.6
network_error: retry_with_backoff 0.7, alternative_host 0.6, use_cached_data 0.5, ask_user_about_connectivity 0.8
rate_limit: wait_and_retry 0.9, reduce_request_frequency 0.8, alternative_source 0.6
disk_full: clean_up_temp_files 0.6, write_smaller_file 0.5, ask_user_to_free_space 0.9
";

/// S2-02 to S2-12: the ten tool kinds have exactly these chains.
#[test]
fn the_chains_of_the_ten_tool_kinds_are_as_agreed() {
    for line in AGREED.trim().lines() {
        let (kind, links) = line.split_once(": ").unwrap();
        let chain = chain(kind.parse().unwrap(), FailureLayer::Tool);
        let found: Vec<String> = chain
            .iter()
            .map(|(id, odds)| format!("{id} {odds}"))
            .collect();
        assert_eq!(found.join(", "), links, "{kind}");
    }
}

#[test]
fn every_kind_has_a_hint_and_all_but_code_and_none_have_a_chain_in_every_layer() {
    let recovery_knowledge = RecoveryKnowledge::built_in().clone();
    for kind in FailureKind::ALL {
        assert!(
            recovery_knowledge.kind(*kind).unwrap().hint.ends_with('.'),
            "{kind}"
        );
        for layer in [
            FailureLayer::Api,
            FailureLayer::Tool,
            FailureLayer::Agent,
            FailureLayer::Infra,
        ] {
            let empty = matches!(kind.category(), Category::Code | Category::None);
            assert_eq!(
                recovery_knowledge.chain(*kind, layer).count() == 0,
                empty,
                "{kind} {layer:?}"
            );
        }
    }
}

/// S2-20: no chain contains a strategy twice, and every confidence is a probability.
#[test]
fn no_chain_repeats_a_strategy() {
    let recovery_knowledge = RecoveryKnowledge::built_in().clone();
    for kind in FailureKind::ALL {
        for layer in [
            FailureLayer::Api,
            FailureLayer::Tool,
            FailureLayer::Agent,
            FailureLayer::Infra,
        ] {
            let links: Vec<_> = recovery_knowledge.chain(*kind, layer).collect();
            let unique: BTreeSet<_> = links.iter().map(|link| &link.strategy).collect();
            assert_eq!(unique.len(), links.len(), "{kind} {layer:?}");
            assert!(
                links
                    .iter()
                    .all(|link| (0.0..=1.0).contains(&link.confidence) && link.iterations > 0)
            );
        }
    }
}

#[test]
fn every_strategy_is_used_and_every_prompt_it_names_exists() {
    let recovery_knowledge = RecoveryKnowledge::built_in().clone();
    let prompts = crate::recovery_plan::PromptNoteTemplates::load_embedded().unwrap();
    let links = FailureKind::ALL
        .iter()
        .flat_map(|kind| &recovery_knowledge.kind(*kind).unwrap().chain);
    let used: BTreeSet<_> = links.map(|link| link.strategy.as_str()).collect();
    for (id, strategy) in recovery_knowledge.strategies() {
        assert!(used.contains(id), "{id} is in no chain");
        for change in &strategy.changes {
            if let AttemptChange::Prompt(name) = change {
                assert!(
                    prompts.names().any(|known| known == name),
                    "{id} names {name}"
                );
            }
        }
    }
}

/// A kind with retries has at least as many strategies that need no human.
#[test]
fn chains_are_at_least_as_long_as_the_retries() {
    let recovery_knowledge = RecoveryKnowledge::built_in().clone();
    // An unknown failure is only ever retried unchanged.
    for kind in FailureKind::ALL
        .iter()
        .filter(|kind| **kind != FailureKind::Unknown)
    {
        for layer in [
            FailureLayer::Api,
            FailureLayer::Tool,
            FailureLayer::Agent,
            FailureLayer::Infra,
        ] {
            let retries = recovery_knowledge
                .kind(*kind)
                .unwrap()
                .layer_defaults(layer)
                .retries
                .unwrap_or(0);
            let automatic = recovery_knowledge.chain(*kind, layer);
            let automatic = automatic.filter(|link| {
                !recovery_knowledge
                    .strategy(&link.strategy)
                    .unwrap()
                    .requires_human
            });
            assert!(automatic.count() >= retries as usize, "{kind} {layer:?}");
        }
    }
}

/// S1-11, S1-12, S1-41: a timed-out agent gets 2 retries, ×1.5 of backoff and time, and the focus prompt.
#[test]
fn the_timeout_strategy_is_as_agreed() {
    let recovery_knowledge = RecoveryKnowledge::built_in().clone();
    let timeout = rule(FailureKind::Timeout, FailureLayer::Agent);
    assert_eq!(
        (timeout.retries, timeout.backoff_multiplier),
        (Some(2), Some(1.5))
    );
    assert_eq!(
        timeout.changes,
        [
            AttemptChange::Prompt("focus".into()),
            AttemptChange::Timeout(1.5)
        ]
    );
    let level = recovery_knowledge
        .kind(FailureKind::Timeout)
        .unwrap()
        .layer_defaults(FailureLayer::Agent)
        .level;
    assert_eq!(level, Some(RecoveryLevel::Alternative));
    for link in recovery_knowledge.chain(FailureKind::Timeout, FailureLayer::Agent) {
        let strategy = recovery_knowledge.strategy(&link.strategy).unwrap();
        assert!(
            strategy.requires_human || strategy.changes.contains(&AttemptChange::Timeout(1.5)),
            "{}",
            link.strategy
        );
    }
}

/// S1-13: missing sections get 3 retries without growing delays, and no change of the configuration.
#[test]
fn the_missing_sections_strategy_is_as_agreed() {
    let sections = rule(FailureKind::MissingSections, FailureLayer::Agent);
    assert_eq!(
        (sections.retries, sections.backoff_multiplier),
        (Some(3), Some(1.0))
    );
    assert_eq!(sections.changes, [AttemptChange::Prompt("sections".into())]);
}

/// S1-14: an empty output gets 2 retries, ×1.2, an explicit request and a smaller limit.
#[test]
fn the_empty_output_strategy_is_as_agreed() {
    let empty = rule(FailureKind::EmptyOutput, FailureLayer::Agent);
    assert_eq!(
        (empty.retries, empty.backoff_multiplier),
        (Some(2), Some(1.2))
    );
    assert_eq!(
        empty.changes,
        [
            AttemptChange::Prompt("explicit_output".into()),
            AttemptChange::OutputLimit(0.85)
        ]
    );
}

/// S1-15: an unknown failure gets one retry without changes.
#[test]
fn the_default_strategy_changes_nothing() {
    let unknown = rule(FailureKind::Unknown, FailureLayer::Agent);
    assert_eq!(
        (unknown.retries, unknown.backoff_multiplier),
        (Some(1), Some(1.0))
    );
    assert!(unknown.changes.is_empty());
}

/// S1-16: the kinds of an agent's output all have a strategy that changes something.
#[test]
fn every_kind_of_agent_output_has_its_own_strategy() {
    for kind in [
        FailureKind::FormatValidation,
        FailureKind::DiffParseError,
        FailureKind::ContextError,
        FailureKind::JsonParseError,
    ] {
        assert!(
            !rule(kind, FailureLayer::Agent).changes.is_empty(),
            "{kind}"
        );
    }
}

#[test]
fn fatal_kinds_have_no_retries_and_only_escalate() {
    for kind in FailureKind::ALL
        .iter()
        .filter(|kind| kind.category() == Category::Fatal)
    {
        for layer in [
            FailureLayer::Api,
            FailureLayer::Tool,
            FailureLayer::Agent,
            FailureLayer::Infra,
        ] {
            assert_eq!(rule(*kind, layer).retries, Some(0));
            assert_eq!(chain(*kind, layer), [("ask_user".to_owned(), 0.9)]);
        }
    }
}

/// S3-45: permissions, disks and memory of the environment are left to a human.
#[test]
fn no_repair_is_built_in_for_permissions_disks_and_memory() {
    let recovery_knowledge = RecoveryKnowledge::built_in().clone();
    for kind in [
        FailureKind::PermissionDenied,
        FailureKind::DiskFull,
        FailureKind::OutOfMemory,
    ] {
        assert!(
            recovery_knowledge
                .chain(kind, FailureLayer::Infra)
                .all(|link| link.strategy != "repair")
        );
        assert_eq!(
            recovery_knowledge.kind(kind).unwrap().infra.level,
            Some(RecoveryLevel::Escalate)
        );
    }
    for kind in [
        FailureKind::MissingDependency,
        FailureKind::LockfileDrift,
        FailureKind::StaleBuild,
        FailureKind::ConfigError,
    ] {
        assert_eq!(chain(kind, FailureLayer::Infra)[0].0, "repair", "{kind}");
    }
}
