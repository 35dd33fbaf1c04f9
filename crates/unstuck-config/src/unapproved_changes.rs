//! Compares a project's file with its accepted state at the start of a run, and holds back changes that allow or
//! execute more.

use serde_json::{Map, Value as Json};
use unstuck_core::duration;
use unstuck_core::project_settings_snapshot::ProjectSettingChange;
use unstuck_core::redact::{Redactor, secret_values};

use crate::config_report::defaults;
use crate::key_permissions::{PatternMatch, RunChangeRule, rule_of, rule_relation};
use crate::value_tree::{Node, SourceId, Span, Table, Value};

/// The list whose items are identified by id.
const ROLES: &str = "role";
/// The section that makes the roles run repeatedly.
const LOOP: &str = "loop";
/// The text recorded in place of the value of an unknown key.
const NOT_RECORDED: &str = "(unknown key, value not recorded)";

/// Restores the accepted value wherever a change needs approval, and returns those changes.
pub(crate) fn revert_unapproved(
    tree: &mut Table,
    accepted: &Map<String, Json>,
    ignored: &[String],
    at: Span,
) -> Vec<ProjectSettingChange> {
    let mut comparing = ProjectFileComparison {
        at,
        built_in: defaults(SourceId(0)),
        changes: Vec::new(),
        secrets: Vec::new(),
    };
    let skipped: Vec<_> = ignored.iter().filter_map(|key| tree.remove(key)).collect();
    let mut accepted = accepted.clone();
    accepted.retain(|key, _| !ignored.contains(key));
    comparing.table(tree, &accepted, &mut Vec::new());
    tree.0.extend(skipped);
    comparing.into_changes()
}

struct ProjectFileComparison {
    /// The location used for restored values.
    at: Span,
    built_in: Table,
    changes: Vec<ProjectSettingChange>,
    /// The values of variables with secret-looking names.
    secrets: Vec<String>,
}

impl ProjectFileComparison {
    fn table(&mut self, now: &mut Table, before: &Map<String, Json>, path: &mut Vec<String>) {
        let mut keys: Vec<String> = now.0.iter().map(|entry| entry.key.clone()).collect();
        let gone = before.keys().filter(|key| now.get(key).is_none());
        keys.extend(gone.cloned());
        for key in keys {
            path.push(key.clone());
            self.value(now, &key, before.get(&key), path);
            path.pop();
        }
    }

    fn value(
        &mut self,
        table: &mut Table,
        key: &str,
        before: Option<&Json>,
        path: &mut Vec<String>,
    ) {
        let known = before.cloned();
        if let Some(node) = table.get_mut(key) {
            match (&mut node.value, &known) {
                (Value::Table(inner), Some(Json::Object(known))) => {
                    return self.table(inner, known, path);
                }
                (Value::List(list), Some(Json::Array(known))) if path[..] == [ROLES] => {
                    return self.roles(list, known, path);
                }
                _ => {}
            }
        }
        let now = table.get(key).map(Node::to_json);
        if now == known || self.applies_at_once(path, known.as_ref(), now.as_ref()) {
            return;
        }
        match &known {
            Some(known) => table.insert(key, self.node(known)),
            None => {
                table.remove(key);
            }
        }
        self.record_change(path, known.as_ref(), now.as_ref());
    }

    fn roles(&mut self, list: &mut Vec<Node>, before: &[Json], path: &mut Vec<String>) {
        let id_of = |role: &Json| role.get("id").and_then(Json::as_str).map(str::to_owned);
        let known = |id: &str| {
            before
                .iter()
                .find(|role| id_of(role).as_deref() == Some(id))
        };
        let mut left = Vec::new();
        for mut role in std::mem::take(list) {
            let id = role.id().map(str::to_owned);
            match (id.as_deref().map(known), role.table_mut(), &id) {
                (Some(Some(Json::Object(known))), Some(table), Some(id)) => {
                    path.push(id.clone());
                    self.table(table, known, path);
                    path.pop();
                    left.push(role);
                }
                // A role without an id is invalid and reported as such.
                (None, ..) => left.push(role),
                (Some(_), _, id) => {
                    path.push(id.clone().unwrap_or_default());
                    self.record_change(path, None, Some(&role.to_json()));
                    path.pop();
                }
            }
        }
        for (place, role) in before.iter().enumerate() {
            let id = id_of(role);
            let Some(id) = id.filter(|id| !left.iter().any(|one| one.id() == Some(id))) else {
                continue;
            };
            left.insert(place.min(left.len()), self.node(role));
            path.push(id);
            self.record_change(path, Some(role), None);
            path.pop();
        }
        *list = left;
    }

    /// Returns whether a change applies at once: it allows and executes nothing, or tightens a limit.
    fn applies_at_once(&self, path: &[String], before: Option<&Json>, now: Option<&Json>) -> bool {
        if let Some(rule) = rule_of(path) {
            return match rule.on_change {
                RunChangeRule::Applies | RunChangeRule::ByTrust => true,
                RunChangeRule::Asks => false,
                RunChangeRule::Limit => is_stricter(before, now),
                RunChangeRule::LimitWithDefault => {
                    let built_in = self.built_in(path);
                    let or_built_in = |value: Option<&Json>| value.cloned().or(built_in.clone());
                    let (before, now) = (or_built_in(before), or_built_in(now));
                    before.is_some() && now.is_some() && is_stricter(before.as_ref(), now.as_ref())
                }
            };
        }
        match (before, now) {
            // Without a loop the roles run once; its limits have no effect.
            _ if path[..] == [LOOP] => false,
            // The table was added or removed: every value in it is a change.
            (None, Some(Json::Object(now))) => now.iter().all(|(key, value)| {
                let path = join_path(path, key);
                self.applies_at_once(&path, None, Some(value))
            }),
            (Some(Json::Object(before)), None) => before.iter().all(|(key, value)| {
                let path = join_path(path, key);
                self.applies_at_once(&path, Some(value), None)
            }),
            _ => false,
        }
    }

    fn built_in(&self, path: &[String]) -> Option<Json> {
        let (first, rest) = path.split_first()?;
        let node = rest.iter().fold(self.built_in.get(first), |node, part| {
            node.and_then(Node::table).and_then(|table| table.get(part))
        });
        node.map(Node::to_json)
    }

    fn node(&self, value: &Json) -> Node {
        let inner = |value: &Json| self.node(value);
        let value = match value {
            Json::Null => Value::Null,
            Json::Bool(flag) => Value::Bool(*flag),
            Json::Number(number) => match (number.as_i64(), number.as_f64()) {
                (Some(whole), _) => Value::Integer(whole),
                (None, Some(number)) => Value::Number(number),
                (None, None) => Value::Null,
            },
            Json::String(text) => Value::Text(text.clone()),
            Json::Array(list) => Value::List(list.iter().map(inner).collect()),
            Json::Object(entries) => {
                let mut table = Table::default();
                for (key, value) in entries {
                    table.insert(key, self.node(value));
                }
                Value::Table(table)
            }
        };
        Node {
            value,
            span: self.at,
        }
    }

    fn record_change(&mut self, path: &[String], before: Option<&Json>, now: Option<&Json>) {
        for value in [before, now].into_iter().flatten() {
            self.secrets.extend(secrets_in(path, value));
        }
        let told = |value: &Json| without_unknown(path, value).to_string();
        self.changes.push(ProjectSettingChange {
            key: path.join("."),
            before: before.map(told),
            after: now.map(told),
        });
    }

    /// Returns the changes without the values of secret variables.
    fn into_changes(self) -> Vec<ProjectSettingChange> {
        let redactor = Redactor::new(self.secrets);
        let hidden = |text: String| redactor.redact(&text).into_owned();
        let changes = self.changes.into_iter().map(|change| ProjectSettingChange {
            before: change.before.map(hidden),
            after: change.after.map(hidden),
            ..change
        });
        changes.collect()
    }
}

fn join_path(path: &[String], key: &str) -> Vec<String> {
    let mut path = path.to_vec();
    path.push(key.to_owned());
    path
}

/// Returns a value without those of unknown keys: a file that is no configuration may hold anything, such as a
/// password, and changes are recorded where agents can read them.
fn without_unknown(path: &[String], value: &Json) -> Json {
    let relation = rule_relation(path);
    match value {
        _ if relation == PatternMatch::Exact => value.clone(),
        Json::Object(entries) if relation == PatternMatch::Ancestor => {
            let known = |(key, value): (&String, &Json)| {
                let path = join_path(path, key);
                (key.clone(), without_unknown(&path, value))
            };
            Json::Object(entries.iter().map(known).collect())
        }
        // Roles are found by id.
        Json::Array(items) if relation == PatternMatch::Ancestor => {
            let known = |item: &Json| match item {
                Json::Object(_) => {
                    let id = item.get("id").and_then(Json::as_str).unwrap_or_default();
                    without_unknown(&join_path(path, id), item)
                }
                _ => without_unknown(path, item),
            };
            Json::Array(items.iter().map(known).collect())
        }
        // A short form, such as a webhook's address.
        _ if relation == PatternMatch::Ancestor && path.len() > 1 => value.clone(),
        _ => NOT_RECORDED.into(),
    }
}

/// Returns whether a limit is unchanged or stricter; `None` is no limit.
fn is_stricter(before: Option<&Json>, now: Option<&Json>) -> bool {
    match (before, now) {
        (None, _) => true,
        (Some(_), None) => false,
        (Some(before), Some(now)) => match (amount(before), amount(now)) {
            (Some(before), Some(now)) => now <= before,
            _ => false,
        },
    }
}

/// Returns a number, or a duration in seconds; a duration of 0 is no limit.
fn amount(value: &Json) -> Option<f64> {
    match value {
        Json::Number(number) => number.as_f64().filter(|number| number.is_finite()),
        Json::String(text) => {
            let time = duration::parse(text).ok()?;
            (!time.is_zero()).then_some(time.as_secs_f64())
        }
        _ => None,
    }
}

/// Returns the values of variables with secret-looking names.
fn secrets_in(path: &[String], value: &Json) -> Vec<String> {
    let pairs: Vec<(String, String)> = match value {
        Json::String(text) => {
            let name = path.last().cloned().unwrap_or_default();
            vec![(name, text.clone())]
        }
        Json::Object(entries) => {
            let inner = entries.iter().flat_map(|(key, value)| {
                let path = join_path(path, key);
                secrets_in(&path, value)
            });
            return inner.collect();
        }
        _ => Vec::new(),
    };
    secret_values(pairs.into_iter())
}
