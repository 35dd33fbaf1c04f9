//! What each page shows, read from the store and asked of the program around it.

mod failed;

pub(super) use failed::failures;

use std::time::Duration;

use unstuck_core::episode::Status;
use unstuck_core::event::{Recorded, SessionId};
use unstuck_core::{RetryPolicy, RunId};
use unstuck_store::{
    Counted, Dimension, EventFilter, Order, QuestionFilter, RunFilter, Standing, StatsQuery,
};

use super::inbox::{Inbox, QuestionPage};
use super::layout::Frame;
use super::now::Now;
use super::parts::controls::May;
use super::policies::{self, Policies};
use super::run::RunPage;
use super::runs::{self, Runs};
use super::session::SessionPage;
use super::settings::Settings;
use crate::deeds::PolicyOf;
use crate::guard::{Scope, Who};
use crate::model::{Escalation, EventLine, Problem};
use crate::reading;
use crate::web::Web;

/// Of so many runs the sessions that go on are shown.
const ACTIVE_RUNS: usize = 50;
/// So many runs that ended are shown.
const ENDED_RUNS: usize = 8;
/// So many runs are on a page.
const RUNS: usize = 50;
/// So many attempts of a run are shown.
const ATTEMPTS: usize = 60;
/// Of so many attempts of a session the texts are looked up.
const TEXTS: usize = 20;
/// So many events are shown.
const EVENTS: usize = 60;
/// So many questions that wait are shown.
const QUESTIONS: usize = 200;
/// So many answered questions are shown.
const ANSWERED: usize = 25;

/// What stands around a page.
async fn frame(web: &Web, who: &Who) -> Result<Frame, Problem> {
    Ok(Frame {
        now: web.now(),
        open: web.store().waiting_questions().await?,
        may: May {
            answer: who.has(Scope::Answer),
            change: who.has(Scope::Admin),
        },
        known: who.scope.is_some(),
        login_ended: who.login_ended,
        rejected: web.rejected.most(web.now()),
        stream: Some("/api/events".to_owned()),
    })
}

pub(super) async fn now(web: &Web, who: &Who) -> Result<Now, Problem> {
    let waiting = questions(web, QuestionFilter::default()).await?;
    let ended = RunFilter {
        status: vec![
            Status::Succeeded,
            Status::Recovered,
            Status::Failed,
            Status::Interrupted,
        ],
        limit: Some(ENDED_RUNS),
        ..RunFilter::default()
    };
    Ok(Now {
        frame: frame(web, who).await?,
        questions: waiting,
        sessions: reading::active_sessions(web, ACTIVE_RUNS).await?,
        counts: reading::counts(web, ACTIVE_RUNS).await?,
        lanes: web.deeds().lanes().await?,
        gateway: format!("http://{}", web.address()),
        ended: reading::runs(web, &ended).await?.items,
        failed_by_hour: failed_by_hour(web).await?,
        spent_today: reading::spent_today(web).await?,
    })
}

async fn questions(web: &Web, filter: QuestionFilter) -> Result<Vec<Escalation>, Problem> {
    let some = QuestionFilter {
        limit: Some(filter.limit.unwrap_or(QUESTIONS)),
        ..filter
    };
    Ok(reading::escalations(web, &some).await?.items)
}

/// How many tries failed in each of the last 24 hours, the oldest first.
async fn failed_by_hour(web: &Web) -> Result<Vec<u64>, Problem> {
    const HOUR: Duration = Duration::from_secs(3600);
    let now = web.now();
    let query = StatsQuery {
        counted: Counted::Attempts,
        by: vec![Dimension::Hour, Dimension::Outcome],
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

pub(super) async fn runs(web: &Web, who: &Who, asked: runs::Asked) -> Result<Runs, Problem> {
    let projects = reading::projects(web).await?;
    let project = projects.iter().find(|project| project.id == asked.project);
    let query = RunFilter {
        project: project.map(|project| project.root.clone()),
        status: Status::named(&asked.status).into_iter().collect(),
        limit: Some(RUNS),
        after: asked.after.parse().ok(),
        ..RunFilter::default()
    };
    Ok(Runs {
        frame: frame(web, who).await?,
        runs: reading::runs(web, &query).await?,
        projects,
        asked,
    })
}

pub(super) async fn run(web: &Web, who: &Who, id: &str) -> Result<RunPage, Problem> {
    let run = reading::run(web, id).await?;
    let mut attempts = reading::attempts(web, id).await?;
    let earlier = attempts.len().saturating_sub(ATTEMPTS);
    attempts.drain(..earlier);
    let of_run = EventFilter {
        run: Some(RunId::new(id)),
        ..EventFilter::default()
    };
    let asked = QuestionFilter {
        run: Some(RunId::new(id)),
        ..QuestionFilter::default()
    };
    Ok(RunPage {
        frame: frame(web, who).await?,
        run,
        attempts,
        earlier,
        questions: questions(web, asked).await?,
        events: newest(web, of_run).await?,
    })
}

/// The newest events of those that are asked for.
async fn newest(web: &Web, filter: EventFilter) -> Result<Vec<EventLine>, Problem> {
    let filter = EventFilter {
        order: Order::NewestFirst,
        limit: Some(EVENTS),
        ..filter
    };
    let page = web.store().events(&filter).await?;
    // Pages know events by their run and number.
    let line = |recorded: &Recorded| EventLine::of(0, recorded, None);
    Ok(page.events.iter().map(line).collect())
}

pub(super) async fn session(web: &Web, who: &Who, id: &str) -> Result<SessionPage, Problem> {
    let session = reading::session(web, id).await?;
    let attempts = reading::session_attempts(web, id).await?;
    let without = attempts.len().saturating_sub(TEXTS);
    let mut told = Vec::with_capacity(attempts.len());
    for (at, attempt) in attempts.into_iter().enumerate() {
        let run = RunId::new(&session.run);
        // What is not kept any more is not shown; the rest of the page is.
        let texts = match at >= without {
            true => web.deeds().texts(run, attempt.index).await.ok(),
            false => None,
        };
        told.push((attempt, texts));
    }
    let of_session = EventFilter {
        run: Some(RunId::new(&session.run)),
        session: Some(SessionId::new(id)),
        ..EventFilter::default()
    };
    let asked = QuestionFilter {
        run: Some(RunId::new(&session.run)),
        ..QuestionFilter::default()
    };
    let mut own = questions(web, asked).await?;
    own.retain(|asked| asked.session.as_ref().is_none_or(|own| own == id));
    Ok(SessionPage {
        frame: frame(web, who).await?,
        attempts: told,
        questions: own,
        events: newest(web, of_session).await?,
        session,
    })
}

pub(super) async fn inbox(web: &Web, who: &Who) -> Result<Inbox, Problem> {
    let answered = QuestionFilter {
        standing: Standing::Answered,
        limit: Some(ANSWERED),
        ..QuestionFilter::default()
    };
    Ok(Inbox {
        frame: frame(web, who).await?,
        open: questions(web, QuestionFilter::default()).await?,
        answered: questions(web, answered).await?,
    })
}

pub(super) async fn question(web: &Web, who: &Who, id: &str) -> Result<QuestionPage, Problem> {
    Ok(QuestionPage {
        asked: reading::escalation(web, id).await?,
        frame: frame(web, who).await?,
    })
}

pub(super) async fn policies(
    web: &Web,
    who: &Who,
    asked: &policies::Asked,
) -> Result<Policies, Problem> {
    let projects = reading::projects(web).await?;
    let project = match asked.project.as_str() {
        "" => None,
        id => Some(reading::project(web, id).await?),
    };
    let of = match &project {
        Some(project) => PolicyOf::Project(project.root.clone()),
        None => PolicyOf::Everybody,
    };
    Ok(Policies {
        frame: frame(web, who).await?,
        kept: web.deeds().policy(of).await?,
        draft: asked.policy.as_deref().map(written),
        templates: web.deeds().policy_templates().await?,
        projects,
        project,
    })
}

/// The policy that a form says, or why it is none.
fn written(text: &str) -> Result<RetryPolicy, String> {
    RetryPolicy::from_json(text).map_err(|error| error.to_string())
}

pub(super) async fn settings(web: &Web, who: &Who) -> Result<Settings, Problem> {
    Ok(Settings {
        frame: frame(web, who).await?,
        agents: web.deeds().agents().await?,
        models: web.deeds().models().await?,
        webhooks: web.deeds().webhooks().await?,
        budgets: web.deeds().budgets().await?,
    })
}
