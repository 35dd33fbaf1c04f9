//! What an attempt was given and wrote, from the folder of its run.

use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

use anyhow::Result;
use unstuck_core::agent::{Invocation, Prompt};
use unstuck_core::episode::AttemptStory;
use unstuck_core::event::RunId;
use unstuck_run::folder;
use unstuck_web::deeds::DeedError;
use unstuck_web::model::AttemptTexts;

use super::Doer;
use crate::config;
use crate::config::Config;
use crate::supervise::state_folder;

/// So much of the end of a text is told.
const LONGEST: u64 = 512 << 10;

/// All that an attempt was given and wrote, by its place among all attempts of the run.
pub(super) async fn texts(
    doer: &Doer,
    run: RunId,
    attempt: u32,
) -> Result<AttemptTexts, DeedError> {
    let none = || DeedError::NotFound(format!("run {run} has no attempt {attempt}"));
    let story = doer.0.store.story(&run).await?.ok_or_else(none)?;
    let found = story.attempts.into_iter().find(|one| one.index == attempt);
    let (found, project) = (found.ok_or_else(none)?, story.view.project);
    let instances = story.run.instances(found.part.as_ref());
    doer.beside(move |desk| {
        // Without it only the words of the command line are not told apart.
        let config = config::load_in(Path::new(&project), desk.session().sources()).ok();
        let files = folder::files_of(&state_folder(desk.session().store), &run);
        Ok(read(&found, instances, &files, config.as_ref()))
    })
    .await
}

fn read(
    attempt: &AttemptStory,
    instances: u32,
    files: &Path,
    config: Option<&Config>,
) -> AttemptTexts {
    let folder = folder::attempt_of(files, attempt.part.as_ref(), instances, attempt.number);
    let kept = |name: &str| end_of(&folder.join(name)).unwrap_or_default();
    let (prompt, _) = kept("prompt.md");
    let ((stdout, stdout_cut), (stderr, stderr_cut)) = (kept("stdout.log"), kept("stderr.log"));
    let excerpt = attempt.excerpt.as_ref();
    // Where the files are gone, the store knows the last of them.
    let or = |text: String, end: Option<&String>| match (text.is_empty(), end) {
        (true, Some(end)) => end.clone(),
        _ => text,
    };
    AttemptTexts {
        prompt: match prompt.is_empty() {
            true => config.and_then(|config| of_command(attempt, config)),
            false => Some(prompt),
        },
        cut: stdout_cut || stderr_cut,
        stdout: or(stdout, excerpt.map(|one| &one.stdout)),
        stderr: or(stderr, excerpt.map(|one| &one.stderr)),
    }
}

/// The prompt that stands in the command line.
fn of_command(attempt: &AttemptStory, config: &Config) -> Option<String> {
    let agent = config.agents().recognise(&attempt.command)?;
    match Invocation::read(agent, &attempt.command).prompt() {
        Prompt::Text(text) => Some(text),
        Prompt::Stdin | Prompt::File(_) | Prompt::Elsewhere => None,
    }
}

/// The end of a file, and whether something was left out before it.
fn end_of(path: &Path) -> Result<(String, bool)> {
    let mut file = unstuck_files::open_named(path)?;
    let length = file.metadata()?.len();
    let start = length.saturating_sub(LONGEST);
    file.seek(SeekFrom::Start(start))?;
    let mut bytes = Vec::new();
    file.take(LONGEST).read_to_end(&mut bytes)?;
    Ok((String::from_utf8_lossy(&bytes).into_owned(), start > 0))
}
