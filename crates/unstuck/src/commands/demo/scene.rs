//! Demo scenes: the script of the API and the retry policy of the run.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result};
use serde::Deserialize;
use serde_json::{Value, json};
use unstuck_core::agent::{AgentDefinition, Agents};
use unstuck_core::decision::template;
use unstuck_core::event::RunOutcome;
use unstuck_core::{RetryPolicy, duration};
use unstuck_faults::{FaultScript, FaultScriptReply, FaultScriptStep};
use unstuck_run::answer_expectations::AnswerExpectations;
use unstuck_run::runner::{RunAttemptOptions, RunRequest};

/// Argument that starts the program as the demo agent.
pub(super) const DEMO_AGENT_ARG: &str = "__demo-agent";

/// Timeout of a hanging attempt in fast mode.
const FAST_TIMEOUT: Duration = Duration::from_millis(300);
/// Retry-After of the API in fast mode, in whole seconds.
const FAST_RETRY_AFTER: u64 = 1;
/// First backoff delay in fast mode, in seconds.
const FAST_BACKOFF: f64 = 0.02;

/// Speed of the demo.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DemoSpeed {
    /// Slow enough to follow.
    Normal,
    /// Same failures with shorter waits.
    Fast,
}

/// One run of the demo.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct DemoScene {
    pub(super) title: String,
    /// Introduction that is printed before the run.
    #[serde(rename = "about")]
    pub(super) introduction: String,
    /// Equivalent command line.
    #[serde(rename = "like")]
    command: String,
    prompt: String,
    model: String,
    #[serde(default)]
    sections: Vec<String>,
    #[serde(default)]
    timeout: Option<String>,
    /// Expected outcome of the run.
    #[serde(rename = "ends")]
    pub(super) expected_outcome: RunOutcome,
    /// Overrides of the policy `standard`.
    policy: Value,
    #[serde(rename = "step")]
    steps: Vec<FaultScriptStep>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct SceneFile {
    scene: Vec<DemoScene>,
    afterwards: Vec<FaultScriptStep>,
}

fn parse_scenes() -> Result<SceneFile> {
    toml::from_str(include_str!("scenes.toml")).context("cannot parse the demo's scenes")
}

/// Returns all scenes in order.
pub(super) fn all_scenes() -> Result<Vec<DemoScene>> {
    Ok(parse_scenes()?.scene)
}

/// Returns the script for a run that is resumed after the demo.
pub(super) fn script_after_demo() -> Result<FaultScript> {
    let steps = parse_scenes()?.afterwards.into_iter();
    Ok(steps.fold(FaultScript::default(), FaultScript::with_step))
}

/// Returns the built-in agents plus the demo agent at this path.
pub(super) fn demo_agents(program: &Path) -> Result<Agents> {
    let mut file: AgentDefinition =
        toml::from_str(include_str!("agent.toml")).context("cannot parse the demo's agent")?;
    let name = program.file_name().unwrap_or_default();
    file.names.push(name.to_string_lossy().into_owned());
    Ok(Agents::built_in().clone().with(file))
}

impl DemoScene {
    /// Returns the equivalent command line with the actual attempt timeout.
    pub(super) fn shell_line(&self, pace: DemoSpeed) -> Result<String> {
        let timeout = self.timeout(pace)?.unwrap_or_default();
        Ok(self
            .command
            .replace("{timeout}", &duration::format_exact(timeout)))
    }

    /// Returns the script of the API.
    pub(super) fn script(&self, pace: DemoSpeed) -> FaultScript {
        let steps = self.steps.iter().cloned();
        steps.fold(FaultScript::default(), |script, step| match pace {
            DemoSpeed::Normal => script.with_step(step),
            DemoSpeed::Fast => script.with_step(without_delay(step)),
        })
    }

    /// Builds the run request: this program as the demo agent, with the API at this address.
    pub(super) fn request(
        &self,
        program: &Path,
        api: String,
        project: &Path,
        pace: DemoSpeed,
    ) -> Result<RunRequest> {
        let flags = ["-p", &self.prompt, "--model", &self.model, "--api", &api];
        let mut command = vec![program.display().to_string(), DEMO_AGENT_ARG.to_owned()];
        command.extend(flags.map(str::to_owned));
        Ok(RunRequest {
            command,
            cwd: project.to_owned(),
            project: project.to_owned(),
            agent: Some("demo".to_owned()),
            policy: self.policy(pace)?,
            origins: [("policy".to_owned(), "the demo".to_owned())].into(),
            timeout: self.timeout(pace)?,
            idle_timeout: None,
            options: RunAttemptOptions {
                expect: AnswerExpectations {
                    sections: self.sections.clone(),
                    not_empty: true,
                    ..AnswerExpectations::default()
                },
                ..RunAttemptOptions::default()
            },
        })
    }

    fn policy(&self, pace: DemoSpeed) -> Result<RetryPolicy> {
        let standard = template("standard").cloned().unwrap_or_default();
        let policy = standard
            .with_json(&json!({"id": "demo", "name": "Demo"}))?
            .with_json(&self.policy)?;
        Ok(match pace {
            DemoSpeed::Normal => policy,
            DemoSpeed::Fast => RetryPolicy {
                backoff_base: FAST_BACKOFF,
                ..policy
            },
        })
    }

    fn timeout(&self, pace: DemoSpeed) -> Result<Option<Duration>> {
        let timeout = self.timeout.as_deref().map(duration::parse).transpose()?;
        Ok(match pace {
            DemoSpeed::Normal => timeout,
            DemoSpeed::Fast => timeout.map(|_| FAST_TIMEOUT),
        })
    }
}

/// Removes the delays from a step.
fn without_delay(mut step: FaultScriptStep) -> FaultScriptStep {
    match &mut step.reply {
        FaultScriptReply::Answer(answer) => answer.delay = Duration::ZERO,
        FaultScriptReply::RateLimit { retry_after } => *retry_after = Some(FAST_RETRY_AFTER),
        _ => {}
    }
    step
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_scene_is_valid_at_both_speeds() {
        let folder = Path::new("/nowhere");
        for scene in all_scenes().unwrap() {
            for pace in [DemoSpeed::Normal, DemoSpeed::Fast] {
                let program = Path::new("/bin/unstuck");
                let request = scene.request(program, "http://127.0.0.1:1".into(), folder, pace);
                assert_eq!(request.unwrap().policy.id, "demo", "{}", scene.title);
                assert!(!scene.script(pace).steps().is_empty(), "{}", scene.title);
                let typed = format!("$ {}", scene.shell_line(pace).unwrap());
                for line in scene.introduction.lines().chain([typed.as_str()]) {
                    assert!(line.chars().count() <= 80, "too wide: {line}");
                }
            }
        }
    }

    #[test]
    fn demo_agent_supports_prompt_and_model_changes_under_any_program_name() {
        use unstuck_core::agent::ParsedAgentCommandLine;
        use unstuck_core::decision::RetryChangeCapability;

        let program = Path::new("/opt/unstuck-2");
        let agents = demo_agents(program).unwrap();
        let scene = all_scenes().unwrap().remove(0);
        let request = scene.request(program, "http://x".into(), program, DemoSpeed::Fast);
        let command = request.unwrap().command;
        let invocation =
            ParsedAgentCommandLine::parse(agents.recognize(&command).unwrap(), &command);
        let can = invocation.capabilities();
        assert!(can.has(RetryChangeCapability::Prompt) && can.has(RetryChangeCapability::Model));
        assert_eq!(invocation.model(), Some("claude-sonnet-5-5"));
    }
}
