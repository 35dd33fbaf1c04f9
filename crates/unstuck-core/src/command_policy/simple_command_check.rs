//! Checks if a command is simple: only simple ones may run unlisted under `on_unknown = "allow"`.
//!
//! This does not approve by itself: the owner has allowed unknown commands, and this restricts them to one known
//! program with arguments that execute nothing of the project.

use super::direct_or_shell::is_shell_neutral;
use super::program_knowledge::ProgramKnowledge;
use super::safe_display::{contains_secret, sanitize_command};

/// Returns why a command is not simple; none if it is.
pub(super) fn simple_command_objection(command: &str) -> Option<String> {
    let odd = command.chars().find(|c| !is_shell_neutral(*c) && *c != ' ');
    if let Some(odd) = odd {
        return Some(format!(
            "the command contains `{}`",
            sanitize_command(&odd.to_string())
        ));
    }
    let words: Vec<_> = command.split(' ').collect();
    let (program, arguments) = words.split_first()?;
    if words.contains(&"") {
        return Some("the command contains consecutive spaces".to_owned());
    }
    if !is_bare_name(program) {
        return Some(format!("`{program}` is not a plain program name"));
    }
    if contains_secret(command) {
        return Some("the command seems to contain a secret".to_owned());
    }
    ProgramKnowledge::built_in().approval_reason(program, arguments)
}

/// Returns true if a word is a program name that is searched in the owner's PATH.
fn is_bare_name(word: &str) -> bool {
    word.starts_with(|c: char| c.is_ascii_alphanumeric())
        && word
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || "_.+-".contains(c))
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::simple_command_objection;

    #[derive(Deserialize)]
    struct Samples {
        sample: Vec<Sample>,
    }

    #[derive(Deserialize)]
    struct Sample {
        plain: Vec<String>,
        asks: Vec<String>,
    }

    #[test]
    fn every_pattern_is_valid() {
        let file = include_str!("../../data/programs.toml");
        let (known, _) = file.split_once("# --- samples ---").unwrap();
        let known: toml::Table = toml::from_str(known).unwrap();
        for plain in known["plain"].as_array().unwrap() {
            for line in plain["lines"].as_array().unwrap() {
                let line = line.as_str().unwrap();
                assert!(regex::Regex::new(line).is_ok(), "{line}");
                assert!(line.starts_with('^') && line.ends_with('$'), "{line}");
            }
        }
    }

    #[test]
    fn every_sample_is_evaluated_as_stated() {
        let file = include_str!("../../data/programs.toml");
        let (_, samples) = file.split_once("# --- samples ---").unwrap();
        let samples: Samples = toml::from_str(samples).unwrap();
        for sample in &samples.sample {
            for command in &sample.plain {
                assert_eq!(simple_command_objection(command), None, "{command}");
            }
            for command in &sample.asks {
                assert!(simple_command_objection(command).is_some(), "{command}");
            }
        }
    }
}
