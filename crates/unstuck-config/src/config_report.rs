//! The effective configuration for display: every value with its source.

use serde_json::Value as Json;
use unstuck_core::redact::{Redactor, secret_values};

use crate::config::Config;
use crate::value_tree::source::{ConfigSource, ConfigValueOrigin, FileFormat, Sources};
use crate::value_tree::{Node, SourceId, Table, Value, merge, parse};

/// The defaults.
const DEFAULT: &str = include_str!("../data/default.toml");

/// Optional sections, which have no defaults.
const OPTIONAL_SECTIONS: [&str; 2] = ["loop", "recovery"];

/// The effective configuration without secrets.
#[derive(Debug)]
pub struct ConfigReport {
    tree: Table,
    sources: Sources,
}

/// An effective value.
#[derive(Debug, Clone, PartialEq)]
pub struct ConfigReportValue {
    /// The path, such as `run.parallel`.
    pub path: String,
    /// The value.
    pub value: Json,
    /// The source.
    pub origin: ConfigValueOrigin,
}

impl Config {
    /// Returns the effective configuration, including defaults, without secrets.
    pub fn resolved(&self) -> ConfigReport {
        let mut sources = self.sources().clone();
        let built_in = sources.add(ConfigSource::BuiltIn);
        let mut tree = defaults(built_in);
        for section in OPTIONAL_SECTIONS {
            if self.tree.get(section).is_none() {
                tree.remove(section);
            }
        }
        self.show_cap(&mut tree);
        merge::merge(&mut tree, self.tree.clone());
        let redactor = Redactor::new(self.secrets());
        redact_table(&mut tree, &redactor);
        ConfigReport { tree, sources }
    }

    /// Shows the policy's retry cap if it is not set; a policy bounded by time has none.
    fn show_cap(&self, tree: &mut Table) {
        let policy = self.policies.for_roles();
        let Some(recovery) = tree.get_mut("error_recovery").and_then(Node::table_mut) else {
            return;
        };
        if policy.give_up_after.is_some() {
            recovery.remove("max_auto_retries");
        } else if let Some(cap) = recovery.get_mut("max_auto_retries") {
            cap.value = Value::Integer(policy.max_retries.into());
        }
    }

    /// Returns the values of role variables with secret-looking names.
    fn secrets(&self) -> Vec<String> {
        let roles = self.roles().iter();
        let variables = roles.flat_map(|role| role.env.clone());
        secret_values(variables)
    }
}

/// Returns the defaults; a test checks that they can be read.
pub(crate) fn defaults(source: SourceId) -> Table {
    parse(FileFormat::Toml, DEFAULT, source).unwrap_or_default()
}

fn redact_table(table: &mut Table, redactor: &Redactor) {
    for entry in &mut table.0 {
        redact_node(&mut entry.node, redactor);
    }
}

fn redact_node(node: &mut Node, redactor: &Redactor) {
    match &mut node.value {
        Value::Text(text) => *text = redactor.redact(text).into_owned(),
        Value::List(list) => list.iter_mut().for_each(|one| redact_node(one, redactor)),
        Value::Table(table) => redact_table(table, redactor),
        _ => {}
    }
}

impl ConfigReport {
    /// Returns the configuration as JSON.
    pub fn to_json(&self) -> Json {
        self.tree.to_json()
    }

    /// Returns all single values.
    pub fn values(&self) -> Vec<ConfigReportValue> {
        let mut leaves = Vec::new();
        self.collect(&self.tree, "", &mut leaves);
        leaves
    }

    fn collect(&self, table: &Table, path: &str, leaves: &mut Vec<ConfigReportValue>) {
        for entry in &table.0 {
            let path = join(path, &entry.key);
            match &entry.node.value {
                Value::Table(table) => self.collect(table, &path, leaves),
                Value::List(list) if is_table_list(list) => {
                    for (at, one) in list.iter().enumerate() {
                        let number = (at + 1).to_string();
                        let path = join(&path, one.id().unwrap_or(&number));
                        if let Some(table) = one.table() {
                            self.collect(table, &path, leaves);
                        }
                    }
                }
                _ => leaves.push(ConfigReportValue {
                    path,
                    value: entry.node.to_json(),
                    origin: self.sources.origin(entry.key_span),
                }),
            }
        }
    }

    /// Returns the configuration as TOML.
    pub fn to_toml(&self) -> String {
        self.render(|_| None)
    }

    /// Returns the configuration as TOML, each line with its source.
    pub fn to_toml_with_origins(&self) -> String {
        self.render(|origin| Some(format!("# {origin}")))
    }

    fn render(&self, comment: impl Fn(&ConfigValueOrigin) -> Option<String>) -> String {
        let mut writer = TomlWriter {
            sources: &self.sources,
            comment: &comment,
            text: String::new(),
        };
        writer.table(&self.tree, "");
        writer.text
    }
}

fn join(path: &str, key: &str) -> String {
    if path.is_empty() {
        key.to_owned()
    } else {
        format!("{path}.{key}")
    }
}

fn is_table_list(list: &[Node]) -> bool {
    !list.is_empty() && list.iter().all(|one| one.table().is_some())
}

/// Writes TOML: the plain values of a table before its subtables.
struct TomlWriter<'a> {
    sources: &'a Sources,
    comment: &'a dyn Fn(&ConfigValueOrigin) -> Option<String>,
    text: String,
}

impl TomlWriter<'_> {
    fn table(&mut self, table: &Table, path: &str) {
        let is_plain = |node: &Node| match &node.value {
            Value::Table(_) => false,
            Value::List(list) => !is_table_list(list),
            _ => true,
        };
        let plain = table.0.iter().filter(|entry| is_plain(&entry.node));
        let lines: Vec<_> = plain
            .map(|entry| {
                let line = format!("{} = {}", toml_key(&entry.key), toml_value(&entry.node));
                (line, self.sources.origin(entry.key_span))
            })
            .collect();
        let width = |line: &str| line.lines().last().unwrap_or_default().chars().count();
        let widest = lines.iter().map(|(line, _)| width(line)).max().unwrap_or(0);
        for (line, origin) in &lines {
            self.text.push_str(line);
            if let Some(comment) = (self.comment)(origin) {
                let gap = widest.min(60).saturating_sub(width(line)) + 2;
                self.text.push_str(&" ".repeat(gap));
                self.text.push_str(&comment);
            }
            self.text.push('\n');
        }
        for entry in table.0.iter().filter(|entry| !is_plain(&entry.node)) {
            let path = join(path, &toml_key(&entry.key));
            match &entry.node.value {
                Value::Table(inner) => self.inline_items(inner, &path, ["[", "]"]),
                Value::List(list) => {
                    for inner in list.iter().filter_map(Node::table) {
                        self.inline_items(inner, &path, ["[[", "]]"]);
                    }
                }
                _ => {}
            }
        }
    }

    fn inline_items(&mut self, table: &Table, path: &str, [open, close]: [&str; 2]) {
        // A table that contains only tables needs no heading.
        let headed = open == "[["
            || table.0.is_empty()
            || table
                .0
                .iter()
                .any(|entry| !matches!(entry.node.value, Value::Table(_)));
        if headed {
            if !self.text.is_empty() {
                self.text.push('\n');
            }
            self.text.push_str(&format!("{open}{path}{close}\n"));
        }
        self.table(table, path);
    }
}

fn toml_key(key: &str) -> String {
    let is_bare = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if !key.is_empty() && key.chars().all(is_bare) {
        key.to_owned()
    } else {
        quoted_text(key)
    }
}

fn toml_value(node: &Node) -> String {
    match &node.value {
        // TOML has no null.
        Value::Null => "\"\"".to_owned(),
        Value::Bool(flag) => flag.to_string(),
        Value::Integer(number) => number.to_string(),
        Value::Number(number) if number.is_nan() => "nan".to_owned(),
        Value::Number(number) => format!("{number:?}"),
        Value::Text(written) => quoted_text(written),
        Value::List(list) => {
            let parts: Vec<_> = list.iter().map(toml_value).collect();
            format!("[{}]", parts.join(", "))
        }
        Value::Table(table) => {
            let entry = |one: &crate::value_tree::TableEntry| {
                format!("{} = {}", toml_key(&one.key), toml_value(&one.node))
            };
            let parts: Vec<_> = table.0.iter().map(entry).collect();
            format!("{{ {} }}", parts.join(", "))
        }
    }
}

fn quoted_text(text: &str) -> String {
    toml::Value::String(text.to_owned()).to_string()
}
