//! Changes in a project's settings since a run began: how they are handled when it is resumed.

use std::path::Path;

use anyhow::Result;
use unstuck_core::PipelineState;
use unstuck_core::command_policy::sanitize;
use unstuck_core::event::{
    EscalationAnswer, EscalationResolved, Event, EventRecord, RunId, RunStarted,
};
use unstuck_core::project_settings_snapshot::{ProjectSettingChange, ProjectSettingsSnapshot};
use unstuck_core::views::RunSummary;
use unstuck_run::blobs::BlobStore;
use unstuck_run::runner::RunAttemptOptions;

use crate::async_runtime;
use crate::command_context::CommandContext;
use crate::config::{self, Config, ConfigSources};
use crate::error_report::refusal;
use crate::output::{BOLD, DIM};
use crate::pipeline_from_config;
use crate::project_trust;
use crate::run_history::RunHistory;
use crate::run_supervision::state_dir;

/// Sections that do not apply to a single command.
const PIPELINE_SECTIONS: [&str; 3] = ["role", "loop", "run"];
/// Longer values are truncated for display.
const MAX_VALUE: usize = 400;

/// The handling of changed project settings on resume.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum OnSettingChanges {
    /// Ask on the terminal; without one, refuse.
    Ask,
    /// Accept them.
    Accept,
    /// Accept exactly these settings, which the user has reviewed.
    AcceptSeen(ProjectSettingsSnapshot),
    /// Ignore them: continue with the original settings, and ask about the changes later.
    Hold,
}

impl OnSettingChanges {
    pub(crate) fn from_flags(accept: bool, hold: bool) -> Self {
        match (accept, hold) {
            (true, _) => Self::Accept,
            (false, true) => Self::Hold,
            (false, false) => Self::Ask,
        }
    }
}

/// Returns the project settings that apply to a single command, in stored form.
pub(crate) fn settings_of_command(config: &Config) -> String {
    let settings = config.project_settings().clone();
    settings
        .without_sections(&PIPELINE_SECTIONS)
        .canonical_text()
}

/// Returns the settings that apply to a single command as the files contain them, in stored form.
pub(crate) fn written_settings_of_command(config: &Config) -> String {
    let settings = config.written_settings().clone();
    settings
        .without_sections(&PIPELINE_SECTIONS)
        .canonical_text()
}

/// Stores the settings that apply to a single command. Failures are ignored; later comparisons then report them as
/// unknown.
pub(crate) fn store_settings(content: &str, state: &Path) {
    let _ = BlobStore::in_state_dir(state).put(content.as_bytes());
}

/// Loads the configuration of an active run. Changed project settings apply if they are trusted; otherwise the accepted
/// ones stay in effect.
pub(crate) fn load_for_run(
    project: &Path,
    sources: ConfigSources<'_>,
    accepted: Option<&ProjectSettingsSnapshot>,
) -> Result<Config> {
    let config = config::load_in(project, sources.with_accepted(accepted))?;
    if config.unapproved_changes().is_empty() || !project_trust::trusts_settings(&config, project) {
        return Ok(config);
    }
    let written = config.written_settings().clone();
    config::load_in(project, sources.with_accepted(Some(&written)))
}

/// Loads the configuration that applies to answers about a run: the owner's, and the project settings as of the start of
/// the run or as last accepted. Anything running in the project can have changed its files since, so they are not read;
/// if no settings are known, only the owner's apply.
pub(crate) fn load_for_answers(
    run: &RunId,
    project: &str,
    session: &CommandContext<'_>,
) -> Result<Config> {
    let events = async_runtime::block_on(async {
        let history = RunHistory::open(session.store).await?;
        history.events(run).await
    })?;
    let (project, sources) = (Path::new(project), session.sources());
    match stored_settings(&events, session) {
        Some(settings) => config::load_accepted(project, &settings, sources),
        None => config::load_owners(project, sources),
    }
}

/// Returns the stored project settings of a run; none if unknown or lost.
fn stored_settings(
    events: &[EventRecord],
    session: &CommandContext<'_>,
) -> Option<ProjectSettingsSnapshot> {
    let blobs = BlobStore::in_state_dir(&state_dir(session.store));
    let content = blobs.get(&accepted_hash(events)?).ok()?;
    ProjectSettingsSnapshot::from_content(&content)
}

/// Loads the configuration for resuming a run; an error if it was changed and the changes are not accepted.
pub(crate) fn load_for_resume(
    run: &RunSummary,
    events: &[EventRecord],
    sources: ConfigSources<'_>,
    on_changes: &OnSettingChanges,
    session: &CommandContext<'_>,
) -> Result<Config> {
    let project = Path::new(&run.project);
    let known = match on_changes {
        OnSettingChanges::AcceptSeen(settings) => Some(settings.clone()),
        _ => accepted_settings(run, events, on_changes, session)?,
    };
    let ignored = known.as_ref().map(|known| known.ignored.clone());
    let config = load_for_run(project, sources, known.as_ref())?;
    let is_confirmed = matches!(on_changes, OnSettingChanges::AcceptSeen(_));
    if config.unapproved_changes().is_empty()
        || is_confirmed
        || *on_changes == OnSettingChanges::Hold
    {
        return Ok(config);
    }
    if *on_changes == OnSettingChanges::Ask {
        confirm(run, config.unapproved_changes())?;
    }
    let shown = ProjectSettingsSnapshot {
        ignored: ignored.unwrap_or_default(),
        ..config.written_settings().clone()
    };
    // Changes made after the user's review do not apply.
    load_for_run(project, sources, Some(&shown))
}

/// Asks about changes before anything is done; returns how they are handled from then on.
pub(crate) fn confirm_changes(
    run: &RunSummary,
    events: &[EventRecord],
    on_changes: OnSettingChanges,
    session: &CommandContext<'_>,
) -> Result<OnSettingChanges> {
    if on_changes != OnSettingChanges::Ask {
        return Ok(on_changes);
    }
    let known = accepted_settings(run, events, &on_changes, session)?;
    let pipeline = PipelineState::from_events(events);
    let path = pipeline
        .as_ref()
        .and_then(|one| one.plan().config_path.as_deref());
    let sources = pipeline_from_config::sources_for_run(path, session.sources())?;
    let config = load_for_run(Path::new(&run.project), sources, known.as_ref())?;
    if config.unapproved_changes().is_empty() {
        return Ok(on_changes);
    }
    confirm(run, config.unapproved_changes())?;
    let ignored = known.map(|known| known.ignored).unwrap_or_default();
    Ok(OnSettingChanges::AcceptSeen(ProjectSettingsSnapshot {
        ignored,
        ..config.written_settings().clone()
    }))
}

/// Returns the project settings as of the start of the run, or as last accepted; none if unknown.
fn accepted_settings(
    run: &RunSummary,
    events: &[EventRecord],
    on_changes: &OnSettingChanges,
    session: &CommandContext<'_>,
) -> Result<Option<ProjectSettingsSnapshot>> {
    if accepted_hash(events).is_none() {
        return Ok(None);
    }
    match stored_settings(events, session) {
        Some(settings) => Ok(Some(with_file_renamed(settings, session.config))),
        None if *on_changes == OnSettingChanges::Accept => Ok(None),
        None => Err(refusal(
            format!(
                "cannot compare run {} with the project's configuration: the configuration at the start of the run is lost",
                run.id.short()
            ),
            "continue with the current configuration: --accept-changes",
        )),
    }
}

/// If the user names another file for one that is gone, compares that file instead.
fn with_file_renamed(
    mut settings: ProjectSettingsSnapshot,
    named: Option<&Path>,
) -> ProjectSettingsSnapshot {
    let named = named.and_then(|named| named.canonicalize().ok());
    let Some(named) = named.map(|named| named.display().to_string()) else {
        return settings;
    };
    let is_gone = |file: &&String| !Path::new(file.as_str()).is_file();
    let gone: Vec<_> = settings.files.keys().filter(is_gone).cloned().collect();
    for file in gone {
        if let Some(said) = settings.files.remove(&file) {
            settings.files.entry(named.clone()).or_insert(said);
        }
    }
    settings
}

/// Returns the hash of the run's project settings; none in an event log of an older version.
fn accepted_hash(events: &[EventRecord]) -> Option<String> {
    if let Some(pipeline) = PipelineState::from_events(events) {
        let newest = pipeline.approved_settings().map(str::to_owned);
        return newest.or(pipeline.plan().project_settings.clone());
    }
    let mut newest_first = events.iter().enumerate().rev();
    newest_first.find_map(|(at, recorded)| match &recorded.event {
        event @ (Event::RunStarted(_) | Event::RunResumed(_)) => settings_hash_in(event),
        Event::EscalationResolved(resolved) => approved_hash(resolved, &events[..at]),
        _ => None,
    })
}

/// Returns the hash of the settings that an answer approves, as they were shown in the newest escalation of its id.
fn approved_hash(resolved: &EscalationResolved, before: &[EventRecord]) -> Option<String> {
    if resolved.answer() != Some(EscalationAnswer::Approve) {
        return None;
    }
    before
        .iter()
        .rev()
        .find_map(|recorded| match &recorded.event {
            Event::EscalationOpened(asked) if Some(&asked.id) == resolved.id.as_ref() => {
                asked.details.accepted_settings.clone()
            }
            _ => None,
        })
}

/// Returns the hash of the project settings in an event, if any.
pub(crate) fn settings_hash_in(event: &Event) -> Option<String> {
    match event {
        Event::RunStarted(started) => match started.pipeline() {
            Some(pipeline) => pipeline.project_settings.clone(),
            None => settings_hash_of(started),
        },
        Event::RunResumed(resumed) => {
            let pipeline = resumed.pipeline.as_ref();
            let of_pipeline = pipeline.and_then(|plan| plan.project_settings.clone());
            resumed.project_settings.clone().or(of_pipeline)
        }
        Event::ConfigReloaded(reloaded) => reloaded.pipeline.as_ref()?.project_settings.clone(),
        Event::EscalationOpened(asked) => asked.details.accepted_settings.clone(),
        _ => None,
    }
}

fn settings_hash_of(started: &RunStarted) -> Option<String> {
    let options = started.sole_session()?.options.clone();
    let options: RunAttemptOptions = serde_json::from_value(options).ok()?;
    options.project_settings
}

/// Shows the changes on the terminal, and continues only if the user agrees.
fn confirm(run: &RunSummary, changes: &[ProjectSettingChange]) -> Result<()> {
    let what = format!(
        "project configuration changed since run {} started:",
        run.id.short()
    );
    let lines = change_lines(changes);
    let text = format!(
        "{BOLD}The {what}{BOLD:#}\n{}\n{DIM}Any agent in the project could have made these changes.{DIM:#}",
        lines.join("\n")
    );
    match project_trust::confirm(&text, "Continue with the current configuration?") {
        Some(true) => Ok(()),
        Some(false) => Err(refusal(
            "run not resumed",
            "undo the configuration changes, or accept them with --accept-changes",
        )),
        None => Err(refusal(
            format!("the {what}\n{}", lines.join("\n")),
            "undo the configuration changes, or accept them with --accept-changes",
        )),
    }
}

/// Renders the changes, one line each for the old and the new value.
pub(crate) fn change_lines(changes: &[ProjectSettingChange]) -> Vec<String> {
    let value = |text: &Option<String>| match text {
        None => "not set".to_owned(),
        Some(text) => crate::sanitized_text::truncate(&sanitize(text), MAX_VALUE),
    };
    let lines = changes.iter().flat_map(|change| {
        [
            format!("  {}", sanitize(&change.key)),
            format!("    - {}", value(&change.before)),
            format!("    + {}", value(&change.after)),
        ]
    });
    lines.collect()
}
