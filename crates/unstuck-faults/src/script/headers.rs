//! Script values of additional headers.

use std::collections::BTreeMap;

use hyper::header::{HeaderName, HeaderValue};
use serde::Deserialize;
use serde::de::{Deserializer, Error};

/// Parses header names and values.
pub(super) fn deserialize_headers<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<BTreeMap<String, String>, D::Error> {
    let headers = BTreeMap::<String, String>::deserialize(deserializer)?;
    for (name, value) in &headers {
        if name.parse::<HeaderName>().is_err() || HeaderValue::from_str(value).is_err() {
            return Err(D::Error::custom(format!(
                "`{name}: {value}` is not a valid header"
            )));
        }
    }
    Ok(headers)
}
