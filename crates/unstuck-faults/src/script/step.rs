//! One step of a script: what is answered, to which requests, how often.

use std::fmt;
use std::time::Duration;

use serde::Deserialize;
use serde::de::{Deserializer, Error, MapAccess, Visitor};

use super::pace::ResponsePace;
use super::reply::Reply;
use super::reply_table::{ExtraKeys, ReplyTable};
use super::request_condition::{RequestCondition, RequestRange};

/// What one request, or several, are answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScriptStep {
    /// The requests that it is for.
    pub when: RequestCondition,
    /// How many requests may take it before it is used up; once if absent from a script, always if `when` names places.
    pub times: StepRepeat,
    /// How fast it comes and in which pieces; as the script says for all if absent.
    pub pace: Option<ResponsePace>,
    /// What they are answered.
    pub reply: Reply,
}

/// How often a step is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StepRepeat {
    /// So many times, then the next step has its turn.
    Count(u32),
    /// By every request that it fits, for so long after the first.
    Within(Duration),
    /// By every request that it fits.
    Always,
}

impl ScriptStep {
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

    /// Takes the step only for keys that contain this text.
    #[must_use]
    pub fn when_key(mut self, contains: impl Into<String>) -> Self {
        self.when.key = Some(contains.into());
        self
    }

    /// Takes the step only for paths that contain this text; also for side questions.
    #[must_use]
    pub fn when_path(mut self, contains: impl Into<String>) -> Self {
        self.when.path = Some(contains.into());
        self
    }

    /// Takes the step only for the request at this place among those that fit otherwise, counted from 1.
    #[must_use]
    pub fn when_nth(mut self, place: impl Into<RequestRange>) -> Self {
        self.when.nth = Some(place.into());
        self.times = StepRepeat::Always;
        self
    }

    /// Takes the step only for these requests.
    #[must_use]
    pub fn when(mut self, when: RequestCondition) -> Self {
        self.when = when;
        self
    }

    /// Answers at this pace.
    #[must_use]
    pub fn with_pace(mut self, pace: ResponsePace) -> Self {
        self.pace = Some(pace);
        self
    }

    /// Takes the step so many times before the next one has its turn.
    #[must_use]
    pub fn times(mut self, count: u32) -> Self {
        self.times = StepRepeat::Count(count);
        self
    }

    /// Takes the step for every request that it fits.
    #[must_use]
    pub fn always(mut self) -> Self {
        self.times = StepRepeat::Always;
        self
    }
}

impl From<Reply> for ScriptStep {
    fn from(reply: Reply) -> Self {
        Self {
            when: RequestCondition::default(),
            times: StepRepeat::default(),
            pace: None,
            reply,
        }
    }
}

impl Default for StepRepeat {
    fn default() -> Self {
        Self::Count(1)
    }
}

impl<'de> Deserialize<'de> for StepRepeat {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(TimesVisitor)
    }
}

struct TimesVisitor;

impl Visitor<'_> for TimesVisitor {
    type Value = StepRepeat;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a number, a time such as \"25s\", or \"always\"")
    }

    fn visit_i64<E: Error>(self, count: i64) -> Result<StepRepeat, E> {
        u32::try_from(count)
            .map(StepRepeat::Count)
            .map_err(|_| E::invalid_value(serde::de::Unexpected::Signed(count), &self))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<StepRepeat, E> {
        match text {
            "always" => Ok(StepRepeat::Always),
            _ => unstuck_core::duration::parse(text)
                .map(StepRepeat::Within)
                .map_err(|_| E::invalid_value(serde::de::Unexpected::Str(text), &self)),
        }
    }
}

#[derive(Default)]
struct StepExtra {
    times: Option<StepRepeat>,
    pace: Option<ResponsePace>,
}

impl ExtraKeys for StepExtra {
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

impl<'de> Deserialize<'de> for ScriptStep {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let entry = ReplyTable::<StepExtra>::deserialize(deserializer)?;
        // Whoever names places means all of them.
        let usual = if entry.when.nth.is_some() || entry.when.every.is_some() {
            StepRepeat::Always
        } else {
            StepRepeat::default()
        };
        Ok(Self {
            when: entry.when,
            times: entry.extra.times.unwrap_or(usual),
            pace: entry.extra.pace,
            reply: entry.reply,
        })
    }
}
