//! Values extracted from failure messages: the missing program, the path, the argument, the port.
//!
//! Messages are untrusted text: extracted values are only ever used quoted.

use std::sync::LazyLock;

use regex::Regex;

use crate::diagnosis::Diagnosis;
use crate::failure::{Failure, LossyText};

/// The maximum length of text that is searched.
const MAX_TEXT_LEN: usize = 8_000;

/// Returns the complete failure text, the decisive line first.
pub(crate) fn failure_message(failure: &Failure, diagnosis: &Diagnosis) -> String {
    let texts = [&failure.stderr, &failure.body, &failure.stdout];
    let mut all = diagnosis.evidence.line.clone();
    for text in texts.into_iter().flatten() {
        all.push('\n');
        all.push_str(&tail(text));
    }
    for error in &failure.validation_errors {
        all.push('\n');
        all.push_str(error);
    }
    all
}

fn tail(text: &LossyText) -> String {
    let text = text.to_str();
    let skip = text.chars().count().saturating_sub(MAX_TEXT_LEN);
    text.chars().skip(skip).collect()
}

/// A list of regexes whose first group is the value; the first match is used.
struct ValuePatterns(Vec<Regex>);

impl ValuePatterns {
    fn new(patterns: &[&str]) -> Self {
        let all = patterns.iter();
        Self(all.filter_map(|one| Regex::new(one).ok()).collect())
    }

    fn first(&self, text: &str) -> Option<String> {
        let found = self.0.iter().find_map(|one| one.captures(text))?;
        let value = found.get(1)?.as_str().trim();
        (!value.is_empty()).then(|| value.to_owned())
    }

    fn all(&self, text: &str) -> Vec<String> {
        let mut names = Vec::new();
        for found in self.0.iter().flat_map(|one| one.captures_iter(text)) {
            let Some(name) = found.get(1).map(|group| group.as_str().to_owned()) else {
                continue;
            };
            if !names.contains(&name) {
                names.push(name);
            }
        }
        names
    }
}

const PROGRAM: [&str; 6] = [
    r"(?i)command not found: *([A-Za-z0-9_.+-]+)",
    r"(?m)(?:^|[:\s])([A-Za-z0-9_.+-]+): (?:command )?not found",
    r"'([A-Za-z0-9_.+-]+)' is not recognized",
    r"(?i)no such file or directory[^\n]*spawn ([A-Za-z0-9_.+-]+)",
    r"spawn ([A-Za-z0-9_.+-]+) ENOENT",
    r#"exec: "?([A-Za-z0-9_.+-]+)"?: executable file not found"#,
];

const PATH: [&str; 8] = [
    r"(?i)(?:no such file or directory|permission denied|is a directory|read-only file system)[^'\n]*'([^'\n]+)'",
    r#"(?i)(?:no such file or directory|permission denied)[^"\n]*"([^"\n]+)""#,
    r"(?i)(?:cannot|can't|could not) (?:access|open|create|stat|read|remove|touch)[^'\n]*'([^'\n]+)'",
    r"(?im)(?:^|: )([^:\s'][^:\n']*): (?:No such file or directory|Permission denied|cannot open|Read-only file system)",
    r"(?i)(?:file|path|directory) (?:does not exist|not found)[:.]? *['`\x22]?([^\s'`\x22,]+)",
    r"(?i)(?:file|path|directory) ['`\x22]([^'`\x22\n]+)['`\x22] (?:does not exist|not found|was not found|is outside)",
    r"(?i)FileNotFoundError[^'\n]*'([^'\n]+)'",
    r"(?i)([^\s'`\x22]+) is (?:outside|not within|not inside)",
];

const REQUIRED: [&str; 4] = [
    r"(?i)missing (?:a )?required (?:parameter|property|argument|field|option)s?:? *[`'\x22]?([\w.-]+)",
    r"(?i)required (?:parameter|property|argument|field) [`'\x22]?([\w.-]+)[`'\x22]? (?:is )?missing",
    r"[`'\x22]([\w.-]+)[`'\x22] is a required (?:property|parameter|argument)",
    r"(?i)missing \d+ required positional arguments?: '([\w]+)'",
];

const UNKNOWN: [&str; 4] = [
    r"(?i)(?:(?:unknown|unexpected|unrecognized|unrecognised) (?:argument|flag|parameter|property|keyword argument|field)s?|(?:unknown|unexpected|unrecognized|unrecognised|invalid|illegal) option):?(?: --)? *[`'\x22]?(-{0,2}[\w][\w.-]*)",
    r"(?i)unexpected keyword argument '(\w+)'",
    r"(?i)additional propert(?:y|ies)[^'\n]*'(\w+)'",
    r"(?i)unrecognized arguments: (\S+)",
];

const TYPE: [&str; 5] = [
    r#"(?i)"?expected"?:? *[`'"]?(?:an? |type |to be |of type )*[`'"]?(number|integer|int|float|string|str|boolean|bool|array|list|object|dict)\b"#,
    r"(?i)(?:must|should) be (?:of )?(?:type )?(?:an? )?(?:valid )?[`'\x22]?(number|integer|int|float|string|str|boolean|bool|array|list|object|dict|dictionary)\b",
    r"(?i)is not of type [`'\x22](\w+)",
    r"(?i)is not an? (?:valid )?(number|integer|int|float|string|boolean|array|list|object)\b",
    r"(?i)invalid type: [^\n]*expected (?:an? )?(u64|u32|i64|f64|usize|integer|string|boolean|sequence|map)\b",
];

const PORT: [&str; 3] = [
    r"(?i)(?:EADDRINUSE|address already in use|in use)[^\n]*?[:\s](\d{2,5})\b",
    r"(?i)port[: ]+(\d{2,5})\b",
    r":(\d{2,5})\b[^\n]*(?:in use|EADDRINUSE)",
];

macro_rules! mention {
    ($(#[$doc:meta] $name:ident $method:ident $list:ident -> $result:ty;)+) => {
        $(#[$doc]
        pub(crate) fn $name(text: &str) -> $result {
            static PATTERNS: LazyLock<ValuePatterns> = LazyLock::new(|| ValuePatterns::new(&$list));
            PATTERNS.$method(text)
        })+
    };
}

mention! {
    /// Returns the program that does not exist.
    missing_program first PROGRAM -> Option<String>;
    /// Returns the path that the failure is about.
    path first PATH -> Option<String>;
    /// Returns the missing arguments.
    required all REQUIRED -> Vec<String>;
    /// Returns the unknown arguments.
    unknown all UNKNOWN -> Vec<String>;
    /// Returns the expected type.
    expected_type first TYPE -> Option<String>;
    /// Returns the port that is in use.
    port first PORT -> Option<String>;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_regex_compiles() {
        for list in [&PROGRAM[..], &PATH, &REQUIRED, &UNKNOWN, &TYPE, &PORT] {
            assert_eq!(ValuePatterns::new(list).0.len(), list.len());
        }
    }

    #[test]
    fn the_missing_program_is_found_in_messages_of_several_shells() {
        for text in [
            "bash: line 1: rg: command not found",
            "sh: 1: rg: not found",
            "zsh: command not found: rg",
            "'rg' is not recognized as an internal or external command",
            "Error: spawn rg ENOENT",
        ] {
            assert_eq!(missing_program(text).as_deref(), Some("rg"), "{text}");
        }
    }

    #[test]
    fn the_path_is_found_in_messages_of_several_programs() {
        for text in [
            "cat: conf/app.yaml: No such file or directory",
            "ENOENT: no such file or directory, open 'conf/app.yaml'",
            "FileNotFoundError: [Errno 2] No such file or directory: 'conf/app.yaml'",
            "ls: cannot access 'conf/app.yaml': No such file or directory",
            "File does not exist: conf/app.yaml",
            "bash: conf/app.yaml: Permission denied",
            "PermissionError: [Errno 13] Permission denied: 'conf/app.yaml'",
        ] {
            assert_eq!(path(text).as_deref(), Some("conf/app.yaml"), "{text}");
        }
    }

    #[test]
    fn argument_names_and_types_are_found() {
        assert_eq!(required("missing required parameter 'path'"), ["path"]);
        assert_eq!(
            unknown("error: unexpected argument '--foo' found"),
            ["--foo"]
        );
        for text in [
            "Expected number, received string",
            "limit must be a number",
            r#"{"expected":"number"}"#,
        ] {
            assert_eq!(expected_type(text).as_deref(), Some("number"), "{text}");
        }
        assert_eq!(
            expected_type("'5' is not of type 'integer'").as_deref(),
            Some("integer")
        );
        assert_eq!(
            port("Error: listen EADDRINUSE: address already in use :::3000").as_deref(),
            Some("3000")
        );
    }
}
