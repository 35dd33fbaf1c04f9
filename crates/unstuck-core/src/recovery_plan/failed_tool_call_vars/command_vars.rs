//! Template variables of the failed command line: its program, options and operands.

use minijinja::Value;

use super::{FailedToolCallVarSources, FailedToolCallVars, RawShellWord};
use crate::failure::FailureKind;
use crate::recovery_plan::failed_tool_call::SimpleCommand;
use crate::recovery_plan::shell_lexer::{ShellToken, ShellTokenKind, shell_tokens};
use crate::recovery_plan::{failure_message_values, shell_rewrite, tool_argument_fixes};

pub(super) fn gather(facts: &mut FailedToolCallVars, source: &FailedToolCallVarSources<'_>) {
    let named = source
        .is_kind(FailureKind::CommandNotFound)
        .then(|| failure_message_values::missing_program(&source.message));
    let named = named.flatten();
    let failed = source.call.failed_command(named.as_deref());
    let program = named.or_else(|| failed.map(|command| command.program.clone()));
    if let Some(command) = &source.call.command {
        facts.set("command", command.as_str());
        facts.set_raw("script", Some(command.clone()));
    }
    facts.set_some("program", program.as_deref());
    if source.is_kind(FailureKind::CommandNotFound) {
        facts.set_some(
            "package",
            program
                .as_deref()
                .and_then(|name| package_name(source, name)),
        );
    }
    let fits = failed.filter(|command| Some(&command.program) == program.as_ref());
    if let Some(command) = fits {
        add_operands(facts, source, command);
        add_reductions(facts, source, command);
    }
    facts.failed_command = fits.cloned();
    facts.program = program;
}

fn package_name(source: &FailedToolCallVarSources<'_>, program: &str) -> Option<String> {
    let known = source.request.recovery_knowledge.hosts.package.get(program);
    let is_name = program
        .chars()
        .all(|c| c.is_ascii_alphanumeric() || "._+-".contains(c))
        && program
            .chars()
            .next()
            .is_some_and(|c| c.is_ascii_alphanumeric());
    known
        .cloned()
        .or_else(|| is_name.then(|| program.to_owned()))
}

fn add_operands(
    facts: &mut FailedToolCallVars,
    source: &FailedToolCallVarSources<'_>,
    command: &SimpleCommand,
) {
    let text = source.call.command.as_deref().unwrap_or_default();
    let with_value = source
        .request
        .recovery_knowledge
        .options_with_value(&command.program);
    let operands: Vec<&ShellToken> = command.operands(with_value).collect();
    let values: Vec<&str> = operands.iter().map(|word| word.value.as_str()).collect();
    facts.set("args", raw_word_list(text, &command.arguments));
    facts.set("operands", raw_word_list(text, operands.iter().copied()));
    facts.set("values", string_list(&values));
    facts.set("subcommand", values.first().copied().unwrap_or_default());
    facts.set("remote", values.iter().any(|value| value.contains(':')));
    facts.set("only_command", is_single_command(text, command));
    facts.set_raw("simple", text.get(command.span.clone()).map(str::to_owned));
    let first = command.arguments.first();
    let first = first.filter(|word| !word.value.starts_with('-'));
    facts.set_some(
        "args_after_first",
        first.map(|_| raw_word_list(text, &command.arguments[1..])),
    );
    facts.set_some(
        "json_path",
        values.first().and_then(|filter| dotted_json_path(filter)),
    );
    add_options(facts, command, &values);
}

/// True if the command consists only of this program, its arguments and redirections.
fn is_single_command(text: &str, command: &SimpleCommand) -> bool {
    let tokens = shell_tokens(text).unwrap_or_default();
    let joined = tokens
        .iter()
        .any(|token| token.kind == ShellTokenKind::Control);
    !joined && text[..command.span.start].trim().is_empty()
}

fn add_options(facts: &mut FailedToolCallVars, command: &SimpleCommand, values: &[&str]) {
    let words: Vec<&str> = command
        .arguments
        .iter()
        .map(|word| word.value.as_str())
        .collect();
    let flags = short_flags(&words);
    let long = ["--data", "--request", "--form", "--upload-file", "--json"];
    let sends = words
        .iter()
        .any(|word| long.iter().any(|option| word.starts_with(option)));
    facts.set("sends", sends || flags.contains(['X', 'd', 'F', 'T']));
    facts.set("flags", flags);
    facts.set("words", string_list(&words));
    facts.set_some(
        "output",
        command.option_value(output_options(&command.program)),
    );
    facts.set_some("file", archive_operand(command, values));
}

fn string_list(words: &[&str]) -> Value {
    words.iter().copied().map(Value::from).collect()
}

fn raw_word_list<'a>(text: &str, words: impl IntoIterator<Item = &'a ShellToken>) -> Value {
    let raw = |word: &ShellToken| {
        RawShellWord(text.get(word.span.clone()).unwrap_or_default().to_owned())
    };
    let all = words.into_iter().map(|word| Value::from_object(raw(word)));
    Value::from(all.collect::<Vec<_>>())
}

fn short_flags(words: &[&str]) -> String {
    let short = |word: &&&str| word.starts_with('-') && !word.starts_with("--");
    words.iter().filter(short).map(|word| &word[1..]).collect()
}

fn output_options(program: &str) -> &'static [&'static str] {
    match program {
        "curl" => &["-o", "--output"],
        "wget" => &["-O", "--output-document"],
        "unzip" => &["-d"],
        "tar" => &["-C", "--directory"],
        _ => &["-o", "--output"],
    }
}

fn archive_operand<'a>(command: &'a SimpleCommand, values: &[&'a str]) -> Option<&'a str> {
    let known = |value: &&&str| {
        [".tar", ".tgz", ".gz", ".bz2", ".xz"]
            .iter()
            .any(|end| value.contains(end))
    };
    command
        .option_value(&["-f"])
        .or_else(|| values.iter().find(known).copied())
}

/// Converts the simple path `.a.b[0]` of a jq filter to `a.b.0`.
fn dotted_json_path(filter: &str) -> Option<String> {
    let path = filter.strip_prefix('.')?.replace('[', ".").replace(']', "");
    let path = path.trim_matches('.').to_owned();
    let simple = |c: char| c.is_alphanumeric() || "_-.".contains(c);
    (!path.is_empty() && !path.starts_with('-') && !path.contains("..") && path.chars().all(simple))
        .then_some(path)
}

/// Adds variables for doing less or working in batches.
fn add_reductions(
    facts: &mut FailedToolCallVars,
    source: &FailedToolCallVarSources<'_>,
    command: &SimpleCommand,
) {
    let Some(text) = source.call.command.as_deref() else {
        return;
    };
    let with_value = source
        .request
        .recovery_knowledge
        .options_with_value(&command.program);
    let operands: Vec<&ShellToken> = command.operands(with_value).collect();
    if operands.len() <= tool_argument_fixes::REDUCED_COUNT {
        return;
    }
    let raw = |words: &[&ShellToken]| {
        let all = words.iter().filter_map(|word| text.get(word.span.clone()));
        all.collect::<Vec<_>>().join(" ")
    };
    let kept: Vec<&ShellToken> = command
        .arguments
        .iter()
        .filter(|word| !operands.contains(word))
        .collect();
    let head = format!("{} {}", command.program_text(text), raw(&kept));
    let head = head.trim_end();
    let few = &operands[..tool_argument_fixes::REDUCED_COUNT];
    let less = format!("{head} {}", raw(few));
    facts.set("few", raw_word_list(text, few.iter().copied()));
    facts.set_raw(
        "few_command",
        shell_rewrite::replace_span(text, &command.span, &less),
    );
    let many = format!(
        "printf '%s\\0' {} | xargs -0 -n {} {head}",
        raw(&operands),
        tool_argument_fixes::REDUCED_COUNT
    );
    facts.set_raw(
        "many_command",
        shell_rewrite::replace_span(text, &command.span, &many),
    );
}
