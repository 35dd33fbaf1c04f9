//! Checks that an answer is JSON, or contains it in a code block.

use std::fmt;
use std::sync::Arc;

use jsonschema::Validator;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::fenced_code::FencedText;

/// Largest number of schema errors that are reported.
const MAX_ERRORS: usize = 5;

/// The expected JSON of an answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum JsonExpectation {
    /// Any JSON.
    Any,
    /// JSON that matches a JSON Schema.
    Schema(ExpectedSchema),
}

/// A JSON Schema; it is serialized as written.
#[derive(Clone, Serialize, Deserialize)]
#[serde(try_from = "Value", into = "Value")]
pub struct ExpectedSchema {
    value: Value,
    validator: Arc<Validator>,
}

/// The error of a value that is not a usable JSON Schema.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("not a JSON Schema: {0}")]
pub struct InvalidSchema(String);

impl TryFrom<Value> for ExpectedSchema {
    type Error = InvalidSchema;

    fn try_from(value: Value) -> Result<Self, Self::Error> {
        let validator = jsonschema::validator_for(&value);
        let validator = validator.map_err(|error| match error.instance_path().to_string() {
            path if path.is_empty() => InvalidSchema(error.to_string()),
            path => InvalidSchema(format!("at {path}: {error}")),
        })?;
        Ok(Self {
            value,
            validator: Arc::new(validator),
        })
    }
}

impl From<ExpectedSchema> for Value {
    fn from(schema: ExpectedSchema) -> Self {
        schema.value
    }
}

impl PartialEq for ExpectedSchema {
    fn eq(&self, other: &Self) -> bool {
        self.value == other.value
    }
}

impl fmt::Debug for ExpectedSchema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.value, f)
    }
}

impl ExpectedSchema {
    fn check(&self, value: &Value) -> Vec<String> {
        // The value itself is not repeated: it may be long, and its text may mislead the diagnosis.
        let told = |error: jsonschema::ValidationError<'_>| {
            let path = error.instance_path().to_string();
            let path = if path.is_empty() { "/" } else { &path };
            format!(
                "The output does not match the schema at {path}: {}",
                error.masked()
            )
        };
        let errors = self.validator.iter_errors(value);
        errors.take(MAX_ERRORS).map(told).collect()
    }
}

impl JsonExpectation {
    /// Returns the errors of the JSON in an answer.
    pub(super) fn check(&self, text: &str) -> Vec<String> {
        let found = match find_json(text) {
            Ok(found) => found,
            Err(error) => return vec![format!("The output is not valid JSON: {error}")],
        };
        let Self::Schema(schema) = self else {
            return Vec::new();
        };
        let mut errors = Vec::new();
        for (_, value) in &found {
            errors = schema.check(value);
            if errors.is_empty() {
                break;
            }
        }
        errors
    }

    /// Returns the first expected JSON of an answer, without the text around it.
    pub(super) fn accepted_json<'t>(&self, text: &'t str) -> Option<&'t str> {
        let fits = |value: &Value| match self {
            Self::Any => true,
            Self::Schema(schema) => schema.check(value).is_empty(),
        };
        let mut found = find_json(text).ok()?.into_iter();
        found.find(|(_, value)| fits(value)).map(|(json, _)| json)
    }
}

/// Returns the JSON of an answer: the whole answer, or its code blocks. There is at least one, or an error.
fn find_json(text: &str) -> Result<Vec<(&str, Value)>, serde_json::Error> {
    let whole = match serde_json::from_str(text.trim()) {
        Ok(value) => return Ok(vec![(text, value)]),
        Err(error) => error,
    };
    let fenced = FencedText::parse(text);
    let named =
        |block: &&super::fenced_code::CodeBlock<'_>| block.language.eq_ignore_ascii_case("json");
    let mut bodies: Vec<&str> = fenced
        .blocks
        .iter()
        .filter(named)
        .map(|block| block.body)
        .collect();
    if bodies.is_empty() {
        let unnamed = fenced
            .blocks
            .iter()
            .filter(|block| block.language.is_empty());
        bodies = unnamed.map(|block| block.body).collect();
    }
    let mut problem = whole;
    let mut found = Vec::new();
    for body in bodies {
        match serde_json::from_str(body) {
            Ok(value) => found.push((body, value)),
            Err(error) => problem = error,
        }
    }
    if found.is_empty() {
        Err(problem)
    } else {
        Ok(found)
    }
}
