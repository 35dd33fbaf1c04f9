//! What is wrong with one value, and where it stands.

use std::fmt;

use serde::de::{Expected, Unexpected};
use unstuck_core::nearest;

use super::At;
use super::path::{Path, Step};

/// One value that cannot be used.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Fault {
    pub(crate) what: What,
    /// The place that is shown; what is around the value until it is known better.
    pub(crate) at: Option<At>,
    /// The way to the value, from the value outwards.
    pub(crate) way: Vec<Step>,
}

/// What is wrong.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum What {
    /// It is something else.
    Wrong { given: String, expected: String },
    /// Nobody reads this key.
    UnknownKey {
        key: String,
        near: Option<&'static str>,
        known: &'static [&'static str],
    },
    /// A key that is needed is not there.
    Missing(&'static str),
    /// What the value's own type says.
    Told(String),
    /// What is said right after the value's name.
    Plain(String),
}

impl Fault {
    pub(crate) fn new(what: What) -> Self {
        Self {
            what,
            at: None,
            way: Vec::new(),
        }
    }

    /// The fault with its place, unless a more exact one is known.
    pub(super) fn at(mut self, at: At) -> Self {
        self.at.get_or_insert(at);
        self
    }

    /// The fault as seen from the table or list around it.
    pub(super) fn inside(mut self, step: Step) -> Self {
        self.way.push(step);
        self
    }

    /// The way to the value, from the root.
    pub(crate) fn path(&self) -> Path {
        Path(self.way.iter().rev().cloned().collect())
    }

    /// The path of the key that was meant, where the one that was written is nearly it.
    pub(super) fn meant(&self, path: Path) -> Path {
        match (&self.what, path.0.split_last()) {
            (
                What::UnknownKey {
                    near: Some(near), ..
                },
                Some((_, way)),
            ) => Path(way.to_vec()).then(near),
            _ => path,
        }
    }

    /// The same for a path as people write it.
    pub(crate) fn meant_at(&self, path: &str) -> String {
        match &self.what {
            What::UnknownKey {
                key,
                near: Some(near),
                ..
            } => path
                .strip_suffix(key)
                .map_or_else(|| path.to_owned(), |table| format!("{table}{near}")),
            _ => path.to_owned(),
        }
    }

    /// A text about the value at that path.
    pub(crate) fn told(&self, path: &str) -> String {
        match &self.what {
            What::Wrong { given, expected } => {
                format!("`{path}` is {given}, but must be {expected}")
            }
            What::UnknownKey { key, near, known } => {
                let hint = match (near, known.len()) {
                    (Some(near), _) => format!(", did you mean `{near}`?"),
                    (None, 1..=12) => format!("; there are {}", known.join(", ")),
                    _ => String::new(),
                };
                let table = path.strip_suffix(key.as_str()).unwrap_or(path);
                match table.trim_end_matches('.') {
                    "" => format!("there is no key `{key}`{hint}"),
                    table => format!("there is no key `{key}` in `{table}`{hint}"),
                }
            }
            What::Missing(key) if path.is_empty() => format!("`{key}` is missing"),
            What::Missing(key) => format!("`{path}` needs `{key}`"),
            What::Told(text) if path.is_empty() => text.clone(),
            What::Told(text) => format!("`{path}`: {text}"),
            What::Plain(text) => format!("`{path}` {text}"),
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.told(""))
    }
}

impl std::error::Error for Fault {}

impl serde::de::Error for Fault {
    fn custom<T: fmt::Display>(text: T) -> Self {
        Self::new(What::Told(text.to_string()))
    }

    fn invalid_type(given: Unexpected<'_>, expected: &dyn Expected) -> Self {
        Self::new(What::Wrong {
            given: shown(&given),
            expected: plain(&expected.to_string()),
        })
    }

    fn invalid_value(given: Unexpected<'_>, expected: &dyn Expected) -> Self {
        Self::invalid_type(given, expected)
    }

    fn unknown_field(key: &str, known: &'static [&'static str]) -> Self {
        Self::new(What::UnknownKey {
            key: key.to_owned(),
            near: nearest(key, known.iter().map(|known| (*known, *known))),
            known,
        })
    }

    fn unknown_variant(given: &str, known: &'static [&'static str]) -> Self {
        let near = nearest(given, known.iter().map(|known| (*known, *known)));
        let hint = near.map(|near| format!(", did you mean `{near}`?"));
        let words: Vec<_> = known.iter().map(|word| format!("\"{word}\"")).collect();
        Self::new(What::Wrong {
            given: format!("\"{given}\""),
            expected: format!("one of {}{}", words.join(", "), hint.unwrap_or_default()),
        })
    }

    fn missing_field(key: &'static str) -> Self {
        Self::new(What::Missing(key))
    }
}

/// A value as people would write it.
fn shown(given: &Unexpected<'_>) -> String {
    match given {
        Unexpected::Bool(flag) => flag.to_string(),
        Unexpected::Unsigned(number) => number.to_string(),
        Unexpected::Signed(number) => number.to_string(),
        Unexpected::Float(number) => number.to_string(),
        Unexpected::Str(text) => format!("{text:?}"),
        Unexpected::Unit | Unexpected::Option => "empty".to_owned(),
        Unexpected::Seq => "a list".to_owned(),
        Unexpected::Map => "a table".to_owned(),
        other => other.to_string(),
    }
}

/// What a type says about itself, in words for people.
fn plain(expected: &str) -> String {
    let known = match expected {
        "a boolean" => "true or false",
        "a string" | "a borrowed string" | "path string" => "a text in quotes",
        "a sequence" => "a list",
        "a map" => "a table",
        "u8" | "u16" | "u32" | "u64" | "usize" => "a whole number that is 0 or more",
        "i8" | "i16" | "i32" | "i64" => "a whole number",
        "f32" | "f64" => "a number",
        other if other.starts_with("struct ") => "a table",
        other if other.starts_with("enum ") => "one of the known words",
        other => other,
    };
    known.to_owned()
}
