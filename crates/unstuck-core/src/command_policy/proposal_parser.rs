//! Parses a proposal field by field: nothing is guessed, converted or ignored.
//!
//! Derived deserializers are not used: they accept a list for an object, and the last of duplicate keys.

use serde_json::{Map, Value};

use super::hidden_characters::{
    find_hidden_in_command, find_hidden_in_path, is_blank, trim_ascii_whitespace,
};
use super::proposal::{
    DEFAULT_TIMEOUT_SECONDS, MAX_COMMAND, MAX_TEXT, MAX_TIMEOUT_SECONDS, MAX_WORKING_DIR, Proposal,
    ProposalConfidence, ProposalDiagnosis, ProposalError, ProposedCommand, ProposedFallbackCommand,
    RepairCategory, RepairProblemSeverity,
};
use super::safe_display::sanitize;
use super::strict_json;

type JsonFields = Map<String, Value>;

impl Proposal {
    /// Parses the bytes of a `recovery.json`, all or nothing.
    ///
    /// ```
    /// use unstuck_core::command_policy::Proposal;
    ///
    /// let error = Proposal::parse(br#"{"version": 2}"#).unwrap_err();
    /// assert_eq!(error.to_string(), "`version` must be the number 1");
    /// ```
    pub fn parse(bytes: &[u8]) -> Result<Self, ProposalError> {
        let fields = strict_json::parse_object(bytes)?;
        let top = FieldReader::new("", &fields);
        if top.required("version")?.as_u64() != Some(1) {
            return Err(top.field_error("version", "must be the number 1"));
        }
        let timestamp = top.text("timestamp")?;
        if !is_rfc_3339(&timestamp) {
            return Err(top.field_error(
                "timestamp",
                "must be a timestamp like 2026-01-23T05:36:33Z (RFC 3339)",
            ));
        }
        Ok(Self {
            timestamp,
            category: top.one_of("category", &CATEGORIES)?,
            severity: top.one_of("severity", &SEVERITIES)?,
            diagnosis: read_diagnosis(&top.object("diagnosis")?)?,
            recovery: read_command(&top.object("recovery")?)?,
            fallback: match top.optional("fallback") {
                None => None,
                Some(_) => Some(read_fallback(&top.object("fallback")?)?),
            },
        })
    }
}

/// Checks that a text may be proposed as a command; `field` is its name in the error.
pub(super) fn check_command(command: &str, field: &str) -> Result<(), ProposalError> {
    let wrong = |problem: String| ProposalError::Field {
        field: field.to_owned(),
        problem,
    };
    if command.len() > MAX_COMMAND {
        let bytes = command.len();
        return Err(wrong(format!(
            "is too long: {bytes} bytes (limit {MAX_COMMAND})"
        )));
    }
    let command = trim_ascii_whitespace(command);
    check_character(find_hidden_in_command(command), field)?;
    if is_blank(command) {
        return Err(wrong("is blank".to_owned()));
    }
    Ok(())
}

fn check_character(found: Option<char>, field: &str) -> Result<(), ProposalError> {
    found.map_or(Ok(()), |c| {
        Err(ProposalError::Character {
            field: field.to_owned(),
            code: c.into(),
        })
    })
}

fn read_diagnosis(fields: &FieldReader<'_>) -> Result<ProposalDiagnosis, ProposalError> {
    Ok(ProposalDiagnosis {
        error_pattern: fields.text("error_pattern")?,
        root_cause: fields.text("root_cause")?,
        evidence: fields.texts("evidence")?,
    })
}

fn read_command(fields: &FieldReader<'_>) -> Result<ProposedCommand, ProposalError> {
    fields.check_known_keys(&[
        "command",
        "working_dir",
        "timeout_seconds",
        "expected_outcome",
        "confidence",
    ])?;
    Ok(ProposedCommand {
        command: fields.command()?,
        working_dir: fields.working_dir()?,
        timeout_seconds: fields.timeout()?,
        expected_outcome: fields.text("expected_outcome")?,
        confidence: fields.one_of("confidence", &CONFIDENCES)?,
    })
}

fn read_fallback(fields: &FieldReader<'_>) -> Result<ProposedFallbackCommand, ProposalError> {
    fields.check_known_keys(&["command", "confidence"])?;
    Ok(ProposedFallbackCommand {
        command: fields.command()?,
        confidence: fields.one_of("confidence", &CONFIDENCES)?,
    })
}

const CATEGORIES: [(&str, RepairCategory); 5] = [
    ("dependency", RepairCategory::Dependency),
    ("config", RepairCategory::Config),
    ("environment", RepairCategory::Environment),
    ("permissions", RepairCategory::Permissions),
    ("network", RepairCategory::Network),
];
const SEVERITIES: [(&str, RepairProblemSeverity); 2] = [
    ("blocking", RepairProblemSeverity::Blocking),
    ("degraded", RepairProblemSeverity::Degraded),
];
const CONFIDENCES: [(&str, ProposalConfidence); 3] = [
    ("high", ProposalConfidence::High),
    ("medium", ProposalConfidence::Medium),
    ("low", ProposalConfidence::Low),
];

/// The fields of one object, and its location.
struct FieldReader<'d> {
    location: &'static str,
    fields: &'d JsonFields,
}

impl<'d> FieldReader<'d> {
    fn new(location: &'static str, fields: &'d JsonFields) -> Self {
        Self { location, fields }
    }

    fn name(&self, key: &str) -> String {
        if self.location.is_empty() {
            sanitize(key)
        } else {
            format!("{}.{}", self.location, sanitize(key))
        }
    }

    fn field_error(&self, key: &str, problem: impl Into<String>) -> ProposalError {
        ProposalError::Field {
            field: self.name(key),
            problem: problem.into(),
        }
    }

    /// Rejects keys that this version does not know: their effect would be ignored.
    fn check_known_keys(&self, known: &[&str]) -> Result<(), ProposalError> {
        let mut keys = self.fields.keys();
        keys.find(|key| !known.contains(&key.as_str()))
            .map_or(Ok(()), |key| {
                Err(self.field_error(key, "is not a known field"))
            })
    }

    /// Returns the value of a key; null is the same as no value.
    fn optional(&self, key: &str) -> Option<&'d Value> {
        self.fields.get(key).filter(|value| !value.is_null())
    }

    fn required(&self, key: &str) -> Result<&'d Value, ProposalError> {
        self.fields
            .get(key)
            .ok_or_else(|| self.field_error(key, "is missing"))
    }

    fn object(&self, key: &'static str) -> Result<Self, ProposalError> {
        let fields = self.required(key)?.as_object();
        let fields = fields.ok_or_else(|| self.field_error(key, "must be an object"))?;
        Ok(FieldReader::new(key, fields))
    }

    fn text(&self, key: &str) -> Result<String, ProposalError> {
        self.bounded_text(key, self.required(key)?, MAX_TEXT)
    }

    fn texts(&self, key: &str) -> Result<Vec<String>, ProposalError> {
        let list = self.required(key)?.as_array();
        let list = list.ok_or_else(|| self.field_error(key, "must be a list of strings"))?;
        list.iter()
            .map(|value| self.bounded_text(key, value, MAX_TEXT))
            .collect()
    }

    fn bounded_text(&self, key: &str, value: &Value, most: usize) -> Result<String, ProposalError> {
        let text = value
            .as_str()
            .ok_or_else(|| self.field_error(key, "must be a string"))?;
        if text.len() > most {
            let bytes = text.len();
            return Err(self.field_error(key, format!("is too long: {bytes} bytes (limit {most})")));
        }
        Ok(text.to_owned())
    }

    fn one_of<T: Copy>(&self, key: &str, known: &[(&str, T)]) -> Result<T, ProposalError> {
        let text = self.required(key)?.as_str();
        let found = known.iter().find(|(name, _)| Some(*name) == text);
        found.map(|(_, value)| *value).ok_or_else(|| {
            let names: Vec<_> = known.iter().map(|(name, _)| *name).collect();
            self.field_error(key, format!("must be one of {}", names.join(", ")))
        })
    }

    fn command(&self) -> Result<String, ProposalError> {
        let command = self.bounded_text("command", self.required("command")?, MAX_COMMAND)?;
        check_command(&command, &self.name("command"))?;
        Ok(command)
    }

    fn working_dir(&self) -> Result<Option<String>, ProposalError> {
        let key = "working_dir";
        let Some(value) = self.optional(key) else {
            return Ok(None);
        };
        let path = self.bounded_text(key, value, MAX_WORKING_DIR)?;
        check_character(find_hidden_in_path(&path), &self.name(key))?;
        Ok(Some(path))
    }

    fn timeout(&self) -> Result<u32, ProposalError> {
        let key = "timeout_seconds";
        let Some(value) = self.optional(key) else {
            return Ok(DEFAULT_TIMEOUT_SECONDS);
        };
        let seconds = value.as_u64().and_then(|seconds| seconds.try_into().ok());
        seconds
            .filter(|seconds| (1..=MAX_TIMEOUT_SECONDS).contains(seconds))
            .ok_or_else(|| {
                self.field_error(
                    key,
                    format!("must be an integer from 1 to {MAX_TIMEOUT_SECONDS}"),
                )
            })
    }
}

/// Returns true if a text is a timestamp in strict RFC 3339 form; the timestamp parser accepts others too.
fn is_rfc_3339(text: &str) -> bool {
    let fits = |shape: &str, part: &str| {
        let same = |(sign, c): (char, char)| match sign {
            '0' => c.is_ascii_digit(),
            'T' => matches!(c, 'T' | 't'),
            sign => sign == c,
        };
        shape.len() == part.len() && shape.chars().zip(part.chars()).all(same)
    };
    let Some((moment, rest)) = text.split_at_checked("0000-00-00T00:00:00".len()) else {
        return false;
    };
    let rest = match rest.strip_prefix('.') {
        None => rest,
        Some(fraction) => {
            let zone = fraction.trim_start_matches(|c: char| c.is_ascii_digit());
            if zone.len() == fraction.len() {
                return false;
            }
            zone
        }
    };
    let is_zone = matches!(rest, "Z" | "z") || fits("+00:00", rest) || fits("-00:00", rest);
    fits("0000-00-00T00:00:00", moment) && is_zone && is_valid_timestamp(moment, rest)
}

/// Returns true if the date and time exist; fractions of a second are always valid.
fn is_valid_timestamp(moment: &str, zone: &str) -> bool {
    let zone = if zone.eq_ignore_ascii_case("z") {
        "+00:00"
    } else {
        zone
    };
    let in_range =
        |from: usize, most: u8| zone[from..from + 2].parse::<u8>().is_ok_and(|n| n <= most);
    let offset = in_range(1, 23) && in_range(4, 59);
    offset
        && moment
            .to_ascii_uppercase()
            .parse::<jiff::civil::DateTime>()
            .is_ok()
}
