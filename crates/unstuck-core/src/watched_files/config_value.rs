//! Configuration values with sorted keys, independent of the format.

use std::collections::BTreeMap;
use std::fmt;

use serde::de::{Error, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

/// A value. Keys are sorted and unique: programs differ in which duplicate they use.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub(super) enum ConfigValue {
    Null,
    Flag(bool),
    Number(serde_json::Number),
    Text(String),
    List(Vec<Self>),
    Table(BTreeMap<String, Self>),
}

/// Parses JSON; none if it is invalid or has a duplicate key.
pub(super) fn from_json(text: &str) -> Option<ConfigValue> {
    serde_json::from_str(text).ok()
}

/// Parses TOML; none if it is invalid.
pub(super) fn from_toml(text: &str) -> Option<ConfigValue> {
    toml::from_str(text).ok()
}

/// Parses YAML; none if it is invalid, has a duplicate key, or more than one document.
pub(super) fn from_yaml(text: &str) -> Option<ConfigValue> {
    serde_saphyr::from_str(text).ok()
}

/// Serializes values by path; empty if there are none.
pub(super) fn to_text(parts: &BTreeMap<String, ConfigValue>) -> String {
    if parts.is_empty() {
        return String::new();
    }
    serde_json::to_string_pretty(parts).unwrap_or_default() + "\n"
}

/// Returns the scripts of a table; several for one name are joined by line ends.
pub(super) fn script_texts(value: ConfigValue) -> BTreeMap<String, String> {
    let ConfigValue::Table(table) = value else {
        return BTreeMap::new();
    };
    let text = |value| match value {
        ConfigValue::Text(text) => Some(text),
        ConfigValue::List(list) => {
            let texts = list.into_iter().filter_map(|one| match one {
                ConfigValue::Text(text) => Some(text),
                _ => None,
            });
            Some(texts.collect::<Vec<_>>().join("\n"))
        }
        ConfigValue::Table(mut table) => match table.remove("command") {
            Some(ConfigValue::Text(text)) => Some(text),
            _ => None,
        },
        _ => None,
    };
    let table = table.into_iter();
    table
        .filter_map(|(name, value)| Some((name, text(value)?)))
        .collect()
}

/// Returns the strings of a list, which may be in the table of a package list.
pub(super) fn string_list(value: ConfigValue) -> Vec<String> {
    match value {
        ConfigValue::List(list) => {
            let texts = list.into_iter().filter_map(|one| match one {
                ConfigValue::Text(text) => Some(text),
                _ => None,
            });
            texts.collect()
        }
        ConfigValue::Table(mut table) => table
            .remove("packages")
            .map(string_list)
            .unwrap_or_default(),
        _ => Vec::new(),
    }
}

impl<'de> Deserialize<'de> for ConfigValue {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(ConfigValueVisitor)
    }
}

struct ConfigValueVisitor;

impl<'de> Visitor<'de> for ConfigValueVisitor {
    type Value = ConfigValue;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value without duplicate keys")
    }

    fn visit_unit<E>(self) -> Result<ConfigValue, E> {
        Ok(ConfigValue::Null)
    }

    fn visit_bool<E>(self, flag: bool) -> Result<ConfigValue, E> {
        Ok(ConfigValue::Flag(flag))
    }

    fn visit_i64<E>(self, number: i64) -> Result<ConfigValue, E> {
        Ok(ConfigValue::Number(number.into()))
    }

    fn visit_u64<E>(self, number: u64) -> Result<ConfigValue, E> {
        Ok(ConfigValue::Number(number.into()))
    }

    fn visit_f64<E>(self, number: f64) -> Result<ConfigValue, E> {
        let number = serde_json::Number::from_f64(number);
        Ok(number.map_or(ConfigValue::Null, ConfigValue::Number))
    }

    fn visit_str<E>(self, text: &str) -> Result<ConfigValue, E> {
        Ok(ConfigValue::Text(text.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<ConfigValue, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element()? {
            list.push(item);
        }
        Ok(ConfigValue::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<ConfigValue, A::Error> {
        let mut table = BTreeMap::new();
        while let Some((key, value)) = entries.next_entry::<String, ConfigValue>()? {
            if table.insert(key, value).is_some() {
                return Err(A::Error::custom("duplicate key"));
            }
        }
        Ok(ConfigValue::Table(table))
    }
}
