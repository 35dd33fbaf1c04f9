//! Errors in single values, with their locations.

use std::fmt;

use serde::de::{Expected, Unexpected};
use unstuck_core::nearest;

use super::Span;
use super::path::{PathStep, ValuePath};

/// An invalid value.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ValueError {
    pub(crate) kind: ValueErrorKind,
    /// The displayed location; the enclosing value until a more exact one is known.
    pub(crate) span: Option<Span>,
    /// The path to the value, innermost step first.
    pub(crate) path: Vec<PathStep>,
}

/// The kind of a value error.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum ValueErrorKind {
    /// The value has the wrong type.
    WrongType { found: String, expected: String },
    /// The key is unknown.
    UnknownKey {
        key: String,
        suggestion: Option<&'static str>,
        known: &'static [&'static str],
    },
    /// A required key is missing.
    Missing(&'static str),
    /// A message of the value's own type.
    Custom(String),
    /// A message that follows the name of the value.
    AfterName(String),
}

impl ValueError {
    pub(crate) fn new(kind: ValueErrorKind) -> Self {
        Self {
            kind,
            span: None,
            path: Vec::new(),
        }
    }

    /// Sets the location unless a more exact one is known.
    pub(super) fn with_span(mut self, at: Span) -> Self {
        self.span.get_or_insert(at);
        self
    }

    /// Returns the error as seen from the enclosing table or list.
    pub(super) fn within(mut self, step: PathStep) -> Self {
        self.path.push(step);
        self
    }

    /// Returns the path from the root.
    pub(crate) fn path(&self) -> ValuePath {
        ValuePath(self.path.iter().rev().cloned().collect())
    }

    /// Returns the path of the intended key, if the written one is a misspelling of it.
    pub(super) fn intended_path(&self, path: ValuePath) -> ValuePath {
        match (&self.kind, path.0.split_last()) {
            (
                ValueErrorKind::UnknownKey {
                    suggestion: Some(near),
                    ..
                },
                Some((_, way)),
            ) => ValuePath(way.to_vec()).with_key(near),
            _ => path,
        }
    }

    /// Does the same for a path as users write it.
    pub(crate) fn intended_path_text(&self, path: &str) -> String {
        match &self.kind {
            ValueErrorKind::UnknownKey {
                key,
                suggestion: Some(near),
                ..
            } => path
                .strip_suffix(key)
                .map_or_else(|| path.to_owned(), |table| format!("{table}{near}")),
            _ => path.to_owned(),
        }
    }

    /// Returns the message for the value at that path.
    pub(crate) fn message(&self, path: &str) -> String {
        match &self.kind {
            ValueErrorKind::WrongType {
                found: given,
                expected,
            } => {
                format!("`{path}` must be {expected}, got {given}")
            }
            ValueErrorKind::UnknownKey {
                key,
                suggestion: near,
                known,
            } => {
                let hint = match (near, known.len()) {
                    (Some(near), _) => format!(", did you mean `{near}`?"),
                    (None, 1..=12) => format!("; valid keys: {}", known.join(", ")),
                    _ => String::new(),
                };
                let table = path.strip_suffix(key.as_str()).unwrap_or(path);
                match table.trim_end_matches('.') {
                    "" => format!("unknown key `{key}`{hint}"),
                    table => format!("unknown key `{key}` in `{table}`{hint}"),
                }
            }
            ValueErrorKind::Missing(key) if path.is_empty() => format!("`{key}` is missing"),
            ValueErrorKind::Missing(key) => format!("`{path}` needs `{key}`"),
            ValueErrorKind::Custom(text) if path.is_empty() => text.clone(),
            ValueErrorKind::Custom(text) => format!("`{path}`: {text}"),
            ValueErrorKind::AfterName(text) => format!("`{path}` {text}"),
        }
    }
}

impl fmt::Display for ValueError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message(""))
    }
}

impl std::error::Error for ValueError {}

impl serde::de::Error for ValueError {
    fn custom<T: fmt::Display>(text: T) -> Self {
        Self::new(ValueErrorKind::Custom(text.to_string()))
    }

    fn invalid_type(given: Unexpected<'_>, expected: &dyn Expected) -> Self {
        Self::new(ValueErrorKind::WrongType {
            found: describe_unexpected(&given),
            expected: plain_expectation(&expected.to_string()),
        })
    }

    fn invalid_value(given: Unexpected<'_>, expected: &dyn Expected) -> Self {
        Self::invalid_type(given, expected)
    }

    fn unknown_field(key: &str, known: &'static [&'static str]) -> Self {
        Self::new(ValueErrorKind::UnknownKey {
            key: key.to_owned(),
            suggestion: nearest(key, known.iter().map(|known| (*known, *known))),
            known,
        })
    }

    fn unknown_variant(given: &str, known: &'static [&'static str]) -> Self {
        let near = nearest(given, known.iter().map(|known| (*known, *known)));
        let hint = near.map(|near| format!(", did you mean `{near}`?"));
        let words: Vec<_> = known.iter().map(|word| format!("\"{word}\"")).collect();
        Self::new(ValueErrorKind::WrongType {
            found: format!("\"{given}\"{}", hint.unwrap_or_default()),
            expected: format!("one of {}", words.join(", ")),
        })
    }

    fn missing_field(key: &'static str) -> Self {
        Self::new(ValueErrorKind::Missing(key))
    }
}

/// Returns an unexpected value as users write it.
fn describe_unexpected(given: &Unexpected<'_>) -> String {
    match given {
        Unexpected::Bool(flag) => flag.to_string(),
        Unexpected::Unsigned(number) => number.to_string(),
        Unexpected::Signed(number) => number.to_string(),
        Unexpected::Float(number) => number.to_string(),
        Unexpected::Str(text) => format!("{text:?}"),
        Unexpected::Unit | Unexpected::Option => "an empty value".to_owned(),
        Unexpected::Seq => "a list".to_owned(),
        Unexpected::Map => "a table".to_owned(),
        other => other.to_string(),
    }
}

/// Returns a type's expectation in plain words.
fn plain_expectation(expected: &str) -> String {
    let known = match expected {
        "a boolean" => "true or false",
        "a string" | "a borrowed string" | "path string" => "a string",
        "a sequence" => "a list",
        "a map" => "a table",
        "u8" | "u16" | "u32" | "u64" | "usize" => "a non-negative integer",
        "i8" | "i16" | "i32" | "i64" => "an integer",
        "f32" | "f64" => "a number",
        other if other.starts_with("struct ") => "a table",
        other if other.starts_with("enum ") => "one of the known values",
        other => other,
    };
    known.to_owned()
}
