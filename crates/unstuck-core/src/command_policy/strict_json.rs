//! Strict JSON: one object, bounded in size and depth, without duplicate keys. Every value is checked, including unused
//! ones.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

use super::proposal::{MAX_BYTES, MAX_DEPTH, ProposalError};
use super::safe_display::sanitize;

/// Parses a document that is exactly one JSON object.
pub(super) fn parse_object(bytes: &[u8]) -> Result<Map<String, Value>, ProposalError> {
    if bytes.len() > MAX_BYTES {
        return Err(ProposalError::TooLarge { bytes: bytes.len() });
    }
    let not_json = |error: serde_json::Error| ProposalError::NotJson(sanitize(&error.to_string()));
    let mut reader = serde_json::Deserializer::from_slice(bytes);
    let value = StrictJsonVisitor { depth: 0 }
        .deserialize(&mut reader)
        .map_err(not_json)?;
    reader.end().map_err(not_json)?;
    match value {
        Value::Object(fields) => Ok(fields),
        _ => Err(ProposalError::NotJson("not an object".to_owned())),
    }
}

/// Visits a value at some depth; `serde_json::Value` itself silently accepts the last of duplicate keys.
#[derive(Clone, Copy)]
struct StrictJsonVisitor {
    depth: usize,
}

impl StrictJsonVisitor {
    fn nested<E: Error>(self) -> Result<Self, E> {
        if self.depth == MAX_DEPTH {
            return Err(E::custom(format_args!(
                "nested more than {MAX_DEPTH} levels deep"
            )));
        }
        Ok(Self {
            depth: self.depth + 1,
        })
    }
}

impl<'de> DeserializeSeed<'de> for StrictJsonVisitor {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for StrictJsonVisitor {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E: Error>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Value, E> {
        let number = Number::from_f64(value).ok_or_else(|| E::custom("not a number"))?;
        Ok(number.into())
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Value, E> {
        Ok(text.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut values: A) -> Result<Value, A::Error> {
        let inside = self.nested()?;
        let mut list = Vec::new();
        while let Some(value) = values.next_element_seed(inside)? {
            list.push(value);
        }
        Ok(Value::Array(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let inside = self.nested()?;
        let mut map = Map::new();
        while let Some(key) = entries.next_key::<String>()? {
            if map.contains_key(&key) {
                return Err(A::Error::custom(format_args!("duplicate key `{key}`")));
            }
            let value = entries.next_value_seed(inside)?;
            map.insert(key, value);
        }
        Ok(Value::Object(map))
    }
}
