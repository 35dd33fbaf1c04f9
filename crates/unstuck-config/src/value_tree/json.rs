//! Parses a JSON configuration into the value tree.

use std::fmt;

use serde::Deserialize;
use serde::de::{MapAccess, Visitor};
use serde_json::value::RawValue;

use super::{Node, SourceId, Span, SyntaxError, Table, TableEntry, Value};

/// The maximum nesting depth; no configuration needs more.
const MAX_DEPTH: usize = 64;

pub(super) fn parse(text: &str, source: SourceId) -> Result<Node, SyntaxError> {
    // Some editors write a byte order mark, which is not JSON.
    let json = text.strip_prefix('\u{feff}').unwrap_or(text);
    let raw: &RawValue = serde_json::from_str(json).map_err(|error| {
        let start = byte_offset(json, error.line(), error.column()) + text.len() - json.len();
        SyntaxError {
            span: Span {
                source,
                start,
                end: start,
            },
            reason: error_text(&error),
        }
    })?;
    JsonReader { text, source }.node(raw, MAX_DEPTH)
}

/// Returns the parser's message without the location, which is reported separately.
fn error_text(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let end = text.find(" at line ").unwrap_or(text.len());
    text[..end].to_owned()
}

/// Returns the byte offset of a line and column as the parser counts them.
fn byte_offset(text: &str, line: usize, column: usize) -> usize {
    let before = text.split_inclusive('\n').take(line.saturating_sub(1));
    let start: usize = before.map(str::len).sum();
    let mut at = (start + column.saturating_sub(1)).min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

struct JsonReader<'t> {
    text: &'t str,
    source: SourceId,
}

impl<'t> JsonReader<'t> {
    /// Returns the span of a part of the text.
    fn span_of(&self, part: &str) -> Span {
        let start = part.as_ptr().addr() - self.text.as_ptr().addr();
        Span {
            source: self.source,
            start,
            end: start + part.len(),
        }
    }

    fn read<T: Deserialize<'t>>(&self, part: &'t str) -> Result<T, SyntaxError> {
        serde_json::from_str(part).map_err(|error| SyntaxError {
            span: self.span_of(part),
            reason: error_text(&error),
        })
    }

    fn node(&self, raw: &'t RawValue, deep: usize) -> Result<Node, SyntaxError> {
        let part = raw.get();
        let Some(deep) = deep.checked_sub(1) else {
            return Err(SyntaxError {
                span: self.span_of(part),
                reason: "nested too deeply".to_owned(),
            });
        };
        let value = match part.as_bytes().first() {
            Some(b'{') => Value::Table(self.table(part, deep)?),
            Some(b'[') => {
                let list: Vec<&'t RawValue> = self.read(part)?;
                let nodes: Result<_, _> =
                    list.into_iter().map(|one| self.node(one, deep)).collect();
                Value::List(nodes?)
            }
            Some(b'"') => Value::Text(self.read(part)?),
            Some(b't' | b'f') => Value::Bool(self.read(part)?),
            Some(b'n') => Value::Null,
            _ if part.contains(['.', 'e', 'E']) => Value::Number(self.read(part)?),
            _ => Value::Integer(self.read(part)?),
        };
        let at = self.span_of(part);
        Ok(Node { value, span: at })
    }

    fn table(&self, part: &'t str, deep: usize) -> Result<Table, SyntaxError> {
        let Pairs(pairs) = self.read(part)?;
        let mut table = Table::default();
        for (key, value) in pairs {
            let entry = TableEntry {
                key: self.read(key.get())?,
                key_span: self.span_of(key.get()),
                node: self.node(value, deep)?,
            };
            if table.get(&entry.key).is_some() {
                return Err(SyntaxError {
                    span: entry.key_span,
                    reason: format!("duplicate key `{}`", entry.key),
                });
            }
            table.0.push(entry);
        }
        Ok(table)
    }
}

/// The entries of an object, in order.
struct Pairs<'t>(Vec<(&'t RawValue, &'t RawValue)>);

impl<'t> Deserialize<'t> for Pairs<'t> {
    fn deserialize<D: serde::Deserializer<'t>>(from: D) -> Result<Self, D::Error> {
        struct InOrder;
        impl<'t> Visitor<'t> for InOrder {
            type Value = Pairs<'t>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a table")
            }

            fn visit_map<A: MapAccess<'t>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut pairs = Vec::new();
                while let Some(pair) = map.next_entry()? {
                    pairs.push(pair);
                }
                Ok(Pairs(pairs))
            }
        }
        from.deserialize_map(InOrder)
    }
}
