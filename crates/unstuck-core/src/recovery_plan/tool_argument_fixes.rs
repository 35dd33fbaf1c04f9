//! Corrections of tool call arguments: types, required and unknown names, timeouts, sizes and amounts.

use serde_json::{Map, Value, json};

use super::failure_message_values;

/// The arguments of a tool call.
pub(crate) type ToolArgs = Map<String, Value>;

/// The maximum number of files, lines or similar in a reduced call.
pub(crate) const REDUCED_COUNT: usize = 10;

/// Converts the arguments to the types that the message asks for.
///
/// Arguments named in the message are converted; if it names none, all that can be. Without an expected type in the
/// message, strings that are numbers or booleans are converted to those.
pub(crate) fn with_expected_types(args: &ToolArgs, message: &str) -> ToolArgs {
    let expected = failure_message_values::expected_type(message);
    let named = |name: &str| contains_word(message, name);
    let any_named = args.keys().any(|name| named(name));
    let convert = |(name, value): (&String, &Value)| {
        let new = match &expected {
            Some(_) if any_named && !named(name) => None,
            Some(kind) => convert_to(value, kind),
            None => guess_type(value),
        };
        (name.clone(), new.unwrap_or_else(|| value.clone()))
    };
    args.iter().map(convert).collect()
}

/// True if the text contains the name as a whole word.
pub(crate) fn contains_word(text: &str, word: &str) -> bool {
    let part = |c: char| c.is_alphanumeric() || c == '_';
    let starts = word.chars().next().is_some_and(part);
    let ends = word.chars().last().is_some_and(part);
    !word.is_empty()
        && text.match_indices(word).any(|(at, _)| {
            let before = text[..at].chars().last();
            let after = text[at + word.len()..].chars().next();
            let is_part = starts && before.is_some_and(part) || ends && after.is_some_and(part);
            !is_part
        })
}

fn convert_to(value: &Value, expected: &str) -> Option<Value> {
    let text = value.as_str().map(str::trim);
    match expected.to_ascii_lowercase().as_str() {
        "number" | "float" | "f64" => to_number(text?),
        "integer" | "int" | "u64" | "u32" | "i64" | "usize" => match value {
            Value::Number(number) => number.as_f64().map(|float| json!(float.trunc() as i64)),
            _ => text?.parse::<i64>().ok().map(Value::from),
        },
        "boolean" | "bool" => to_bool(text?),
        "string" | "str" => (!value.is_string()).then(|| Value::String(value.to_string())),
        "array" | "list" | "sequence" => match text.and_then(parse_json) {
            Some(list @ Value::Array(_)) => Some(list),
            _ if value.is_array() => None,
            _ => Some(json!([value])),
        },
        "object" | "dict" | "dictionary" | "map" => parse_json(text?).filter(Value::is_object),
        _ => None,
    }
}

fn parse_json(text: &str) -> Option<Value> {
    serde_json::from_str(text).ok()
}

fn to_number(text: &str) -> Option<Value> {
    let whole = text.parse::<i64>().ok().map(Value::from);
    whole.or_else(|| {
        let float = text.parse::<f64>().ok();
        float
            .and_then(serde_json::Number::from_f64)
            .map(Value::from)
    })
}

fn to_bool(text: &str) -> Option<Value> {
    match text.to_ascii_lowercase().as_str() {
        "true" | "yes" | "1" => Some(json!(true)),
        "false" | "no" | "0" => Some(json!(false)),
        _ => None,
    }
}

fn guess_type(value: &Value) -> Option<Value> {
    let text = value.as_str()?.trim();
    match text {
        "true" | "false" => to_bool(text),
        _ => to_number(text),
    }
}

/// Adds a placeholder for each argument that the message reports as missing.
pub(crate) fn with_missing_required(args: &ToolArgs, message: &str) -> ToolArgs {
    let mut all = with_expected_types(args, message);
    for name in failure_message_values::required(message) {
        all.entry(name.clone())
            .or_insert_with(|| json!(format!("<{name}>")));
    }
    all
}

/// Names of arguments without which a call is meaningless.
const ESSENTIAL_ARGS: [&str; 16] = [
    "path",
    "file_path",
    "filePath",
    "file",
    "dir",
    "command",
    "script",
    "cmd",
    "url",
    "query",
    "pattern",
    "content",
    "text",
    "name",
    "id",
    "input",
];

/// Parts of option names that keep a call from doing harm, such as `--dry-run`.
const SAFETY_OPTION_PARTS: [&str; 11] = [
    "dry",
    "check",
    "simulat",
    "preview",
    "readonly",
    "read-only",
    "read_only",
    "no-",
    "no_",
    "confirm",
    "plan",
];

/// True if an argument may be what keeps the call from doing harm, so that it must never be removed.
pub(crate) fn is_safety_option(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    SAFETY_OPTION_PARTS.iter().any(|part| name.contains(part)) || name == "-n"
}

/// Keeps only the needed arguments: removes the unknown ones, or otherwise the optional ones.
pub(crate) fn with_essential_only(args: &ToolArgs, message: &str) -> ToolArgs {
    let unknown = failure_message_values::unknown(message);
    let required = failure_message_values::required(message);
    let keep = |name: &String| match unknown.is_empty() {
        _ if is_safety_option(name) => true,
        false => !unknown.contains(name),
        true => ESSENTIAL_ARGS.contains(&name.as_str()) || required.contains(name),
    };
    let kept = |args: &ToolArgs| -> ToolArgs {
        let all = args.iter().filter(|(name, _)| keep(name));
        all.map(|(name, value)| (name.clone(), value.clone()))
            .collect()
    };
    let simple = kept(&with_expected_types(args, message));
    if simple.is_empty() {
        args.clone()
    } else {
        simple
    }
}

/// Doubles the named timeout; sets twice the usual one if there is none.
pub(crate) fn with_doubled_timeout(args: &ToolArgs, name: &str, usual: u64) -> ToolArgs {
    let mut all = args.clone();
    let given = args.iter().find(|(key, value)| {
        (key.as_str() == name || key.to_ascii_lowercase().contains("timeout")) && value.is_number()
    });
    let (key, old) = given.map_or((name, usual), |(key, value)| {
        (key.as_str(), value.as_f64().map_or(usual, |old| old as u64))
    });
    all.insert(key.to_owned(), json!(old.saturating_mul(2)));
    all
}

/// Reduces the amount, if an argument is a long list or a limit.
pub(crate) fn with_reduced_amount(args: &ToolArgs) -> Option<ToolArgs> {
    let mut all = args.clone();
    let mut changed = false;
    for (name, value) in &mut all {
        let is_limit = ["limit", "max", "count", "head", "depth"]
            .iter()
            .any(|part| name.contains(part));
        match value {
            Value::Array(items) if items.len() > REDUCED_COUNT => items.truncate(REDUCED_COUNT),
            Value::Number(number) if is_limit && number.as_u64() > Some(REDUCED_COUNT as u64) => {
                *value = json!(
                    number
                        .as_u64()
                        .map_or(REDUCED_COUNT as u64, |old| (old / 10).max(1))
                );
            }
            _ => continue,
        }
        changed = true;
    }
    changed.then_some(all)
}

/// Halves the content, if there is one.
pub(crate) fn with_half_content(args: &ToolArgs) -> Option<ToolArgs> {
    let (name, text) = ["content", "text", "file_text"]
        .iter()
        .find_map(|name| Some((*name, args.get(*name)?.as_str()?)))?;
    let half: String = text.chars().take(text.chars().count() / 2).collect();
    let mut all = args.clone();
    all.insert(name.to_owned(), json!(half));
    Some(all)
}

/// Returns the name of the argument that contains this text.
pub(crate) fn argument_containing<'a>(args: &'a ToolArgs, text: &str) -> Option<&'a str> {
    let found = args.iter().find(|(_, value)| value.as_str() == Some(text));
    found.map(|(name, _)| name.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn args(value: Value) -> ToolArgs {
        value.as_object().unwrap().clone()
    }

    /// S2-08: a string becomes a number, an object a JSON string, as the message asks.
    #[test]
    fn types_are_converted_as_the_message_asks() {
        let given = args(json!({"path": "12", "limit": "5"}));
        let fixed = with_expected_types(&given, "limit: Expected number, received string");
        assert_eq!(Value::from(fixed), json!({"path": "12", "limit": 5}));
        let fixed = with_expected_types(&args(json!({"body": {"a": 1}})), "body must be a string");
        assert_eq!(Value::from(fixed), json!({"body": "{\"a\":1}"}));
        let fixed = with_expected_types(
            &args(json!({"files": "a.rs"})),
            "files: expected array, got string",
        );
        assert_eq!(Value::from(fixed), json!({"files": ["a.rs"]}));
        let fixed = with_expected_types(
            &args(json!({"all": "true"})),
            "`all` should be a valid boolean",
        );
        assert_eq!(Value::from(fixed), json!({"all": true}));
    }

    #[test]
    fn required_arguments_get_a_placeholder_and_unknown_ones_are_removed() {
        let given = args(json!({"path": "a", "colour": "red"}));
        let all = with_missing_required(&given, "missing required parameter 'content'");
        assert_eq!(all["content"], "<content>");
        let simple = with_essential_only(&given, "unexpected keyword argument 'colour'");
        assert_eq!(Value::from(simple), json!({"path": "a"}));
        let simple = with_essential_only(&given, "invalid input");
        assert_eq!(Value::from(simple), json!({"path": "a"}));
    }

    /// S2-06: `timeout_ms` 15000 becomes 30000, and 100 files become 10.
    #[test]
    fn timeouts_double_and_amounts_shrink() {
        let longer = |given| Value::from(with_doubled_timeout(&args(given), "timeout_ms", 15_000));
        assert_eq!(
            longer(json!({"timeout_ms": 15000})),
            json!({"timeout_ms": 30000})
        );
        assert_eq!(longer(json!({})), json!({"timeout_ms": 30000}));
        let files: Vec<_> = (0..100).map(|n| n.to_string()).collect();
        let fewer =
            with_reduced_amount(&args(json!({"files": files, "max_results": 500}))).unwrap();
        assert_eq!(fewer["files"].as_array().unwrap().len(), 10);
        assert_eq!(fewer["max_results"], 50);
        assert_eq!(with_reduced_amount(&args(json!({"path": "a"}))), None);
    }
}
