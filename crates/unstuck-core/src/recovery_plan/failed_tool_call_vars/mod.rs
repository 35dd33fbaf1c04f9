//! The variables of a failed tool call, which fill the step templates of a plan.
//!
//! An unknown variable is absent; a variant lists in its `when` the ones that it needs. Variables with words of the
//! agent's own command are [`RawShellWord`]s: they are inserted into a new command as they were written.

mod command_vars;
mod corrected_calls;
mod path_vars;
mod url_vars;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use minijinja::Value;
use minijinja::value::{Object, ObjectRepr};

use super::failed_tool_call::{FailedToolCall, SimpleCommand};
use super::plan_request::RecoveryPlanRequest;
use super::tool_argument_fixes::ToolArgs;
use super::{failure_message_values, shell_rewrite};
use crate::failure::FailureKind;
use crate::knowledge::{KnownAgentTool, ToolRole};

/// Describes the problem under its heading; a message that begins with the heading is enough on its own.
fn describe_problem(heading: &str, message: &str) -> String {
    let shown = |c: char| if c.is_control() { ' ' } else { c };
    let message: String = message.chars().take(300).map(shown).collect();
    let message = message.trim_matches([' ', '.']);
    if message.starts_with(heading) {
        message.to_owned()
    } else {
        format!("{heading}: {message}")
    }
}

/// A part of a shell command that is kept as it was written.
#[derive(Debug, Clone)]
pub(super) struct RawShellWord(pub(super) String);

impl Object for RawShellWord {
    // A plain object is true in a condition, like a string.
    fn repr(self: &Arc<Self>) -> ObjectRepr {
        ObjectRepr::Plain
    }

    fn render(self: &Arc<Self>, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The variables of a failed tool call for step templates.
#[derive(Debug, Default)]
pub(super) struct FailedToolCallVars {
    /// Values for templates.
    pub(super) values: BTreeMap<String, Value>,
    /// Complete call arguments.
    pub(super) calls: BTreeMap<String, ToolArgs>,
    /// The program that failed.
    pub(super) program: Option<String>,
    /// The position of the failed program in the command.
    pub(super) failed_command: Option<SimpleCommand>,
}

/// The sources of the variables of a failed tool call.
pub(super) struct FailedToolCallVarSources<'a> {
    pub(super) request: &'a RecoveryPlanRequest<'a>,
    pub(super) call: &'a FailedToolCall,
    pub(super) message: String,
}

/// Returns the directory that a failed call is about, so that the caller can list it.
pub(super) fn failure_directory(request: &RecoveryPlanRequest<'_>) -> Option<String> {
    let call =
        FailedToolCall::from_failure(request.recovery_knowledge, request.failure, request.args);
    let message = failure_message_values::failure_message(request.failure, request.diagnosis);
    path_vars::failed_directory(&FailedToolCallVarSources {
        request,
        call: &call,
        message,
    })
}

impl FailedToolCallVars {
    /// Collects all template variables of a failed call.
    pub(super) fn gather(request: &RecoveryPlanRequest<'_>, call: &FailedToolCall) -> Self {
        let source = FailedToolCallVarSources {
            request,
            call,
            message: failure_message_values::failure_message(request.failure, request.diagnosis),
        };
        let mut facts = Self::default();
        facts.add_diagnosis(&source);
        facts.add_call(&source);
        command_vars::gather(&mut facts, &source);
        path_vars::gather(&mut facts, &source);
        url_vars::gather(&mut facts, &source);
        corrected_calls::gather(&mut facts, &source);
        facts
    }

    pub(super) fn set(&mut self, name: &str, value: impl Into<Value>) {
        self.values.insert(name.to_owned(), value.into());
    }

    pub(super) fn set_some(&mut self, name: &str, value: Option<impl Into<Value>>) {
        if let Some(value) = value {
            self.set(name, value);
        }
    }

    pub(super) fn set_raw(&mut self, name: &str, text: Option<String>) {
        self.set_some(
            name,
            text.map(|text| Value::from_object(RawShellWord(text))),
        );
    }

    pub(super) fn set_call(&mut self, name: &str, args: Option<ToolArgs>) {
        if let Some(args) = args {
            self.set(name, true);
            self.calls.insert(name.to_owned(), args);
        }
    }

    fn add_diagnosis(&mut self, source: &FailedToolCallVarSources<'_>) {
        let diagnosis = source.request.diagnosis;
        let file = source.request.recovery_knowledge.kind(diagnosis.kind);
        let line = [&diagnosis.evidence.line, &diagnosis.message];
        let line = line.into_iter().find(|text| !text.trim().is_empty());
        let line = line.map_or(diagnosis.kind.name(), |text| text.trim());
        let seconds = diagnosis.retry_after.map(|wait| wait.as_secs().max(1));
        self.set("kind", diagnosis.kind.name());
        let shown = |c: char| if c.is_control() { ' ' } else { c };
        self.set(
            "message",
            line.chars().take(300).map(shown).collect::<String>(),
        );
        let heading = file.map_or("", |file| file.title.as_str());
        self.set("problem", describe_problem(heading, line));
        self.set(
            "hint",
            file.map_or("", |file| file.hint_for_layer(diagnosis.layer)),
        );
        self.set("seconds", seconds.unwrap_or(60));
        self.set("double_seconds", seconds.unwrap_or(60).saturating_mul(2));
        self.set("backoff", seconds.unwrap_or(2));
    }

    fn add_call(&mut self, source: &FailedToolCallVarSources<'_>) {
        let (request, call) = (source.request, source.call);
        let role = call.role.map_or("", role_name);
        let key = source.command_arg();
        let others = call.args.keys().any(|name| name != key);
        self.set_some("tool", call.tool.as_deref());
        self.set("role", role);
        self.set("unclosed", call.unclosed_quote.is_some());
        self.set("programs_known", request.programs.is_some());
        self.set("sudo", request.allow.iter().any(|word| word == "sudo"));
        self.set("sandbox", request.sandbox.as_str());
        self.set("log", format!("{}/output.log", request.sandbox));
        self.set("pid", format!("{}/process.pid", request.sandbox));
        self.set("has_args", call.command.is_none() && others);
        for name in ["pattern", "content"] {
            let names = [name, if name == "pattern" { "query" } else { "text" }];
            let text = names.iter().find_map(|name| call.args.get(*name)?.as_str());
            self.set_some(name, text);
        }
        let same = call
            .command
            .as_deref()
            .map(|text| source.with_command(text));
        self.set_call("same_args", Some(same.unwrap_or_else(|| call.args.clone())));
    }
}

impl FailedToolCallVarSources<'_> {
    /// Returns the name of the shell tool's command argument.
    pub(super) fn command_arg(&self) -> &str {
        let known = self.known_tool();
        let given = ["command", "script", "cmd"];
        let given = given
            .into_iter()
            .find(|name| self.call.args.contains_key(*name));
        given.unwrap_or_else(|| known.map_or("command", |tool| tool.own_arg_name("command")))
    }

    /// Returns the tool of the failed call, or the common shell tool.
    pub(super) fn known_tool(&self) -> Option<&KnownAgentTool> {
        let recovery_knowledge = self.request.recovery_knowledge;
        match &self.call.tool {
            Some(name) => recovery_knowledge.tool(name),
            None => self.request.tool_for(ToolRole::Shell),
        }
    }

    /// Returns the arguments of the failed call with another command.
    pub(super) fn with_command(&self, command: &str) -> ToolArgs {
        let mut args = self.call.args.clone();
        args.insert(self.command_arg().to_owned(), command.into());
        args
    }

    /// Returns the failed command with one text replaced by another.
    pub(super) fn with_replacement(&self, old: &str, new: &str) -> Option<String> {
        let command = self.call.command.as_deref()?;
        let tokens = super::shell_lexer::shell_tokens(command).ok()?;
        let word = tokens
            .iter()
            .find(|token| token.literal && token.value == old)?;
        shell_rewrite::replace_span(command, &word.span, &super::shell_lexer::shell_quote(new))
    }

    /// True if the failure has this kind.
    pub(super) fn is_kind(&self, kind: FailureKind) -> bool {
        self.request.diagnosis.kind == kind
    }
}

pub(super) fn role_name(role: ToolRole) -> &'static str {
    match role {
        ToolRole::Shell => "shell",
        ToolRole::ReadFile => "read_file",
        ToolRole::ReadDir => "read_dir",
        ToolRole::WriteFile => "write_file",
        ToolRole::Search => "search",
        ToolRole::Http => "http",
        ToolRole::Same | ToolRole::Substitute | ToolRole::Wait | ToolRole::Ask => "",
    }
}

#[cfg(test)]
mod tests {
    use super::describe_problem;

    #[test]
    fn a_heading_is_not_repeated() {
        let heading = "Cause not recognised";
        assert_eq!(
            describe_problem(heading, "Cause not recognised (sh)"),
            "Cause not recognised (sh)"
        );
        assert_eq!(
            describe_problem(heading, "it broke."),
            "Cause not recognised: it broke"
        );
    }
}
