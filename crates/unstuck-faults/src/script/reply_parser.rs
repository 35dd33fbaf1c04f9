//! Parses a script table that names a reply by its key, such as `overloaded = {}`.
//!
//! Written by hand because serde's `flatten` would accept misspelled keys and lose their line numbers.

use std::fmt;
use std::marker::PhantomData;

use serde::Deserialize;
use serde::de::value::StrDeserializer;
use serde::de::{
    DeserializeSeed, Deserializer, EnumAccess, Error, IntoDeserializer, MapAccess, VariantAccess,
    Visitor,
};

use super::reply::FaultScriptReply;
use super::request_condition::RequestCondition;
use crate::reply_catalog;

/// A reply with its condition and the other keys of the table.
pub(super) struct ConditionalReply<E> {
    pub(super) when: RequestCondition,
    pub(super) reply: FaultScriptReply,
    pub(super) extra: E,
}

/// The additional keys of a table.
pub(super) trait ExtraTableKeys: Default {
    /// All keys except that of the reply, as listed in errors.
    const KEYS: &'static str;

    /// Reads the value if the key is one of them.
    fn read_key<'de, A: MapAccess<'de>>(
        &mut self,
        key: &str,
        map: &mut A,
    ) -> Result<bool, A::Error>;
}

impl<'de, E: ExtraTableKeys> Deserialize<'de> for ConditionalReply<E> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(EntryVisitor(PhantomData))
    }
}

struct EntryVisitor<E>(PhantomData<E>);

impl<'de, E: ExtraTableKeys> Visitor<'de> for EntryVisitor<E> {
    type Value = ConditionalReply<E>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a table with exactly one reply besides {}", E::KEYS)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<ConditionalReply<E>, A::Error> {
        let (mut when, mut extra, mut reply) = (RequestCondition::default(), E::default(), None);
        while let Some(key) = map.next_key::<String>()? {
            if key == "when" {
                when = map.next_value()?;
            } else if !extra.read_key(&key, &mut map)? {
                let found = map.next_value_seed(ReplySeed(&key))?;
                if let Some(first) = reply.replace((key.clone(), found)) {
                    return Err(A::Error::custom(format!(
                        "expected exactly one reply besides {}, found `{}` and `{key}`",
                        E::KEYS,
                        first.0
                    )));
                }
            }
        }
        let none = || {
            A::Error::custom(format!(
                "expected exactly one reply besides {}, found none",
                E::KEYS
            ))
        };
        let (_, reply) = reply.ok_or_else(none)?;
        Ok(ConditionalReply { when, reply, extra })
    }
}

/// A deserializer of a reply whose name is already known.
struct ReplySeed<'a>(&'a str);

impl<'de> DeserializeSeed<'de> for ReplySeed<'_> {
    type Value = FaultScriptReply;

    fn deserialize<D: Deserializer<'de>>(self, value: D) -> Result<FaultScriptReply, D::Error> {
        if reply_catalog::find(self.0).is_none() {
            return Err(D::Error::custom(reply_catalog::unknown_fault_message(
                self.0,
            )));
        }
        FaultScriptReply::deserialize(ReplyVariant {
            name: self.0,
            value,
        })
    }
}

/// The name and values of a reply as a serde enum variant.
struct ReplyVariant<'a, D> {
    name: &'a str,
    value: D,
}

impl<'de, D: Deserializer<'de>> Deserializer<'de> for ReplyVariant<'_, D> {
    type Error = D::Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        visitor.visit_enum(self)
    }

    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 u8 u16 u32 u64 f32 f64 char str string bytes byte_buf option unit unit_struct
        newtype_struct seq tuple tuple_struct map struct enum identifier ignored_any
    }
}

impl<'de, D: Deserializer<'de>> EnumAccess<'de> for ReplyVariant<'_, D> {
    type Error = D::Error;
    type Variant = ReplyValues<D>;

    fn variant_seed<V: DeserializeSeed<'de>>(
        self,
        seed: V,
    ) -> Result<(V::Value, ReplyValues<D>), D::Error> {
        let name: StrDeserializer<'_, D::Error> = self.name.into_deserializer();
        Ok((seed.deserialize(name)?, ReplyValues(self.value)))
    }
}

struct ReplyValues<D>(D);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct NoValues {}

impl<'de, D: Deserializer<'de>> VariantAccess<'de> for ReplyValues<D> {
    type Error = D::Error;

    fn unit_variant(self) -> Result<(), D::Error> {
        NoValues::deserialize(self.0).map(|_| ())
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Result<T::Value, D::Error> {
        seed.deserialize(self.0)
    }

    fn tuple_variant<V: Visitor<'de>>(
        self,
        length: usize,
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        self.0.deserialize_tuple(length, visitor)
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        self.0.deserialize_struct("reply", fields, visitor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::script::FaultScript;

    #[test]
    fn the_catalog_lists_every_reply_with_a_valid_step() {
        for fault in reply_catalog::faults() {
            let script: FaultScript = format!("[[step]]\n{}", fault.step).parse().unwrap();
            assert_eq!(script.steps()[0].reply.name(), fault.name);
        }
        // The enum lists all its variants in this error.
        let nothing: toml::Table = toml::from_str("x = 1").unwrap();
        let all = nothing
            .try_into::<FaultScriptReply>()
            .unwrap_err()
            .to_string();
        let count = all.matches('`').count() / 2 - 1;
        assert_eq!(count, reply_catalog::faults().len(), "{all}");
    }
}
