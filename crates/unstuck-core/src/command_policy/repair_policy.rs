//! The owner's rules: the part of the `[recovery]` section that decides what may run.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::hidden_characters::{is_blank, trim_ascii_whitespace};
use super::safe_display::sanitize;

/// The owner's rules. Values constructed in code are not validated, so [check](Self::check) them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RepairPolicy {
    /// If set, repairs are enabled; true by default.
    pub enabled: bool,
    /// Commands that may run without approval, byte for byte; none by default.
    pub auto_approve: Vec<String>,
    /// Patterns of commands that need approval; `["*"]` by default.
    pub require_human: Vec<String>,
    /// Maximum number of automatic repairs in one run; 3 by default.
    pub max_auto_recoveries_per_run: u32,
    /// Minimum number of seconds between two of them; 60 by default.
    pub cooldown_seconds: u64,
    /// The rule for commands in no list; by default they need approval.
    pub on_unknown: OnUnlistedCommand,
}

/// The rule for commands in none of the owner's lists.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnUnlistedCommand {
    /// Needs approval.
    #[default]
    Escalate,
    /// Denied.
    Deny,
    /// Allowed if simple.
    Allow,
}

/// An error in a `[recovery]` section; the whole section is then ignored.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{key}` {problem}")]
pub struct RepairPolicyError {
    /// The key, such as `auto_approve`.
    pub key: String,
    /// The problem.
    pub problem: String,
}

impl RepairPolicyError {
    fn new(key: &str, problem: impl Into<String>) -> Self {
        Self {
            key: sanitize(key),
            problem: problem.into(),
        }
    }
}

/// Approves nothing, and requires approval for everything.
impl Default for RepairPolicy {
    fn default() -> Self {
        Self {
            enabled: true,
            auto_approve: Vec::new(),
            require_human: vec!["*".to_owned()],
            max_auto_recoveries_per_run: 3,
            cooldown_seconds: 60,
            on_unknown: OnUnlistedCommand::Escalate,
        }
    }
}

impl RepairPolicy {
    /// Parses the section strictly: a single error invalidates all of it.
    ///
    /// ```
    /// use serde_json::json;
    /// use unstuck_core::command_policy::RepairPolicy;
    ///
    /// let rules = RepairPolicy::from_json(&json!({ "auto_approve": ["npm ci"], "require_human": [] }))?;
    /// assert_eq!(rules.auto_approve, ["npm ci"]);
    /// assert!(RepairPolicy::from_json(&json!({ "auto_approve": "npm ci" })).is_err());
    /// # Ok::<(), unstuck_core::command_policy::RepairPolicyError>(())
    /// ```
    pub fn from_json(section: &Value) -> Result<Self, RepairPolicyError> {
        let section = section
            .as_object()
            .ok_or_else(|| RepairPolicyError::new("recovery", "must be a table"))?;
        let mut rules = Self::default();
        for (key, value) in section {
            rules.set(key, value)?;
        }
        rules.check()?;
        Ok(rules)
    }

    fn set(&mut self, key: &str, value: &Value) -> Result<(), RepairPolicyError> {
        match key {
            "enabled" => self.enabled = parse_bool(key, value)?,
            "auto_approve" => self.auto_approve = parse_strings(key, value)?,
            "require_human" => self.require_human = parse_strings(key, value)?,
            "max_auto_recoveries_per_run" => {
                let most = parse_integer(key, value)?;
                self.max_auto_recoveries_per_run =
                    u32::try_from(most).map_err(|_| RepairPolicyError::new(key, "is too large"))?;
            }
            "cooldown_seconds" => self.cooldown_seconds = parse_integer(key, value)?,
            "on_unknown" => self.on_unknown = parse_keyword(key, value, &ON_UNKNOWN)?,
            // The remaining keys decide how a command runs, not whether; an error in them still shows a section that
            // was not thought through.
            "network" | "guard_files" | "preview" => {
                parse_bool(key, value)?;
            }
            "allowed_write_paths" | "env_keep" => {
                check_not_blank(key, &parse_strings(key, value)?)?
            }
            "sandbox" => parse_keyword(key, value, &SANDBOX)?,
            _ => {
                return Err(RepairPolicyError::new(key, "is not a known key"));
            }
        }
        Ok(())
    }

    /// Rejects entries without visible characters.
    pub fn check(&self) -> Result<(), RepairPolicyError> {
        check_not_blank("auto_approve", &self.auto_approve)?;
        check_not_blank("require_human", &self.require_human)
    }
}

fn check_not_blank(key: &str, list: &[String]) -> Result<(), RepairPolicyError> {
    if list
        .iter()
        .any(|entry| is_blank(trim_ascii_whitespace(entry)))
    {
        return Err(RepairPolicyError::new(key, "has a blank entry"));
    }
    Ok(())
}

const ON_UNKNOWN: [(&str, OnUnlistedCommand); 3] = [
    ("escalate", OnUnlistedCommand::Escalate),
    ("deny", OnUnlistedCommand::Deny),
    ("allow", OnUnlistedCommand::Allow),
];
const SANDBOX: [(&str, ()); 3] = [("required", ()), ("best-effort", ()), ("off", ())];

fn parse_bool(key: &str, value: &Value) -> Result<bool, RepairPolicyError> {
    value
        .as_bool()
        .ok_or_else(|| RepairPolicyError::new(key, "must be true or false"))
}

fn parse_integer(key: &str, value: &Value) -> Result<u64, RepairPolicyError> {
    value
        .as_u64()
        .ok_or_else(|| RepairPolicyError::new(key, "must be a non-negative integer"))
}

fn parse_strings(key: &str, value: &Value) -> Result<Vec<String>, RepairPolicyError> {
    let wrong = || RepairPolicyError::new(key, "must be a list of strings");
    let list = value.as_array().ok_or_else(wrong)?;
    let texts = list.iter().map(|text| text.as_str().map(str::to_owned));
    texts.collect::<Option<_>>().ok_or_else(wrong)
}

fn parse_keyword<T: Copy>(
    key: &str,
    value: &Value,
    known: &[(&str, T)],
) -> Result<T, RepairPolicyError> {
    let text = value.as_str();
    let found = known.iter().find(|(name, _)| Some(*name) == text);
    found.map(|(_, value)| *value).ok_or_else(|| {
        let names: Vec<_> = known.iter().map(|(name, _)| *name).collect();
        RepairPolicyError::new(key, format!("must be one of {}", names.join(", ")))
    })
}
