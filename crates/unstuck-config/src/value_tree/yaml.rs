//! Parses a YAML configuration into the value tree.

use std::fmt;

use serde::Deserialize;
use serde::de::{MapAccess, SeqAccess, Visitor};
use serde_saphyr::{Location, Spanned};

use super::{Node, SourceId, Span, SyntaxError, Table, TableEntry, Value};

pub(super) fn parse(text: &str, source: SourceId) -> Result<Node, SyntaxError> {
    let reader = YamlReader { text, source };
    if text.trim().is_empty() {
        return Ok(Node {
            value: Value::Null,
            span: reader.range(0, 0),
        });
    }
    let read: Spanned<Yaml> = serde_saphyr::from_str(text).map_err(|error| {
        let at = error.location().map(|location| reader.span_at(&location));
        SyntaxError {
            span: at.unwrap_or_else(|| reader.range(0, 0)),
            reason: error_text(&error),
        }
    })?;
    reader.node(read)
}

/// Returns the first line of the parser's message without the location, which is reported separately.
fn error_text(error: &serde_saphyr::Error) -> String {
    let text = error.without_snippet().to_string();
    let line = text.lines().next().unwrap_or_default();
    let line = line.strip_prefix("error: ").unwrap_or(line);
    let end = line.find(" at line ").unwrap_or(line.len());
    line[..end].to_owned()
}

struct YamlReader<'t> {
    text: &'t str,
    source: SourceId,
}

impl YamlReader<'_> {
    fn range(&self, start: usize, end: usize) -> Span {
        Span {
            source: self.source,
            start,
            end,
        }
    }

    fn span_at(&self, location: &Location) -> Span {
        let line = usize::try_from(location.line()).unwrap_or(1);
        let column = usize::try_from(location.column()).unwrap_or(1);
        let before = self.text.split_inclusive('\n').take(line.saturating_sub(1));
        let begin: usize = before.map(str::len).sum();
        let rest = self.text.get(begin..).unwrap_or_default();
        let line = rest.lines().next().unwrap_or_default();
        let offset = line
            .char_indices()
            .nth(column.saturating_sub(1))
            .map_or(line.len(), |(at, _)| at);
        let start = begin + offset;
        let length = location.span().len();
        let length = usize::try_from(length).unwrap_or(0);
        // A value of several lines is marked at its first line.
        self.range(start, (start + length).min(begin + line.len()).max(start))
    }

    fn node(&self, read: Spanned<Yaml>) -> Result<Node, SyntaxError> {
        let at = self.span_at(&read.referenced);
        let value = match read.value {
            Yaml::Null => Value::Null,
            Yaml::Bool(flag) => Value::Bool(flag),
            Yaml::Integer(number) => Value::Integer(number),
            Yaml::Number(number) => Value::Number(number),
            Yaml::Text(text) => Value::Text(text),
            Yaml::List(list) => {
                let nodes: Result<_, _> = list.into_iter().map(|one| self.node(one)).collect();
                Value::List(nodes?)
            }
            Yaml::Table(pairs) => {
                let entry = |(key, node): (Spanned<String>, Spanned<Yaml>)| {
                    Ok(TableEntry {
                        key_span: self.span_at(&key.referenced),
                        key: key.value,
                        node: self.node(node)?,
                    })
                };
                let entries: Result<_, SyntaxError> = pairs.into_iter().map(entry).collect();
                Value::Table(Table(entries?))
            }
        };
        Ok(Node { value, span: at })
    }
}

/// A value as the parser delivers it.
enum Yaml {
    Null,
    Bool(bool),
    Integer(i64),
    Number(f64),
    Text(String),
    List(Vec<Spanned<Self>>),
    Table(Vec<(Spanned<String>, Spanned<Self>)>),
}

impl<'de> Deserialize<'de> for Yaml {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(AnyValue)
    }
}

struct AnyValue;

impl<'de> Visitor<'de> for AnyValue {
    type Value = Yaml;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_unit<E>(self) -> Result<Yaml, E> {
        Ok(Yaml::Null)
    }

    fn visit_none<E>(self) -> Result<Yaml, E> {
        Ok(Yaml::Null)
    }

    fn visit_bool<E>(self, flag: bool) -> Result<Yaml, E> {
        Ok(Yaml::Bool(flag))
    }

    fn visit_i64<E>(self, number: i64) -> Result<Yaml, E> {
        Ok(Yaml::Integer(number))
    }

    fn visit_u64<E: serde::de::Error>(self, number: u64) -> Result<Yaml, E> {
        let number = i64::try_from(number);
        number
            .map(Yaml::Integer)
            .map_err(|_| E::custom("number is too large"))
    }

    fn visit_f64<E>(self, number: f64) -> Result<Yaml, E> {
        Ok(Yaml::Number(number))
    }

    fn visit_str<E>(self, text: &str) -> Result<Yaml, E> {
        Ok(Yaml::Text(text.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Yaml, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = list.next_element()? {
            items.push(item);
        }
        Ok(Yaml::List(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Yaml, A::Error> {
        let mut pairs = Vec::new();
        while let Some(pair) = map.next_entry()? {
            pairs.push(pair);
        }
        Ok(Yaml::Table(pairs))
    }
}
