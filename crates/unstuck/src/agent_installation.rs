//! Locates the program of an agent and determines its version.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Result;
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use rustix::fs::{Access, access};
use tokio::sync::watch;
use unstuck_core::agent::AgentCommandSpec;
use unstuck_core::duration::HumanDuration;
use unstuck_run::process::{
    AttemptStopRequest, ChildExitStatus, ChildSupervisor, DiscardOutput, ProcessError,
    ProcessResult, ProcessSpec, ProcessTimeouts, ReaperProgram, Stdin,
};

use crate::environment_variables;
use crate::sanitized_text::one_line;

/// Time limit for a program to print its version.
const VERSION_TIMEOUT: Duration = Duration::from_secs(5);
/// Grace period after the time limit.
const GRACE: Duration = Duration::from_millis(200);
/// Maximum length of a failure reason.
const MAX_REASON: usize = 60;

/// Local installation of an agent's program.
#[derive(Debug, PartialEq)]
pub(crate) enum AgentInstallation {
    Missing,
    Found {
        path: PathBuf,
        /// True if the program is on PATH, and is therefore run by name.
        on_path: bool,
        version: AgentVersion,
    },
}

#[derive(Debug, PartialEq)]
/// The installed version of an agent's program.
pub(crate) enum AgentVersion {
    Known(String),
    /// Version unknown, with the reason.
    Unknown(String),
}

/// Returns the installation of each program, determined in parallel; none if any program can act as the agent.
pub(crate) async fn find_installations(
    calls: Vec<&AgentCommandSpec>,
) -> Result<Vec<Option<AgentInstallation>>> {
    let mut asked = FuturesUnordered::new();
    let mut all = Vec::new();
    for (at, call) in calls.into_iter().enumerate() {
        let Some(program) = call.program() else {
            all.push(None);
            continue;
        };
        let Some((path, on_path)) = find_program(program, &call.program_directories) else {
            all.push(Some(AgentInstallation::Missing));
            continue;
        };
        let spec = ProcessSpec {
            limits: ProcessTimeouts {
                timeout: Some(VERSION_TIMEOUT),
                grace: GRACE,
                ..ProcessTimeouts::default()
            },
            ..ProcessSpec::new(&path).with_args(&call.version)
        };
        let version = AgentVersion::Unknown("no version command".to_owned());
        all.push(Some(AgentInstallation::Found {
            path,
            on_path,
            version,
        }));
        if !call.version.is_empty() {
            asked.push(async move { (at, query_version(&spec).await) });
        }
    }
    while let Some((at, answer)) = asked.next().await {
        if let Some(Some(AgentInstallation::Found { version, .. })) = all.get_mut(at) {
            *version = answer;
        }
    }
    Ok(all)
}

/// Finds a program on PATH or in additional directories; true if it is on PATH.
fn find_program(program: &str, folders: &[String]) -> Option<(PathBuf, bool)> {
    let is_program = |path: &PathBuf| path.is_file() && access(path, Access::EXEC_OK).is_ok();
    let here = |folder: PathBuf| folder.join(program);
    if program.contains('/') {
        let path = expand_home(program);
        return is_program(&path).then_some((path, true));
    }
    let on_path = environment_variables::search_path()
        .map(here)
        .find(is_program);
    let elsewhere = || folders.iter().map(|folder| here(expand_home(folder)));
    on_path
        .map(|path| (path, true))
        .or_else(|| Some((elsewhere().find(is_program)?, false)))
}

/// Expands `~` to the home directory.
fn expand_home(path: &str) -> PathBuf {
    let in_home = |rest: &str| Some(environment_variables::home()?.join(rest));
    let path_in_home = path.strip_prefix("~/").and_then(in_home);
    path_in_home.unwrap_or_else(|| Path::new(path).to_owned())
}

async fn query_version(spec: &ProcessSpec) -> AgentVersion {
    match run_program(spec).await {
        Ok(ended) if ended.timed_out.is_some() => AgentVersion::Unknown(format!(
            "version check timed out after {}",
            HumanDuration(VERSION_TIMEOUT)
        )),
        Ok(ended) if !ended.status.is_success() => AgentVersion::Unknown(failure_reason(&ended)),
        Ok(ended) => read_version(&ended.stdout.text())
            .or_else(|| read_version(&ended.stderr.text()))
            .map_or_else(
                || AgentVersion::Unknown("version not found in its output".to_owned()),
                AgentVersion::Known,
            ),
        Err(error) => AgentVersion::Unknown(format!("cannot start: {error}")),
    }
}

async fn run_program(spec: &ProcessSpec) -> Result<ProcessResult, ProcessError> {
    let mut supervisor = ChildSupervisor::start(&ReaperProgram::own())?;
    let (_stop, stopped) = watch::channel(AttemptStopRequest::Continue);
    let mut stdin = Stdin::null();
    supervisor
        .run(spec, &mut stdin, &mut DiscardOutput, stopped)
        .await
}

/// Returns why no version was printed.
fn failure_reason(ended: &ProcessResult) -> String {
    match &ended.status {
        ChildExitStatus::NotFound(why)
        | ChildExitStatus::NotExecutable(why)
        | ChildExitStatus::CannotStart(why) => {
            // The path is already shown.
            let why = why.rsplit(": ").next().unwrap_or(why);
            format!("cannot start: {}", one_line(why, MAX_REASON))
        }
        status => {
            let said =
                last_output_line(ended).unwrap_or_else(|| format!("exit code {}", status.code()));
            format!("version check failed: {}", one_line(&said, MAX_REASON))
        }
    }
}

/// Returns the last line of the output.
fn last_output_line(ended: &ProcessResult) -> Option<String> {
    let (stderr, stdout) = (ended.stderr.text(), ended.stdout.text());
    let mut lines = stderr.lines().rev().chain(stdout.lines().rev());
    let said = lines.find(|line| !line.trim().is_empty())?;
    Some(said.to_owned())
}

/// Finds the first word that looks like a version: `codex-cli 0.166.0`, `2.1.325 (Claude Code)`, `v1.2`.
fn read_version(text: &str) -> Option<String> {
    let is_version = |word: &&str| {
        let digits = word.trim_start_matches('v');
        digits.starts_with(|c: char| c.is_ascii_digit()) && digits.contains('.')
    };
    let mut words = text
        .split(|c: char| c.is_whitespace() || "(),;".contains(c))
        .map(|word| word.trim_end_matches('.'));
    let found = words.find(is_version)?;
    Some(one_line(found.trim_start_matches('v'), 24))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn version_is_found_in_program_output() {
        for (said, version) in [
            ("2.1.325 (Claude Code)\n", Some("2.1.325")),
            ("codex-cli 0.166.0\n", Some("0.166.0")),
            (" 1.52.0\n", Some("1.52.0")),
            ("aider v0.86.2.\n", Some("0.86.2")),
            ("agent, built 2026\n", None),
            ("", None),
        ] {
            assert_eq!(read_version(said).as_deref(), version, "{said}");
        }
    }
}
