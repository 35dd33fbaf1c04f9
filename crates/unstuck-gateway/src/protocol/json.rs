//! JSON that is read where it stands: objects of which a few members are wanted and the rest is skipped, and values that
//! stay raw until somebody asks. What is odd (a member twice, a wrong type, half a surrogate) is taken as the APIs take
//! it and never refused here: the upstream will say what is wrong with it.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;
use std::ops::Range;

use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

/// An object of which some members are wanted. The last of several members of one name counts, `null` is as good as absent,
/// and anything that is no object has none of them.
pub(super) trait Object<'a>: Default {
    /// Where to put the member of that name.
    fn slot(&mut self, key: &str) -> Option<&mut Option<&'a RawValue>>;
}

/// Declares an [`Object`]: `object!(Name { field: "key" | "other key", … })`.
macro_rules! object {
    ($(#[$meta:meta])* $name:ident { $($field:ident: $($key:literal)|+),+ $(,)? }) => {
        $(#[$meta])*
        #[derive(Debug, Default, Clone, Copy)]
        struct $name<'a> {
            $($field: Option<&'a serde_json::value::RawValue>),+
        }

        impl<'a> $crate::protocol::json::Object<'a> for $name<'a> {
            fn slot(&mut self, key: &str) -> Option<&mut Option<&'a serde_json::value::RawValue>> {
                match key {
                    $($($key)|+ => Some(&mut self.$field),)+
                    _ => None,
                }
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

pub(super) fn read_object<'de, T: Object<'de>, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<T, D::Error> {
    deserializer.deserialize_any(ObjectVisitor(PhantomData))
}

struct ObjectVisitor<T>(PhantomData<T>);

impl<'de, T: Object<'de>> Visitor<'de> for ObjectVisitor<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<T, A::Error> {
        let mut object = T::default();
        while let Some(Key(key)) = map.next_key()? {
            match object.slot(&key) {
                Some(slot) => {
                    let value: &'de RawValue = map.next_value()?;
                    *slot = Some(value).filter(|value| value.get() != "null");
                }
                None => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(object)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<T, A::Error> {
        while seq.next_element::<IgnoredAny>()?.is_some() {}
        Ok(T::default())
    }

    fn visit_str<E>(self, _: &str) -> Result<T, E> {
        Ok(T::default())
    }

    fn visit_bool<E>(self, _: bool) -> Result<T, E> {
        Ok(T::default())
    }

    fn visit_i64<E>(self, _: i64) -> Result<T, E> {
        Ok(T::default())
    }

    fn visit_u64<E>(self, _: u64) -> Result<T, E> {
        Ok(T::default())
    }

    fn visit_f64<E>(self, _: f64) -> Result<T, E> {
        Ok(T::default())
    }

    fn visit_unit<E>(self) -> Result<T, E> {
        Ok(T::default())
    }
}

#[derive(serde::Deserialize)]
#[serde(transparent)]
struct Key<'a>(#[serde(borrow)] Cow<'a, str>);

/// The members of an object in their order; `None` if it is none.
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
            while let Some(Key(key)) = map.next_key()? {
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

/// The value as an object; one without members if it is something else.
pub(super) fn read<'a, T: Object<'a> + Deserialize<'a>>(value: Option<&'a RawValue>) -> T {
    value
        .and_then(|value| serde_json::from_str(value.get()).ok())
        .unwrap_or_default()
}

/// The elements of an array; none if it is something else.
pub(super) fn list<'a, T: Deserialize<'a>>(value: Option<&'a RawValue>) -> Vec<T> {
    value
        .filter(|value| value.get().starts_with('['))
        .and_then(|value| serde_json::from_str(value.get()).ok())
        .unwrap_or_default()
}

/// Whether the value is an array or object with something in it.
pub(super) fn is_filled(value: Option<&RawValue>) -> bool {
    let inner = value.and_then(|value| {
        let text = value.get();
        let text = text.strip_prefix('[').or_else(|| text.strip_prefix('{'))?;
        Some(text.trim_start_matches([' ', '\t', '\n', '\r']))
    });
    inner.is_some_and(|inner| !inner.starts_with([']', '}']))
}

/// The string between its quotes, still escaped; `None` if the value is no string.
pub(super) fn escaped(value: &RawValue) -> Option<&str> {
    value.get().strip_prefix('"')?.strip_suffix('"')
}

/// Whether the value is a string.
pub(super) fn is_text(value: Option<&RawValue>) -> bool {
    value.is_some_and(|value| value.get().starts_with('"'))
}

/// The string; `None` if the value is none. One with half a surrogate, which is no text, is left escaped.
pub(super) fn text(value: Option<&RawValue>) -> Option<Cow<'_, str>> {
    let value = value?;
    let inner = escaped(value)?;
    if !inner.contains('\\') {
        return Some(Cow::Borrowed(inner));
    }
    let unescaped = serde_json::from_str::<String>(value.get());
    Some(unescaped.map_or(Cow::Borrowed(inner), Cow::Owned))
}

/// The string, if there is one with something in it.
pub(super) fn filled_text(value: Option<&RawValue>) -> Option<Cow<'_, str>> {
    text(value).filter(|text| !text.is_empty())
}

/// Whether the value is that string.
pub(super) fn is(value: Option<&RawValue>, word: &str) -> bool {
    text(value).is_some_and(|text| text == word)
}

/// Whether the value is `true`.
pub(super) fn is_true(value: Option<&RawValue>) -> bool {
    value.is_some_and(|value| value.get() == "true")
}

/// The count; a fraction is cut off. `None` if the value is none.
pub(super) fn count(value: Option<&RawValue>) -> Option<u64> {
    let number = value?.get();
    number.parse().ok().or_else(|| {
        let float = number.parse::<f64>().ok()?;
        // A cast saturates, and makes nothing of what is no number.
        (float >= 0.0).then_some(float as u64)
    })
}

/// The text as a JSON string, with its quotes.
pub(super) fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// Where the value, which was read out of `body`, stands in it.
pub(super) fn place(body: &[u8], value: &RawValue) -> Option<Range<usize>> {
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
        (model, count(thing.most))
    }

    #[test]
    fn the_last_of_several_members_counts_and_null_is_absent() {
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
    fn what_is_no_object_has_no_members() {
        for json in ["[1,2]", "\"text\"", "true", "null", "1", "-1", "0.5"] {
            assert_eq!(thing(json), (None, None), "{json}");
        }
    }

    #[test]
    fn a_string_is_read_as_far_as_it_is_one() {
        let value = |json: &str| serde_json::from_str::<Box<RawValue>>(json).unwrap();
        let read = |json: &str| text(Some(&value(json))).map(Cow::into_owned);
        assert_eq!(read(r#""plain""#).as_deref(), Some("plain"));
        assert_eq!(read(r#""a\n\u00e9""#).as_deref(), Some("a\né"));
        assert_eq!(read(r#""\ud800""#).as_deref(), Some(r"\ud800"));
        assert_eq!(read("7"), None);
        assert_eq!(quoted("a\"\n"), r#""a\"\n""#);
    }

    #[test]
    fn a_count_is_a_number_that_is_not_negative() {
        let value = |json: &str| serde_json::from_str::<Box<RawValue>>(json).unwrap();
        let read = |json: &str| count(Some(&value(json)));
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
    fn an_empty_list_is_not_filled() {
        let value = |json: &str| serde_json::from_str::<Box<RawValue>>(json).unwrap();
        assert!(!is_filled(Some(&value("[ \n]"))) && !is_filled(Some(&value("{}"))));
        assert!(!is_filled(None) && !is_filled(Some(&value("\"[1\""))));
        assert!(is_filled(Some(&value("[ 1 ]"))));
    }
}
