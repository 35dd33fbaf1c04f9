//! JSON in an agent's output, and paths into it.

use std::borrow::Cow;

use serde_json::Value;

/// Parses the JSON objects of a text: a whole document, possibly after a banner, or one per line. Broken ones are
/// skipped.
pub(super) fn json_records(text: &str) -> Vec<Value> {
    let mut found = Vec::new();
    let mut rest = text;
    // A truncated document would otherwise be parsed to its end from each of its lines.
    let mut is_cut = false;
    while !rest.is_empty() {
        let line_len = rest.find('\n').map_or(rest.len(), |end| end + 1);
        let mut len = line_len;
        if rest.trim_start_matches([' ', '\t', '\r']).starts_with('{') {
            let part = if is_cut { &rest[..line_len] } else { rest };
            let mut values = serde_json::Deserializer::from_str(part).into_iter::<Value>();
            match values.next() {
                Some(Ok(value)) => {
                    found.push(value);
                    len = values.byte_offset().max(1);
                }
                Some(Err(error)) => is_cut |= error.is_eof(),
                None => {}
            }
        }
        rest = rest.get(len..).unwrap_or_default();
    }
    found
}

/// Returns the values at a path: `*` is every element of an array or object, `-1` the last one, `#` every key.
pub(super) fn values_at<'v>(value: &'v Value, path: &str) -> Vec<Cow<'v, Value>> {
    let mut here = vec![Cow::Borrowed(value)];
    for step in path.split('/').skip(1) {
        here = here
            .into_iter()
            .flat_map(|value| match value {
                Cow::Borrowed(value) => step_into(value, step),
                // A key has no elements.
                Cow::Owned(_) => Vec::new(),
            })
            .collect();
    }
    here
}

fn step_into<'v>(value: &'v Value, step: &str) -> Vec<Cow<'v, Value>> {
    let all = |values: &mut dyn Iterator<Item = &'v Value>| values.map(Cow::Borrowed).collect();
    match (value, step) {
        (Value::Array(items), "*") => all(&mut items.iter()),
        (Value::Array(items), "-1") => all(&mut items.last().into_iter()),
        (Value::Array(items), _) => {
            let item = step.parse().ok().and_then(|at: usize| items.get(at));
            all(&mut item.into_iter())
        }
        (Value::Object(fields), "*") => all(&mut fields.values()),
        (Value::Object(fields), "#") => {
            let keys = fields.keys().map(|key| Value::from(key.as_str()));
            keys.map(Cow::Owned).collect()
        }
        (Value::Object(fields), _) => all(&mut fields.get(step).into_iter()),
        _ => Vec::new(),
    }
}

/// Returns the last string or number under a key in JSON that is too broken to be parsed.
pub(super) fn find_in_broken_json(text: &str, key: &str) -> Option<Value> {
    let quoted = format!("\"{key}\"");
    let places = text.rmatch_indices(&quoted);
    places.take(8).find_map(|(at, _)| {
        let after = text[at + quoted.len()..].trim_start().strip_prefix(':')?;
        // A number at the very end may be truncated.
        let mut values = serde_json::Deserializer::from_str(after).into_iter::<Value>();
        let value = values.next()?.ok()?;
        let is_whole = values.byte_offset() < after.len();
        (is_whole && (value.is_string() || value.is_number())).then_some(value)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn json_is_found_after_a_banner_on_lines_and_before_broken_parts() {
        let text = "banner {\n{\n \"a\": 1\n}\n{\"b\":2}\n{\"c\":\n{\"d\":4}\n";
        assert_eq!(
            json_records(text),
            [json!({"a": 1}), json!({"b": 2}), json!({"d": 4})]
        );
    }

    #[test]
    fn paths_select_every_element_the_last_element_and_keys() {
        let value = json!({"a": [{"b": 1}, {"b": 2}], "c": {"x": 1, "y": 2}});
        let at = |path| {
            let found = super::values_at(&value, path).into_iter();
            found.map(Cow::into_owned).collect::<Vec<Value>>()
        };
        assert_eq!(at("/a/*/b"), [json!(1), json!(2)]);
        assert_eq!(at("/a/-1/b"), [json!(2)]);
        assert_eq!(at("/a/0/b"), [json!(1)]);
        assert_eq!(at("/c/#"), [json!("x"), json!("y")]);
        assert_eq!(at("/c/z"), Vec::<Value>::new());
    }
}
