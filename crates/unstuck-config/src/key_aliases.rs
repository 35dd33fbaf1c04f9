//! Key aliases: short forms and older names are converted to the canonical form that the sections read.
//!
//! Aliases are resolved per file before the layers are merged, so that `depends_on` in one file is replaced by `needs`
//! in another. Short forms stay supported; names of earlier versions are accepted for one version, each with a warning.

use std::path::Path;

use unstuck_core::FailureKind;
use unstuck_core::decision::policy_key;

use crate::section::WebhooksSection;
use crate::value_tree::value_error::{ValueError, ValueErrorKind};
use crate::value_tree::{Node, Table, TableEntry, Value};

/// Value errors with their paths.
pub(crate) type ValueErrors = Vec<(String, ValueError)>;

/// The result of resolving aliases in a file.
#[derive(Debug, Default)]
pub(crate) struct AliasResolution {
    /// The errors.
    pub(crate) faults: ValueErrors,
    /// Deprecated names that are still accepted, each with its replacement.
    pub(crate) old_names: ValueErrors,
}

/// Renamed keys: the containing table, the old name and the new one.
///
/// `*` in a path matches each key of a table or each item of a list. Later rows see the new names.
const RENAMED: &[(&str, &str, &str)] = &[
    ("gateway", "on_circles", "on_loop"),
    ("gateway", "watch", "loop_detection"),
    (
        "gateway.loop_detection",
        "slow_repeats",
        "slow_tool_repeats",
    ),
    ("gateway.loop_detection", "empty_answers", "empty_responses"),
    ("gateway.loop_detection", "no_shrink", "failed_compactions"),
    ("gateway.loop_detection", "refill", "compaction_window"),
    (
        "gateway.loop_detection",
        "shortest_full",
        "min_context_tokens",
    ),
    (
        "gateway.loop_detection",
        "no_progress",
        "no_progress_responses",
    ),
    ("gateway.loop_detection", "storm", "conversation_storm"),
    (
        "gateway.loop_detection",
        "storm_time",
        "conversation_storm_window",
    ),
    ("gateway.timeouts", "response", "response_headers"),
    ("gateway.timeouts", "whole", "full_response"),
    ("gateway.timeouts", "hold", "client_wait"),
    ("gateway.timeouts", "probe", "probe_interval"),
    ("gateway.timeouts", "request", "client_request"),
    ("gateway.budgets", "session", "per_session"),
    ("gateway.budgets", "day", "per_day"),
    ("gateway.upstreams.*.*", "lacks", "unsupported"),
    ("prompts.*", "place", "position"),
    ("repairs", "word", "script_name"),
    ("repairs", "place", "generated_path"),
    ("repairs", "never", "denied_failure"),
    ("repairs", "forbidden", "denied_command"),
    ("repairs", "need", "requirement"),
    ("repairs", "writing", "write_patterns"),
    ("repairs.manager.*", "folders", "directories"),
    ("repairs.manager.*", "usual", "default"),
    ("repairs.manager.*.command.*", "lacks", "has_not"),
    ("repairs.program.*", "wants", "required_files"),
    ("repairs.program.*", "valued", "value_options"),
    ("repairs.program.*", "folder", "directory_options"),
    ("repairs.program.*", "loose", "loose_options"),
    ("repairs.program.*", "does", "calls"),
    ("repairs.program.*.calls.*", "works", "effects"),
    ("repairs.program.*.calls.*", "of", "targets"),
    ("repairs.program.*.calls.*", "of_options", "target_options"),
    ("repairs.program.*.calls.*", "places", "target_paths"),
    ("repairs.program.*.calls.*", "things", "resources"),
    ("repairs.program.*.calls.*", "named", "names_packages"),
    ("repairs.program.*.calls.*", "finds", "finds_program"),
    ("repairs.script_name.*", "work", "effect"),
    ("repairs.generated_path.*", "holds", "contents"),
    ("repairs.generated_path.*", "beside", "siblings"),
    (
        "repairs.generated_path.*",
        "remade",
        "rebuilt_automatically",
    ),
    ("repairs.requirement.*", "needs", "requires"),
    ("repairs.requirement.*", "mentioned", "any_mentioned_path"),
    ("repairs.requirement.*", "found", "path_patterns"),
    ("repairs.requirement.*", "remade", "rebuilt_automatically"),
    ("repairs.requirement.*", "things", "resources"),
    ("repairs.sample.*", "folders", "directories"),
    ("agents.*", "like", "base_agent"),
    ("agents.*", "insists", "ignores_no_retry"),
    ("agents.*", "silence", "silent_wait"),
    ("agents.*.call", "folders", "program_directories"),
    ("agents.*.call.base_url", "needs", "required_env"),
    ("agents.*.call.base_url.unless.*", "holds", "contains"),
    ("agents.*.run", "words", "subcommands"),
    ("agents.*.run", "others", "other_subcommands"),
    ("agents.*.run", "never", "excluded_flags"),
    ("agents.*.session", "word", "subcommand"),
    ("agents.*.output.*.*", "less", "subtract"),
    ("agents.*.output.*.*", "same", "same_as_last"),
    ("agents.*.output.*.*", "take", "selection"),
    ("strategies.*", "asks", "requires_human"),
];

/// Converts one file to the canonical form; relative paths in it become relative to its directory.
pub(crate) fn resolve_aliases(table: &mut Table, folder: Option<&Path>) -> AliasResolution {
    let mut speller = AliasResolver {
        folder,
        spelled: AliasResolution::default(),
    };
    speller.file(table);
    speller.all_renamed(table);
    speller.spelled
}

/// Replaces deprecated key names in a recorded file.
pub(crate) fn with_new_names(table: &mut Table) {
    let mut speller = AliasResolver {
        folder: None,
        spelled: AliasResolution::default(),
    };
    speller.all_renamed(table);
}

struct AliasResolver<'a> {
    folder: Option<&'a Path>,
    spelled: AliasResolution,
}

impl AliasResolver<'_> {
    fn file(&mut self, table: &mut Table) {
        // Editors find the schema of a JSON file by this key.
        table.remove("$schema");
        self.rename(table, "", &[("roles", "role")]);
        if let Some(roles) = table.get_mut("role").and_then(Node::list_mut) {
            self.roles(roles);
        }
        if let Some(kinds) = tables(table, "kinds") {
            self.kinds(kinds, "kinds");
        }
        if let Some(recovery) = tables(table, "error_recovery")
            && let Some(kinds) = tables(recovery, "strategies")
        {
            self.recoveries(kinds, "error_recovery.strategies");
        }
        if let Some(node) = table.get_mut("policy") {
            wrap_text(node, "template");
        }
        if let Some(policy) = tables(table, "policy") {
            self.policy(policy, "policy");
        }
        for entry in entries(table, "policies") {
            if let Some(policy) = entry.node.table_mut() {
                self.policy(policy, &format!("policies.{}", entry.key));
            }
        }
        if let Some(looping) = tables(table, "loop") {
            normalize_until(looping);
        }
        for entry in entries(table, "prompts") {
            wrap_text(&mut entry.node, "text");
            if let Some(prompt) = entry.node.table_mut() {
                self.make_absolute(prompt, "file");
            }
        }
        for entry in entries(table, "agents") {
            let (key, at) = (entry.key.clone(), entry.key_span);
            if let Some(agent) = entry.node.table_mut()
                && agent.get("id").is_none()
            {
                let value = Value::Text(key);
                agent.insert("id", Node { value, span: at });
            }
        }
        let hooks = entries(table, "webhooks");
        for entry in hooks.filter(|entry| !WebhooksSection::SINGLE.contains(&entry.key.as_str())) {
            normalize_addresses(&mut entry.node);
        }
        if let Some(gateway) = tables(table, "gateway") {
            for entry in entries(gateway, "upstreams") {
                normalize_addresses(&mut entry.node);
            }
        }
    }

    fn roles(&mut self, roles: &mut Vec<Node>) {
        let mut seen: Vec<String> = Vec::new();
        // The second value is dropped: its meaning does not apply to the first.
        roles.retain(|node| {
            let Some(id) = node.id() else {
                return true;
            };
            let is_first = seen.iter().all(|known| known != id);
            if is_first {
                seen.push(id.to_owned());
            } else {
                let why = format!("duplicate role id `{id}` in the same file; use a unique id");
                self.report(&format!("role.{id}"), node, why);
            }
            is_first
        });
        for node in roles {
            let id = node.id().map(str::to_owned);
            let at = format!("role.{}", id.as_deref().unwrap_or("?"));
            if let Some(role) = node.table_mut() {
                self.role(role, &at);
            }
        }
    }

    fn role(&mut self, role: &mut Table, path: &str) {
        let names = [
            ("depends_on", "needs"),
            ("max_output_chars", "max_output"),
            ("timeout_seconds", "timeout"),
            ("timeout_sec", "timeout"),
            ("idle_timeout_seconds", "idle_timeout"),
            ("idle_timeout_sec", "idle_timeout"),
        ];
        for old in ["timeout", "idle_timeout"] {
            for end in ["_seconds", "_sec"] {
                if let Some(node) = role.get_mut(&format!("{old}{end}")) {
                    seconds_to_duration(node);
                }
            }
        }
        self.rename(role, path, &names);
        self.make_absolute(role, "prompt_file");
        if let Some(node) = role.get_mut("policy") {
            wrap_text(node, "template");
        }
        if let Some(policy) = tables(role, "policy") {
            self.policy(policy, &format!("{path}.policy"));
        }
        if let Some(kinds) = tables(role, "error_recovery") {
            self.recoveries(kinds, &format!("{path}.error_recovery"));
        }
        if let Some(expect) = tables(role, "expect") {
            self.make_absolute(expect, "json");
            if let Some(node) = expect.get_mut("match") {
                wrap_in_list(node);
            }
        }
    }

    /// Normalizes recovery settings by kind; `attempts` includes the first one.
    fn recoveries(&mut self, kinds: &mut Table, path: &str) {
        self.kinds(kinds, path);
        for entry in &mut kinds.0 {
            let path = format!("{path}.{}", entry.key);
            let Some(recovery) = entry.node.table_mut() else {
                continue;
            };
            if let Some(Value::Integer(attempts)) =
                recovery.get_mut("max_attempts").map(|node| &mut node.value)
            {
                *attempts -= 1;
            }
            self.rename(recovery, &path, &[("max_attempts", "max_retries")]);
        }
    }

    /// Renames kind keys to their canonical names.
    fn kinds(&mut self, kinds: &mut Table, path: &str) {
        let known: Vec<_> = kinds.0.iter().map(|entry| entry.key.clone()).collect();
        for key in known {
            // Unknown kinds are reported when the section is read.
            if let Ok(kind) = key.parse::<FailureKind>() {
                self.rename(kinds, path, &[(&key, kind.name())]);
            }
        }
    }

    /// Normalizes the keys of a policy, which may be written in either spelling.
    fn policy(&mut self, policy: &mut Table, path: &str) {
        self.policy_keys(policy, path);
        if let Some(kinds) = tables(policy, "kinds") {
            self.kinds(kinds, &format!("{path}.kinds"));
        }
        for list in ["kinds", "tools"] {
            for entry in entries(policy, list) {
                let path = format!("{path}.{list}.{}", entry.key);
                if let Some(one) = entry.node.table_mut() {
                    self.policy_keys(one, &path);
                }
            }
        }
    }

    fn policy_keys(&mut self, table: &mut Table, path: &str) {
        let known: Vec<_> = table.0.iter().map(|entry| entry.key.clone()).collect();
        for key in known {
            self.rename(table, path, &[(&key, &policy_key(&key))]);
        }
    }

    fn rename(&mut self, table: &mut Table, path: &str, names: &[(&str, &str)]) {
        for (old, new) in names {
            if old == new || table.get(old).is_none() {
                continue;
            }
            if table.get(new).is_some() {
                if let Some(entry) = table.remove(old) {
                    let why = format!("`{old}` is an alias of `{new}`; keep only one");
                    let mut fault = ValueError::new(ValueErrorKind::Custom(why));
                    fault.span = Some(entry.key_span);
                    self.spelled.faults.push((path.to_owned(), fault));
                }
            } else if let Some(entry) = table.0.iter_mut().find(|entry| entry.key == *old) {
                (*new).clone_into(&mut entry.key);
            }
        }
    }

    fn all_renamed(&mut self, table: &mut Table) {
        for (path, old, new) in RENAMED {
            let parts: Vec<_> = path.split('.').collect();
            self.renamed(table, &parts, "", (old, new));
        }
    }

    /// Renames a deprecated key in every table that a path matches.
    fn renamed(&mut self, table: &mut Table, path: &[&str], way: &str, names: (&str, &str)) {
        let Some((part, rest)) = path.split_first() else {
            return self.renamed_here(table, way, names);
        };
        let entries = table.0.iter_mut();
        for entry in entries.filter(|entry| *part == "*" || entry.key == *part) {
            let way = join(way, &entry.key);
            self.renamed_inside(&mut entry.node, rest, &way, names);
        }
    }

    fn renamed_inside(&mut self, node: &mut Node, path: &[&str], way: &str, names: (&str, &str)) {
        match (&mut node.value, path.split_first()) {
            (Value::Table(table), _) => self.renamed(table, path, way, names),
            (Value::List(list), Some((&"*", rest))) => {
                for (at, one) in list.iter_mut().enumerate() {
                    let way = join(way, &(at + 1).to_string());
                    self.renamed_inside(one, rest, &way, names);
                }
            }
            _ => {}
        }
    }

    fn renamed_here(&mut self, table: &mut Table, path: &str, (old, new): (&str, &str)) {
        let both = table.entry(new).is_some();
        let Some(entry) = table.0.iter_mut().find(|entry| entry.key == old) else {
            return;
        };
        let at = Some(entry.key_span);
        if both {
            let why = format!("`{old}` was renamed to `{new}`; remove `{old}`");
            table.remove(old);
            let fault = ValueError {
                span: at,
                ..ValueError::new(ValueErrorKind::Custom(why))
            };
            self.spelled.faults.push((join(path, new), fault));
            return;
        }
        new.clone_into(&mut entry.key);
        let why = format!("is deprecated, use `{}`", join(path, new));
        let fault = ValueError {
            span: at,
            ..ValueError::new(ValueErrorKind::AfterName(why))
        };
        self.spelled.old_names.push((join(path, old), fault));
    }

    fn make_absolute(&self, table: &mut Table, key: &str) {
        if let (Some(folder), Some(node)) = (self.folder, table.get_mut(key))
            && let Value::Text(text) = &mut node.value
            && !text.is_empty()
        {
            *text = folder.join(&*text).display().to_string();
        }
    }

    fn report(&mut self, path: &str, node: &Node, why: String) {
        let mut fault = ValueError::new(ValueErrorKind::Custom(why));
        let id = node.table().and_then(|table| table.entry("id"));
        fault.span = Some(id.map_or(node.span, |entry| entry.node.span));
        self.spelled.faults.push((path.to_owned(), fault));
    }
}

fn join(path: &str, key: &str) -> String {
    match path {
        "" => key.to_owned(),
        path => format!("{path}.{key}"),
    }
}

fn tables<'t>(table: &'t mut Table, key: &str) -> Option<&'t mut Table> {
    table.get_mut(key).and_then(Node::table_mut)
}

fn entries<'t>(table: &'t mut Table, key: &str) -> impl Iterator<Item = &'t mut TableEntry> {
    tables(table, key)
        .into_iter()
        .flat_map(|table| &mut table.0)
}

/// Replaces a plain string by a table with that string under a key.
fn wrap_text(node: &mut Node, key: &str) {
    if node.text().is_none() {
        return;
    }
    let at = node.span;
    let value = std::mem::replace(&mut node.value, Value::Table(Table::default()));
    if let Some(table) = node.table_mut() {
        table.insert(key, Node { value, span: at });
    }
}

/// Replaces a single value by a list of it.
fn wrap_in_list(node: &mut Node) {
    if !matches!(node.value, Value::Text(_) | Value::Table(_)) {
        return;
    }
    let one = Node {
        value: std::mem::replace(&mut node.value, Value::Null),
        span: node.span,
    };
    node.value = Value::List(vec![one]);
}

/// Converts a number of seconds to a duration.
fn seconds_to_duration(node: &mut Node) {
    let text = match node.value {
        Value::Integer(number) if number >= 0 => format!("{number}s"),
        Value::Number(number) if number >= 0.0 => format!("{number}s"),
        _ => return,
    };
    node.value = Value::Text(text);
}

fn normalize_until(looping: &mut Table) {
    if let Some(node) = looping.get_mut("until") {
        wrap_text(node, "promise");
        if let Some(promise) = node.table_mut().and_then(|until| until.get_mut("promise")) {
            wrap_text(promise, "text");
        }
    }
}

/// Normalizes one or several addresses, each a string or a table.
fn normalize_addresses(node: &mut Node) {
    wrap_in_list(node);
    if let Some(list) = node.list_mut() {
        for one in list {
            wrap_text(one, "url");
        }
    }
}
