//! Settings as values with sorted keys, whatever their format.

use std::collections::BTreeMap;
use std::fmt;

use serde::de::{Error, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

/// A value. Keys are sorted, and no table has one twice: programs differ in which of them they take.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub(super) enum Value {
    Null,
    Flag(bool),
    Number(serde_json::Number),
    Text(String),
    List(Vec<Self>),
    Table(BTreeMap<String, Self>),
}

/// Reads JSON; none if it is none, or has a key twice.
pub(super) fn parse(text: &str) -> Option<Value> {
    serde_json::from_str(text).ok()
}

/// Reads TOML; none if it is none.
pub(super) fn from_toml(text: &str) -> Option<Value> {
    toml::from_str(text).ok()
}

/// Values by their paths, as text; empty if there are none.
pub(super) fn written(parts: &BTreeMap<String, Value>) -> String {
    if parts.is_empty() {
        return String::new();
    }
    serde_json::to_string_pretty(parts).unwrap_or_default() + "\n"
}

/// The texts in a table of scripts; several for one name stand below each other.
pub(super) fn texts(value: Value) -> BTreeMap<String, String> {
    let Value::Table(table) = value else {
        return BTreeMap::new();
    };
    let text = |value| match value {
        Value::Text(text) => Some(text),
        Value::List(list) => {
            let texts = list.into_iter().filter_map(|one| match one {
                Value::Text(text) => Some(text),
                _ => None,
            });
            Some(texts.collect::<Vec<_>>().join("\n"))
        }
        Value::Table(mut table) => match table.remove("command") {
            Some(Value::Text(text)) => Some(text),
            _ => None,
        },
        _ => None,
    };
    let table = table.into_iter();
    table
        .filter_map(|(name, value)| Some((name, text(value)?)))
        .collect()
}

/// The texts of a list, which may be in the table of a list of packages.
pub(super) fn list(value: Value) -> Vec<String> {
    match value {
        Value::List(list) => {
            let texts = list.into_iter().filter_map(|one| match one {
                Value::Text(text) => Some(text),
                _ => None,
            });
            texts.collect()
        }
        Value::Table(mut table) => table.remove("packages").map(list).unwrap_or_default(),
        _ => Vec::new(),
    }
}

impl<'de> Deserialize<'de> for Value {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(Reader)
    }
}

struct Reader;

impl<'de> Visitor<'de> for Reader {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value without a key twice")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, flag: bool) -> Result<Value, E> {
        Ok(Value::Flag(flag))
    }

    fn visit_i64<E>(self, number: i64) -> Result<Value, E> {
        Ok(Value::Number(number.into()))
    }

    fn visit_u64<E>(self, number: u64) -> Result<Value, E> {
        Ok(Value::Number(number.into()))
    }

    fn visit_f64<E>(self, number: f64) -> Result<Value, E> {
        let number = serde_json::Number::from_f64(number);
        Ok(number.map_or(Value::Null, Value::Number))
    }

    fn visit_str<E>(self, text: &str) -> Result<Value, E> {
        Ok(Value::Text(text.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element()? {
            list.push(item);
        }
        Ok(Value::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let mut table = BTreeMap::new();
        while let Some((key, value)) = entries.next_entry::<String, Value>()? {
            if table.insert(key, value).is_some() {
                return Err(A::Error::custom("a key stands there twice"));
            }
        }
        Ok(Value::Table(table))
    }
}
