//! The scenes as data: what the API answers, and what the run may do about it.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result};
use serde::Deserialize;
use serde_json::{Value, json};
use unstuck_core::agent::{AgentFile, Agents};
use unstuck_core::decision::template;
use unstuck_core::event::Outcome;
use unstuck_core::{RetryPolicy, duration};
use unstuck_faults::{Reply, Script, Step};
use unstuck_run::drive::{Options, Request};
use unstuck_run::expect::Expectations;

/// The argument that makes the program the demo's agent.
pub(super) const AGENT: &str = "__demo-agent";

/// How long a hanging attempt lasts where nobody wants to look at it.
const FAST_TIMEOUT: Duration = Duration::from_millis(300);
/// The wait that the API states then; it counts in whole seconds.
const FAST_RETRY_AFTER: u64 = 1;
/// The first wait between attempts then, in seconds.
const FAST_BACKOFF: f64 = 0.02;

/// How much time the demo takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Pace {
    /// So that a person can follow it.
    Normal,
    /// With the same failures and shorter waits.
    Fast,
}

/// One run of the demo.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Scene {
    pub(super) title: String,
    /// What is about to happen.
    #[serde(rename = "about")]
    pub(super) about: String,
    /// What a person would type for the same.
    #[serde(rename = "like")]
    like: String,
    prompt: String,
    model: String,
    #[serde(default)]
    sections: Vec<String>,
    #[serde(default)]
    timeout: Option<String>,
    /// How it ends if all goes well.
    #[serde(rename = "ends")]
    pub(super) ends: Outcome,
    /// Changes to the policy `standard`.
    policy: Value,
    #[serde(rename = "step")]
    steps: Vec<Step>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    scene: Vec<Scene>,
    afterwards: Vec<Step>,
}

fn file() -> Result<File> {
    toml::from_str(include_str!("scenes.toml")).context("the demo's scenes")
}

/// All scenes in their order.
pub(super) fn all() -> Result<Vec<Scene>> {
    Ok(file()?.scene)
}

/// What the API answers to a run that is resumed when the demo is over.
pub(super) fn afterwards() -> Result<Script> {
    let steps = file()?.afterwards.into_iter();
    Ok(steps.fold(Script::default(), Script::then))
}

/// The built-in agents and the demo's own, which is the program at this path.
pub(super) fn agents(program: &Path) -> Result<Agents> {
    let mut file: AgentFile =
        toml::from_str(include_str!("agent.toml")).context("the demo's agent")?;
    let name = program.file_name().unwrap_or_default();
    file.names.push(name.to_string_lossy().into_owned());
    Ok(Agents::built_in().clone().with(file))
}

impl Scene {
    /// What a person would type for the same, with the time that an attempt really has.
    pub(super) fn typed(&self, pace: Pace) -> Result<String> {
        let timeout = self.timeout(pace)?.unwrap_or_default();
        Ok(self.like.replace("{timeout}", &duration::exact(timeout)))
    }

    /// What the API answers.
    pub(super) fn script(&self, pace: Pace) -> Script {
        let steps = self.steps.iter().cloned();
        steps.fold(Script::default(), |script, step| match pace {
            Pace::Normal => script.then(step),
            Pace::Fast => script.then(hurried(step)),
        })
    }

    /// The run: the program as the demo's agent, with the API at this address.
    pub(super) fn request(
        &self,
        program: &Path,
        api: String,
        project: &Path,
        pace: Pace,
    ) -> Result<Request> {
        let flags = ["-p", &self.prompt, "--model", &self.model, "--api", &api];
        let mut command = vec![program.display().to_string(), AGENT.to_owned()];
        command.extend(flags.map(str::to_owned));
        Ok(Request {
            command,
            cwd: project.to_owned(),
            project: project.to_owned(),
            agent: Some("demo".to_owned()),
            policy: self.policy(pace)?,
            origins: [("policy".to_owned(), "the demo".to_owned())].into(),
            timeout: self.timeout(pace)?,
            idle_timeout: None,
            options: Options {
                expect: Expectations {
                    sections: self.sections.clone(),
                    not_empty: true,
                    ..Expectations::default()
                },
                ..Options::default()
            },
        })
    }

    fn policy(&self, pace: Pace) -> Result<RetryPolicy> {
        let standard = template("standard").cloned().unwrap_or_default();
        let policy = standard
            .with(&json!({"id": "demo", "name": "Demo"}))?
            .with(&self.policy)?;
        Ok(match pace {
            Pace::Normal => policy,
            Pace::Fast => RetryPolicy {
                backoff_base: FAST_BACKOFF,
                ..policy
            },
        })
    }

    fn timeout(&self, pace: Pace) -> Result<Option<Duration>> {
        let timeout = self.timeout.as_deref().map(duration::parse).transpose()?;
        Ok(match pace {
            Pace::Normal => timeout,
            Pace::Fast => timeout.map(|_| FAST_TIMEOUT),
        })
    }
}

/// The same step without the time that it takes.
fn hurried(mut step: Step) -> Step {
    match &mut step.reply {
        Reply::Answer(answer) => answer.delay = Duration::ZERO,
        Reply::RateLimit { retry_after } => *retry_after = Some(FAST_RETRY_AFTER),
        _ => {}
    }
    step
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_scene_can_be_played_at_both_paces() {
        let folder = Path::new("/nowhere");
        for scene in all().unwrap() {
            for pace in [Pace::Normal, Pace::Fast] {
                let program = Path::new("/bin/unstuck");
                let request = scene.request(program, "http://127.0.0.1:1".into(), folder, pace);
                assert_eq!(request.unwrap().policy.id, "demo", "{}", scene.title);
                assert!(!scene.script(pace).steps().is_empty(), "{}", scene.title);
                let typed = format!("$ {}", scene.typed(pace).unwrap());
                for line in scene.about.lines().chain([typed.as_str()]) {
                    assert!(line.chars().count() <= 80, "too wide: {line}");
                }
            }
        }
    }

    #[test]
    fn the_agents_prompt_and_model_can_be_changed_whatever_the_programs_file_is_called() {
        use unstuck_core::agent::Invocation;
        use unstuck_core::decision::Capability;

        let program = Path::new("/opt/unstuck-2");
        let agents = agents(program).unwrap();
        let scene = all().unwrap().remove(0);
        let request = scene.request(program, "http://x".into(), program, Pace::Fast);
        let command = request.unwrap().command;
        let invocation = Invocation::read(agents.recognise(&command).unwrap(), &command);
        let can = invocation.capabilities();
        assert!(can.has(Capability::Prompt) && can.has(Capability::Model));
        assert_eq!(invocation.model(), Some("claude-sonnet-5-5"));
    }
}
