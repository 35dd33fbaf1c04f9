//! Parses a TOML configuration into the value tree.

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::{Node, SourceId, Span, SyntaxError, Table, TableEntry, Value};

pub(super) fn parse(text: &str, source: SourceId) -> Result<Node, Vec<SyntaxError>> {
    let (read, errors) = DeTable::parse_recoverable(text);
    if !errors.is_empty() {
        return Err(errors
            .iter()
            .map(|error| SyntaxError {
                span: span_from(source, error.span().unwrap_or(0..0)),
                reason: error.message().to_owned(),
            })
            .collect());
    }
    let whole = span_from(source, read.span());
    let mut reader = TomlReader {
        source,
        errors: Vec::new(),
    };
    let value = Value::Table(reader.table(read.get_ref()));
    if reader.errors.is_empty() {
        Ok(Node { value, span: whole })
    } else {
        Err(reader.errors)
    }
}

fn span_from(source: SourceId, span: std::ops::Range<usize>) -> Span {
    Span {
        source,
        start: span.start,
        end: span.end,
    }
}

struct TomlReader {
    source: SourceId,
    errors: Vec<SyntaxError>,
}

impl TomlReader {
    fn table(&mut self, read: &DeTable<'_>) -> Table {
        let mut entries: Vec<_> = read
            .iter()
            .map(|(key, value)| TableEntry {
                key: key.get_ref().to_string(),
                key_span: span_from(self.source, key.span()),
                node: self.node(value),
            })
            .collect();
        // The parser sorts keys; restore the order of the file.
        entries.sort_by_key(|entry| entry.key_span.start);
        Table(entries)
    }

    fn node(&mut self, read: &Spanned<DeValue<'_>>) -> Node {
        let place = span_from(self.source, read.span());
        let value = match read.get_ref() {
            DeValue::String(text) => Value::Text(text.to_string()),
            DeValue::Boolean(flag) => Value::Bool(*flag),
            DeValue::Datetime(moment) => Value::Text(moment.to_string()),
            DeValue::Integer(number) => i64::from_str_radix(number.as_str(), number.radix())
                .map_or_else(|_| self.refuse(place), Value::Integer),
            DeValue::Float(number) => number
                .as_str()
                .parse()
                .map_or_else(|_| self.refuse(place), Value::Number),
            DeValue::Array(list) => Value::List(list.iter().map(|one| self.node(one)).collect()),
            DeValue::Table(table) => Value::Table(self.table(table)),
        };
        Node { value, span: place }
    }

    fn refuse(&mut self, at: Span) -> Value {
        self.errors.push(SyntaxError {
            span: at,
            reason: "number is too large".to_owned(),
        });
        Value::Null
    }
}
