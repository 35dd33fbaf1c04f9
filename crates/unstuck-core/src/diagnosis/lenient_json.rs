//! Parses JSON-like values anywhere in a text: JSON, dictionaries as printed by Python, Node and Elixir, JSON inside a
//! string, truncated JSON. Unparsable parts are skipped.

use serde_json::{Map, Value};

const MAX_DEPTH: usize = 32;
const MAX_DOCUMENTS: usize = 64;
/// Maximum number of bytes parsed: relevant documents are near the end of a long log.
const MAX_BYTES: usize = 256 << 10;

/// Returns the objects in a text, in the order in which they end; those inside strings follow their container.
pub(crate) fn find_documents(text: &str) -> Vec<Value> {
    let mut found = Vec::new();
    collect(tail(text), 2, &mut found);
    found
}

fn tail(text: &str) -> &str {
    let mut start = text.len().saturating_sub(MAX_BYTES);
    while !text.is_char_boundary(start) {
        start += 1;
    }
    &text[start..]
}

fn collect(text: &str, nesting: usize, found: &mut Vec<Value>) {
    let mut at = 0;
    let mut attempts = 0;
    while let Some(offset) = text[at..].find('{') {
        attempts += 1;
        if attempts > 4 * MAX_DOCUMENTS {
            return;
        }
        let start = at + offset;
        let mut reader = LenientJsonParser { text, at: start };
        match reader.value(0) {
            Some(value) if value.as_object().is_some_and(|object| !object.is_empty()) => {
                at = reader.at.max(start + 1);
                if nesting > 0 {
                    nested(&value, nesting - 1, found);
                }
                if found.len() == MAX_DOCUMENTS {
                    found.remove(0);
                }
                found.push(value);
            }
            _ => at = start + 1,
        }
    }
}

/// Collects objects hidden in strings before the one that contains them.
fn nested(value: &Value, nesting: usize, found: &mut Vec<Value>) {
    match value {
        Value::String(text) if text.contains('{') && text.contains(':') => {
            collect(text, nesting, found)
        }
        Value::Array(items) => items.iter().for_each(|item| nested(item, nesting, found)),
        Value::Object(object) => object
            .values()
            .for_each(|item| nested(item, nesting, found)),
        _ => {}
    }
}

struct LenientJsonParser<'t> {
    text: &'t str,
    at: usize,
}

impl LenientJsonParser<'_> {
    fn peek(&self) -> Option<char> {
        self.text[self.at..].chars().next()
    }

    fn next(&mut self) -> Option<char> {
        let c = self.peek()?;
        self.at += c.len_utf8();
        Some(c)
    }

    fn skip(&mut self, unwanted: impl Fn(char) -> bool) {
        while self.peek().is_some_and(&unwanted) {
            self.next();
        }
    }

    fn value(&mut self, depth: usize) -> Option<Value> {
        if depth > MAX_DEPTH {
            return None;
        }
        self.skip(char::is_whitespace);
        match self.peek()? {
            '{' => self.object(depth),
            '[' => self.array(depth),
            '"' | '\'' => self.string().map(Value::String),
            '\\' if self.text[self.at..].starts_with("\\\"") => self.string().map(Value::String),
            _ => self.word(),
        }
    }

    fn object(&mut self, depth: usize) -> Option<Value> {
        self.next();
        let mut object = Map::new();
        loop {
            self.skip(|c| c.is_whitespace() || c == ',');
            match self.peek() {
                None => break,
                Some('}') => {
                    self.next();
                    break;
                }
                Some(_) => {}
            }
            let key = match self.value(depth + 1)? {
                Value::String(key) => key,
                Value::Number(key) => key.to_string(),
                _ => return None,
            };
            self.skip(char::is_whitespace);
            match self.peek() {
                None => break,
                Some(':') => self.skip(|c| c == ':'),
                Some('=') => self.skip(|c| c == '=' || c == '>'),
                Some(_) => return None,
            }
            match self.value(depth + 1) {
                Some(value) => object.insert(key, value),
                None if self.peek().is_none() => break,
                None => return None,
            };
        }
        Some(Value::Object(object))
    }

    fn array(&mut self, depth: usize) -> Option<Value> {
        self.next();
        let mut items = Vec::new();
        loop {
            self.skip(|c| c.is_whitespace() || c == ',');
            match self.peek() {
                None => break,
                Some(']') => {
                    self.next();
                    break;
                }
                Some(_) => items.push(self.value(depth + 1)?),
            }
        }
        Some(Value::Array(items))
    }

    /// Parses a string in either kind of quotes, or in escaped ones as inside another string.
    fn string(&mut self) -> Option<String> {
        let escaped = self.peek() == Some('\\');
        if escaped {
            self.next();
        }
        let quote = self.next()?;
        let mut text = String::new();
        while let Some(c) = self.next() {
            match c {
                '\\' if escaped && self.peek() == Some(quote) => {
                    self.next();
                    return Some(text);
                }
                '\\' => self.escape(&mut text),
                _ if c == quote && !escaped => return Some(text),
                _ => text.push(c),
            }
        }
        Some(text)
    }

    fn escape(&mut self, text: &mut String) {
        match self.next() {
            Some('n' | 'r') => text.push('\n'),
            Some('t') => text.push(' '),
            Some('u') => {
                let code = self
                    .text
                    .get(self.at..self.at + 4)
                    .and_then(|hex| u32::from_str_radix(hex, 16).ok());
                if let Some(code) = code {
                    self.at += 4;
                    text.push(char::from_u32(code).unwrap_or('\u{fffd}'));
                }
            }
            Some(other) => text.push(other),
            None => {}
        }
    }

    fn word(&mut self) -> Option<Value> {
        let start = self.at;
        self.skip(|c| c.is_alphanumeric() || matches!(c, '_' | '-' | '+' | '.' | '$' | '@'));
        let word = &self.text[start..self.at];
        Some(match word {
            "" => return None,
            "null" | "None" | "nil" | "undefined" => Value::Null,
            "true" | "True" => Value::Bool(true),
            "false" | "False" => Value::Bool(false),
            _ => serde_json::from_str(word).unwrap_or_else(|_| Value::String(word.to_owned())),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn json_is_found_anywhere_in_a_text() {
        assert_eq!(
            find_documents("API Error: 400 {\"error\":{\"type\":\"x\"}} · bye"),
            [json!({"error":{"type":"x"}})]
        );
        assert_eq!(
            find_documents("data: {\"a\":1}\n\ndata: {\"b\":2}\n"),
            [json!({"a":1}), json!({"b":2})]
        );
    }

    #[test]
    fn other_notations_are_parsed() {
        assert_eq!(
            find_documents("{'error': {'code': None, 'ok': True}}"),
            [json!({"error":{"code":null,"ok":true}})]
        );
        assert_eq!(
            find_documents("{ code: 'ECONNREFUSED', port: 5432 }"),
            [json!({"code":"ECONNREFUSED","port":5432})]
        );
        assert_eq!(
            find_documents("%{\"error\" => \"bad\"}"),
            [json!({"error":"bad"})]
        );
    }

    #[test]
    fn truncated_json_is_parsed_as_far_as_possible() {
        assert_eq!(
            find_documents("{\"error\":{\"type\":\"overloaded_error\",\"mess"),
            [json!({"error":{"type":"overloaded_error"}})]
        );
    }

    #[test]
    fn json_inside_a_string_is_found() {
        let found = find_documents(r#"{"message":"{\"error\":{\"code\":429}}"}"#);
        assert_eq!(found[0], json!({"error":{"code":429}}));
    }

    #[test]
    fn source_code_and_garbage_are_not_documents() {
        assert_eq!(
            find_documents("fn main() { let x = 5; }"),
            Vec::<Value>::new()
        );
        assert_eq!(find_documents("{{{{[[[[}"), Vec::<Value>::new());
    }
}
