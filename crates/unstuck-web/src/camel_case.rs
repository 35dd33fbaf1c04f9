//! Serializes a value with the names of its struct fields in camelCase.
//!
//! Events name their fields in snake_case in the log and in camelCase over REST. Keys of maps are data (roles, kinds,
//! environment variables) and stay as they are, except those of the outermost map, which is a struct with flattened fields,
//! and those of the [structs that are stored as maps](STRUCTS_STORED_AS_MAPS).

use serde::Serialize;
use serde::ser::{
    Error, SerializeMap, SerializeSeq, SerializeStruct, SerializeStructVariant, SerializeTuple,
    SerializeTupleStruct, SerializeTupleVariant, Serializer,
};
use serde_json::{Map, Value};

type JsonError = serde_json::Error;

/// Serializes a value with camelCase names of struct fields.
pub(crate) fn to_value<T: Serialize + ?Sized>(value: &T) -> Result<Value, JsonError> {
    value.serialize(STRUCT)
}

/// Converts a name from snake_case to camelCase.
fn camel_case(name: &str) -> String {
    let mut parts = name.split('_');
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |mut converted, part| {
        let mut chars = part.chars();
        converted.extend(chars.next().map(|first| first.to_ascii_uppercase()));
        converted.push_str(chars.as_str());
        converted
    })
}

/// Fields of events that store a struct as a map: the options of the runner, and the expectations among them.
const STRUCTS_STORED_AS_MAPS: [&str; 2] = ["options", "expect"];

#[derive(Clone, Copy)]
struct CamelCase {
    renames_map_keys: bool,
}

/// For a value whose map keys are data.
const DATA: CamelCase = CamelCase {
    renames_map_keys: false,
};

/// For a value that is a struct even if it is stored as a map.
const STRUCT: CamelCase = CamelCase {
    renames_map_keys: true,
};

/// Returns the serializer of a struct's field.
fn for_field(name: &str) -> CamelCase {
    if STRUCTS_STORED_AS_MAPS.contains(&name) {
        STRUCT
    } else {
        DATA
    }
}

macro_rules! forward {
    ($($method:ident($type:ty);)+) => {
        $(fn $method(self, value: $type) -> Result<Value, JsonError> {
            serde_json::value::Serializer.$method(value)
        })+
    };
}

impl Serializer for CamelCase {
    type Ok = Value;
    type Error = JsonError;
    type SerializeSeq = Items;
    type SerializeTuple = Items;
    type SerializeTupleStruct = Items;
    type SerializeTupleVariant = Variant<Items>;
    type SerializeMap = Fields;
    type SerializeStruct = Fields;
    type SerializeStructVariant = Variant<Fields>;

    forward! {
        serialize_bool(bool);
        serialize_i8(i8);
        serialize_i16(i16);
        serialize_i32(i32);
        serialize_i64(i64);
        serialize_u8(u8);
        serialize_u16(u16);
        serialize_u32(u32);
        serialize_u64(u64);
        serialize_f32(f32);
        serialize_f64(f64);
        serialize_char(char);
        serialize_str(&str);
        serialize_bytes(&[u8]);
        serialize_unit_struct(&'static str);
    }

    fn serialize_none(self) -> Result<Value, JsonError> {
        Ok(Value::Null)
    }

    fn serialize_unit(self) -> Result<Value, JsonError> {
        Ok(Value::Null)
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<Value, JsonError> {
        value.serialize(self)
    }

    fn serialize_unit_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
    ) -> Result<Value, JsonError> {
        Ok(variant.into())
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        value: &T,
    ) -> Result<Value, JsonError> {
        value.serialize(self)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        value: &T,
    ) -> Result<Value, JsonError> {
        Ok(tagged(variant, value.serialize(DATA)?))
    }

    fn serialize_seq(self, _: Option<usize>) -> Result<Items, JsonError> {
        Ok(Items::default())
    }

    fn serialize_tuple(self, _: usize) -> Result<Items, JsonError> {
        Ok(Items::default())
    }

    fn serialize_tuple_struct(self, _: &'static str, _: usize) -> Result<Items, JsonError> {
        Ok(Items::default())
    }

    fn serialize_tuple_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        _: usize,
    ) -> Result<Variant<Items>, JsonError> {
        let content = Items::default();
        Ok(Variant { variant, content })
    }

    fn serialize_map(self, _: Option<usize>) -> Result<Fields, JsonError> {
        Ok(Fields {
            renames_keys: self.renames_map_keys,
            ..Fields::default()
        })
    }

    fn serialize_struct(self, _: &'static str, _: usize) -> Result<Fields, JsonError> {
        Ok(Fields::default())
    }

    fn serialize_struct_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        _: usize,
    ) -> Result<Variant<Fields>, JsonError> {
        let content = Fields::default();
        Ok(Variant { variant, content })
    }
}

/// Returns a variant in the externally tagged form.
fn tagged(variant: &str, content: Value) -> Value {
    Value::Object(Map::from_iter([(camel_case(variant), content)]))
}

/// The items of a sequence.
#[derive(Default)]
struct Items(Vec<Value>);

impl Items {
    fn push<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), JsonError> {
        self.0.push(value.serialize(DATA)?);
        Ok(())
    }
}

/// The fields of a struct, or the entries of a map.
#[derive(Default)]
struct Fields {
    values: Map<String, Value>,
    renames_keys: bool,
    next_key: Option<String>,
}

/// The content of an enum variant.
struct Variant<T> {
    variant: &'static str,
    content: T,
}

macro_rules! items {
    ($($trait:ident $method:ident;)+) => {
        $(impl $trait for Items {
            type Ok = Value;
            type Error = JsonError;

            fn $method<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), JsonError> {
                self.push(value)
            }

            fn end(self) -> Result<Value, JsonError> {
                Ok(Value::Array(self.0))
            }
        })+
    };
}

items! {
    SerializeSeq serialize_element;
    SerializeTuple serialize_element;
    SerializeTupleStruct serialize_field;
}

impl SerializeTupleVariant for Variant<Items> {
    type Ok = Value;
    type Error = JsonError;

    fn serialize_field<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), JsonError> {
        self.content.push(value)
    }

    fn end(self) -> Result<Value, JsonError> {
        Ok(tagged(self.variant, Value::Array(self.content.0)))
    }
}

impl SerializeStruct for Fields {
    type Ok = Value;
    type Error = JsonError;

    fn serialize_field<T: Serialize + ?Sized>(
        &mut self,
        key: &'static str,
        value: &T,
    ) -> Result<(), JsonError> {
        let value = value.serialize(for_field(key))?;
        self.values.insert(camel_case(key), value);
        Ok(())
    }

    fn end(self) -> Result<Value, JsonError> {
        Ok(Value::Object(self.values))
    }
}

impl SerializeStructVariant for Variant<Fields> {
    type Ok = Value;
    type Error = JsonError;

    fn serialize_field<T: Serialize + ?Sized>(
        &mut self,
        key: &'static str,
        value: &T,
    ) -> Result<(), JsonError> {
        SerializeStruct::serialize_field(&mut self.content, key, value)
    }

    fn end(self) -> Result<Value, JsonError> {
        Ok(tagged(self.variant, Value::Object(self.content.values)))
    }
}

impl SerializeMap for Fields {
    type Ok = Value;
    type Error = JsonError;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), JsonError> {
        let key = match serde_json::to_value(key)? {
            Value::String(key) if self.renames_keys => camel_case(&key),
            Value::String(key) => key,
            other => other.to_string(),
        };
        self.next_key = Some(key);
        Ok(())
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), JsonError> {
        let key = self.next_key.take();
        let key = key.ok_or_else(|| JsonError::custom("a map value without a key"))?;
        let form = if self.renames_keys {
            for_field(&key)
        } else {
            DATA
        };
        self.values.insert(key, value.serialize(form)?);
        Ok(())
    }

    fn end(self) -> Result<Value, JsonError> {
        Ok(Value::Object(self.values))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde_json::json;

    use super::*;

    #[derive(Serialize)]
    #[serde(tag = "event")]
    enum Event {
        #[serde(rename = "role_started")]
        RoleStarted(RoleStarted),
    }

    #[derive(Serialize)]
    struct RoleStarted {
        #[serde(flatten)]
        part: Part,
        exit_code: Option<i32>,
        role_settings: BTreeMap<String, Limits>,
        changes: Vec<Change>,
        options: Value,
    }

    #[derive(Serialize)]
    struct Part {
        role_name: String,
    }

    #[derive(Serialize)]
    struct Limits {
        max_cost: f64,
    }

    #[derive(Serialize)]
    #[serde(rename_all = "snake_case")]
    enum Change {
        OutputLimit { max_tokens: u32 },
        FreshSession,
        NextModel(Limits),
    }

    #[test]
    fn struct_fields_are_renamed_and_keys_of_data_are_kept() {
        let event = Event::RoleStarted(RoleStarted {
            part: Part {
                role_name: "a_b".into(),
            },
            exit_code: None,
            role_settings: BTreeMap::from([("code_reviewer".into(), Limits { max_cost: 1.5 })]),
            changes: vec![
                Change::OutputLimit { max_tokens: 8 },
                Change::FreshSession,
                Change::NextModel(Limits { max_cost: 2.0 }),
            ],
            options: json!({
                "grace_ms": 5,
                "expect": {"min_chars": 1, "json": {"my_key": {"is_mine": true}}},
            }),
        });
        assert_eq!(
            to_value(&event).unwrap(),
            json!({
                "event": "role_started",
                "roleName": "a_b",
                "exitCode": null,
                "roleSettings": {"code_reviewer": {"maxCost": 1.5}},
                "changes": [
                    {"outputLimit": {"maxTokens": 8}},
                    "fresh_session",
                    {"nextModel": {"maxCost": 2.0}},
                ],
                "options": {
                    "graceMs": 5,
                    "expect": {"minChars": 1, "json": {"my_key": {"is_mine": true}}},
                },
            })
        );
    }
}
