//! One step of a script: what is answered, to which requests, how often.

use serde::de::{Deserializer, Error};
use serde::{Deserialize, Serialize};

use super::reply::Reply;

/// What one request, or several, are answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// The requests that it is for.
    pub when: When,
    /// How many requests may take it before it is used up.
    pub times: Times,
    /// What they are answered.
    pub reply: Reply,
}

/// Which requests a step is for; without any condition, all.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct When {
    /// The prompt contains this text.
    pub prompt: Option<String>,
    /// The name of the model contains this text.
    pub model: Option<String>,
}

/// How often a step is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Times {
    /// So many times, then the next step has its turn.
    Count(u32),
    /// By every request that it fits.
    Always,
}

impl Step {
    /// Takes the step only for prompts that contain this text.
    #[must_use]
    pub fn when_prompt(mut self, contains: impl Into<String>) -> Self {
        self.when.prompt = Some(contains.into());
        self
    }

    /// Takes the step only for models whose name contains this text.
    #[must_use]
    pub fn when_model(mut self, contains: impl Into<String>) -> Self {
        self.when.model = Some(contains.into());
        self
    }

    /// Takes the step so many times before the next one has its turn.
    #[must_use]
    pub fn times(mut self, count: u32) -> Self {
        self.times = Times::Count(count);
        self
    }

    /// Takes the step for every request that it fits.
    #[must_use]
    pub fn always(mut self) -> Self {
        self.times = Times::Always;
        self
    }
}

impl From<Reply> for Step {
    fn from(reply: Reply) -> Self {
        Self {
            when: When::default(),
            times: Times::default(),
            reply,
        }
    }
}

impl When {
    /// Whether a request is meant.
    pub(crate) fn fits(&self, model: &str, prompt: &str) -> bool {
        let contains = |text: &str, part: &Option<String>| {
            part.as_deref().is_none_or(|part| text.contains(part))
        };
        contains(model, &self.model) && contains(prompt, &self.prompt)
    }
}

impl Default for Times {
    fn default() -> Self {
        Self::Count(1)
    }
}

impl<'de> Deserialize<'de> for Times {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = toml::Value::deserialize(deserializer)?;
        let count = || {
            value
                .as_integer()
                .and_then(|count| u32::try_from(count).ok())
        };
        match value.as_str() {
            Some("always") => Ok(Self::Always),
            _ => count()
                .map(Self::Count)
                .ok_or_else(|| Error::custom("`times` is a number or \"always\"")),
        }
    }
}

// By hand because serde's `flatten` would let misspelt keys pass.
impl<'de> Deserialize<'de> for Step {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut fields = toml::Table::deserialize(deserializer)?;
        let when = optional(&mut fields, "when").map_err(Error::custom)?;
        let times = optional(&mut fields, "times").map_err(Error::custom)?;
        if fields.len() != 1 {
            let found: Vec<_> = fields.keys().map(String::as_str).collect();
            return Err(Error::custom(format!(
                "a step has one reply besides `when` and `times`, not {}: [{}]",
                fields.len(),
                found.join(", ")
            )));
        }
        let reply = Reply::deserialize(fields).map_err(Error::custom)?;
        Ok(Self { when, times, reply })
    }
}

fn optional<T: Default + for<'de> Deserialize<'de>>(
    fields: &mut toml::Table,
    name: &str,
) -> Result<T, toml::de::Error> {
    fields
        .remove(name)
        .map_or_else(|| Ok(T::default()), T::deserialize)
}
