//! TOML as a tree.

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::{At, Entry, Node, SourceId, Table, Unreadable, Value};

pub(super) fn parse(text: &str, source: SourceId) -> Result<Node, Vec<Unreadable>> {
    let (read, errors) = DeTable::parse_recoverable(text);
    if !errors.is_empty() {
        return Err(errors
            .iter()
            .map(|error| Unreadable {
                at: at(source, error.span().unwrap_or(0..0)),
                why: error.message().to_owned(),
            })
            .collect());
    }
    let whole = at(source, read.span());
    let mut reader = Reader {
        source,
        errors: Vec::new(),
    };
    let value = Value::Table(reader.table(read.get_ref()));
    if reader.errors.is_empty() {
        Ok(Node { value, at: whole })
    } else {
        Err(reader.errors)
    }
}

fn at(source: SourceId, span: std::ops::Range<usize>) -> At {
    At {
        source,
        start: span.start,
        end: span.end,
    }
}

struct Reader {
    source: SourceId,
    errors: Vec<Unreadable>,
}

impl Reader {
    fn table(&mut self, read: &DeTable<'_>) -> Table {
        let mut entries: Vec<_> = read
            .iter()
            .map(|(key, value)| Entry {
                key: key.get_ref().to_string(),
                key_at: at(self.source, key.span()),
                node: self.node(value),
            })
            .collect();
        // The parser sorts by key; people know their file by its own order.
        entries.sort_by_key(|entry| entry.key_at.start);
        Table(entries)
    }

    fn node(&mut self, read: &Spanned<DeValue<'_>>) -> Node {
        let place = at(self.source, read.span());
        let value = match read.get_ref() {
            DeValue::String(text) => Value::Text(text.to_string()),
            DeValue::Boolean(flag) => Value::Flag(*flag),
            DeValue::Datetime(moment) => Value::Text(moment.to_string()),
            DeValue::Integer(number) => i64::from_str_radix(number.as_str(), number.radix())
                .map_or_else(|_| self.refuse(place), Value::Whole),
            DeValue::Float(number) => number
                .as_str()
                .parse()
                .map_or_else(|_| self.refuse(place), Value::Number),
            DeValue::Array(list) => Value::List(list.iter().map(|one| self.node(one)).collect()),
            DeValue::Table(table) => Value::Table(self.table(table)),
        };
        Node { value, at: place }
    }

    fn refuse(&mut self, at: At) -> Value {
        self.errors.push(Unreadable {
            at,
            why: "this number is too large".to_owned(),
        });
        Value::Null
    }
}
