//! The tools, directories and executed files of a command.

use super::knowledge::{InterpreterSpec, ToolFileKnowledge, ToolWatchedFiles};

/// One command and its arguments, without quotes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShellCommandWords {
    /// Its words.
    pub words: Vec<String>,
}

/// The tools, directories and executed files of a command.
#[derive(Debug, Default)]
pub struct CommandToolsAndFiles<'k> {
    /// The tools.
    pub tools: Vec<&'k ToolWatchedFiles>,
    /// Candidates of files that it executes.
    pub executes: Vec<String>,
    /// Words that may be working directories.
    pub directories: Vec<String>,
    /// The working directory of the following commands.
    pub next_directory: Option<String>,
    /// Words that may be script names.
    pub scripts: Vec<String>,
}

impl ShellCommandWords {
    pub(super) fn new(words: Vec<String>) -> Self {
        Self { words }
    }

    /// Returns its usage.
    pub fn usage<'k>(&self, known: &'k ToolFileKnowledge) -> CommandToolsAndFiles<'k> {
        let Some(at) = self.program_position(known) else {
            return CommandToolsAndFiles::default();
        };
        let (program, arguments) = (self.words[at].as_str(), &self.words[at + 1..]);
        let name = program_base_name(program);
        if matches!(name, "cd" | "pushd") {
            return CommandToolsAndFiles {
                next_directory: arguments.iter().find(|word| !is_option(word)).cloned(),
                ..CommandToolsAndFiles::default()
            };
        }
        let mut found = CommandToolsAndFiles::default();
        if program.contains('/') {
            found.executes.push(program.to_owned());
        }
        if known.harmless.iter().any(|harmless| harmless == name) {
            return found;
        }
        found.add_tools(known, name, arguments);
        found.add_files(known, name, arguments);
        let values = arguments
            .iter()
            .flat_map(|word| [Some(word.as_str()), option_value(word)]);
        let values = values.flatten().filter(|word| !is_option(word));
        found.directories = values.map(str::to_owned).collect();
        if found.tools.iter().any(|tool| tool.scripts) {
            let words = arguments.iter().filter(|word| !is_option(word));
            found.scripts = words.cloned().collect();
        }
        found
    }

    /// Returns the index of the program that is actually run.
    fn program_position(&self, known: &ToolFileKnowledge) -> Option<usize> {
        let starts_another = |word: &str| {
            known
                .wrappers
                .iter()
                .any(|name| name == program_base_name(word))
        };
        let is_number = |word: &str| word.starts_with(|c: char| c.is_ascii_digit());
        let mut wrapped = false;
        for (at, word) in self.words.iter().enumerate() {
            if starts_another(word) {
                wrapped = true;
            } else if is_assignment(word) || wrapped && (is_option(word) || is_number(word)) {
                continue;
            } else {
                return Some(at);
            }
        }
        None
    }
}

impl<'k> CommandToolsAndFiles<'k> {
    fn add_tools(&mut self, known: &'k ToolFileKnowledge, name: &str, arguments: &[String]) {
        let own = known.tools_named(name, arguments);
        let is_interpreter = known.interpreter_named(name).is_some();
        let carries = |word: &String| known.continuation_words.contains(word) || word == "-m";
        // An unknown program may run any of its words.
        if own.is_empty() || is_interpreter || arguments.iter().any(carries) {
            for word in arguments {
                self.tools
                    .extend(known.tools_named(program_base_name(word), arguments));
            }
        }
        self.tools.extend(own);
    }

    fn add_files(&mut self, known: &ToolFileKnowledge, name: &str, arguments: &[String]) {
        if let Some(interpreter) = known.interpreter_named(name) {
            self.add_interpreted_files(known, interpreter, arguments);
        }
        for (at, word) in arguments.iter().enumerate() {
            let after = &arguments[at + 1..];
            // A program may start another one.
            if let Some(interpreter) = known.interpreter_named(program_base_name(word)) {
                self.add_interpreted_files(known, interpreter, after);
            }
            if at > 0 && known.continuation_words.contains(&arguments[at - 1]) && word.contains('/')
            {
                self.executes.push(word.clone());
            }
        }
        for option in self.tools.iter().flat_map(|tool| &tool.options) {
            let named = arguments.iter().enumerate().filter_map(|(at, word)| {
                match word.strip_prefix(option.as_str())? {
                    "" => arguments.get(at + 1).map(String::as_str),
                    rest => rest.strip_prefix('=').or(Some(rest)),
                }
            });
            self.executes.extend(named.map(str::to_owned));
        }
    }

    /// Adds the files that an interpreter executes: values of its options, and the first word that is not an option.
    fn add_interpreted_files(
        &mut self,
        known: &ToolFileKnowledge,
        by: &InterpreterSpec,
        arguments: &[String],
    ) {
        let mut after_option = false;
        for (at, word) in arguments.iter().enumerate() {
            if is_option(word) {
                if by.is_inline(word) {
                    return;
                }
                if word == "-m"
                    && let Some(module) = arguments.get(at + 1)
                {
                    let path = module.replace('.', "/");
                    let files = by.modules.iter().map(|end| format!("{path}{end}"));
                    self.executes.extend(files);
                    return;
                }
                if let Some(value) = option_value(word) {
                    self.executes.push(value.to_owned());
                }
                after_option = true;
                continue;
            }
            if known.continuation_words.contains(word) {
                continue;
            }
            let files = by.endings.iter().map(|end| format!("{word}{end}"));
            self.executes.extend(files);
            if !after_option {
                return;
            }
            after_option = false;
        }
    }
}

fn is_option(word: &str) -> bool {
    word.starts_with('-') && word.len() > 1
}

fn is_assignment(word: &str) -> bool {
    word.split_once('=').is_some_and(|(name, _)| {
        let is_letter = |c: char| c.is_ascii_alphanumeric() || c == '_';
        !name.is_empty() && name.chars().all(is_letter)
    })
}

/// Returns the value in `--file=x`.
fn option_value(word: &str) -> Option<&str> {
    word.split_once('=').map(|(_, value)| value)
}

/// Returns a program's name without its directory and package version.
fn program_base_name(word: &str) -> &str {
    let name = word.rsplit('/').next().unwrap_or(word);
    match name.split('@').next() {
        Some("") | None => name,
        Some(name) => name,
    }
}
