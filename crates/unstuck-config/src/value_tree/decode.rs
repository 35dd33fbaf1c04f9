//! Decodes a tree into a type. An error ends a decoding pass, so the bad value is removed and the rest is decoded
//! again.

use serde::de::value::StrDeserializer;
use serde::de::{DeserializeSeed, EnumAccess, IntoDeserializer, MapAccess, SeqAccess};
use serde::de::{Unexpected, VariantAccess, Visitor};
use serde::{Deserialize, Deserializer, forward_to_deserialize_any};

use super::path::{PathStep, ValuePath};
use super::value_error::{ValueError, ValueErrorKind};
use super::{Node, Table, TableEntry, Value};

/// The maximum number of reported errors.
const MAX_ERRORS: usize = 50;

/// Decodes a tree; bad values are removed and reported.
pub(crate) fn decode_table<T>(table: &mut Table) -> (T, Vec<(String, ValueError)>)
where
    T: for<'de> Deserialize<'de> + Default,
{
    let mut faults = Vec::new();
    let mut taken = RemovedPaths::default();
    while faults.len() < MAX_ERRORS {
        let fault = match T::deserialize(&*table) {
            Ok(read) => return (read, faults),
            Err(fault) => fault,
        };
        let path = fault.path();
        if !taken.explains_error(&path, &fault) {
            faults.push((path.display(table), fault.clone()));
        }
        if !path.remove_from(table) {
            break;
        }
        taken.add(path, &fault);
    }
    (T::default(), faults)
}

/// The paths of removed bad values, which must not be reported as missing.
#[derive(Default)]
struct RemovedPaths(Vec<ValuePath>);

impl RemovedPaths {
    /// Returns whether a key is missing only because it was removed, under its name or a misspelling of it.
    fn explains_error(&self, path: &ValuePath, fault: &ValueError) -> bool {
        let ValueErrorKind::Missing(key) = fault.kind else {
            return false;
        };
        self.0.contains(&path.with_key(key))
    }

    fn add(&mut self, path: ValuePath, fault: &ValueError) {
        // The items after it have moved up by one.
        self.0.retain(|taken| !taken.starts_with(&path));
        self.0.push(fault.intended_path(path));
    }
}

impl<'de> Deserializer<'de> for &'de Node {
    type Error = ValueError;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ValueError> {
        let read = match &self.value {
            Value::Null => visitor.visit_unit(),
            Value::Bool(flag) => visitor.visit_bool(*flag),
            Value::Integer(number) => visitor.visit_i64(*number),
            Value::Number(number) => visitor.visit_f64(*number),
            Value::Text(text) => visitor.visit_borrowed_str(text),
            Value::List(list) => visitor.visit_seq(ListItems { list, next: 0 }),
            Value::Table(table) => {
                return table
                    .deserialize_any(visitor)
                    .map_err(|f| f.with_span(self.span));
            }
        };
        read.map_err(|fault| fault.with_span(self.span))
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ValueError> {
        match self.value {
            Value::Null => visitor.visit_none(),
            _ => visitor.visit_some(self),
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        visitor: V,
    ) -> Result<V::Value, ValueError> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, ValueError> {
        let chosen = match &self.value {
            Value::Text(text) => Ok(EnumValue { text, inner: None }),
            Value::Table(Table(entries)) if entries.len() == 1 => Ok(EnumValue {
                text: &entries[0].key,
                inner: Some(&entries[0].node),
            }),
            other => Err(ValueError::new(ValueErrorKind::WrongType {
                found: describe_value(other),
                expected: list_choices(variants),
            })),
        };
        chosen
            .and_then(|chosen| visitor.visit_enum(chosen))
            .map_err(|fault| fault.with_span(self.span))
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct seq tuple
        tuple_struct map struct identifier ignored_any
    }
}

impl<'de> Deserializer<'de> for &'de Table {
    type Error = ValueError;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ValueError> {
        visitor.visit_map(TableEntries {
            table: self,
            next: 0,
        })
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit unit_struct
        newtype_struct seq tuple tuple_struct map struct enum identifier ignored_any
    }
}

fn describe_value(value: &Value) -> String {
    match value {
        Value::Null => "an empty value".to_owned(),
        Value::Bool(flag) => flag.to_string(),
        Value::Integer(number) => number.to_string(),
        Value::Number(number) => number.to_string(),
        Value::Text(text) => format!("{text:?}"),
        Value::List(_) => "a list".to_owned(),
        Value::Table(_) => "a table".to_owned(),
    }
}

fn list_choices(words: &[&str]) -> String {
    let words: Vec<_> = words.iter().map(|word| format!("\"{word}\"")).collect();
    format!("one of {}", words.join(", "))
}

struct TableEntries<'de> {
    table: &'de Table,
    next: usize,
}

impl<'de> MapAccess<'de> for TableEntries<'de> {
    type Error = ValueError;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, ValueError> {
        let Some(TableEntry {
            key,
            key_span: key_at,
            ..
        }) = self.table.0.get(self.next)
        else {
            return Ok(None);
        };
        seed.deserialize(KeyDeserializer(key))
            .map(Some)
            .map_err(|fault| fault.with_span(*key_at).within(PathStep::Key(key.clone())))
    }

    fn next_value_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<T::Value, ValueError> {
        let entry = self.table.0.get(self.next);
        self.next += 1;
        let Some(TableEntry { key, node, .. }) = entry else {
            return Err(ValueError::new(ValueErrorKind::Custom(
                "unexpected end of table".to_owned(),
            )));
        };
        seed.deserialize(node).map_err(|fault| {
            fault
                .with_span(node.span)
                .within(PathStep::Key(key.clone()))
        })
    }
}

/// A deserializer for a key, a string of the tree.
struct KeyDeserializer<'de>(&'de str);

impl<'de> Deserializer<'de> for KeyDeserializer<'de> {
    type Error = ValueError;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ValueError> {
        visitor.visit_borrowed_str(self.0)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        visitor: V,
    ) -> Result<V::Value, ValueError> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, ValueError> {
        visitor.visit_enum(EnumValue {
            text: self.0,
            inner: None,
        })
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit unit_struct
        seq tuple tuple_struct map struct identifier ignored_any
    }
}

struct ListItems<'de> {
    list: &'de [Node],
    next: usize,
}

impl<'de> SeqAccess<'de> for ListItems<'de> {
    type Error = ValueError;

    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, ValueError> {
        let at = self.next;
        let Some(node) = self.list.get(at) else {
            return Ok(None);
        };
        self.next += 1;
        seed.deserialize(node)
            .map(Some)
            .map_err(|fault| fault.with_span(node.span).within(PathStep::Item(at)))
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.list.len() - self.next)
    }
}

/// An enum variant and its content.
struct EnumValue<'de> {
    text: &'de str,
    inner: Option<&'de Node>,
}

impl<'de> EnumAccess<'de> for EnumValue<'de> {
    type Error = ValueError;
    type Variant = Self;

    fn variant_seed<T: DeserializeSeed<'de>>(
        self,
        seed: T,
    ) -> Result<(T::Value, Self), ValueError> {
        let word: StrDeserializer<'_, ValueError> = self.text.into_deserializer();
        seed.deserialize(word).map(|word| (word, self))
    }
}

impl EnumValue<'_> {
    fn missing_content(&self, what: &'static str) -> ValueError {
        let word: &dyn serde::de::Expected = &what;
        serde::de::Error::invalid_type(Unexpected::Str(self.text), word)
    }
}

impl<'de> VariantAccess<'de> for EnumValue<'de> {
    type Error = ValueError;

    fn unit_variant(self) -> Result<(), ValueError> {
        match self.inner {
            None => Ok(()),
            Some(_) => Err(self.missing_content("a plain string")),
        }
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(
        self,
        seed: T,
    ) -> Result<T::Value, ValueError> {
        let inner = self.inner.ok_or_else(|| self.missing_content("a table"))?;
        seed.deserialize(inner)
    }

    fn tuple_variant<V: Visitor<'de>>(
        self,
        _len: usize,
        visitor: V,
    ) -> Result<V::Value, ValueError> {
        let inner = self.inner.ok_or_else(|| self.missing_content("a table"))?;
        inner.deserialize_any(visitor)
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        _fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, ValueError> {
        let inner = self.inner.ok_or_else(|| self.missing_content("a table"))?;
        inner.deserialize_any(visitor)
    }
}
