//! Loads the data of each page from the store and the surrounding program.

mod failure_data;

pub(super) use failure_data::failures;

use std::time::Duration;

use unstuck_core::event::{EventRecord, SessionId};
use unstuck_core::views::RunStatus;
use unstuck_core::{RetryPolicy, RunId};
use unstuck_store::{
    CountedQuantity, EscalationFilter, EscalationStatusFilter, EventFilter, EventOrder, RunFilter,
    StatisticsDimension, StatsQuery,
};

use super::inbox::{EscalationPage, InboxPage};
use super::layout::PageFrame;
use super::overview::OverviewPage;
use super::parts::controls::Permissions;
use super::policies::{self, PoliciesPage};
use super::run::RunPage;
use super::runs::{self, RunsPage};
use super::session::SessionPage;
use super::settings::SettingsPage;
use crate::auth::{CallerIdentity, PermissionScope};
use crate::commands::PolicyTarget;
use crate::model::{EscalationResponse, EventResponse, ProblemDetails};
use crate::queries;
use crate::server_state::WebState;

/// Maximum number of active runs whose sessions are shown.
const MAX_ACTIVE_RUNS: usize = 50;
/// Maximum number of ended runs shown.
const MAX_ENDED_RUNS: usize = 8;
/// Number of runs per page.
const RUNS_PER_PAGE: usize = 50;
/// Maximum number of attempts of a run shown.
const MAX_ATTEMPTS: usize = 60;
/// Maximum number of attempts of a session whose texts are loaded.
const MAX_ATTEMPT_TEXTS: usize = 20;
/// Maximum number of events shown.
const MAX_EVENTS: usize = 60;
/// Maximum number of pending escalations shown.
const MAX_OPEN_ESCALATIONS: usize = 200;
/// Maximum number of answered escalations shown.
const MAX_ANSWERED_ESCALATIONS: usize = 25;

/// Loads the data that all pages share.
async fn load_frame(web: &WebState, who: &CallerIdentity) -> Result<PageFrame, ProblemDetails> {
    Ok(PageFrame {
        now: web.now(),
        open_escalations: web.store().count_open_escalations().await?,
        permissions: Permissions {
            can_answer: who.has_scope(PermissionScope::Answer),
            can_change: who.has_scope(PermissionScope::Admin),
        },
        is_logged_in: who.scope.is_some(),
        login_ended: who.login_ended,
        rejected: web.rejected.worst_address(web.now()),
        stream: Some("/api/events".to_owned()),
    })
}

pub(super) async fn overview(
    web: &WebState,
    who: &CallerIdentity,
) -> Result<OverviewPage, ProblemDetails> {
    let waiting = escalations(web, EscalationFilter::default()).await?;
    let ended = RunFilter {
        status: vec![
            RunStatus::Succeeded,
            RunStatus::Recovered,
            RunStatus::Failed,
            RunStatus::Interrupted,
        ],
        limit: Some(MAX_ENDED_RUNS),
        ..RunFilter::default()
    };
    Ok(OverviewPage {
        frame: load_frame(web, who).await?,
        escalations: waiting,
        sessions: queries::active_sessions(web, MAX_ACTIVE_RUNS).await?,
        counts: queries::run_status_counts(web, MAX_ACTIVE_RUNS).await?,
        lanes: web.deeds().lanes().await?,
        gateway: format!("http://{}", web.address()),
        ended: queries::runs(web, &ended).await?.items,
        failed_by_hour: failed_by_hour(web).await?,
        spent_today: queries::cost_today(web).await?,
    })
}

async fn escalations(
    web: &WebState,
    filter: EscalationFilter,
) -> Result<Vec<EscalationResponse>, ProblemDetails> {
    let some = EscalationFilter {
        limit: Some(filter.limit.unwrap_or(MAX_OPEN_ESCALATIONS)),
        ..filter
    };
    Ok(queries::escalations(web, &some).await?.items)
}

/// Returns the failed attempts in each of the last 24 hours, the oldest first.
async fn failed_by_hour(web: &WebState) -> Result<Vec<u64>, ProblemDetails> {
    const HOUR: Duration = Duration::from_secs(3600);
    let now = web.now();
    let query = StatsQuery {
        metric: CountedQuantity::Attempts,
        group_by: vec![StatisticsDimension::Hour, StatisticsDimension::Outcome],
        since: Some(now.before(23 * HOUR)),
        ..StatsQuery::default()
    };
    let lines = web.store().stats(&query).await?;
    let hour = |millis: i64| millis.div_euclid(3_600_000);
    let first = hour(now.millis()) - 23;
    let mut hours = vec![0; 24];
    for line in lines
        .iter()
        .filter(|line| line.outcome.as_deref() == Some("failed"))
    {
        let place = line.from.map(|from| hour(from.millis()) - first);
        let place = place.and_then(|place| usize::try_from(place).ok());
        if let Some(count) = place.and_then(|place| hours.get_mut(place)) {
            *count += line.count;
        }
    }
    Ok(hours)
}

pub(super) async fn runs(
    web: &WebState,
    who: &CallerIdentity,
    asked: runs::RunsPageQuery,
) -> Result<RunsPage, ProblemDetails> {
    let projects = queries::projects(web).await?;
    let project = projects.iter().find(|project| project.id == asked.project);
    let query = RunFilter {
        project: project.map(|project| project.root.clone()),
        status: RunStatus::from_name(&asked.status).into_iter().collect(),
        limit: Some(RUNS_PER_PAGE),
        after: asked.after.parse().ok(),
        ..RunFilter::default()
    };
    Ok(RunsPage {
        frame: load_frame(web, who).await?,
        runs: queries::runs(web, &query).await?,
        projects,
        query: asked,
    })
}

pub(super) async fn run(
    web: &WebState,
    who: &CallerIdentity,
    id: &str,
) -> Result<RunPage, ProblemDetails> {
    let run = queries::run(web, id).await?;
    let mut attempts = queries::attempts(web, id).await?;
    let earlier = attempts.len().saturating_sub(MAX_ATTEMPTS);
    attempts.drain(..earlier);
    let of_run = EventFilter {
        run: Some(RunId::new(id)),
        ..EventFilter::default()
    };
    let asked = EscalationFilter {
        run: Some(RunId::new(id)),
        ..EscalationFilter::default()
    };
    Ok(RunPage {
        frame: load_frame(web, who).await?,
        run,
        attempts,
        hidden_attempts: earlier,
        escalations: escalations(web, asked).await?,
        events: newest_events(web, of_run).await?,
    })
}

/// Returns the newest events that match.
async fn newest_events(
    web: &WebState,
    filter: EventFilter,
) -> Result<Vec<EventResponse>, ProblemDetails> {
    let filter = EventFilter {
        order: EventOrder::NewestFirst,
        limit: Some(MAX_EVENTS),
        ..filter
    };
    let page = web.store().events(&filter).await?;
    // Pages identify events by run and sequence number.
    let line = |recorded: &EventRecord| EventResponse::from_record(0, recorded, None);
    Ok(page.events.iter().map(line).collect())
}

pub(super) async fn session(
    web: &WebState,
    who: &CallerIdentity,
    id: &str,
) -> Result<SessionPage, ProblemDetails> {
    let session = queries::session(web, id).await?;
    let attempts = queries::session_attempts(web, id).await?;
    let without = attempts.len().saturating_sub(MAX_ATTEMPT_TEXTS);
    let mut told = Vec::with_capacity(attempts.len());
    for (at, attempt) in attempts.into_iter().enumerate() {
        let run = RunId::new(&session.run);
        // Texts that are no longer kept are left out; the rest of the page is shown.
        let texts = if at >= without {
            web.deeds().texts(run, attempt.index).await.ok()
        } else {
            None
        };
        told.push((attempt, texts));
    }
    let of_session = EventFilter {
        run: Some(RunId::new(&session.run)),
        session: Some(SessionId::new(id)),
        ..EventFilter::default()
    };
    let asked = EscalationFilter {
        run: Some(RunId::new(&session.run)),
        ..EscalationFilter::default()
    };
    let mut own = escalations(web, asked).await?;
    own.retain(|asked| asked.session.as_ref().is_none_or(|own| own == id));
    Ok(SessionPage {
        frame: load_frame(web, who).await?,
        attempts: told,
        escalations: own,
        events: newest_events(web, of_session).await?,
        session,
    })
}

pub(super) async fn inbox(
    web: &WebState,
    who: &CallerIdentity,
) -> Result<InboxPage, ProblemDetails> {
    let answered = EscalationFilter {
        status: EscalationStatusFilter::Closed,
        limit: Some(MAX_ANSWERED_ESCALATIONS),
        ..EscalationFilter::default()
    };
    Ok(InboxPage {
        frame: load_frame(web, who).await?,
        open: escalations(web, EscalationFilter::default()).await?,
        answered: escalations(web, answered).await?,
    })
}

pub(super) async fn escalation(
    web: &WebState,
    who: &CallerIdentity,
    id: &str,
) -> Result<EscalationPage, ProblemDetails> {
    Ok(EscalationPage {
        escalation: queries::escalation(web, id).await?,
        frame: load_frame(web, who).await?,
    })
}

pub(super) async fn policies(
    web: &WebState,
    who: &CallerIdentity,
    asked: &policies::PoliciesPageQuery,
) -> Result<PoliciesPage, ProblemDetails> {
    let projects = queries::projects(web).await?;
    let project = match asked.project.as_str() {
        "" => None,
        id => Some(queries::project(web, id).await?),
    };
    let of = match &project {
        Some(project) => PolicyTarget::Project(project.root.clone()),
        None => PolicyTarget::Default,
    };
    Ok(PoliciesPage {
        frame: load_frame(web, who).await?,
        effective: web.deeds().policy(of).await?,
        draft: asked.policy.as_deref().map(parse_policy),
        templates: web.deeds().policy_templates().await?,
        projects,
        project,
    })
}

/// Parses the policy of a form, or returns why it is invalid.
fn parse_policy(text: &str) -> Result<RetryPolicy, String> {
    RetryPolicy::from_json(text).map_err(|error| error.to_string())
}

pub(super) async fn settings(
    web: &WebState,
    who: &CallerIdentity,
) -> Result<SettingsPage, ProblemDetails> {
    Ok(SettingsPage {
        frame: load_frame(web, who).await?,
        agents: web.deeds().agents().await?,
        models: web.deeds().models().await?,
        webhooks: web.deeds().webhooks().await?,
        budgets: web.deeds().budgets().await?,
    })
}
