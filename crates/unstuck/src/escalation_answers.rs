//! Human answers to escalations, shared by all front ends.

use std::sync::Arc;

use anyhow::Result;
use unstuck_core::EventRecord;
use unstuck_core::command_policy::sanitize;
use unstuck_core::decision::ConcreteAttemptChange;
use unstuck_core::escalation::EscalationAnswer;
use unstuck_core::event::RunId;
use unstuck_core::views::{RunProjection, RunSummary};
use unstuck_run::runner::{
    self, HumanAnswer, NotificationBuilder, NotifyingEventWriter, RunAborter, RunError, RunResult,
};
use unstuck_store::{
    EscalationClosure, EscalationFilter, EscalationRow, EscalationStatusFilter, StoreError,
};

use crate::choice_prompt::ChoicePrompt;
use crate::command_context::CommandContext;
use crate::config::Config;
use crate::error_report::{forbidden, refusal};
use crate::human_only_commands::human_only_error;
use crate::notifications::ConfiguredNotifier;
use crate::project_lookup::current_project;
use crate::project_setting_changes::load_for_answers;
use crate::run_history::RunHistory;
use crate::run_supervision::state_dir;
use crate::sanitized_text::one_line;
use crate::{async_runtime, clock, environment_variables, project_trust};

/// Maximum number of listed candidates.
const MAX_LISTED: usize = 8;

/// Effect of an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum AnswerEffect {
    /// The process that supervises the run receives it.
    Delivered,
    /// The run is not active and must be resumed.
    NeedsResume,
    /// The escalation blocked nothing.
    Recorded,
    /// The run has ended, with a short reason.
    Ended(String),
}

/// Selects an escalation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EscalationSelector<'a> {
    /// By a prefix of its id or of its run's id.
    Id(&'a str),
    /// The newest one of this project.
    Newest,
    /// The only one of this project.
    Only,
}

/// Returns the open escalations, newest first, after applying the default answer to expired ones.
pub(crate) fn open_escalations(
    filter: &EscalationFilter,
    session: &CommandContext<'_>,
) -> Result<Vec<EscalationRow>> {
    async_runtime::block_on(async {
        let Some(store) = crate::store::open_existing(session.store).await? else {
            return Ok(Vec::new());
        };
        let now = clock::now().at;
        let is_over = |one: &EscalationRow| {
            let deadline = one.request.details.deadline;
            one.closure.is_none() && deadline.is_some_and(|deadline| deadline.at <= now)
        };
        let mut found = store.escalations(filter).await?;
        if found.iter().any(is_over) {
            let scribe = NotifyingEventWriter {
                store: &store,
                notifier: None,
            };
            for lapsed in runner::expire_escalations(&scribe, filter, now).await? {
                end_run_of_expired(scribe, &lapsed, session).await?;
            }
            found = store.escalations(filter).await?;
        }
        store.close().await?;
        Ok(found)
    })
}

/// Ends the run of an expired escalation whose default answer is to abort; a supervising process does so itself.
async fn end_run_of_expired(
    scribe: NotifyingEventWriter<'_>,
    lapsed: &EscalationRow,
    session: &CommandContext<'_>,
) -> Result<()> {
    let deadline = lapsed.request.details.deadline;
    let events = scribe.store.load(&lapsed.run).await?;
    let Some(deadline) = deadline.filter(|one| ends_run(one.answer, &events)) else {
        return Ok(());
    };
    let said = HumanAnswer {
        answer: deadline.answer,
        note: "deadline passed without an answer",
        author: None,
    };
    match end_run(scribe, &lapsed.run, &said, session).await {
        Err(RunError::AlreadyActive { .. } | RunError::NotResumable { .. }) => Ok(()),
        done => Ok(done.map(drop)?),
    }
}

/// True if an answer ends the whole run because nothing is left to do.
fn ends_run(answer: EscalationAnswer, events: &[EventRecord]) -> bool {
    let is_single =
        || RunProjection::from_events(events).is_some_and(|run| run.summary.roles.is_none());
    match answer {
        EscalationAnswer::Abort => true,
        EscalationAnswer::Skip => is_single(),
        _ => false,
    }
}

async fn end_run(
    scribe: NotifyingEventWriter<'_>,
    run: &RunId,
    said: &HumanAnswer<'_>,
    session: &CommandContext<'_>,
) -> Result<RunResult, RunError> {
    let ending = RunAborter {
        event_writer: scribe,
        redactor: &environment_variables::redactor(),
        state: &state_dir(session.store),
    };
    ending.abort_run(run, said).await
}

/// Returns the selected escalation.
pub(crate) fn find_escalation(
    which: EscalationSelector<'_>,
    answer: EscalationAnswer,
    session: &CommandContext<'_>,
) -> Result<EscalationRow> {
    match which {
        EscalationSelector::Id(id) => {
            let id = &id.to_ascii_lowercase();
            let filter = EscalationFilter {
                prefix: Some(id.clone()),
                ..EscalationFilter::default()
            };
            let mut found = open_escalations(&filter, session)?;
            if found.iter().any(|one| one.request.id == *id) {
                found.retain(|one| one.request.id == *id);
            }
            sole_match(found, id, session)
        }
        EscalationSelector::Newest | EscalationSelector::Only => {
            find_in_project(which, answer, session)
        }
    }
}

/// Returns the escalation of this project that accepts the answer; several are an error that lists them.
fn find_in_project(
    which: EscalationSelector<'_>,
    answer: EscalationAnswer,
    session: &CommandContext<'_>,
) -> Result<EscalationRow> {
    let all = open_escalations(&EscalationFilter::default(), session)?;
    let project = current_project();
    let (mut here, elsewhere): (Vec<_>, Vec<_>) =
        all.into_iter().partition(|one| one.project == project);
    let open_here = here.len();
    here.retain(|one| one.request.details.allows(answer));
    let chosen = match (here.len(), which) {
        (0, _) => return Err(no_match_error(answer, open_here, elsewhere.len())),
        (1, _) | (_, EscalationSelector::Newest) => 0,
        _ => {
            let candidates = ChoicePrompt {
                what: "open requests in this project",
                lines: here.iter().map(candidate_line).collect(),
                hint: format!("specify one: `unstuck {answer} ID`, or use `--last` for the newest"),
            };
            candidates.choose()?
        }
    };
    Ok(here.swap_remove(chosen))
}

/// Renders an escalation on one line: its id and summary.
fn candidate_line(question: &EscalationRow) -> String {
    let asked = &question.request;
    let about = asked
        .details
        .command
        .as_deref()
        .unwrap_or(&asked.details.activity);
    let about = one_line(about, 70);
    let ago = clock::format_age(question.at, clock::now().at);
    format!("{}  {ago}  {}  {about}", asked.id, asked.kind)
}

fn no_match_error(answer: EscalationAnswer, open_here: usize, elsewhere: usize) -> anyhow::Error {
    let message = match open_here {
        0 => "no open request in this project".to_owned(),
        1 => format!("the open request in this project does not accept `{answer}`"),
        n => format!("none of the {n} open requests in this project accepts `{answer}`"),
    };
    let hint = match (open_here, elsewhere) {
        (0, 0) => "`unstuck resume` continues an interrupted run".to_owned(),
        (0, n) => format!(
            "{n} in other projects: `unstuck inbox` lists them, `unstuck {answer} ID` answers one"
        ),
        _ => "`unstuck inbox` lists the possible answers".to_owned(),
    };
    refusal(message, hint)
}

fn sole_match(
    mut found: Vec<EscalationRow>,
    id: &str,
    session: &CommandContext<'_>,
) -> Result<EscalationRow> {
    match (found.len(), found.pop()) {
        (1, Some(question)) => Ok(question),
        (0, _) => Err(not_open_error(id, session)?),
        (_, last) => {
            let ids = found.iter().chain(&last).map(|one| one.request.id.clone());
            let some: Vec<_> = ids.take(MAX_LISTED).collect();
            let more = match (found.len() + 1).saturating_sub(MAX_LISTED) {
                0 => String::new(),
                more => format!(" or {more} more (see `unstuck inbox`)"),
            };
            Err(refusal(
                format!("`{}` is ambiguous", one_line(id, 40)),
                format!("use one of {}{more}", some.join(", ")),
            ))
        }
    }
}

/// Returns the error for an id without an open escalation: already answered, or unknown.
fn not_open_error(id: &str, session: &CommandContext<'_>) -> Result<anyhow::Error> {
    let filter = EscalationFilter {
        prefix: Some(id.to_owned()),
        status: EscalationStatusFilter::Any,
        ..EscalationFilter::default()
    };
    let all = open_escalations(&filter, session)?;
    let newest = all.first();
    let answered = newest.and_then(|one| Some((one.request.id.clone(), one.closure.clone()?)));
    Ok(match answered {
        Some((id, answered)) => already_answered(&id, &answered),
        None => refusal(
            format!("request `{}` not found", one_line(id, 40)),
            "`unstuck inbox` lists open requests",
        ),
    })
}

/// Submits an answer of the current user; the first answer wins.
pub(crate) fn answer_as_user(
    question: &EscalationRow,
    answer: EscalationAnswer,
    note: &str,
    session: &CommandContext<'_>,
) -> Result<AnswerEffect> {
    let giving = AnswerInput {
        answer,
        note,
        who: &current_user(),
        changes: &[],
    };
    answer_as(question, &giving, session)
}

/// An answer and its author.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AnswerInput<'a> {
    pub(crate) answer: EscalationAnswer,
    pub(crate) note: &'a str,
    pub(crate) who: &'a str,
    /// Changes in addition to those of the answer itself.
    pub(crate) changes: &'a [ConcreteAttemptChange],
}

/// Submits an answer of the given user; the first answer wins.
pub(crate) fn answer_as(
    question: &EscalationRow,
    giving: &AnswerInput<'_>,
    session: &CommandContext<'_>,
) -> Result<AnswerEffect> {
    check_is_available(question, giving.answer)?;
    let config = load_for_answers(&question.run, &question.project, session)?;
    check_allowed(giving.answer, giving.who, &config)?;
    let said = HumanAnswer {
        answer: giving.answer,
        note: giving.note,
        author: Some(giving.who),
    };
    async_runtime::block_on(async {
        let redactor = Arc::new(environment_variables::redactor());
        let store = crate::store::open(session.store, redactor).await?;
        let notifying = ConfiguredNotifier::new(&config, session);
        let scribe = NotifyingEventWriter {
            store: &store,
            notifier: notifying
                .as_ref()
                .map(|hooks| hooks as &dyn NotificationBuilder),
        };
        let given = record_answer(scribe, question, &said, giving.changes, session).await;
        store.close().await?;
        given
    })
}

/// Records an answer, and ends the run if the answer says so.
async fn record_answer(
    scribe: NotifyingEventWriter<'_>,
    question: &EscalationRow,
    said: &HumanAnswer<'_>,
    changes: &[ConcreteAttemptChange],
    session: &CommandContext<'_>,
) -> Result<AnswerEffect> {
    let events = scribe.store.load(&question.run).await?;
    let ends = ends_run(said.answer, &events);
    if !ends && !question.request.is_non_blocking() && !is_driven(session, &question.run).await? {
        check_can_continue(question, &events, session)?;
    }
    let now = clock::now().at;
    let given = runner::record_answer_with_changes(&scribe, question, said, changes, now).await;
    given.map_err(|error| answer_error(error, question))?;
    if question.request.is_non_blocking() {
        return Ok(AnswerEffect::Recorded);
    }
    if is_driven(session, &question.run).await? {
        return Ok(AnswerEffect::Delivered);
    }
    if !ends {
        return Ok(AnswerEffect::NeedsResume);
    }
    match end_run(scribe, &question.run, said, session).await {
        Ok(finished) => Ok(AnswerEffect::Ended(finished.end.reason)),
        Err(RunError::AlreadyActive { .. }) => Ok(AnswerEffect::Delivered),
        Err(error) => Err(answer_error(error, question)),
    }
}

/// Refuses an answer after which the run could not continue, before it is recorded.
fn check_can_continue(
    question: &EscalationRow,
    events: &[EventRecord],
    session: &CommandContext<'_>,
) -> Result<()> {
    let Some(why) = runner::why_not_resumable(events, &state_dir(session.store)) else {
        return Ok(());
    };
    let id = &question.request.id;
    Err(refusal(
        format!("run {} cannot be resumed: {why}", question.run.short()),
        format!("abort it with `unstuck abort {id}`, then start the command again"),
    ))
}

/// Result of a bulk abort.
#[derive(Debug, Default)]
pub(crate) struct BulkAbortResult {
    /// Number of aborted runs.
    pub(crate) count: usize,
    /// Errors of the others.
    pub(crate) errors: Vec<anyhow::Error>,
}

/// Aborts the run of each request that is still open; reports each once it is recorded.
pub(crate) fn abort_each(
    questions: &[EscalationRow],
    note: &str,
    session: &CommandContext<'_>,
    mut told: impl FnMut(&EscalationRow, &AnswerEffect) -> Result<()>,
) -> Result<BulkAbortResult> {
    let mut aborted = BulkAbortResult::default();
    for question in questions {
        // A run with several open requests ended with the first of them.
        if !question.request.details.allows(EscalationAnswer::Abort) || !is_open(question, session)?
        {
            continue;
        }
        match answer_as_user(question, EscalationAnswer::Abort, note, session) {
            Ok(given) => {
                aborted.count += 1;
                told(question, &given)?;
            }
            Err(error) => aborted.errors.push(error),
        }
    }
    Ok(aborted)
}

fn is_open(question: &EscalationRow, session: &CommandContext<'_>) -> Result<bool> {
    let filter = EscalationFilter {
        run: Some(question.run.clone()),
        ..EscalationFilter::default()
    };
    let open = open_escalations(&filter, session)?;
    Ok(open.iter().any(|one| one.request.id == question.request.id))
}

/// Aborts an inactive run without an open escalation, for the current user.
pub(crate) fn abort_run(
    run: &RunSummary,
    note: &str,
    session: &CommandContext<'_>,
) -> Result<String> {
    let who = current_user();
    refuse_agents()?;
    let config = load_for_answers(&run.id, &run.project, session)?;
    check_allowed(EscalationAnswer::Abort, &who, &config)?;
    let said = HumanAnswer {
        answer: EscalationAnswer::Abort,
        note,
        author: Some(&who),
    };
    let short = run.id.short();
    async_runtime::block_on(async {
        let redactor = Arc::new(environment_variables::redactor());
        let store = crate::store::open(session.store, redactor).await?;
        let notifying = ConfiguredNotifier::new(&config, session);
        let scribe = NotifyingEventWriter {
            store: &store,
            notifier: notifying
                .as_ref()
                .map(|hooks| hooks as &dyn NotificationBuilder),
        };
        let ended = end_run(scribe, &run.id, &said, session).await;
        store.close().await?;
        match ended {
            Ok(finished) => Ok(finished.end.reason),
            Err(RunError::AlreadyActive { pid, .. }) => Err(refusal(
                format!("run {short} is active (pid {pid})"),
                format!("stop it first: `unstuck stop {short}`"),
            )),
            Err(RunError::NotResumable { why, .. }) => Err(refusal(
                format!("run {short} cannot be aborted: {why}"),
                format!("`unstuck show {short}` shows how it ended"),
            )),
            Err(RunError::Store(error)) => Err(crate::store::with_hint(error)),
            Err(error) => Err(error.into()),
        }
    })
}

async fn is_driven(session: &CommandContext<'_>, run: &RunId) -> Result<bool> {
    let history = RunHistory::open(session.store).await?;
    history.is_driven(run, clock::now().at).await
}

/// Checks that the author is a human and that the answer is available.
fn check_is_available(question: &EscalationRow, answer: EscalationAnswer) -> Result<()> {
    refuse_agents()?;
    let id = &question.request.id;
    if !question.request.details.allows(answer) {
        let choices = question.request.details.options.iter();
        let names: Vec<_> = choices.map(|one| one.answer.name()).collect();
        let hint = format!("valid answers: {}", names.join(", "));
        let hint = match &question.request.details.unrepeatable_reason {
            Some(why) => format!("the run cannot be resumed ({why}); {hint}"),
            None => hint,
        };
        return Err(refusal(
            format!("request {id} does not accept `{answer}`"),
            hint,
        ));
    }
    Ok(())
}

/// Refuses answers from agents.
fn refuse_agents() -> Result<()> {
    match project_trust::agent_evidence() {
        None => Ok(()),
        Some(why) => Err(human_only_error("answer", &why)),
    }
}

/// Checks that the user may give this answer in the project.
fn check_allowed(answer: EscalationAnswer, who: &str, config: &Config) -> Result<()> {
    let people = config.escalations().answerers(answer);
    match people.filter(|people| people.iter().all(|one| one != who)) {
        None => Ok(()),
        Some(people) => Err(forbidden(
            format!("{who} may not give the answer `{answer}` in this project"),
            format!("allowed by [escalations.answerers]: {}", people.join(", ")),
        )),
    }
}

fn answer_error(error: RunError, question: &EscalationRow) -> anyhow::Error {
    let id = &question.request.id;
    match error {
        RunError::Store(StoreError::AlreadyAnswered {
            closure: answered, ..
        }) => already_answered(id, &answered),
        RunError::Store(StoreError::EscalationChanged { .. }) => refusal(
            format!("request {id} changed since it was shown"),
            format!("review it again: `unstuck inbox {id}`"),
        ),
        RunError::Store(error) => crate::store::with_hint(error),
        other => other.into(),
    }
}

/// Returns the error for an escalation that was answered in the meantime.
fn already_answered(id: &str, answered: &EscalationClosure) -> anyhow::Error {
    let when = clock::format_time(answered.at);
    let said = answered.answer.as_ref();
    let how = said
        .and_then(|said| said.answer())
        .map(EscalationAnswer::past_tense);
    let how = how.unwrap_or("closed when its run continued");
    let by = match said {
        Some(said) if said.by == "deadline" => {
            " by default (deadline passed without an answer)".to_owned()
        }
        Some(said) => match &said.user {
            Some(who) => format!(" by {}", sanitize(who)),
            None => String::new(),
        },
        None => String::new(),
    };
    refusal(
        format!("request {id} was {how}{by} at {when}"),
        "only the first answer is accepted; `unstuck inbox` lists open requests",
    )
}

/// Returns the name of the current user.
pub(crate) fn current_user() -> String {
    let uid = nix::unistd::Uid::current();
    let known = nix::unistd::User::from_uid(uid).ok().flatten();
    known.map_or_else(|| uid.to_string(), |user| user.name)
}
