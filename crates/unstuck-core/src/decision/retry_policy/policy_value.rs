//! Conversion of single policy values from JSON or TOML to fields.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use serde::Deserialize;

use crate::did_you_mean::nearest;
use crate::failure::FailureKind;

use super::RetryPolicyOverride;
use super::validation::PolicyProblems;

/// A policy value from JSON or TOML. Unlike JSON it keeps NaN, which TOML can contain and which must be rejected.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(untagged)]
pub(super) enum PolicyValue {
    Flag(bool),
    Number(f64),
    Text(String),
    List(Vec<Self>),
    Table(BTreeMap<String, Self>),
    Null,
}

impl fmt::Display for PolicyValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Flag(flag) => write!(f, "{flag}"),
            Self::Number(number) => write!(f, "{number}"),
            Self::Text(text) => write!(f, "`{text}`"),
            Self::List(_) => f.write_str("a list"),
            Self::Table(_) => f.write_str("a table"),
            Self::Null => f.write_str("null"),
        }
    }
}

/// Returns the canonical spelling of a policy key: `max_retries` as `maxRetries`.
pub fn policy_key(key: &str) -> String {
    let mut parts = key.split('_');
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let mut letters = part.chars();
        text.extend(letters.next().map(|first| first.to_ascii_uppercase()));
        text.push_str(letters.as_str());
    }
    text
}

/// A value with its key, to be set on a field; an invalid value is reported and leaves the field unchanged.
pub(super) struct FieldSetter<'a> {
    pub(super) key: &'a str,
    pub(super) raw: PolicyValue,
    pub(super) problems: &'a mut PolicyProblems,
}

impl FieldSetter<'_> {
    fn add_problem(&mut self, why: impl Into<String>) {
        self.problems.add(self.key, &self.raw, why);
    }

    pub(super) fn set_text(&mut self, field: &mut String) {
        match &self.raw {
            PolicyValue::Text(text) => field.clone_from(text),
            _ => self.add_problem("must be a string"),
        }
    }

    pub(super) fn set_flag(&mut self, field: &mut bool) {
        match self.raw {
            PolicyValue::Flag(flag) => *field = flag,
            _ => self.add_problem("must be true or false"),
        }
    }

    pub(super) fn set_number(&mut self, field: &mut f64) {
        match self.raw {
            PolicyValue::Number(number) => *field = number,
            _ => self.add_problem("must be a number"),
        }
    }

    pub(super) fn set_amount(&mut self, field: &mut Option<f64>) {
        match self.raw {
            PolicyValue::Number(number) => *field = Some(number),
            PolicyValue::Null => *field = None,
            _ => self.add_problem("must be an amount in USD, or null for no limit"),
        }
    }

    /// Sets a whole number; `first` is the value that means none, so that attempts can be parsed as retries.
    pub(super) fn set_count(&mut self, first: u16, field: &mut u32) {
        let least = f64::from(first);
        match self.raw {
            PolicyValue::Number(n) if n.fract() == 0.0 && (least..=1000.0).contains(&n) => {
                *field = (n - least) as u32;
            }
            _ => self.add_problem(format!("must be an integer from {first} to 1000")),
        }
    }

    pub(super) fn set_duration(&mut self, field: &mut Option<Duration>) {
        match &self.raw {
            PolicyValue::Null => *field = None,
            PolicyValue::Text(text) => match crate::duration::parse(text) {
                Ok(duration) => *field = Some(duration),
                Err(_) => self.add_problem("must be a duration like 30s, 20m or 1h30m"),
            },
            _ => {
                self.add_problem("must be a string with a unit, like \"20m\", or null for no limit")
            }
        }
    }

    pub(super) fn set_keyword<T: Copy>(&mut self, known: &[(&str, T)], field: &mut T) {
        let found = match &self.raw {
            PolicyValue::Text(text) => known.iter().find(|(name, _)| name == text),
            _ => None,
        };
        match found {
            Some((_, value)) => *field = *value,
            None => {
                let names: Vec<_> = known.iter().map(|(name, _)| *name).collect();
                self.add_problem(format!("must be one of {}", names.join(", ")));
            }
        }
    }

    pub(super) fn set_kinds(&mut self, field: &mut Vec<FailureKind>) {
        let PolicyValue::List(list) = &self.raw else {
            return self.add_problem("must be a list of kinds");
        };
        field.clear();
        for raw in list {
            let parsed = match raw {
                PolicyValue::Text(name) => name
                    .parse::<FailureKind>()
                    .map_err(|unknown| unknown.to_string()),
                _ => Err("must be the name of a kind".to_owned()),
            };
            match parsed {
                Ok(kind) => field.push(kind),
                Err(why) => self.problems.add(self.key, raw, why),
            }
        }
    }

    /// Sets a table of overrides; `null` removes one.
    pub(super) fn set_overrides<K: Ord>(
        &mut self,
        name: impl Fn(&str, &mut PolicyProblems) -> Option<K>,
        field: &mut BTreeMap<K, RetryPolicyOverride>,
    ) {
        let PolicyValue::Table(table) = &self.raw else {
            return self.add_problem("must be a table");
        };
        for (entry, raw) in table {
            let Some(entry_key) = name(entry, self.problems) else {
                continue;
            };
            match raw {
                PolicyValue::Null => {
                    field.remove(&entry_key);
                }
                PolicyValue::Table(keys) => {
                    let one = field.entry(entry_key).or_default();
                    self.problems
                        .read_override(&format!("{}.{entry}", self.key), keys, one);
                }
                other => {
                    let path = format!("{}.{entry}", self.key);
                    self.problems.add(&path, other, "must be a table");
                }
            }
        }
    }

    pub(super) fn report_unknown_key(&mut self, known: &[&str]) {
        let last = self.key.rsplit('.').next().unwrap_or(self.key);
        let near = nearest(last, known.iter().map(|key| (*key, *key)));
        let hint = near
            .map(|key| format!(", did you mean `{key}`?"))
            .unwrap_or_default();
        self.add_problem(format!("unknown key{hint}"));
    }
}
