//! Builds the steps of a variant from the variables of the failed call and the available tools.

use minijinja::{Environment, UndefinedBehavior, Value};
use serde_json::{Map, Value as Json, json};

use super::failed_tool_call::FailedToolCall;
use super::failed_tool_call_vars::{FailedToolCallVars, RawShellWord};
use super::plan_request::{PlannedToolCall, RecoveryPlanRequest};
use super::shell_lexer::shell_quote;
use crate::knowledge::{KnownAgentTool, ToolCallStrategyVariant, ToolCallTemplate, ToolRole};

/// The execution limit of a template.
const TEMPLATE_FUEL: u64 = 20_000;
/// The maximum pause in the agent's shell, in seconds.
const MAX_SLEEP_SECONDS: u64 = 600;

/// Fills templates for one failed call.
pub(super) struct StepBuilder<'a> {
    request: &'a RecoveryPlanRequest<'a>,
    call: &'a FailedToolCall,
    vars: FailedToolCallVars,
    plain: Environment<'static>,
    quoting: Environment<'static>,
    lenient: Environment<'static>,
}

impl<'a> StepBuilder<'a> {
    pub(super) fn new(request: &'a RecoveryPlanRequest<'a>, call: &'a FailedToolCall) -> Self {
        let environment = |behaviour| {
            let mut environment = Environment::new();
            environment.set_undefined_behavior(behaviour);
            environment.set_fuel(Some(TEMPLATE_FUEL));
            environment
        };
        let mut quoting = environment(UndefinedBehavior::SemiStrict);
        quoting.set_formatter(|out, _, value| {
            out.write_str(&quote_value(value))
                .map_err(|_| minijinja::ErrorKind::WriteFailure.into())
        });
        Self {
            request,
            call,
            vars: FailedToolCallVars::gather(request, call),
            plain: environment(UndefinedBehavior::SemiStrict),
            quoting,
            lenient: environment(UndefinedBehavior::Chainable),
        }
    }

    /// Returns the steps of a variant, if it matches the failed call and its tools exist.
    pub(super) fn build_steps(
        &self,
        variant: &ToolCallStrategyVariant,
    ) -> Option<Vec<PlannedToolCall>> {
        let program = self.vars.program.as_deref().unwrap_or_default();
        let program = program.rsplit('/').next().unwrap_or_default();
        let is_about =
            variant.programs.is_empty() || variant.programs.iter().any(|one| one == program);
        let exists = variant.needs.iter().all(|need| self.program_exists(need));
        if !is_about || !exists || !self.condition_holds(variant.when.as_deref()) {
            return None;
        }
        let mut steps = Vec::new();
        for template in &variant.steps {
            for item in self.repeat_items(template)? {
                steps.push(self.build_step(template, item)?);
            }
        }
        if variant.programs.is_empty() {
            Some(steps)
        } else {
            self.embed_in_command(steps)
        }
    }

    fn program_exists(&self, program: &str) -> bool {
        let missing = self.request.diagnosis.kind == crate::failure::FailureKind::CommandNotFound
            && self.vars.program.as_deref() == Some(program);
        let listed = self.request.programs.as_ref();
        !missing && listed.is_none_or(|all| all.iter().any(|one| one == program))
    }

    fn condition_holds(&self, condition: Option<&str>) -> bool {
        let Some(condition) = condition else {
            return true;
        };
        let source = format!("{{% if {condition} %}}yes{{% endif %}}");
        self.lenient
            .render_str(&source, &self.vars.values)
            .is_ok_and(|text| text == "yes")
    }

    fn repeat_items(&self, template: &ToolCallTemplate) -> Option<Vec<Option<Value>>> {
        let Some(name) = &template.each else {
            return Some(vec![None]);
        };
        let items = self.vars.values.get(name)?.try_iter().ok()?;
        Some(items.map(Some).collect())
    }

    fn build_step(
        &self,
        template: &ToolCallTemplate,
        item: Option<Value>,
    ) -> Option<PlannedToolCall> {
        let mut values = self.vars.values.clone();
        values.extend(item.map(|item| ("item".to_owned(), item)));
        let text = |source: &str| self.plain.render_str(source, &values).ok();
        let (tool, args) = match (&template.command, &template.args_var) {
            (Some(command), _) => {
                self.shell_call(self.quoting.render_str(command, &values).ok()?.trim())?
            }
            (None, Some(fact)) => self.complete_tool_call(template.role, fact)?,
            (None, None) => {
                let given = template.args.iter();
                let given = given.map(|(name, value)| Some((name.as_str(), text(value)?)));
                self.tool_call(template.role, &given.collect::<Option<Vec<_>>>()?)?
            }
        };
        Some(PlannedToolCall {
            action: text(&template.action)?,
            tool,
            args,
            expected_outcome: text(&template.outcome)?,
        })
    }

    fn shell_call(&self, command: &str) -> Option<(String, Json)> {
        let tool = self.tool_for(ToolRole::Shell)?;
        Some((
            tool.name.clone(),
            json!({ tool.own_arg_name("command"): command }),
        ))
    }

    fn complete_tool_call(&self, role: ToolRole, fact: &str) -> Option<(String, Json)> {
        let args = self.vars.calls.get(fact)?;
        let name = match role {
            ToolRole::Substitute => self.vars.values.get("substitute")?.as_str()?.to_owned(),
            _ => match &self.call.tool {
                Some(name) => name.clone(),
                None => self.tool_for(ToolRole::Shell)?.name.clone(),
            },
        };
        Some((name, Json::Object(args.clone())))
    }

    fn tool_call(&self, role: ToolRole, given: &[(&str, String)]) -> Option<(String, Json)> {
        let value = |name: &str| {
            given
                .iter()
                .find(|(known, _)| *known == name)
                .map(|(_, value)| value)
        };
        match (role, self.tool_for(role)) {
            (ToolRole::Ask, _) => Some((
                "ask_user".to_owned(),
                json!({ "question": value("question")? }),
            )),
            (ToolRole::Wait, _) => self.wait_call(value("seconds")?.parse().ok()?),
            (_, Some(tool)) => {
                let named = |(name, value): &(&str, String)| {
                    (
                        tool.own_arg_name(name).to_owned(),
                        Json::from(value.as_str()),
                    )
                };
                let args = given.iter().map(named).collect::<Map<_, _>>();
                Some((tool.name.clone(), Json::Object(args)))
            }
            (ToolRole::ReadDir, None) => {
                self.shell_call(&format!("ls -la -- {}", shell_quote(value("path")?)))
            }
            (ToolRole::ReadFile, None) => {
                self.shell_call(&format!("cat -- {}", shell_quote(value("path")?)))
            }
            _ => None,
        }
    }

    /// Returns a pause: in the shell if it is short, otherwise by the supervisor.
    fn wait_call(&self, seconds: u64) -> Option<(String, Json)> {
        let by_supervisor = || ("wait".to_owned(), json!({ "seconds": seconds }));
        let Some(tool) = self
            .tool_for(ToolRole::Shell)
            .filter(|_| seconds <= MAX_SLEEP_SECONDS)
        else {
            return Some(by_supervisor());
        };
        let (name, mut call) = self.shell_call(&format!("sleep {seconds}"))?;
        // The shell tool must not time out during the pause.
        let needed = seconds.saturating_add(5).saturating_mul(1000);
        if tool.timeout_ms.is_some_and(|usual| usual < needed) {
            call[tool.own_arg_name("timeout_ms")] = json!(needed);
        }
        Some((name, call))
    }

    /// Returns the agent's tool for a role: that of the failed call, or the most common one.
    fn tool_for(&self, role: ToolRole) -> Option<&KnownAgentTool> {
        let own = self
            .call
            .tool
            .as_deref()
            .filter(|_| self.call.role == Some(role));
        let listed = |name: &&str| {
            let tools = self.request.tools.as_ref();
            tools.is_none_or(|tools| tools.iter().any(|tool| tool == name))
        };
        let own = own
            .filter(listed)
            .and_then(|name| self.request.recovery_knowledge.tool(name));
        own.or_else(|| self.request.tool_for(role))
    }

    /// Embeds steps that replace one program of a command at the position of that program.
    fn embed_in_command(&self, mut steps: Vec<PlannedToolCall>) -> Option<Vec<PlannedToolCall>> {
        let (Some(command), Some(failed)) = (&self.call.command, &self.vars.failed_command) else {
            return Some(steps);
        };
        let (before, after) = (
            command.get(..failed.span.start)?,
            command.get(failed.span.end..)?,
        );
        if let [only] = steps.as_mut_slice() {
            map_command(only, |text| format!("{before}{text}{after}"));
            return Some(steps);
        }
        let moves = self.cd_commands_before(command, failed.span.start);
        let rest = rest_of_command(after)?;
        // Variables set earlier are missing in a separate step: `rm -rf $D/*` would remove everything.
        let expands = |text: &&str| text.contains(['$', '`']);
        if !before.trim().is_empty() && moves.iter().chain([&rest]).any(expands) {
            return None;
        }
        for step in steps.iter_mut().filter(|_| !moves.is_empty()) {
            map_command(step, |text| format!("{} && {text}", moves.join(" && ")));
        }
        if !rest.is_empty() {
            steps.push(self.continuation_step(&moves, rest)?);
        }
        Some(steps)
    }

    /// Returns the directory changes before this position, which every step has to repeat.
    fn cd_commands_before<'c>(&self, command: &'c str, place: usize) -> Vec<&'c str> {
        let earlier = self
            .call
            .commands
            .iter()
            .take_while(|one| one.span.end <= place);
        let moves = earlier.filter(|one| one.program == "cd");
        moves
            .filter_map(|one| command.get(one.span.clone()))
            .collect()
    }

    fn continuation_step(&self, moves: &[&str], rest: &str) -> Option<PlannedToolCall> {
        let whole: Vec<&str> = moves.iter().copied().chain([rest]).collect();
        let (tool, args) = self.shell_call(&whole.join(" && "))?;
        Some(PlannedToolCall {
            action: "Continue with the rest of the command".to_owned(),
            tool,
            args,
            expected_outcome: "The rest of the command succeeds".to_owned(),
        })
    }
}

/// Returns the rest of a command after one of its programs; `None` if it depends on that program's output.
fn rest_of_command(after: &str) -> Option<&str> {
    let after = after.trim_start_matches([' ', '\t']);
    let rest = after
        .strip_prefix("&&")
        .or_else(|| after.strip_prefix([';', '\n']));
    rest.or_else(|| after.is_empty().then_some(""))
        .map(str::trim)
}

/// Rewrites the shell command of a step; other steps are unchanged.
fn map_command(step: &mut PlannedToolCall, rewrite: impl Fn(&str) -> String) {
    for key in ["command", "script", "cmd"] {
        if let Some(text) = step.args.get(key).and_then(Json::as_str) {
            step.args = json!({ key: rewrite(text) });
            return;
        }
    }
}

/// Quotes a value for a command, unless it comes from the agent's own command.
fn quote_value(value: &Value) -> String {
    if let Some(raw) = value.downcast_object_ref::<RawShellWord>() {
        return raw.0.clone();
    }
    match (value.as_str(), value.kind()) {
        (Some(text), _) => shell_quote(text),
        (None, minijinja::value::ValueKind::Seq | minijinja::value::ValueKind::Iterable) => {
            let items = value.try_iter().into_iter().flatten();
            items
                .map(|item| quote_value(&item))
                .collect::<Vec<_>>()
                .join(" ")
        }
        _ => shell_quote(&value.to_string()),
    }
}
