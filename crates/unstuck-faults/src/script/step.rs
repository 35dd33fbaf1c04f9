//! One step of a script: a reply, its condition, and its repetition.

use std::fmt;
use std::time::Duration;

use serde::Deserialize;
use serde::de::{Deserializer, Error, MapAccess, Visitor};

use super::reply::FaultScriptReply;
use super::reply_parser::{ConditionalReply, ExtraTableKeys};
use super::request_condition::{RequestCondition, RequestNumberRange};
use super::response_pace::ResponsePace;

/// A reply to one or more requests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FaultScriptStep {
    /// Condition on the requests.
    pub when: RequestCondition,
    /// Number of uses before it is used up; in a script, once by default, always if `when` names positions.
    pub times: FaultScriptStepRepeat,
    /// Pace; the script's own if absent.
    pub pace: Option<ResponsePace>,
    /// Reply.
    pub reply: FaultScriptReply,
}

/// The repetition of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FaultScriptStepRepeat {
    /// This many times, then the next step applies.
    Count(u32),
    /// For every matching request within this time after the first.
    Within(Duration),
    /// For every matching request.
    Always,
}

impl FaultScriptStep {
    /// Restricts the step to prompts that contain this text.
    #[must_use]
    pub fn when_prompt(mut self, contains: impl Into<String>) -> Self {
        self.when.prompt = Some(contains.into());
        self
    }

    /// Restricts the step to models whose name contains this text.
    #[must_use]
    pub fn when_model(mut self, contains: impl Into<String>) -> Self {
        self.when.model = Some(contains.into());
        self
    }

    /// Restricts the step to keys that contain this text.
    #[must_use]
    pub fn when_key(mut self, contains: impl Into<String>) -> Self {
        self.when.key = Some(contains.into());
        self
    }

    /// Restricts the step to paths that contain this text; auxiliary queries match too.
    #[must_use]
    pub fn when_path(mut self, contains: impl Into<String>) -> Self {
        self.when.path = Some(contains.into());
        self
    }

    /// Restricts the step to the request at this position among those that match otherwise, counted from 1.
    #[must_use]
    pub fn when_nth(mut self, place: impl Into<RequestNumberRange>) -> Self {
        self.when.nth = Some(place.into());
        self.times = FaultScriptStepRepeat::Always;
        self
    }

    /// Restricts the step to matching requests.
    #[must_use]
    pub fn when(mut self, when: RequestCondition) -> Self {
        self.when = when;
        self
    }

    /// Sets the pace.
    #[must_use]
    pub fn with_pace(mut self, pace: ResponsePace) -> Self {
        self.pace = Some(pace);
        self
    }

    /// Uses the step this many times before the next one applies.
    #[must_use]
    pub fn times(mut self, count: u32) -> Self {
        self.times = FaultScriptStepRepeat::Count(count);
        self
    }

    /// Uses the step for every matching request.
    #[must_use]
    pub fn always(mut self) -> Self {
        self.times = FaultScriptStepRepeat::Always;
        self
    }
}

impl From<FaultScriptReply> for FaultScriptStep {
    fn from(reply: FaultScriptReply) -> Self {
        Self {
            when: RequestCondition::default(),
            times: FaultScriptStepRepeat::default(),
            pace: None,
            reply,
        }
    }
}

impl Default for FaultScriptStepRepeat {
    fn default() -> Self {
        Self::Count(1)
    }
}

impl<'de> Deserialize<'de> for FaultScriptStepRepeat {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(TimesVisitor)
    }
}

struct TimesVisitor;

impl Visitor<'_> for TimesVisitor {
    type Value = FaultScriptStepRepeat;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a number, a duration such as \"25s\", or \"always\"")
    }

    fn visit_i64<E: Error>(self, count: i64) -> Result<FaultScriptStepRepeat, E> {
        u32::try_from(count)
            .map(FaultScriptStepRepeat::Count)
            .map_err(|_| E::invalid_value(serde::de::Unexpected::Signed(count), &self))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<FaultScriptStepRepeat, E> {
        match text {
            "always" => Ok(FaultScriptStepRepeat::Always),
            _ => unstuck_core::duration::parse(text)
                .map(FaultScriptStepRepeat::Within)
                .map_err(|_| E::invalid_value(serde::de::Unexpected::Str(text), &self)),
        }
    }
}

#[derive(Default)]
struct StepExtra {
    times: Option<FaultScriptStepRepeat>,
    pace: Option<ResponsePace>,
}

impl ExtraTableKeys for StepExtra {
    const KEYS: &'static str = "`when`, `times` and `pace`";

    fn read_key<'de, A: MapAccess<'de>>(
        &mut self,
        key: &str,
        map: &mut A,
    ) -> Result<bool, A::Error> {
        match key {
            "times" => self.times = Some(map.next_value()?),
            "pace" => self.pace = Some(map.next_value()?),
            _ => return Ok(false),
        }
        Ok(true)
    }
}

impl<'de> Deserialize<'de> for FaultScriptStep {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let entry = ConditionalReply::<StepExtra>::deserialize(deserializer)?;
        // A step that names positions applies to all of them.
        let usual = if entry.when.nth.is_some() || entry.when.every.is_some() {
            FaultScriptStepRepeat::Always
        } else {
            FaultScriptStepRepeat::default()
        };
        Ok(Self {
            when: entry.when,
            times: entry.extra.times.unwrap_or(usual),
            pace: entry.extra.pace,
            reply: entry.reply,
        })
    }
}
