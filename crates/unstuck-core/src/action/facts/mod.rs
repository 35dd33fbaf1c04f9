//! The facts of a failed call, by the names under which templates use them.
//!
//! A fact that is not known is not there; a variant says in its `when` which ones it needs. Facts that are
//! words of the agent's own command are [`RawWord`]s: they go into a new command as they were written.

mod command;
mod place;
mod repair;
mod source;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use minijinja::Value;
use minijinja::value::{Object, ObjectRepr};

use super::arguments::Args;
use super::call::{Call, SimpleCommand};
use super::request::PlanRequest;
use super::{mentions, rewrite};
use crate::failure::Kind;
use crate::knowledge::{KnownTool, Role};

/// What went wrong, under its heading; a message that begins with the heading is enough by itself.
fn problem(heading: &str, message: &str) -> String {
    let shown = |c: char| if c.is_control() { ' ' } else { c };
    let message: String = message.chars().take(300).map(shown).collect();
    let message = message.trim_matches([' ', '.']);
    match message.starts_with(heading) {
        true => message.to_owned(),
        false => format!("{heading}: {message}"),
    }
}

/// A piece of a shell command that stays as it was written.
#[derive(Debug, Clone)]
pub(super) struct RawWord(pub(super) String);

impl Object for RawWord {
    // A plain object counts as true in a condition, as a text does.
    fn repr(self: &Arc<Self>) -> ObjectRepr {
        ObjectRepr::Plain
    }

    fn render(self: &Arc<Self>, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The facts of a failed call.
#[derive(Debug, Default)]
pub(super) struct Facts {
    /// Values for templates.
    pub(super) values: BTreeMap<String, Value>,
    /// Complete arguments of calls.
    pub(super) calls: BTreeMap<String, Args>,
    /// The program that failed.
    pub(super) program: Option<String>,
    /// Where the failed program stands in the command.
    pub(super) failed: Option<SimpleCommand>,
}

/// What facts are gathered from.
pub(super) struct Source<'a> {
    pub(super) request: &'a PlanRequest<'a>,
    pub(super) call: &'a Call,
    pub(super) message: String,
}

/// The directory that a failed call is about, so that the caller can say what is in it.
pub(super) fn directory(request: &PlanRequest<'_>) -> Option<String> {
    let call = Call::read(request.playbook, request.failure, request.args);
    let message = mentions::message(request.failure, request.diagnosis);
    place::directory(&Source {
        request,
        call: &call,
        message,
    })
}

impl Facts {
    /// Gathers all facts of a failed call.
    pub(super) fn gather(request: &PlanRequest<'_>, call: &Call) -> Self {
        let source = Source {
            request,
            call,
            message: mentions::message(request.failure, request.diagnosis),
        };
        let mut facts = Self::default();
        facts.about_diagnosis(&source);
        facts.about_call(&source);
        command::gather(&mut facts, &source);
        place::gather(&mut facts, &source);
        source::gather(&mut facts, &source);
        repair::gather(&mut facts, &source);
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
        self.set_some(name, text.map(|text| Value::from_object(RawWord(text))));
    }

    pub(super) fn set_call(&mut self, name: &str, args: Option<Args>) {
        if let Some(args) = args {
            self.set(name, true);
            self.calls.insert(name.to_owned(), args);
        }
    }

    fn about_diagnosis(&mut self, source: &Source<'_>) {
        let diagnosis = source.request.diagnosis;
        let file = source.request.playbook.kind(diagnosis.kind);
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
        self.set("problem", problem(heading, line));
        self.set(
            "hint",
            file.map_or("", |file| file.hint_in(diagnosis.layer)),
        );
        self.set("seconds", seconds.unwrap_or(60));
        self.set("double_seconds", seconds.unwrap_or(60).saturating_mul(2));
        self.set("backoff", seconds.unwrap_or(2));
    }

    fn about_call(&mut self, source: &Source<'_>) {
        let (request, call) = (source.request, source.call);
        let role = call.role.map_or("", role_name);
        let key = source.command_key();
        let others = call.args.keys().any(|name| name != key);
        self.set_some("tool", call.tool.as_deref());
        self.set("role", role);
        self.set("unclosed", call.unclosed.is_some());
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

impl Source<'_> {
    /// What the shell tool of the failed call calls its command.
    pub(super) fn command_key(&self) -> &str {
        let known = self.known_tool();
        let given = ["command", "script", "cmd"];
        let given = given
            .into_iter()
            .find(|name| self.call.args.contains_key(*name));
        given.unwrap_or_else(|| known.map_or("command", |tool| tool.arg("command")))
    }

    /// The tool of the failed call, or the usual shell.
    pub(super) fn known_tool(&self) -> Option<&KnownTool> {
        let playbook = self.request.playbook;
        match &self.call.tool {
            Some(name) => playbook.tool(name),
            None => self.request.tool(Role::Shell),
        }
    }

    /// The arguments of the failed call with another command.
    pub(super) fn with_command(&self, command: &str) -> Args {
        let mut args = self.call.args.clone();
        args.insert(self.command_key().to_owned(), command.into());
        args
    }

    /// The failed command with this text of it replaced by another.
    pub(super) fn with_word(&self, old: &str, new: &str) -> Option<String> {
        let command = self.call.command.as_deref()?;
        let tokens = super::shell::shell_words(command).ok()?;
        let word = tokens
            .iter()
            .find(|token| token.literal && token.value == old)?;
        rewrite::spliced(command, &word.span, &super::shell::shell_quote(new))
    }

    /// Whether this is about a missing command.
    pub(super) fn is(&self, kind: Kind) -> bool {
        self.request.diagnosis.kind == kind
    }
}

pub(super) fn role_name(role: Role) -> &'static str {
    match role {
        Role::Shell => "shell",
        Role::ReadFile => "read_file",
        Role::ReadDir => "read_dir",
        Role::WriteFile => "write_file",
        Role::Search => "search",
        Role::Http => "http",
        Role::Same | Role::Substitute | Role::Wait | Role::Ask => "",
    }
}

#[cfg(test)]
mod tests {
    use super::problem;

    #[test]
    fn a_heading_is_not_said_twice() {
        let heading = "Cause not recognised";
        assert_eq!(
            problem(heading, "Cause not recognised (sh)"),
            "Cause not recognised (sh)"
        );
        assert_eq!(
            problem(heading, "it broke."),
            "Cause not recognised: it broke"
        );
    }
}
