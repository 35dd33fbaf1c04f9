//! A failure as one flat record, from a line of JSON or a sample of a knowledge file.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer};
use serde_json::Value;

use super::{Failure, FailureLayer, Headers, LossyText};

/// A failure record; every field may be absent or null, unknown ones are ignored.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct FailureInputRecord {
    /// Identifies the record in the output.
    pub id: Option<Value>,
    /// The layer where it was observed; if absent, derived from the other fields.
    pub layer: Option<FailureLayer>,
    /// The LLM provider.
    pub provider: Option<String>,
    /// The name of the tool or agent.
    pub tool: Option<String>,
    /// The command line.
    pub command: Option<String>,
    /// The HTTP status, as a number or a string.
    #[serde(deserialize_with = "deserialize_status")]
    pub status: Option<u16>,
    /// The HTTP headers.
    pub headers: Option<BTreeMap<String, Value>>,
    /// The exit code; Windows codes that exceed a signed 32-bit integer become negative.
    #[serde(deserialize_with = "deserialize_exit_code")]
    pub exit_code: Option<i32>,
    /// The signal that ended the process, by number or name.
    #[serde(deserialize_with = "deserialize_signal")]
    pub signal: Option<i32>,
    /// True if it timed out.
    pub timed_out: Option<bool>,
    /// The body, as a string or JSON.
    #[serde(deserialize_with = "deserialize_text")]
    pub body: Option<LossyText>,
    /// The standard output.
    #[serde(deserialize_with = "deserialize_text")]
    pub stdout: Option<LossyText>,
    /// The standard error.
    #[serde(deserialize_with = "deserialize_text")]
    pub stderr: Option<LossyText>,
    /// The findings of the output checks.
    pub validation_errors: Option<Vec<String>>,
    /// True if the output should have contained a diff.
    pub expects_diff: Option<bool>,
    /// The time of observation, in RFC 3339, to which stated clock times are relative.
    pub now: Option<String>,
}

impl FailureInputRecord {
    /// Converts the record to a failure.
    pub fn into_failure(self) -> Failure {
        let layer = self.layer.unwrap_or_else(|| self.guess_layer());
        Failure {
            layer,
            provider: self.provider,
            tool: self.tool,
            command: self.command,
            status: self.status,
            headers: to_headers(self.headers.unwrap_or_default()),
            body: self.body,
            exit_code: self.exit_code,
            signal: self.signal,
            timed_out: self.timed_out.unwrap_or(false),
            stdout: self.stdout,
            stderr: self.stderr,
            validation_errors: self.validation_errors.unwrap_or_default(),
            expects_diff: self.expects_diff.unwrap_or(false),
        }
    }

    fn guess_layer(&self) -> FailureLayer {
        if self.status.is_some() || self.body.is_some() || self.headers.is_some() {
            FailureLayer::Api
        } else if self.validation_errors.is_some()
            || self.expects_diff.is_some()
            || (self.provider.is_some() && self.tool.is_some())
        {
            FailureLayer::Agent
        } else {
            FailureLayer::Tool
        }
    }
}

fn to_headers(named: BTreeMap<String, Value>) -> Headers {
    let mut headers = Headers::default();
    for (name, value) in named {
        match value {
            Value::Null => {}
            Value::Array(values) => values
                .iter()
                .for_each(|value| headers.add(&name, &value_as_text(value))),
            value => headers.add(&name, &value_as_text(&value)),
        }
    }
    headers
}

fn value_as_text(value: &Value) -> String {
    value
        .as_str()
        .map_or_else(|| value.to_string(), str::to_owned)
}

fn deserialize_text<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<LossyText>, D::Error> {
    let value = Option::<Value>::deserialize(deserializer)?;
    Ok(value
        .filter(|value| !value.is_null())
        .map(|value| value_as_text(&value).into()))
}

/// Parses an integer, possibly given as a string.
fn deserialize_integer<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<i64>, D::Error> {
    let value = Option::<Value>::deserialize(deserializer)?.unwrap_or(Value::Null);
    let number = match &value {
        Value::Null => return Ok(None),
        Value::String(text) => text.trim().parse().ok(),
        other => other.as_i64(),
    };
    let wrong = || serde::de::Error::custom(format!("`{value}` is not an integer"));
    number.map(Some).ok_or_else(wrong)
}

fn deserialize_status<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u16>, D::Error> {
    let read = |number| {
        let wrong = || serde::de::Error::custom(format!("`{number}` is not an HTTP status"));
        u16::try_from(number).map_err(|_| wrong())
    };
    deserialize_integer(deserializer)?.map(read).transpose()
}

fn deserialize_exit_code<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<i32>, D::Error> {
    let narrow = |number: i64| {
        let unsigned = u32::try_from(number).map(u32::cast_signed);
        i32::try_from(number).or(unsigned).unwrap_or(i32::MAX)
    };
    Ok(deserialize_integer(deserializer)?.map(narrow))
}

fn deserialize_signal<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<i32>, D::Error> {
    match Option::<Value>::deserialize(deserializer)? {
        None | Some(Value::Null) => Ok(None),
        Some(Value::Number(number)) => Ok(number
            .as_i64()
            .and_then(|number| i32::try_from(number).ok())),
        Some(Value::String(name)) => signal_number(&name)
            .map(Some)
            .ok_or_else(|| serde::de::Error::custom(format!("`{name}` is not a signal"))),
        Some(other) => Err(serde::de::Error::custom(format!(
            "`{other}` is not a signal"
        ))),
    }
}

/// Returns the number of a signal given by name (`SIGKILL`, `kill`) or number.
pub fn signal_number(name: &str) -> Option<i32> {
    const NAMES: [(&str, i32); 11] = [
        ("HUP", 1),
        ("INT", 2),
        ("QUIT", 3),
        ("ILL", 4),
        ("ABRT", 6),
        ("BUS", 7),
        ("FPE", 8),
        ("KILL", 9),
        ("SEGV", 11),
        ("ALRM", 14),
        ("TERM", 15),
    ];
    let upper = name.trim().to_ascii_uppercase();
    let bare = upper.strip_prefix("SIG").unwrap_or(&upper);
    bare.parse().ok().or_else(|| {
        NAMES
            .iter()
            .find(|(known, _)| *known == bare)
            .map(|(_, number)| *number)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(json: &str) -> Failure {
        serde_json::from_str::<FailureInputRecord>(json)
            .unwrap()
            .into_failure()
    }

    #[test]
    fn nulls_unknown_fields_and_json_bodies_are_accepted() {
        let failure = read(
            r#"{"id":"a","status":429,"body":{"error":1},"stdout":null,"headers":{"Retry-After":7,"x":["a","b"]},"family":"z"}"#,
        );
        assert_eq!(failure.layer, FailureLayer::Api);
        assert_eq!(failure.body, Some("{\"error\":1}".into()));
        assert_eq!(failure.headers.get("retry-after"), Some("7"));
        assert_eq!(failure.stdout, None);
    }

    #[test]
    fn numbers_as_strings_and_windows_codes_are_accepted() {
        assert_eq!(read(r#"{"status":"429"}"#).status, Some(429));
        assert_eq!(
            read(r#"{"exit_code":3221225477}"#).exit_code,
            Some(-1_073_741_819)
        );
        assert_eq!(read(r#"{"exit_code":null}"#).exit_code, None);
        for wrong in [
            r#"{"status":"often"}"#,
            r#"{"status":-1}"#,
            r#"{"exit_code":1.5}"#,
        ] {
            assert!(
                serde_json::from_str::<FailureInputRecord>(wrong).is_err(),
                "{wrong}"
            );
        }
    }

    #[test]
    fn signals_have_numbers_and_names() {
        assert_eq!(read(r#"{"signal":"SIGKILL"}"#).signal, Some(9));
        assert_eq!(read(r#"{"signal":15}"#).signal, Some(15));
        assert!(serde_json::from_str::<FailureInputRecord>(r#"{"signal":"SIGNOPE"}"#).is_err());
    }

    #[test]
    fn layer_is_derived_from_the_fields() {
        assert_eq!(read(r#"{"stderr":"x"}"#).layer, FailureLayer::Tool);
        assert_eq!(
            read(r#"{"stdout":"x","validation_errors":["y"]}"#).layer,
            FailureLayer::Agent
        );
        assert_eq!(read(r#"{"body":"x"}"#).layer, FailureLayer::Api);
    }
}
