//! Template variables with corrected calls: arguments, syntax, timeout, port, another tool.

use super::{FailedToolCallVarSources, FailedToolCallVars};
use crate::did_you_mean::nearest;
use crate::failure::FailureKind;
use crate::recovery_plan::tool_argument_fixes::{self, ToolArgs};
use crate::recovery_plan::{failure_message_values, shell_rewrite};

pub(super) fn gather(facts: &mut FailedToolCallVars, source: &FailedToolCallVarSources<'_>) {
    add_argument_fixes(facts, source);
    add_longer_timeout(facts, source);
    add_syntax_fixes(facts, source);
    add_port_fix(facts, source);
    add_substitute_tool(facts, source);
}

fn add_argument_fixes(facts: &mut FailedToolCallVars, source: &FailedToolCallVarSources<'_>) {
    let (args, message) = (&source.call.args, source.message.as_str());
    facts.set("required", failure_message_values::required(message));
    facts.set_call(
        "typed_args",
        Some(tool_argument_fixes::with_expected_types(args, message)),
    );
    facts.set_call(
        "schema_args",
        Some(tool_argument_fixes::with_missing_required(args, message)),
    );
    facts.set_call(
        "simple_args",
        Some(tool_argument_fixes::with_essential_only(args, message)),
    );
    facts.set_call(
        "reduced_args",
        tool_argument_fixes::with_reduced_amount(args),
    );
    facts.set_call("half_args", tool_argument_fixes::with_half_content(args));
    let unknown = failure_message_values::unknown(message);
    facts.set_raw(
        "simple_command",
        command_without(facts, source, |word| {
            unknown.iter().any(|name| name == word)
        }),
    );
    facts.set_raw(
        "bare_command",
        command_without(facts, source, |word| word.starts_with("--") && word != "--"),
    );
}

/// Removes words of the failed program from the command; `None` if that changes nothing.
fn command_without(
    facts: &FailedToolCallVars,
    source: &FailedToolCallVarSources<'_>,
    goes: impl Fn(&str) -> bool,
) -> Option<String> {
    let (command, failed) = (
        source.call.command.as_deref()?,
        facts.failed_command.as_ref()?,
    );
    let (gone, kept): (Vec<_>, Vec<_>) =
        failed.arguments.iter().partition(|word| goes(&word.value));
    if gone.is_empty()
        || gone
            .iter()
            .any(|word| tool_argument_fixes::is_safety_option(&word.value))
    {
        return None;
    }
    let kept: Vec<&str> = kept
        .iter()
        .filter_map(|word| command.get(word.span.clone()))
        .collect();
    let simple = format!("{} {}", failed.program_text(command), kept.join(" "));
    shell_rewrite::replace_span(command, &failed.span, simple.trim_end())
}

fn add_longer_timeout(facts: &mut FailedToolCallVars, source: &FailedToolCallVarSources<'_>) {
    let known = source.known_tool();
    let name = known.map_or("timeout_ms", |tool| tool.own_arg_name("timeout_ms"));
    let usual = known.and_then(|tool| tool.timeout_ms).unwrap_or(15_000);
    let longer = |args: &ToolArgs| tool_argument_fixes::with_doubled_timeout(args, name, usual);
    let allowed = facts
        .failed_command
        .as_ref()
        .and_then(|failed| failed.timeout.clone());
    let command = source.call.command.as_deref();
    let rewritten = allowed.and_then(|time| {
        let doubled = shell_rewrite::double_time(&time.value)?;
        shell_rewrite::replace_span(command?, &time.span, &doubled)
    });
    let args = match rewritten.as_deref().or(command) {
        Some(command) => longer(&source.with_command(command)),
        None => longer(&source.call.args),
    };
    facts.set_call("longer_args", Some(args));
}

fn add_syntax_fixes(facts: &mut FailedToolCallVars, source: &FailedToolCallVarSources<'_>) {
    let Some(command) = source.call.command.as_deref() else {
        return;
    };
    let fixed = shell_rewrite::fix_common_mistakes(command);
    let text = fixed.as_deref().unwrap_or(command);
    let raw = |texts: Vec<String>| {
        let all = texts
            .into_iter()
            .map(|text| minijinja::Value::from_object(super::RawShellWord(text)));
        minijinja::Value::from(all.collect::<Vec<_>>())
    };
    facts.set_some("parts", shell_rewrite::split_commands(text).map(raw));
    facts.set_some(
        "stages",
        shell_rewrite::split_pipeline(text, &source.request.sandbox).map(raw),
    );
    facts.set_raw("portable_command", shell_rewrite::to_posix(text));
    facts.set("fixed_command_text", fixed.clone().unwrap_or_default());
    facts.set_raw("fixed_command", fixed);
}

fn add_port_fix(facts: &mut FailedToolCallVars, source: &FailedToolCallVarSources<'_>) {
    if !source.is_kind(FailureKind::PortInUse) {
        return;
    }
    let Some(port) = failure_message_values::port(&source.message) else {
        return;
    };
    let Some(other) = port
        .parse::<u16>()
        .ok()
        .and_then(|port| port.checked_add(1))
    else {
        return;
    };
    let rewritten = PORT_FORMS.iter().find_map(|form| {
        source.with_replacement(&format!("{form}{port}"), &format!("{form}{other}"))
    });
    let by_environment = || {
        let (command, failed) = (
            source.call.command.as_deref()?,
            facts.failed_command.as_ref()?,
        );
        let simple = command.get(failed.span.clone())?;
        shell_rewrite::replace_span(command, &failed.span, &format!("env PORT={other} {simple}"))
    };
    let rewritten = rewritten.or_else(by_environment);
    facts.set_raw("port_command", rewritten);
    facts.set("port", port);
    facts.set("other_port", other);
}

/// The forms that precede a port in a word of a command.
const PORT_FORMS: [&str; 8] = [
    "",
    "--port=",
    "-p",
    "PORT=",
    "localhost:",
    "127.0.0.1:",
    "0.0.0.0:",
    ":",
];

/// Finds an existing tool for a missing one: a similar name, or the same role.
fn add_substitute_tool(facts: &mut FailedToolCallVars, source: &FailedToolCallVarSources<'_>) {
    let (Some(tools), Some(missing)) = (&source.request.tools, &source.call.tool) else {
        return;
    };
    let recovery_knowledge = source.request.recovery_knowledge;
    let role = recovery_knowledge.tool(missing).map(|tool| tool.role);
    let others = || tools.iter().filter(|name| *name != missing);
    let similar = nearest(missing, others().map(|name| (name.as_str(), name)));
    let same_role = || {
        others().find(|name| {
            role.is_some() && recovery_knowledge.tool(name).map(|tool| tool.role) == role
        })
    };
    let Some(found) = similar.or_else(same_role) else {
        return;
    };
    facts.set("substitute", found.as_str());
    let (from, to) = (
        recovery_knowledge.tool(missing),
        recovery_knowledge.tool(found),
    );
    let renamed = source.call.args.iter().map(|(name, value)| {
        let canonical = from.map_or(name.as_str(), |tool| tool.canonical_arg_name(name));
        let new = to.map_or(canonical, |tool| tool.own_arg_name(canonical));
        (new.to_owned(), value.clone())
    });
    facts.set_call("substitute_args", Some(renamed.collect()));
}
