//! Reads a tree into a type. The first fault ends one reading, so it is taken out and the rest is read again.

use serde::de::value::StrDeserializer;
use serde::de::{DeserializeSeed, EnumAccess, IntoDeserializer, MapAccess, SeqAccess};
use serde::de::{Unexpected, VariantAccess, Visitor};
use serde::{Deserialize, Deserializer, forward_to_deserialize_any};

use super::fault::{Fault, What};
use super::path::{Path, Step};
use super::{Entry, Node, Table, Value};

/// More faults than anyone reads at once.
const MOST: usize = 50;

/// Reads a tree; what is wrong with it is taken out and told.
pub(crate) fn read<T>(table: &mut Table) -> (T, Vec<(String, Fault)>)
where
    T: for<'de> Deserialize<'de> + Default,
{
    let mut faults = Vec::new();
    let mut taken = Taken::default();
    while faults.len() < MOST {
        let fault = match T::deserialize(&*table) {
            Ok(read) => return (read, faults),
            Err(fault) => fault,
        };
        let path = fault.path();
        if !taken.explains(&path, &fault) {
            faults.push((path.shown(table), fault.clone()));
        }
        if !path.remove_from(table) {
            break;
        }
        taken.note(path, &fault);
    }
    (T::default(), faults)
}

/// What was taken out because something is wrong with it: nobody has left that away.
#[derive(Default)]
struct Taken(Vec<Path>);

impl Taken {
    /// Whether a key is missing only since it was taken out, by its name or by one that is nearly it.
    fn explains(&self, path: &Path, fault: &Fault) -> bool {
        let What::Missing(key) = fault.what else {
            return false;
        };
        self.0.contains(&path.then(key))
    }

    fn note(&mut self, path: Path, fault: &Fault) {
        // What comes after it in a list has its number now.
        self.0.retain(|taken| !taken.starts_with(&path));
        self.0.push(fault.meant(path));
    }
}

impl<'de> Deserializer<'de> for &'de Node {
    type Error = Fault;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        let read = match &self.value {
            Value::Null => visitor.visit_unit(),
            Value::Flag(flag) => visitor.visit_bool(*flag),
            Value::Whole(number) => visitor.visit_i64(*number),
            Value::Number(number) => visitor.visit_f64(*number),
            Value::Text(text) => visitor.visit_borrowed_str(text),
            Value::List(list) => visitor.visit_seq(Items { list, next: 0 }),
            Value::Table(table) => {
                return table.deserialize_any(visitor).map_err(|f| f.at(self.at));
            }
        };
        read.map_err(|fault| fault.at(self.at))
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        match self.value {
            Value::Null => visitor.visit_none(),
            _ => visitor.visit_some(self),
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Fault> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Fault> {
        let chosen = match &self.value {
            Value::Text(text) => Ok(Chosen { text, inner: None }),
            Value::Table(Table(entries)) if entries.len() == 1 => Ok(Chosen {
                text: &entries[0].key,
                inner: Some(&entries[0].node),
            }),
            other => Err(Fault::new(What::Wrong {
                given: given(other),
                expected: one_of(variants),
            })),
        };
        chosen
            .and_then(|chosen| visitor.visit_enum(chosen))
            .map_err(|fault| fault.at(self.at))
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct seq tuple
        tuple_struct map struct identifier ignored_any
    }
}

impl<'de> Deserializer<'de> for &'de Table {
    type Error = Fault;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        visitor.visit_map(Entries {
            table: self,
            next: 0,
        })
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit unit_struct
        newtype_struct seq tuple tuple_struct map struct enum identifier ignored_any
    }
}

fn given(value: &Value) -> String {
    match value {
        Value::Null => "empty".to_owned(),
        Value::Flag(flag) => flag.to_string(),
        Value::Whole(number) => number.to_string(),
        Value::Number(number) => number.to_string(),
        Value::Text(text) => format!("{text:?}"),
        Value::List(_) => "a list".to_owned(),
        Value::Table(_) => "a table".to_owned(),
    }
}

fn one_of(words: &[&str]) -> String {
    let words: Vec<_> = words.iter().map(|word| format!("\"{word}\"")).collect();
    format!("one of {}", words.join(", "))
}

struct Entries<'de> {
    table: &'de Table,
    next: usize,
}

impl<'de> MapAccess<'de> for Entries<'de> {
    type Error = Fault;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, Fault> {
        let Some(Entry { key, key_at, .. }) = self.table.0.get(self.next) else {
            return Ok(None);
        };
        seed.deserialize(Key(key))
            .map(Some)
            .map_err(|fault| fault.at(*key_at).inside(Step::Key(key.clone())))
    }

    fn next_value_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<T::Value, Fault> {
        let entry = self.table.0.get(self.next);
        self.next += 1;
        let Some(Entry { key, node, .. }) = entry else {
            return Err(Fault::new(What::Told("the table ended early".to_owned())));
        };
        seed.deserialize(node)
            .map_err(|fault| fault.at(node.at).inside(Step::Key(key.clone())))
    }
}

/// A key, which is a text of the tree.
struct Key<'de>(&'de str);

impl<'de> Deserializer<'de> for Key<'de> {
    type Error = Fault;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        visitor.visit_borrowed_str(self.0)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Fault> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Fault> {
        visitor.visit_enum(Chosen {
            text: self.0,
            inner: None,
        })
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit unit_struct
        seq tuple tuple_struct map struct identifier ignored_any
    }
}

struct Items<'de> {
    list: &'de [Node],
    next: usize,
}

impl<'de> SeqAccess<'de> for Items<'de> {
    type Error = Fault;

    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, Fault> {
        let at = self.next;
        let Some(node) = self.list.get(at) else {
            return Ok(None);
        };
        self.next += 1;
        seed.deserialize(node)
            .map(Some)
            .map_err(|fault| fault.at(node.at).inside(Step::Item(at)))
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.list.len() - self.next)
    }
}

/// The word of an enum, and what belongs to it.
struct Chosen<'de> {
    text: &'de str,
    inner: Option<&'de Node>,
}

impl<'de> EnumAccess<'de> for Chosen<'de> {
    type Error = Fault;
    type Variant = Self;

    fn variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Result<(T::Value, Self), Fault> {
        let word: StrDeserializer<'_, Fault> = self.text.into_deserializer();
        seed.deserialize(word).map(|word| (word, self))
    }
}

impl Chosen<'_> {
    fn needs(&self, what: &'static str) -> Fault {
        let word: &dyn serde::de::Expected = &what;
        serde::de::Error::invalid_type(Unexpected::Str(self.text), word)
    }
}

impl<'de> VariantAccess<'de> for Chosen<'de> {
    type Error = Fault;

    fn unit_variant(self) -> Result<(), Fault> {
        match self.inner {
            None => Ok(()),
            Some(_) => Err(self.needs("a word alone")),
        }
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Result<T::Value, Fault> {
        let inner = self.inner.ok_or_else(|| self.needs("a table"))?;
        seed.deserialize(inner)
    }

    fn tuple_variant<V: Visitor<'de>>(self, _len: usize, visitor: V) -> Result<V::Value, Fault> {
        let inner = self.inner.ok_or_else(|| self.needs("a table"))?;
        inner.deserialize_any(visitor)
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        _fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Fault> {
        let inner = self.inner.ok_or_else(|| self.needs("a table"))?;
        inner.deserialize_any(visitor)
    }
}
