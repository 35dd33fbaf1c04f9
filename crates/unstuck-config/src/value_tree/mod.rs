//! The configuration as a tree of values with source locations.
//!
//! All formats are parsed into the same tree. Layers are merged as trees, and only the result is decoded into the
//! [sections](crate::section), so that every error has a location, whatever the format.

pub(crate) mod decode;
mod json;
pub(crate) mod merge;
pub(crate) mod path;
pub(crate) mod source;
mod toml;
pub(crate) mod value_error;
mod yaml;

pub(crate) use source::{SourceId, Span};

use source::FileFormat;

/// A value with its location.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Node {
    pub(crate) value: Value,
    pub(crate) span: Span,
}

/// The content of a value.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Value {
    Null,
    Bool(bool),
    Integer(i64),
    Number(f64),
    Text(String),
    List(Vec<Node>),
    Table(Table),
}

/// A table: values by key, in file order.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Table(pub(crate) Vec<TableEntry>);

/// A key and its value.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct TableEntry {
    pub(crate) key: String,
    pub(crate) key_span: Span,
    pub(crate) node: Node,
}

/// A syntax error.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct SyntaxError {
    pub(crate) span: Span,
    pub(crate) reason: String,
}

/// Parses a text into a tree.
pub(crate) fn parse(
    format: FileFormat,
    text: &str,
    source: SourceId,
) -> Result<Table, Vec<SyntaxError>> {
    let read = match format {
        FileFormat::Toml => toml::parse(text, source)?,
        FileFormat::Json => json::parse(text, source).map_err(|one| vec![one])?,
        FileFormat::Yaml => yaml::parse(text, source).map_err(|one| vec![one])?,
    };
    match read.value {
        Value::Table(table) => Ok(table),
        // An empty YAML file is an empty table.
        Value::Null => Ok(Table::default()),
        _ => Err(vec![SyntaxError {
            span: read.span,
            reason: "the configuration must be a table".to_owned(),
        }]),
    }
}

impl Node {
    pub(crate) fn text(&self) -> Option<&str> {
        match &self.value {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }

    pub(crate) fn table(&self) -> Option<&Table> {
        match &self.value {
            Value::Table(table) => Some(table),
            _ => None,
        }
    }

    pub(crate) fn table_mut(&mut self) -> Option<&mut Table> {
        match &mut self.value {
            Value::Table(table) => Some(table),
            _ => None,
        }
    }

    /// Returns the number; `None` for anything else.
    pub(crate) fn number(&self) -> Option<f64> {
        match self.value {
            #[expect(clippy::cast_precision_loss, reason = "an amount of money")]
            Value::Integer(number) => Some(number as f64),
            Value::Number(number) => Some(number),
            _ => None,
        }
    }

    pub(crate) fn list_mut(&mut self) -> Option<&mut Vec<Self>> {
        match &mut self.value {
            Value::List(list) => Some(list),
            _ => None,
        }
    }

    /// Returns the `id` of a table.
    pub(crate) fn id(&self) -> Option<&str> {
        self.table()?.get("id")?.text()
    }

    /// Returns the value as JSON; values that JSON cannot represent become null.
    pub(crate) fn to_json(&self) -> serde_json::Value {
        match &self.value {
            Value::Null => serde_json::Value::Null,
            Value::Bool(flag) => (*flag).into(),
            Value::Integer(number) => (*number).into(),
            Value::Number(number) => (*number).into(),
            Value::Text(text) => text.as_str().into(),
            Value::List(list) => list.iter().map(Self::to_json).collect(),
            Value::Table(table) => table.to_json(),
        }
    }
}

impl Table {
    pub(crate) fn get(&self, key: &str) -> Option<&Node> {
        self.entry(key).map(|entry| &entry.node)
    }

    pub(crate) fn entry(&self, key: &str) -> Option<&TableEntry> {
        self.0.iter().find(|entry| entry.key == key)
    }

    pub(crate) fn get_mut(&mut self, key: &str) -> Option<&mut Node> {
        let entry = self.0.iter_mut().find(|entry| entry.key == key);
        entry.map(|entry| &mut entry.node)
    }

    pub(crate) fn insert(&mut self, key: &str, node: Node) {
        match self.get_mut(key) {
            Some(known) => *known = node,
            None => self.0.push(TableEntry {
                key: key.to_owned(),
                key_span: node.span,
                node,
            }),
        }
    }

    pub(crate) fn remove(&mut self, key: &str) -> Option<TableEntry> {
        let at = self.0.iter().position(|entry| entry.key == key)?;
        Some(self.0.remove(at))
    }

    pub(crate) fn to_json(&self) -> serde_json::Value {
        let entries = self.0.iter();
        serde_json::Value::Object(
            entries
                .map(|entry| (entry.key.clone(), entry.node.to_json()))
                .collect(),
        )
    }
}
