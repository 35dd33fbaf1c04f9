//! The JSON in an agent's output, and the paths into it.

use serde_json::Value;

/// The JSON objects of a text: a whole document, perhaps after a banner, or one on each line. What is broken is left out.
pub(super) fn records(text: &str) -> Vec<Value> {
    let mut found = Vec::new();
    let mut rest = text;
    // A document that was cut off would be read to the end from each of its lines.
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

/// The values at a path: `*` is every part of an array or object, `-1` the last one, `#` every key.
pub(super) fn at(value: &Value, path: &str) -> Vec<Value> {
    let mut here = vec![value.clone()];
    for step in path.split('/').skip(1) {
        here = here
            .iter()
            .flat_map(|value| step_into(value, step))
            .collect();
    }
    here
}

fn step_into(value: &Value, step: &str) -> Vec<Value> {
    match (value, step) {
        (Value::Array(items), "*") => items.clone(),
        (Value::Array(items), "-1") => items.last().cloned().into_iter().collect(),
        (Value::Array(items), _) => {
            let item = step.parse().ok().and_then(|at: usize| items.get(at));
            item.cloned().into_iter().collect()
        }
        (Value::Object(fields), "*") => fields.values().cloned().collect(),
        (Value::Object(fields), "#") => {
            fields.keys().map(|key| Value::from(key.as_str())).collect()
        }
        (Value::Object(fields), _) => fields.get(step).cloned().into_iter().collect(),
        _ => Vec::new(),
    }
}

/// The last string or number under a key in JSON that is too broken to be read.
pub(super) fn scavenged(text: &str, key: &str) -> Option<Value> {
    let quoted = format!("\"{key}\"");
    let places = text.rmatch_indices(&quoted);
    places.take(8).find_map(|(at, _)| {
        let after = text[at + quoted.len()..].trim_start().strip_prefix(':')?;
        // A number at the very end may have been cut.
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
    fn documents_are_found_after_a_banner_on_lines_and_in_front_of_broken_ones() {
        let text = "banner {\n{\n \"a\": 1\n}\n{\"b\":2}\n{\"c\":\n{\"d\":4}\n";
        assert_eq!(
            records(text),
            [json!({"a": 1}), json!({"b": 2}), json!({"d": 4})]
        );
    }

    #[test]
    fn paths_reach_every_part_the_last_part_and_keys() {
        let value = json!({"a": [{"b": 1}, {"b": 2}], "c": {"x": 1, "y": 2}});
        assert_eq!(at(&value, "/a/*/b"), [json!(1), json!(2)]);
        assert_eq!(at(&value, "/a/-1/b"), [json!(2)]);
        assert_eq!(at(&value, "/a/0/b"), [json!(1)]);
        assert_eq!(at(&value, "/c/#"), [json!("x"), json!("y")]);
        assert_eq!(at(&value, "/c/z"), Vec::<Value>::new());
    }
}
