//! Permission rules per configuration key: who may set it, and how a change affects an active run.
//!
//! Any file in a project directory may have been written by an agent or by the author of a cloned repository. So every
//! key has a rule here, and a test walks the schema: a new key without a rule fails it.

use crate::value_tree::{Node, Span, Table, TableEntry, Value};

/// The layers that may set a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AllowedSetter {
    /// The owner and projects.
    Anyone,
    /// The owner only; an error in a project's file.
    Owner,
    /// Projects too, but they can only tighten the owner's value, or need trust.
    Stricter,
    /// Projects too, as the path of a file inside the project.
    ProjectFile,
}

/// The effect of a changed project setting on an active run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RunChangeRule {
    /// Applies at once: it executes and allows nothing.
    Applies,
    /// A lower value applies at once, a higher one needs approval; a missing one is no limit.
    Limit,
    /// A lower value applies at once, a higher one needs approval; a missing one is the default.
    LimitWithDefault,
    /// Needs approval.
    Asks,
    /// Decided elsewhere: `[recovery]` depends on trust.
    ByTrust,
}

/// The rule for the keys that match a pattern.
#[derive(Debug, Clone, Copy)]
pub(crate) struct KeyPermissionRule {
    /// The path pattern; `*` matches one segment, a trailing `**` one or more.
    pub(crate) pattern: &'static str,
    pub(crate) set_by: AllowedSetter,
    pub(crate) on_change: RunChangeRule,
}

const fn rule(
    pattern: &'static str,
    set_by: AllowedSetter,
    on_change: RunChangeRule,
) -> KeyPermissionRule {
    KeyPermissionRule {
        pattern,
        set_by,
        on_change,
    }
}

/// The rules; the first match applies.
pub(crate) const KEY_RULES: &[KeyPermissionRule] = {
    use AllowedSetter::{Anyone, Owner, ProjectFile, Stricter};
    use RunChangeRule::{Applies, Asks, ByTrust, Limit, LimitWithDefault};
    &[
        rule("run.task", Anyone, Applies),
        rule("run.parallel", Anyone, LimitWithDefault),
        rule("run.keep_awake", Anyone, Applies),
        rule("run.heartbeat", Anyone, Applies),
        rule("run.wait_for_human", Anyone, Applies),
        rule("run.snapshots", Anyone, Asks),
        rule("run.on_failed_attempt", Anyone, Asks),
        // A prompt is no more than what other agents can pass on anyway.
        rule("role.*.prompt", Anyone, Applies),
        rule("role.*.prompt_file", ProjectFile, Applies),
        rule("role.*.expect.json", ProjectFile, Asks),
        rule("role.*.expect.**", Anyone, Asks),
        rule("role.*.instances", Anyone, Asks),
        rule("role.*.timeout", Anyone, Limit),
        rule("role.*.idle_timeout", Anyone, Limit),
        rule("role.*.max_output", Anyone, Limit),
        rule("role.*.error_recovery.*.**", Anyone, Asks),
        rule("role.*.policy.**", Anyone, Asks),
        rule("role.*.env.**", Anyone, Asks),
        rule("role.*.id", Anyone, Asks),
        rule("role.*.agent", Anyone, Asks),
        rule("role.*.model", Anyone, Asks),
        rule("role.*.command", Anyone, Asks),
        rule("role.*.args", Anyone, Asks),
        rule("role.*.needs", Anyone, Asks),
        rule("role.*.allowed_tools", Anyone, Asks),
        rule("role.*.optional", Anyone, Asks),
        rule("error_recovery.enabled", Anyone, Asks),
        rule("error_recovery.max_auto_retries", Anyone, Asks),
        rule("error_recovery.save_checkpoint_on_failure", Anyone, Applies),
        rule("error_recovery.strategies.**", Anyone, Asks),
        rule("loop.max_iterations", Anyone, LimitWithDefault),
        rule("loop.stuck_after", Anyone, LimitWithDefault),
        rule("loop.on_stuck", Anyone, Asks),
        rule("loop.until.**", Anyone, Asks),
        rule("budget.per_run.usd", Stricter, Limit),
        rule("budget.per_run.tokens", Stricter, Limit),
        rule("budget.per_day.usd", Stricter, Limit),
        rule("budget.per_day.tokens", Stricter, Limit),
        rule("escalations.**", Anyone, Asks),
        rule("stuck.enabled", Anyone, Asks),
        rule("stuck.**", Anyone, LimitWithDefault),
        rule("prompts.*.file", ProjectFile, Applies),
        rule("prompts.**", Anyone, Applies),
        // They apply to the project's own roles, see `Config::recognized_agents`.
        rule("agents.**", Anyone, Asks),
        rule("models.**", Anyone, Asks),
        rule("kinds.**", Anyone, Asks),
        rule("strategies.**", Anyone, Asks),
        rule("policy.**", Anyone, Asks),
        rule("policies.**", Anyone, Asks),
        rule("recovery.**", Stricter, ByTrust),
        rule("repairs.**", Anyone, Asks),
        rule("webhooks.allow_private", Owner, Asks),
        rule("webhooks.notify_command", Owner, Asks),
        rule("webhooks.desktop", Owner, Asks),
        // Variables of the owner's environment are not sent to project-defined addresses.
        rule("webhooks.*.*.url_env", Owner, Asks),
        rule("webhooks.*.*.secret_env", Owner, Asks),
        rule("webhooks.*.*.token_env", Owner, Asks),
        rule("webhooks.*.*.url", Anyone, Asks),
        rule("webhooks.*.*.format", Anyone, Asks),
        rule("webhooks.*.*.template", Anyone, Asks),
        rule("webhooks.*.*.content_type", Anyone, Asks),
        rule("webhooks.*.*.timeout", Anyone, Asks),
        rule("webhooks.*.*.digest", Anyone, Asks),
        rule("gateway.on_loop", Stricter, Asks),
        rule("gateway.budgets.per_session", Stricter, Limit),
        rule("gateway.budgets.per_day", Stricter, Limit),
        rule("gateway.budgets.on_reached", Stricter, Asks),
        rule("gateway.timeouts.*", Anyone, Asks),
        // The owner's API keys are sent to the configured upstreams.
        rule("gateway.**", Owner, Asks),
        rule("trust_project_config", Owner, Asks),
        rule("safe_directories", Owner, Asks),
    ]
};

/// The relation of a path to a pattern.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PatternMatch {
    No,
    /// The path is an ancestor of a match.
    Ancestor,
    Exact,
}

fn match_pattern(pattern: &str, path: &[String]) -> PatternMatch {
    let mut parts = path.iter();
    let mut wanted = pattern.split('.');
    loop {
        match (wanted.next(), parts.next()) {
            (None, None) => return PatternMatch::Exact,
            (None, Some(_)) => return PatternMatch::No,
            (Some(_), None) => return PatternMatch::Ancestor,
            (Some("**"), Some(_)) => return PatternMatch::Exact,
            (Some("*"), Some(_)) => {}
            (Some(wanted), Some(part)) if wanted == part => {}
            (Some(_), Some(_)) => return PatternMatch::No,
        }
    }
}

/// Returns the rule for a value; `None` for unknown keys and for tables whose keys have their own rules.
pub(crate) fn rule_of(path: &[String]) -> Option<&'static KeyPermissionRule> {
    for rule in KEY_RULES {
        match match_pattern(rule.pattern, path) {
            PatternMatch::Exact => return Some(rule),
            PatternMatch::Ancestor => return None,
            PatternMatch::No => {}
        }
    }
    None
}

/// Returns whether a path is that of a known key, of a table with known keys, or unknown.
pub(crate) fn rule_relation(path: &[String]) -> PatternMatch {
    let mut relations = KEY_RULES
        .iter()
        .map(|rule| match_pattern(rule.pattern, path));
    let known = relations.find(|relation| *relation != PatternMatch::No);
    known.unwrap_or(PatternMatch::No)
}

/// A value that a project may not set.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct RejectedSetting {
    /// The path.
    pub(crate) path: Vec<String>,
    /// The location of the key.
    pub(crate) at: Span,
    /// The value.
    pub(crate) node: Node,
}

impl RejectedSetting {
    /// Returns the path as users write it.
    pub(crate) fn display_path(&self) -> String {
        self.path.join(".")
    }
}

/// Removes owner-only settings, except those equal to the default.
pub(crate) fn remove_owner_only(tree: &mut Table, built_in: &Table) -> Vec<RejectedSetting> {
    let mut taken = Vec::new();
    remove_from_table(tree, &mut Vec::new(), &mut taken);
    taken.retain(|one| !is_built_in(one, built_in));
    taken
}

fn remove_from_table(table: &mut Table, path: &mut Vec<String>, taken: &mut Vec<RejectedSetting>) {
    let mut left = Vec::new();
    for mut entry in std::mem::take(&mut table.0) {
        path.push(entry.key.clone());
        let is_owners = rule_of(path).is_some_and(|rule| rule.set_by == AllowedSetter::Owner);
        if is_owners {
            taken.push(RejectedSetting {
                path: path.clone(),
                at: entry.key_span,
                node: entry.node,
            });
        } else {
            remove_from_node(&mut entry.node, path, taken);
            left.push(entry);
        }
        path.pop();
    }
    table.0 = left;
}

fn remove_from_node(node: &mut Node, path: &mut Vec<String>, taken: &mut Vec<RejectedSetting>) {
    match &mut node.value {
        Value::Table(table) => remove_from_table(table, path, taken),
        Value::List(list) => {
            for (at, one) in list.iter_mut().enumerate() {
                path.push(path_part(one, at));
                remove_from_node(one, path, taken);
                path.pop();
            }
        }
        _ => {}
    }
}

/// Returns the path segment of a list item: its id or index.
fn path_part(item: &Node, at: usize) -> String {
    let number = || (at + 1).to_string();
    item.id().map_or_else(number, str::to_owned)
}

fn is_built_in(taken: &RejectedSetting, built_in: &Table) -> bool {
    let Some((first, rest)) = taken.path.split_first() else {
        return false;
    };
    let known = rest.iter().fold(built_in.get(first), |node, part| {
        node.and_then(Node::table).and_then(|table| table.get(part))
    });
    let value = taken.node.to_json();
    known.is_some_and(|known| is_subset(&value, &known.to_json()))
}

/// Returns whether one value adds nothing to the other.
fn is_subset(value: &serde_json::Value, other: &serde_json::Value) -> bool {
    use serde_json::Value as Json;
    match (value, other) {
        (Json::Object(values), Json::Object(others)) => values.iter().all(|(key, value)| {
            let other = others.get(key);
            other.is_some_and(|other| is_subset(value, other))
        }),
        _ => value == other,
    }
}

/// Returns every string that a project file may set only as the path of a file inside the project.
pub(crate) fn project_paths(tree: &Table) -> Vec<(String, Span, String)> {
    let mut found = Vec::new();
    paths_in(tree, &mut Vec::new(), &mut found);
    found
}

fn paths_in(table: &Table, path: &mut Vec<String>, found: &mut Vec<(String, Span, String)>) {
    for TableEntry { key, node, .. } in &table.0 {
        path.push(key.clone());
        let is_path = rule_of(path).is_some_and(|rule| rule.set_by == AllowedSetter::ProjectFile);
        match &node.value {
            Value::Text(text) if is_path => found.push((path.join("."), node.span, text.clone())),
            Value::Table(table) => paths_in(table, path, found),
            Value::List(list) => {
                for (at, one) in list.iter().enumerate() {
                    path.push(path_part(one, at));
                    if let Some(table) = one.table() {
                        paths_in(table, path, found);
                    }
                    path.pop();
                }
            }
            _ => {}
        }
        path.pop();
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use serde_json::Value as Json;

    use super::*;
    use crate::schema;

    /// Key aliases, renamed before any rule is applied.
    const OTHER_NAMES: [&str; 9] = [
        "$schema",
        "roles",
        "depends_on",
        "max_output_chars",
        "timeout_seconds",
        "timeout_sec",
        "idle_timeout_seconds",
        "idle_timeout_sec",
        "max_attempts",
    ];

    /// Returns the paths of all schema values; `*` stands for any name, id or index.
    fn all_paths() -> BTreeSet<Vec<String>> {
        let schema = schema();
        let mut paths = BTreeSet::new();
        collect(&schema, &schema, &mut Vec::new(), &mut paths);
        paths
    }

    fn collect(
        root: &Json,
        schema: &Json,
        path: &mut Vec<String>,
        paths: &mut BTreeSet<Vec<String>>,
    ) {
        if let Some(name) = schema.get("$ref").and_then(Json::as_str) {
            let target = root.pointer(name.trim_start_matches('#'));
            return collect(root, target.expect(name), path, paths);
        }
        let mut is_leaf = true;
        for several in ["anyOf", "allOf", "oneOf"] {
            for one in schema
                .get(several)
                .and_then(Json::as_array)
                .into_iter()
                .flatten()
            {
                // A list of required keys adds no paths.
                if one.get("required").is_none() || one.get("properties").is_some() {
                    collect(root, one, path, paths);
                    is_leaf = false;
                }
            }
        }
        let keys = schema.get("properties").and_then(Json::as_object);
        for (key, inner) in keys.into_iter().flatten() {
            if OTHER_NAMES.contains(&key.as_str()) {
                continue;
            }
            path.push(key.clone());
            collect(root, inner, path, paths);
            path.pop();
            is_leaf = false;
        }
        for any in ["additionalProperties", "items"] {
            let inner = schema.get(any).filter(|inner| inner.is_object());
            if let Some(inner) = inner.filter(|inner| any != "items" || holds_keys(root, inner)) {
                path.push("*".to_owned());
                collect(root, inner, path, paths);
                path.pop();
                is_leaf = false;
            }
        }
        if is_leaf && !path.is_empty() {
            paths.insert(path.clone());
        }
    }

    fn holds_keys(root: &Json, schema: &Json) -> bool {
        if let Some(name) = schema.get("$ref").and_then(Json::as_str) {
            let target = root.pointer(name.trim_start_matches('#'));
            return holds_keys(root, target.expect(name));
        }
        let any = schema.get("anyOf").and_then(Json::as_array);
        let mut any = any.into_iter().flatten();
        schema.get("properties").is_some()
            || schema.get("type").is_some_and(|kind| kind == "object")
            || any.any(|one| holds_keys(root, one))
    }

    /// H3: a new key cannot be added without a rule.
    #[test]
    fn every_schema_key_has_a_rule() {
        let paths = all_paths();
        assert!(paths.len() > 150, "{}", paths.len());
        let decided = |path: &Vec<String>| {
            // A short form, such as a single address, is equivalent to the full form.
            let is_above = |rule: &KeyPermissionRule| {
                match_pattern(rule.pattern, path) == PatternMatch::Ancestor
            };
            rule_of(path).is_some() || KEY_RULES.iter().any(is_above)
        };
        let without: Vec<_> = paths.iter().filter(|path| !decided(path)).collect();
        assert!(without.is_empty(), "decide who may set: {without:?}");
    }

    /// Keys that hold secrets or are executed outside of roles belong to the owner, including future ones.
    #[test]
    fn keys_that_name_variables_are_owner_only() {
        let paths = all_paths();
        let names_a_variable = |path: &&Vec<String>| {
            let last = path.last().map_or("", String::as_str);
            last.ends_with("_env") || last.ends_with("_command") || last.ends_with("_token")
        };
        let found: Vec<_> = paths.iter().filter(names_a_variable).collect();
        assert!(found.len() >= 8, "{found:?}");
        for path in found {
            // A single address is equivalent to a list of one.
            let mut listed = path.clone();
            listed.insert(path.len() - 1, "*".to_owned());
            let rule = rule_of(path).or(rule_of(&listed));
            assert_eq!(
                rule.map(|rule| rule.set_by),
                Some(AllowedSetter::Owner),
                "{path:?}"
            );
        }
    }

    #[test]
    fn every_rule_matches_an_existing_key() {
        let paths = all_paths();
        for rule in KEY_RULES {
            let is_meant = |path: &Vec<String>| {
                let pattern = rule.pattern.trim_end_matches(".**");
                matches!(match_pattern(rule.pattern, path), PatternMatch::Exact)
                    // The paths of open sections end above their keys.
                    || pattern.starts_with(&path.join(".").replace(".*", ""))
            };
            assert!(paths.iter().any(is_meant), "{}", rule.pattern);
        }
    }
}
