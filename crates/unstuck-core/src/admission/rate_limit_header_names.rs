//! The names and formats of the providers' rate-limit headers, as data (`data/rate_limits.toml`).

use std::sync::LazyLock;

use serde::Deserialize;

use crate::failure::Headers;

/// The line that separates the definitions from the samples, which only tests read.
const SAMPLES: &str = "\n# --- samples ---\n";
pub(super) const FILE: &str = include_str!("../../data/rate_limits.toml");

/// The data file of rate-limit headers, without its samples.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct LimitHeadersFile {
    family: Vec<HeaderFamily>,
}

/// A family of rate-limit headers.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct HeaderFamily {
    #[expect(dead_code, reason = "documents the header family in the data file")]
    id: String,
    providers: Vec<String>,
    pub(super) refills: bool,
    pub(super) requests: Option<LimitHeaders>,
    pub(super) tokens: Option<LimitHeaders>,
    pub(super) input_tokens: Option<LimitHeaders>,
    pub(super) output_tokens: Option<LimitHeaders>,
    #[serde(default)]
    pub(super) plan: Vec<SubscriptionHeaders>,
}

/// The names of the headers with the limit, the remaining quota and the reset of one resource.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct LimitHeaders {
    pub(super) limit: HeaderField,
    pub(super) remaining: HeaderField,
    pub(super) reset: HeaderField,
}

/// The names of the headers with the usage of one subscription window.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SubscriptionHeaders {
    pub(super) used: Option<HeaderField>,
    pub(super) used_is: Option<UsedShareFormat>,
    pub(super) reset: HeaderField,
    pub(super) status: Option<HeaderField>,
    pub(super) spent: Option<String>,
}

/// The notation in which a header states the used share of a quota.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum UsedShareFormat {
    /// 1 is the whole.
    Fraction,
    /// 100 is the whole.
    Percent,
}

/// The name of a header, possibly with the key of a part of its value.
#[derive(Debug, Deserialize)]
#[serde(from = "String")]
pub(super) struct HeaderField {
    header: String,
    key: Option<String>,
}

impl From<String> for HeaderField {
    fn from(text: String) -> Self {
        match text.split_once(';') {
            Some((header, key)) => Self {
                header: header.to_owned(),
                key: Some(key.to_owned()),
            },
            None => Self {
                header: text,
                key: None,
            },
        }
    }
}

impl HeaderField {
    /// Returns the value of this header.
    pub(super) fn find<'h>(&self, headers: &'h Headers) -> Option<&'h str> {
        let value = headers.get(&self.header)?;
        let mut parts = value.split([';', ',']).map(str::trim);
        match &self.key {
            None => parts.next(),
            Some(key) => parts.find_map(|part| {
                let (name, value) = part.split_once('=')?;
                (name.trim() == key).then_some(value.trim())
            }),
        }
    }
}

impl HeaderFamily {
    fn applies_to(&self, provider: &str) -> bool {
        self.providers.is_empty() || self.providers.iter().any(|known| known == provider)
    }
}

/// Returns the header families a provider may use, in order.
pub(super) fn families(provider: &str) -> impl Iterator<Item = &'static HeaderFamily> {
    static BUILT_IN: LazyLock<LimitHeadersFile> = LazyLock::new(|| parse().unwrap_or_default());
    BUILT_IN
        .family
        .iter()
        .filter(move |family| family.applies_to(provider))
}

pub(super) fn parse() -> Result<LimitHeadersFile, toml::de::Error> {
    let known = FILE.split_once(SAMPLES).map_or(FILE, |(known, _)| known);
    toml::from_str(known)
}
