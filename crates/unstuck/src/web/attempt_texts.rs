//! Prompt and output of an attempt, from the run directory.

use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

use anyhow::Result;
use unstuck_core::agent::{ParsedAgentCommandLine, PromptSource};
use unstuck_core::event::RunId;
use unstuck_core::views::AttemptView;
use unstuck_run::run_dir;
use unstuck_web::commands::WebCommandError;
use unstuck_web::model::AttemptTexts;

use super::Doer;
use crate::config;
use crate::config::Config;
use crate::run_supervision::state_dir;

/// Maximum size of the returned end of a text, in bytes.
const MAX_TAIL_BYTES: u64 = 512 << 10;

/// Returns the prompt and output of an attempt by its index among all attempts of the run.
pub(super) async fn attempt_texts(
    doer: &Doer,
    run: RunId,
    attempt: u32,
) -> Result<AttemptTexts, WebCommandError> {
    let none = || WebCommandError::NotFound(format!("run {run} has no attempt {attempt}"));
    let story = doer.0.store.timeline(&run).await?.ok_or_else(none)?;
    let found = story.attempts.into_iter().find(|one| one.index == attempt);
    let (found, project) = (found.ok_or_else(none)?, story.summary.project);
    let instances = story.run.instances(found.part.as_ref());
    doer.run_blocking(move |desk| {
        // Without the configuration, only the prompt within the command line is not identified.
        let config = config::load_in(Path::new(&project), desk.session().sources()).ok();
        let files = run_dir::run_files_dir(&state_dir(desk.session().store), &run);
        Ok(read_texts(&found, instances, &files, config.as_ref()))
    })
    .await
}

fn read_texts(
    attempt: &AttemptView,
    instances: u32,
    files: &Path,
    config: Option<&Config>,
) -> AttemptTexts {
    let folder = run_dir::attempt_dir(files, attempt.part.as_ref(), instances, attempt.number);
    let kept = |name: &str| read_tail(&folder.join(name)).unwrap_or_default();
    let (prompt, _) = kept("prompt.md");
    let ((stdout, stdout_cut), (stderr, stderr_cut)) = (kept("stdout.log"), kept("stderr.log"));
    let excerpt = attempt.excerpt.as_ref();
    // If the files are gone, the store has the last lines.
    let or = |text: String, end: Option<&String>| match (text.is_empty(), end) {
        (true, Some(end)) => end.clone(),
        _ => text,
    };
    AttemptTexts {
        prompt: if prompt.is_empty() {
            config.and_then(|config| prompt_of_command(attempt, config))
        } else {
            Some(prompt)
        },
        truncated: stdout_cut || stderr_cut,
        stdout: or(stdout, excerpt.map(|one| &one.stdout)),
        stderr: or(stderr, excerpt.map(|one| &one.stderr)),
    }
}

/// Returns the prompt contained in the command line.
fn prompt_of_command(attempt: &AttemptView, config: &Config) -> Option<String> {
    let agent = config.agents().recognize(&attempt.command)?;
    match ParsedAgentCommandLine::parse(agent, &attempt.command).prompt() {
        PromptSource::Text(text) => Some(text),
        PromptSource::Stdin | PromptSource::File(_) | PromptSource::Elsewhere => None,
    }
}

/// Returns the end of a file, and whether it was truncated.
fn read_tail(path: &Path) -> Result<(String, bool)> {
    let mut file = unstuck_files::open_named(path)?;
    let length = file.metadata()?.len();
    let start = length.saturating_sub(MAX_TAIL_BYTES);
    file.seek(SeekFrom::Start(start))?;
    let mut bytes = Vec::new();
    file.take(MAX_TAIL_BYTES).read_to_end(&mut bytes)?;
    Ok((String::from_utf8_lossy(&bytes).into_owned(), start > 0))
}
