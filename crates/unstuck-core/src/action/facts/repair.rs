//! Facts that are corrected calls: arguments, syntax, time, port, another tool.

use super::{Facts, Source};
use crate::action::arguments::{self, Args};
use crate::action::{mentions, rewrite};
use crate::failure::Kind;
use crate::nearest::nearest;

pub(super) fn gather(facts: &mut Facts, source: &Source<'_>) {
    about_arguments(facts, source);
    about_time(facts, source);
    about_syntax(facts, source);
    about_port(facts, source);
    about_tool(facts, source);
}

fn about_arguments(facts: &mut Facts, source: &Source<'_>) {
    let (args, message) = (&source.call.args, source.message.as_str());
    facts.set("required", mentions::required(message));
    facts.set_call("typed_args", Some(arguments::with_types(args, message)));
    facts.set_call("schema_args", Some(arguments::with_required(args, message)));
    facts.set_call("simple_args", Some(arguments::simplified(args, message)));
    facts.set_call("reduced_args", arguments::reduced(args));
    facts.set_call("half_args", arguments::with_half_content(args));
    let unknown = mentions::unknown(message);
    facts.set_raw(
        "simple_command",
        without_words(facts, source, |word| {
            unknown.iter().any(|name| name == word)
        }),
    );
    facts.set_raw(
        "bare_command",
        without_words(facts, source, |word| word.starts_with("--") && word != "--"),
    );
}

/// The command without the words of the failed program that are to go; none if that changes nothing.
fn without_words(
    facts: &Facts,
    source: &Source<'_>,
    goes: impl Fn(&str) -> bool,
) -> Option<String> {
    let (command, failed) = (source.call.command.as_deref()?, facts.failed.as_ref()?);
    let (gone, kept): (Vec<_>, Vec<_>) =
        failed.arguments.iter().partition(|word| goes(&word.value));
    if gone.is_empty() || gone.iter().any(|word| arguments::is_guard(&word.value)) {
        return None;
    }
    let kept: Vec<&str> = kept
        .iter()
        .filter_map(|word| command.get(word.span.clone()))
        .collect();
    let simple = format!("{} {}", failed.program_text(command), kept.join(" "));
    rewrite::spliced(command, &failed.span, simple.trim_end())
}

fn about_time(facts: &mut Facts, source: &Source<'_>) {
    let known = source.known_tool();
    let name = known.map_or("timeout_ms", |tool| tool.arg("timeout_ms"));
    let usual = known.and_then(|tool| tool.timeout_ms).unwrap_or(15_000);
    let longer = |args: &Args| arguments::with_longer_time(args, name, usual);
    let allowed = facts
        .failed
        .as_ref()
        .and_then(|failed| failed.allowed.clone());
    let command = source.call.command.as_deref();
    let rewritten = allowed.and_then(|time| {
        let doubled = rewrite::doubled(&time.value)?;
        rewrite::spliced(command?, &time.span, &doubled)
    });
    let args = match rewritten.as_deref().or(command) {
        Some(command) => longer(&source.with_command(command)),
        None => longer(&source.call.args),
    };
    facts.set_call("longer_args", Some(args));
}

fn about_syntax(facts: &mut Facts, source: &Source<'_>) {
    let Some(command) = source.call.command.as_deref() else {
        return;
    };
    let fixed = rewrite::corrected(command);
    let text = fixed.as_deref().unwrap_or(command);
    let raw = |texts: Vec<String>| {
        let all = texts
            .into_iter()
            .map(|text| minijinja::Value::from_object(super::RawWord(text)));
        minijinja::Value::from(all.collect::<Vec<_>>())
    };
    facts.set_some("parts", rewrite::parts(text).map(raw));
    facts.set_some(
        "stages",
        rewrite::stages(text, &source.request.sandbox).map(raw),
    );
    facts.set_raw("portable_command", rewrite::portable(text));
    facts.set("fixed_command_text", fixed.clone().unwrap_or_default());
    facts.set_raw("fixed_command", fixed);
}

fn about_port(facts: &mut Facts, source: &Source<'_>) {
    if !source.is(Kind::PortInUse) {
        return;
    }
    let Some(port) = mentions::port(&source.message) else {
        return;
    };
    let Some(other) = port
        .parse::<u16>()
        .ok()
        .and_then(|port| port.checked_add(1))
    else {
        return;
    };
    let rewritten = PORT_FORMS
        .iter()
        .find_map(|form| source.with_word(&format!("{form}{port}"), &format!("{form}{other}")));
    let by_environment = || {
        let (command, failed) = (source.call.command.as_deref()?, facts.failed.as_ref()?);
        let simple = command.get(failed.span.clone())?;
        rewrite::spliced(command, &failed.span, &format!("env PORT={other} {simple}"))
    };
    let rewritten = rewritten.or_else(by_environment);
    facts.set_raw("port_command", rewritten);
    facts.set("port", port);
    facts.set("other_port", other);
}

/// What may stand before a port in a word of a command.
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

/// Finds a tool that exists for one that does not: a similar name, or the same role.
fn about_tool(facts: &mut Facts, source: &Source<'_>) {
    let (Some(tools), Some(missing)) = (&source.request.tools, &source.call.tool) else {
        return;
    };
    let playbook = source.request.playbook;
    let role = playbook.tool(missing).map(|tool| tool.role);
    let others = || tools.iter().filter(|name| *name != missing);
    let similar = nearest(missing, others().map(|name| (name.as_str(), name)));
    let same_role = || {
        others().find(|name| role.is_some() && playbook.tool(name).map(|tool| tool.role) == role)
    };
    let Some(found) = similar.or_else(same_role) else {
        return;
    };
    facts.set("substitute", found.as_str());
    let (from, to) = (playbook.tool(missing), playbook.tool(found));
    let renamed = source.call.args.iter().map(|(name, value)| {
        let canonical = from.map_or(name.as_str(), |tool| tool.canonical(name));
        let new = to.map_or(canonical, |tool| tool.arg(canonical));
        (new.to_owned(), value.clone())
    });
    facts.set_call("substitute_args", Some(renamed.collect()));
}
