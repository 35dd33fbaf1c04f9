//! `unstuck agents`: lists supported agents, whether they are installed, and how they are invoked.

mod show;

use std::io::Write;

use anyhow::Result;
use clap::{Args, Subcommand};
use serde_json::{Value, json};
use unstuck_core::agent::{Agent, AgentCommandInputs, PromptChannel};
use unstuck_core::decision::RetryChangeCapability;

use crate::agent_installation::{self, AgentInstallation, AgentVersion};
use crate::config::Config;
use crate::error_report::error_with_hint;
use crate::output::{BOLD, DIM, GREEN, Output, YELLOW};
use crate::sanitized_text::truncate;
use crate::{async_runtime, completion_candidates};

/// Width of the version column.
const VERSION_WIDTH: usize = 15;

/// List supported agents and whether they are installed
#[derive(Debug, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "Examples:
  unstuck agents
  unstuck agents --json
  unstuck agents show claude"
)]
pub(crate) struct AgentsArgs {
    #[command(subcommand)]
    command: Option<AgentsCommand>,

    /// Print a JSON array
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Subcommand)]
enum AgentsCommand {
    /// Show how unstuck runs an agent
    #[command(after_help = "Example:\n  unstuck agents show claude")]
    Show {
        /// Agent id
        #[arg(add = completion_candidates::agents())]
        id: String,
        /// Print as JSON
        #[arg(long)]
        json: bool,
    },
}

pub(crate) fn run(args: &AgentsArgs, config: &Config, out: &mut Output) -> Result<()> {
    let agents = config.agents();
    if let Some(AgentsCommand::Show { id, json }) = &args.command {
        let agent = agents.get(id).ok_or_else(|| {
            let known: Vec<_> = agents.iter().map(Agent::id).collect();
            error_with_hint(
                format!("unknown agent `{id}`"),
                format!("known agents: {}", known.join(", ")),
            )
        })?;
        let found = AgentEntry::look_up(vec![agent])?.remove(0);
        return if *json {
            out.write_json(&found.as_json()?)
        } else {
            found.show(out)
        };
    }
    let all = AgentEntry::look_up(agents.iter().collect())?;
    if args.json {
        let all: Vec<Value> = all.iter().map(AgentEntry::summary).collect();
        return out.write_json(&all);
    }
    let columns = out.columns();
    let widest = |texts: Vec<String>| texts.iter().map(|text| text.chars().count()).max();
    let ids = widest(
        all.iter()
            .map(|found| found.agent.id().to_owned())
            .collect(),
    );
    let facts = widest(all.iter().map(AgentEntry::facts).collect());
    let widths = (ids.unwrap_or_default(), facts.unwrap_or_default());
    for found in &all {
        writeln!(out, "{}", found.line(widths, columns))?;
    }
    Ok(())
}

/// An agent and its local installation.
struct AgentEntry<'a> {
    agent: &'a Agent,
    /// None if any program can act as this agent.
    installed: Option<AgentInstallation>,
}

impl<'a> AgentEntry<'a> {
    fn look_up(agents: Vec<&'a Agent>) -> Result<Vec<Self>> {
        let calls = agents.iter().map(|agent| &agent.file().call).collect();
        let installed = async_runtime::block_on(agent_installation::find_installations(calls))?;
        let with = |(agent, installed)| Self { agent, installed };
        Ok(agents.into_iter().zip(installed).map(with).collect())
    }

    fn has_capability(&self, capability: RetryChangeCapability) -> bool {
        let can = self.agent.call_capabilities(&AgentCommandInputs::default());
        can.has(capability)
    }

    /// Renders an agent on one line, fitted to the terminal width.
    fn line(&self, (ids, facts): (usize, usize), columns: Option<usize>) -> String {
        let (style, version) = match &self.installed {
            None => (DIM, "any program".to_owned()),
            Some(AgentInstallation::Missing) => (DIM, "not installed".to_owned()),
            Some(AgentInstallation::Found { version, .. }) => match version {
                AgentVersion::Known(version) => (GREEN, truncate(version, VERSION_WIDTH)),
                AgentVersion::Unknown(_) => (YELLOW, "version unknown".to_owned()),
            },
        };
        let before = ids + VERSION_WIDTH + facts + 3 * 2;
        let room = columns.map_or(usize::MAX, |columns| columns.saturating_sub(before));
        let place = truncate(&self.path_text().unwrap_or_default(), room);
        let (id, known) = (self.agent.id(), self.facts());
        let known = if place.is_empty() {
            known
        } else {
            format!("{known:<facts$}  {DIM}{place}{DIM:#}")
        };
        format!("{BOLD}{id:<ids$}{BOLD:#}  {style}{version:<VERSION_WIDTH$}{style:#}  {known}")
    }

    /// Lists the capabilities of the agent.
    fn facts(&self) -> String {
        let mut facts = vec![match self.agent.prompt_channel(&[]) {
            PromptChannel::Stdin => "prompt on stdin",
            PromptChannel::Argument => "prompt as argument",
            PromptChannel::File => "prompt in a file",
        }];
        if self.installed.is_none() {
            facts.push("variables");
        }
        for (capability, fact) in [
            (RetryChangeCapability::Resume, "resumes"),
            (RetryChangeCapability::Model, "model"),
        ] {
            facts.extend(self.has_capability(capability).then_some(fact));
        }
        facts.extend(self.agent.supports_tools(&[]).then_some("tools"));
        facts.join(" · ")
    }

    /// Returns the path of the program, with a problem if there is one.
    fn path_text(&self) -> Option<String> {
        let Some(AgentInstallation::Found {
            path,
            on_path,
            version,
        }) = &self.installed
        else {
            return None;
        };
        let path = crate::project_lookup::abbreviate_home(&path.display().to_string());
        let problem = match (on_path, version) {
            (false, _) => " (not on PATH)".to_owned(),
            (true, AgentVersion::Unknown(problem)) => format!(" ({problem})"),
            (true, AgentVersion::Known(_)) => String::new(),
        };
        Some(format!("{path}{problem}"))
    }

    fn summary(&self) -> Value {
        let (path, on_path, version) = match &self.installed {
            Some(AgentInstallation::Found {
                path,
                on_path,
                version,
            }) => (Some(path), Some(on_path), Some(version)),
            _ => (None, None, None),
        };
        let (version, problem) = match version {
            Some(AgentVersion::Known(version)) => (Some(version), None),
            Some(AgentVersion::Unknown(problem)) => (None, Some(problem)),
            None => (None, None),
        };
        json!({
            "id": self.agent.id(),
            "title": self.agent.title(),
            "installed": self.installed.as_ref().map(|installed| *installed != AgentInstallation::Missing),
            "path": path,
            "on_path": on_path,
            "version": version,
            "version_problem": problem,
            "prompt": match self.agent.prompt_channel(&[]) {
                PromptChannel::Stdin => "stdin",
                PromptChannel::Argument => "argument",
                PromptChannel::File => "file",
            },
            "resumes": self.has_capability(RetryChangeCapability::Resume),
            "model": self.has_capability(RetryChangeCapability::Model),
            "tools": self.agent.supports_tools(&[]),
        })
    }
}
