//! JSON read in place: objects whose unwanted members are skipped, and values that stay raw until needed. Oddities (a
//! duplicate member, a wrong type, half a surrogate) are accepted as the APIs accept them and never rejected here: the
//! upstream reports errors.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;
use std::ops::Range;

use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

/// An object of which some members are read. The last of several members of one name applies, `null` equals an absent
/// member, and anything but an object has no members.
pub(super) trait JsonObject<'a>: Default {
    /// Reads the value of the member of that name; returns false if it is not wanted.
    fn read_member<A: MapAccess<'a>>(&mut self, key: &str, map: &mut A) -> Result<bool, A::Error>;
}

/// The type of a member of a [`JsonObject`].
pub(super) trait JsonMember<'a>: Sized {
    fn read_value<A: MapAccess<'a>>(map: &mut A) -> Result<Self, A::Error>;
}

impl<'a> JsonMember<'a> for Option<&'a RawValue> {
    fn read_value<A: MapAccess<'a>>(map: &mut A) -> Result<Self, A::Error> {
        let value: &'a RawValue = map.next_value()?;
        Ok(Some(value).filter(|value| value.get() != "null"))
    }
}

/// Declares a [`JsonObject`]: `object!(Name { field: "key" | "other key", … })`. A member stays raw, unless it is
/// declared as an object, `field{Other}: "key"`, or an array of objects, `field[Other]: "key"`.
macro_rules! object {
    ($(#[$meta:meta])* $name:ident {
        $($field:ident $({$inner:ident})? $([$each:ident])?: $($key:literal)|+),+ $(,)?
    }) => {
        $(#[$meta])*
        #[derive(Debug, Default, Clone)]
        struct $name<'a> {
            $($field: $crate::protocol::json::member!('a $({$inner})? $([$each])?)),+
        }

        impl<'a> $crate::protocol::json::JsonObject<'a> for $name<'a> {
            fn read_member<A: serde::de::MapAccess<'a>>(&mut self, key: &str, map: &mut A) -> Result<bool, A::Error> {
                match key {
                    $($($key)|+ => self.$field = $crate::protocol::json::JsonMember::read_value(map)?,)+
                    _ => return Ok(false),
                }
                Ok(true)
            }
        }

        impl<'a> $crate::protocol::json::JsonMember<'a> for $name<'a> {
            fn read_value<A: serde::de::MapAccess<'a>>(map: &mut A) -> Result<Self, A::Error> {
                map.next_value()
            }
        }

        impl<'de> serde::Deserialize<'de> for $name<'de> {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                $crate::protocol::json::read_object(deserializer)
            }
        }
    };
}
pub(super) use object;

/// The type of a member in [`object`].
macro_rules! member {
    ($a:lifetime) => { Option<&$a serde_json::value::RawValue> };
    ($a:lifetime {$inner:ident}) => { $inner<$a> };
    ($a:lifetime [$each:ident]) => { $crate::protocol::json::ArrayOrEmpty<$each<$a>> };
}
pub(super) use member;

/// The elements of an array; empty if the value is something else or absent.
#[derive(Debug, Clone)]
pub(super) struct ArrayOrEmpty<T>(Option<Vec<T>>);

impl<T> ArrayOrEmpty<T> {
    pub(super) fn is_absent(&self) -> bool {
        self.0.is_none()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &T> {
        self.0.iter().flatten()
    }
}

impl<T> Default for ArrayOrEmpty<T> {
    fn default() -> Self {
        Self(None)
    }
}

impl<'a, T: Deserialize<'a>> JsonMember<'a> for ArrayOrEmpty<T> {
    fn read_value<A: MapAccess<'a>>(map: &mut A) -> Result<Self, A::Error> {
        map.next_value()
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for ArrayOrEmpty<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(EachVisitor(PhantomData))
    }
}

pub(super) fn read_object<'de, T: JsonObject<'de>, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<T, D::Error> {
    deserializer.deserialize_any(ObjectVisitor(PhantomData))
}

/// Skips values of another shape and returns `$other` for them.
macro_rules! passed_over {
    ($other:expr) => {
        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a JSON value")
        }

        fn visit_str<E>(self, _: &str) -> Result<Self::Value, E> {
            Ok($other)
        }

        fn visit_bool<E>(self, _: bool) -> Result<Self::Value, E> {
            Ok($other)
        }

        fn visit_i64<E>(self, _: i64) -> Result<Self::Value, E> {
            Ok($other)
        }

        fn visit_u64<E>(self, _: u64) -> Result<Self::Value, E> {
            Ok($other)
        }

        fn visit_f64<E>(self, _: f64) -> Result<Self::Value, E> {
            Ok($other)
        }

        fn visit_unit<E>(self) -> Result<Self::Value, E> {
            Ok(Default::default())
        }
    };
}

struct EachVisitor<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for EachVisitor<T> {
    type Value = ArrayOrEmpty<T>;

    passed_over!(ArrayOrEmpty(Some(Vec::new())));

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<ArrayOrEmpty<T>, A::Error> {
        let mut elements = Vec::new();
        while let Some(element) = seq.next_element()? {
            elements.push(element);
        }
        Ok(ArrayOrEmpty(Some(elements)))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<ArrayOrEmpty<T>, A::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(ArrayOrEmpty(Some(Vec::new())))
    }
}

struct ObjectVisitor<T>(PhantomData<T>);

impl<'de, T: JsonObject<'de>> Visitor<'de> for ObjectVisitor<T> {
    type Value = T;

    passed_over!(T::default());

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<T, A::Error> {
        let mut object = T::default();
        while let Some(MemberKey(key)) = map.next_key()? {
            if !object.read_member(&key, &mut map)? {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(object)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<T, A::Error> {
        while seq.next_element::<IgnoredAny>()?.is_some() {}
        Ok(T::default())
    }
}

#[derive(serde::Deserialize)]
#[serde(transparent)]
struct MemberKey<'a>(#[serde(borrow)] Cow<'a, str>);

/// Returns the members of an object in their order; `None` if it is not an object.
pub(super) fn members(json: &[u8]) -> Option<Vec<(Cow<'_, str>, &RawValue)>> {
    struct Members<'a>(Vec<(Cow<'a, str>, &'a RawValue)>);

    struct MembersVisitor;

    impl<'de> Visitor<'de> for MembersVisitor {
        type Value = Members<'de>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an object")
        }

        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
            let mut members = Vec::new();
            while let Some(MemberKey(key)) = map.next_key()? {
                members.push((key, map.next_value()?));
            }
            Ok(Members(members))
        }
    }

    impl<'de> Deserialize<'de> for Members<'de> {
        fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            deserializer.deserialize_map(MembersVisitor)
        }
    }

    serde_json::from_slice(json)
        .ok()
        .map(|Members(members)| members)
}

/// Returns the value as an object; one without members if it is something else.
pub(super) fn to_object<'a, T: JsonObject<'a> + Deserialize<'a>>(value: Option<&'a RawValue>) -> T {
    value
        .and_then(|value| serde_json::from_str(value.get()).ok())
        .unwrap_or_default()
}

/// Returns the elements of an array; empty if it is something else.
pub(super) fn to_list<'a, T: Deserialize<'a>>(value: Option<&'a RawValue>) -> Vec<T> {
    value
        .filter(|value| value.get().starts_with('['))
        .and_then(|value| serde_json::from_str(value.get()).ok())
        .unwrap_or_default()
}

/// Returns true if the value is a non-empty array or object.
pub(super) fn is_filled(value: Option<&RawValue>) -> bool {
    let inner = value.and_then(|value| {
        let text = value.get();
        let text = text.strip_prefix('[').or_else(|| text.strip_prefix('{'))?;
        Some(text.trim_start_matches([' ', '\t', '\n', '\r']))
    });
    inner.is_some_and(|inner| !inner.starts_with([']', '}']))
}

/// Returns the string between its quotes, still escaped; `None` if the value is not a string.
pub(super) fn escaped(value: &RawValue) -> Option<&str> {
    value.get().strip_prefix('"')?.strip_suffix('"')
}

/// Returns true if the value is a string.
pub(super) fn is_text(value: Option<&RawValue>) -> bool {
    value.is_some_and(|value| value.get().starts_with('"'))
}

/// Returns the string; `None` if the value is not one. A string with half a surrogate is left escaped.
pub(super) fn text(value: Option<&RawValue>) -> Option<Cow<'_, str>> {
    let value = value?;
    let inner = escaped(value)?;
    if !inner.contains('\\') {
        return Some(Cow::Borrowed(inner));
    }
    let unescaped = serde_json::from_str::<String>(value.get());
    Some(unescaped.map_or(Cow::Borrowed(inner), Cow::Owned))
}

/// Returns the string if it is not empty.
pub(super) fn filled_text(value: Option<&RawValue>) -> Option<Cow<'_, str>> {
    text(value).filter(|text| !text.is_empty())
}

/// Returns true if the value is that string.
pub(super) fn is_string(value: Option<&RawValue>, word: &str) -> bool {
    text(value).is_some_and(|text| text == word)
}

/// Returns true if the value is `true`.
pub(super) fn is_true(value: Option<&RawValue>) -> bool {
    value.is_some_and(|value| value.get() == "true")
}

/// Returns the count, truncating a fraction; `None` if the value is not one.
pub(super) fn to_count(value: Option<&RawValue>) -> Option<u64> {
    let number = value?.get();
    number.parse().ok().or_else(|| {
        let float = number.parse::<f64>().ok()?;
        // A cast saturates, and turns NaN into 0.
        (float >= 0.0).then_some(float as u64)
    })
}

/// Returns the text as a JSON string, with its quotes.
pub(super) fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// Returns the range in `body` of a value that was parsed from it.
pub(super) fn span_in(body: &[u8], value: &RawValue) -> Option<Range<usize>> {
    let start = value
        .get()
        .as_ptr()
        .addr()
        .checked_sub(body.as_ptr().addr())?;
    let end = start.checked_add(value.get().len())?;
    (body.get(start..end)? == value.get().as_bytes()).then_some(start..end)
}

#[cfg(test)]
mod tests {
    use super::*;

    object!(Thing {
        model: "model",
        most: "max" | "most",
    });

    fn thing(json: &str) -> (Option<String>, Option<u64>) {
        let thing: Thing<'_> = serde_json::from_str(json).unwrap();
        let model = text(thing.model).map(Cow::into_owned);
        (model, to_count(thing.most))
    }

    #[test]
    fn last_duplicate_member_applies_and_null_is_absent() {
        assert_eq!(
            thing(r#"{"model":"a","x":[{}],"model":"b","max":3}"#),
            (Some("b".into()), Some(3))
        );
        assert_eq!(
            thing(r#"{"mod\u0065l":"a","model":null,"most":2.5}"#),
            (None, Some(2))
        );
    }

    #[test]
    fn non_object_has_no_members() {
        for json in ["[1,2]", "\"text\"", "true", "null", "1", "-1", "0.5"] {
            assert_eq!(thing(json), (None, None), "{json}");
        }
    }

    #[test]
    fn only_strings_are_read_as_text() {
        let value = |json: &str| serde_json::from_str::<Box<RawValue>>(json).unwrap();
        let read = |json: &str| text(Some(&value(json))).map(Cow::into_owned);
        assert_eq!(read(r#""plain""#).as_deref(), Some("plain"));
        assert_eq!(read(r#""a\n\u00e9""#).as_deref(), Some("a\né"));
        assert_eq!(read(r#""\ud800""#).as_deref(), Some(r"\ud800"));
        assert_eq!(read("7"), None);
        assert_eq!(quoted("a\"\n"), r#""a\"\n""#);
    }

    #[test]
    fn count_is_a_non_negative_number() {
        let value = |json: &str| serde_json::from_str::<Box<RawValue>>(json).unwrap();
        let read = |json: &str| to_count(Some(&value(json)));
        assert_eq!(
            (read("12"), read("1e3"), read("7.0")),
            (Some(12), Some(1000), Some(7))
        );
        assert_eq!(
            (read("-1"), read("\"1\""), read("true")),
            (None, None, None)
        );
        assert_eq!(read("1e99"), Some(u64::MAX));
    }

    #[test]
    fn empty_list_is_not_filled() {
        let value = |json: &str| serde_json::from_str::<Box<RawValue>>(json).unwrap();
        assert!(!is_filled(Some(&value("[ \n]"))) && !is_filled(Some(&value("{}"))));
        assert!(!is_filled(None) && !is_filled(Some(&value("\"[1\""))));
        assert!(is_filled(Some(&value("[ 1 ]"))));
    }
}
