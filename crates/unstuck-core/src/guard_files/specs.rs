//! Dependencies that come from elsewhere than a registry: folders, repositories, addresses.

use std::collections::BTreeMap;

use regex::Regex;

use super::json::Value;

/// How a dependency from a registry looks.
pub(super) struct Usual<'r> {
    /// Its text.
    pub(super) plain: Option<&'r Regex>,
    /// The keys of its table; where there are none, a table holds further dependencies.
    pub(super) keys: &'r [String],
}

impl Usual<'_> {
    /// What of some dependencies does not look so; none if all of them do.
    pub(super) fn others(&self, dependencies: &Value) -> Option<Value> {
        match dependencies {
            Value::Table(table) => {
                let rest = table.iter().filter_map(|(name, one)| {
                    let rest = match one {
                        Value::Table(_) if self.keys.is_empty() => self.others(one),
                        Value::List(_) => self.others(one),
                        _ => self.other(one),
                    };
                    Some((name.clone(), rest?))
                });
                let rest: BTreeMap<_, _> = rest.collect();
                (!rest.is_empty()).then_some(Value::Table(rest))
            }
            Value::List(list) => {
                let rest: Vec<_> = list.iter().filter_map(|one| self.other(one)).collect();
                (!rest.is_empty()).then_some(Value::List(rest))
            }
            one => self.other(one),
        }
    }

    fn other(&self, one: &Value) -> Option<Value> {
        let is_plain = |text: &str| self.plain.is_some_and(|plain| plain.is_match(text));
        let is_usual = match one {
            Value::Text(text) => is_plain(text),
            Value::Table(table) => {
                let known = |key: &String| self.keys.contains(key);
                let version = match table.get("version") {
                    Some(Value::Text(version)) => is_plain(version),
                    _ => true,
                };
                version && table.keys().all(known)
            }
            Value::Null | Value::Flag(_) => true,
            Value::Number(_) | Value::List(_) => false,
        };
        (!is_usual).then(|| one.clone())
    }
}
