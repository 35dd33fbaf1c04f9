//! Conditions that select the requests of a step.

use std::collections::BTreeMap;
use std::fmt;

use hyper::HeaderMap;
use serde::de::{Deserializer, Error, Visitor};
use serde::{Deserialize, Serialize, Serializer};

use crate::protocol::{ModelCall, Protocol};

/// A condition on requests; if empty, all match.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RequestCondition {
    /// Text contained in the prompt.
    pub prompt: Option<String>,
    /// Text contained in the model name.
    pub model: Option<String>,
    /// Text contained in the path; if set, auxiliary queries such as the list of models match too.
    pub path: Option<String>,
    /// The protocol: `anthropic`, `responses`, `chat` or `gemini`.
    pub protocol: Option<Protocol>,
    /// Texts contained in headers, by name; an empty text only requires the header to be present.
    pub header: BTreeMap<String, String>,
    /// Text contained in the key (`authorization`, `x-api-key`, `x-goog-api-key` or `?key=`).
    pub key: Option<String>,
    /// If set, requires a stream (`true`) or none (`false`).
    pub stream: Option<bool>,
    /// Text contained in the body.
    pub body: Option<String>,
    /// Text not contained in the body.
    pub body_lacks: Option<String>,
    /// If set, requires the last message to be the beginning of the answer (`true`) or not (`false`).
    pub prefill: Option<bool>,
    /// Position among the requests that match otherwise, counted from 1: `3`, `"3-7"` or `"3-"`.
    pub nth: Option<RequestNumberRange>,
    /// If set, only every n-th of the requests that match otherwise.
    pub every: Option<u64>,
}

/// A position or a range of positions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RequestNumberRange {
    /// First position.
    pub first: u64,
    /// Last position; `None` if unbounded.
    pub last: Option<u64>,
}

/// The parts of a request that conditions check.
#[derive(Debug, Clone, Copy)]
pub(crate) struct MatchableRequest<'a> {
    pub(crate) protocol: Protocol,
    pub(crate) path: &'a str,
    pub(crate) headers: &'a HeaderMap,
    pub(crate) key: &'a str,
    pub(crate) call: &'a ModelCall,
    pub(crate) body: &'a [u8],
}

impl RequestCondition {
    /// True if the condition matches a request, regardless of its position.
    pub(crate) fn matches(&self, asking: &MatchableRequest<'_>) -> bool {
        let call = asking.call;
        contains(&call.model, &self.model)
            && contains(&call.prompt, &self.prompt)
            && contains(asking.path, &self.path)
            && contains(asking.key, &self.key)
            && is_wanted(asking.protocol, self.protocol)
            && is_wanted(call.wants_stream, self.stream)
            && is_wanted(call.is_prefill, self.prefill)
            && self.matches_headers(asking.headers)
            && self.matches_body(asking.body)
    }

    /// True if the position of a request, among those that match otherwise, is selected.
    pub(crate) fn matches_position(&self, place: u64) -> bool {
        let nth = self.nth.is_none_or(|nth| nth.contains(place));
        let every = self
            .every
            .is_none_or(|every| place.checked_rem(every) == Some(0));
        nth && every
    }

    fn matches_headers(&self, headers: &HeaderMap) -> bool {
        self.header.iter().all(|(name, part)| {
            let mut values = headers.get_all(name.as_str()).iter();
            values.any(|value| memchr::memmem::find(value.as_bytes(), part.as_bytes()).is_some())
        })
    }

    fn matches_body(&self, body: &[u8]) -> bool {
        let has = |part: &str| memchr::memmem::find(body, part.as_bytes()).is_some();
        self.body.as_deref().is_none_or(has) && !self.body_lacks.as_deref().is_some_and(has)
    }
}

fn contains(text: &str, part: &Option<String>) -> bool {
    part.as_deref().is_none_or(|part| text.contains(part))
}

fn is_wanted<T: PartialEq>(found: T, wanted: Option<T>) -> bool {
    wanted.is_none_or(|wanted| wanted == found)
}

impl RequestNumberRange {
    fn contains(self, place: u64) -> bool {
        place >= self.first && self.last.is_none_or(|last| place <= last)
    }
}

impl From<u64> for RequestNumberRange {
    fn from(place: u64) -> Self {
        Self {
            first: place,
            last: Some(place),
        }
    }
}

impl fmt::Display for RequestNumberRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.last {
            Some(last) if last == self.first => write!(f, "{last}"),
            Some(last) => write!(f, "{}-{last}", self.first),
            None => write!(f, "{}-", self.first),
        }
    }
}

impl Serialize for RequestNumberRange {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for RequestNumberRange {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(NthVisitor)
    }
}

struct NthVisitor;

impl Visitor<'_> for NthVisitor {
    type Value = RequestNumberRange;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a request number or range starting at 1, such as 3, \"3-7\" or \"3-\"")
    }

    fn visit_i64<E: Error>(self, place: i64) -> Result<RequestNumberRange, E> {
        u64::try_from(place)
            .ok()
            .filter(|place| *place > 0)
            .map(RequestNumberRange::from)
            .ok_or_else(|| E::invalid_value(serde::de::Unexpected::Signed(place), &self))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<RequestNumberRange, E> {
        let wrong = || E::invalid_value(serde::de::Unexpected::Str(text), &self);
        let number = |part: &str| part.trim().parse::<u64>().map_err(|_| wrong());
        let nth = match text.split_once('-') {
            None => RequestNumberRange::from(number(text)?),
            Some((first, "")) => RequestNumberRange {
                first: number(first)?,
                last: None,
            },
            Some((first, last)) => RequestNumberRange {
                first: number(first)?,
                last: Some(number(last)?),
            },
        };
        let is_empty = nth.last.is_some_and(|last| last < nth.first);
        if nth.first == 0 || is_empty {
            return Err(wrong());
        }
        Ok(nth)
    }
}
