//! `[role.expect]`: requirements on an output.

use std::fmt;
use std::path::PathBuf;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::de::{self, Visitor};
use serde::{Deserialize, Deserializer};

/// `[role.expect]`: requirements on an output.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, expecting = "a table")]
pub struct ExpectSection {
    /// Headings that the output must contain, such as `# Plan`.
    pub sections: Vec<String>,
    /// JSON requirement: true, or a file with a JSON Schema that the output must match.
    #[schemars(schema_with = "json_schema")]
    pub json: JsonRequirement,
    /// If true, the output must be a diff that can be applied; false by default.
    pub diff: bool,
    /// Regular expressions, one or a list, that must all match the output.
    #[serde(rename = "match")]
    #[schemars(schema_with = "text_or_list")]
    pub matches: Vec<String>,
    /// Shell command that must succeed afterwards.
    pub check: Option<String>,
    /// If true, the output must not be empty; true if unset.
    pub not_empty: Option<bool>,
}

/// A JSON requirement on an output.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum JsonRequirement {
    /// No JSON required.
    #[default]
    No,
    /// Any valid JSON.
    Any,
    /// JSON that matches the schema in this file.
    Schema(PathBuf),
}

impl<'de> Deserialize<'de> for JsonRequirement {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct FlagOrFile;
        impl Visitor<'_> for FlagOrFile {
            type Value = JsonRequirement;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("true, false or the path of a JSON Schema")
            }

            fn visit_bool<E>(self, wanted: bool) -> Result<JsonRequirement, E> {
                Ok(if wanted {
                    JsonRequirement::Any
                } else {
                    JsonRequirement::No
                })
            }

            fn visit_str<E: de::Error>(self, path: &str) -> Result<JsonRequirement, E> {
                if path.is_empty() {
                    return Err(E::invalid_value(de::Unexpected::Str(path), &self));
                }
                Ok(JsonRequirement::Schema(path.into()))
            }
        }
        from.deserialize_any(FlagOrFile)
    }
}

fn json_schema(_: &mut SchemaGenerator) -> Schema {
    schemars::json_schema!({ "type": ["boolean", "string"] })
}

fn text_or_list(_: &mut SchemaGenerator) -> Schema {
    schemars::json_schema!({ "type": ["string", "array"], "items": { "type": "string" } })
}
