//! Sets a member of the JSON request.

use bytes::Bytes;
use serde_json::value::RawValue;

use super::json_edits::JsonEdits;
use crate::protocol::json::members;

/// Returns the body with this value in every member of those names, since it is not known which of two an upstream
/// reads. If there is none, the first name is added. `None` if the body is not an object.
pub(super) fn set_member(body: &[u8], names: &[&str], value: &str) -> Option<Bytes> {
    let mut edits = JsonEdits::new(body);
    for (_, old) in members(body)?
        .iter()
        .filter(|(key, _)| names.contains(&&**key))
    {
        edits.replace(old, value.to_owned())?;
    }
    if edits.is_empty() {
        let whole: &RawValue = serde_json::from_slice(body).ok()?;
        edits.prepend_member(whole, &format!("\"{}\":{value}", names.first()?))?;
    }
    edits.apply()
}
