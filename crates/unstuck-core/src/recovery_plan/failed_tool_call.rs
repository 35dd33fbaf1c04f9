//! The failed call, parsed: its tool and arguments, or the words of its command.

use std::ops::Range;

use serde_json::{Map, Value};

use super::shell_lexer::{ShellToken, ShellTokenKind, UnclosedQuote, shell_tokens};
use crate::failure::{Failure, FailureLayer};
use crate::knowledge::{RecoveryKnowledge, ToolRole};

/// A failed tool call: its tool and arguments, or the words of its command.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct FailedToolCall {
    /// The tool's name, as the agent knows it.
    pub tool: Option<String>,
    /// The role of the tool, if known.
    pub role: Option<ToolRole>,
    /// The arguments of the tool.
    pub args: Map<String, Value>,
    /// The shell command.
    pub command: Option<String>,
    /// The simple commands of the shell command, in order.
    pub commands: Vec<SimpleCommand>,
    /// The unclosed quote in the command.
    pub unclosed_quote: Option<UnclosedQuote>,
}

/// A simple command: a program with its arguments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SimpleCommand {
    /// The name of the program.
    pub program: String,
    /// The arguments.
    pub arguments: Vec<ShellToken>,
    /// The position of program and arguments in the command.
    pub span: Range<usize>,
    /// The duration argument of a preceding `timeout`.
    pub timeout: Option<ShellToken>,
}

/// Words that may precede the program.
const PREFIX_WORDS: [&str; 17] = [
    "sudo", "env", "time", "nohup", "exec", "command", "nice", "if", "then", "else", "elif", "do",
    "while", "until", "!", "{", "stdbuf",
];

impl FailedToolCall {
    /// Parses the failed call from the failure and the arguments of the tool, if the caller has them.
    ///
    /// ```
    /// use unstuck_core::Failure;
    /// use unstuck_core::recovery_plan::FailedToolCall;
    /// use unstuck_core::knowledge::RecoveryKnowledge;
    ///
    /// let failure = Failure::tool("Bash").with_command("cd app && rg 'fn main' src");
    /// let call = FailedToolCall::from_failure(RecoveryKnowledge::built_in(), &failure, None);
    /// let programs: Vec<_> = call.commands.iter().map(|one| one.program.as_str()).collect();
    /// assert_eq!(programs, ["cd", "rg"]);
    /// ```
    pub fn from_failure(
        recovery_knowledge: &RecoveryKnowledge,
        failure: &Failure,
        args: Option<&Value>,
    ) -> Self {
        let known = failure
            .tool
            .as_deref()
            .and_then(|name| recovery_knowledge.tool(name));
        let written = failure.command.as_deref();
        let parsed = written.and_then(|text| serde_json::from_str::<Value>(text).ok());
        let args = args.or(parsed.as_ref()).and_then(Value::as_object);
        let args = args.cloned().unwrap_or_default();
        // A call with a command line and no arguments is a program such as `cargo`, not a tool of the agent.
        let is_program = known.is_none() && args.is_empty() && written.is_some();
        let is_tool = failure.layer != FailureLayer::Infra && !is_program;
        let is_shell = known.is_none_or(|tool| tool.role == ToolRole::Shell);
        let named = known.map_or("command", |tool| tool.own_arg_name("command"));
        let in_args = ["command", "script", "cmd", named];
        let in_args = in_args.iter().find_map(|name| args.get(*name)?.as_str());
        let text = written.filter(|_| !parsed.as_ref().is_some_and(Value::is_object));
        let command = text.or(in_args).filter(|_| is_shell).map(str::to_owned);
        let mut call = Self {
            tool: failure.tool.clone().filter(|_| is_tool),
            role: known.map(|tool| tool.role),
            command,
            args,
            ..Self::default()
        };
        match call.command.as_deref().map(shell_tokens) {
            Some(Ok(tokens)) => call.commands = simple_commands(&tokens),
            Some(Err(open)) => call.unclosed_quote = Some(open),
            None => {}
        }
        call
    }

    /// Returns the simple command that runs this program, or the last one that is not a `cd` or similar.
    pub fn failed_command(&self, program: Option<&str>) -> Option<&SimpleCommand> {
        let all = || self.commands.iter();
        let named = program.and_then(|name| all().find(|command| command.program == name));
        let working = |command: &&SimpleCommand| {
            !["cd", "export", "set", "echo", "true", "mkdir"].contains(&command.program.as_str())
        };
        named
            .or_else(|| all().find(working))
            .or_else(|| all().next())
    }
}

/// Returns the simple commands among the tokens of a command.
pub(crate) fn simple_commands(tokens: &[ShellToken]) -> Vec<SimpleCommand> {
    let parts = tokens.split(|token| token.kind == ShellTokenKind::Control);
    parts.filter_map(simple_command).collect()
}

fn simple_command(tokens: &[ShellToken]) -> Option<SimpleCommand> {
    let mut words = words_before_redirect(tokens).iter().peekable();
    let mut allowed = None;
    while let Some(word) = words.peek() {
        if word.value == "timeout" {
            words.next();
            while words.next_if(|word| word.value.starts_with('-')).is_some() {}
            allowed = words.next().cloned();
        } else if PREFIX_WORDS.contains(&word.value.as_str()) {
            words.next();
            while words.next_if(|word| word.value.starts_with('-')).is_some() {}
        } else if is_assignment(&word.value) {
            words.next();
        } else {
            break;
        }
    }
    let program = words.next()?;
    let arguments: Vec<ShellToken> = words.cloned().collect();
    let end = arguments
        .last()
        .map_or(program.span.end, |last| last.span.end);
    Some(SimpleCommand {
        program: program.value.clone(),
        span: program.span.start..end,
        arguments,
        timeout: allowed,
    })
}

fn words_before_redirect(tokens: &[ShellToken]) -> &[ShellToken] {
    let leading = tokens.iter();
    let count = leading
        .take_while(|token| token.kind == ShellTokenKind::Word)
        .count();
    &tokens[..count]
}

pub(crate) fn is_assignment(word: &str) -> bool {
    let Some((name, _)) = word.split_once('=') else {
        return false;
    };
    let letters = name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    letters && name.chars().next().is_some_and(|c| !c.is_ascii_digit())
}

impl SimpleCommand {
    /// Returns the program as written in the command.
    pub fn program_text<'a>(&self, command: &'a str) -> &'a str {
        let end = self
            .arguments
            .first()
            .map_or(self.span.end, |word| word.span.start);
        command
            .get(self.span.start..end)
            .unwrap_or_default()
            .trim_end()
    }

    /// Returns the arguments that are neither options nor values of options that take one.
    pub fn operands<'a>(
        &'a self,
        with_value: &'a [String],
    ) -> impl Iterator<Item = &'a ShellToken> {
        let mut is_value = false;
        self.arguments.iter().filter(move |word| {
            let skipped = std::mem::replace(&mut is_value, with_value.contains(&word.value));
            !skipped && !word.value.starts_with('-')
        })
    }

    /// Returns the value that follows one of these options.
    pub fn option_value(&self, names: &[&str]) -> Option<&str> {
        let at = self
            .arguments
            .iter()
            .position(|word| names.contains(&word.value.as_str()))?;
        self.arguments.get(at + 1).map(|word| word.value.as_str())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(failure: &Failure, args: Option<&Value>) -> FailedToolCall {
        FailedToolCall::from_failure(RecoveryKnowledge::built_in(), failure, args)
    }

    #[test]
    fn wrappers_and_assignments_are_not_the_program() {
        let failure = Failure::tool("Bash")
            .with_command("A=1 sudo -n timeout 60 git clone -b dev https://h/u/r out > log");
        let call = read(&failure, None);
        let git = call.failed_command(None).unwrap();
        assert_eq!(git.program, "git");
        assert_eq!(git.timeout.as_ref().unwrap().value, "60");
        assert_eq!(git.option_value(&["-b", "--branch"]), Some("dev"));
        let with_value = ["-b".to_owned()];
        let operands: Vec<_> = git.operands(&with_value).map(|word| &word.value).collect();
        assert_eq!(operands, ["clone", "https://h/u/r", "out"]);
    }

    #[test]
    fn arguments_of_a_tool_come_from_the_caller_or_the_json_of_the_command() {
        let args = json!({"file_path": "confg.yaml"});
        assert_eq!(
            read(&Failure::tool("Read"), Some(&args)).args["file_path"],
            "confg.yaml"
        );
        let failure = Failure::tool("Read").with_command(args.to_string());
        let call = read(&failure, None);
        assert_eq!((call.role, call.command), (Some(ToolRole::ReadFile), None));
        let call = read(&Failure::tool("run_bash"), Some(&json!({"script": "ls"})));
        assert_eq!(call.command.as_deref(), Some("ls"));
    }

    #[test]
    fn a_program_is_not_mistaken_for_a_tool_of_the_agent() {
        let call = read(&Failure::tool("cargo").with_command("cargo test"), None);
        assert_eq!(
            (call.tool, call.command.as_deref()),
            (None, Some("cargo test"))
        );
        let call = read(&Failure::infra("npm").with_command("npm test"), None);
        assert_eq!(
            (call.tool, call.command.as_deref()),
            (None, Some("npm test"))
        );
    }

    #[test]
    fn an_unclosed_quote_is_kept_for_the_correction() {
        let call = read(&Failure::tool("Bash").with_command("echo 'a"), None);
        assert_eq!(call.unclosed_quote.unwrap().quote, '\'');
    }
}
