//! Endpoint for the event log of all runs, as a stream or as pages.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures_util::stream::{self, StreamExt};
use serde::Deserialize;
use tokio::sync::Mutex;
use unstuck_core::views::SessionStatusSummary;
use unstuck_core::{RunId, SessionId};
use unstuck_store::{EventFilter, EventLogEntry, EventLogOffset};
use utoipa::IntoParams;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::extractors::{QueryParams, page_limit, parse_list};
use crate::auth_middleware;
use crate::model::{EventResponse, ListPage, ProblemDetails};
use crate::queries;
use crate::response_redaction::AlreadyRedacted;
use crate::server_state::WebState;
use crate::session_states::SessionStateTracker;

/// Interval of keep-alive messages and of authorization checks of a stream.
const KEEP_ALIVE_INTERVAL: Duration = Duration::from_secs(15);
/// Time after which a browser reconnects a broken stream.
const RECONNECT_DELAY: Duration = Duration::from_secs(1);

pub(super) fn routes() -> OpenApiRouter<Arc<WebState>> {
    OpenApiRouter::new().routes(routes!(list_events))
}

/// Query for events.
#[derive(Debug, Clone, Default, Deserialize, IntoParams)]
#[serde(default, deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct EventListQuery {
    /// Only events after this id; if omitted, a stream begins with new events.
    after: Option<u64>,
    /// Filter by run.
    run: Option<String>,
    /// Filter by session.
    session: Option<String>,
    /// Filter by event names, separated by commas.
    #[param(example = "attempt_failed,decision_made")]
    names: Option<String>,
    /// Maximum number of results per page; the default is 50.
    #[param(minimum = 1, maximum = 500)]
    limit: Option<u32>,
}

/// Follow or list the events of all runs, the oldest first
///
/// Returns a continuous stream of server-sent events. Each event has an id; resume after it with `Last-Event-ID` or
/// `after` without losing or repeating events. With `Accept: application/json` returns one page instead.
#[utoipa::path(
    get,
    path = "/api/events",
    tag = "events",
    params(
        EventListQuery,
        ("last-event-id" = Option<u64>, Header, description = "Id of the last event received; takes precedence over `after`."),
    ),
    responses((status = OK, description = "Events.", content(
        (ListPage<EventResponse> = "application/json"),
        (String = "text/event-stream"),
    )))
)]
async fn list_events(
    State(web): State<Arc<WebState>>,
    QueryParams(asked): QueryParams<EventListQuery>,
    parts: Parts,
) -> Result<Response, ProblemDetails> {
    let headers = &parts.headers;
    let filter = EventFilter {
        run: asked.run.map(RunId::new),
        session: asked.session.map(SessionId::new),
        names: parse_list("names", asked.names.as_deref(), |name| {
            Some(name.to_owned())
        })?,
        after: last_event_id(headers)?
            .or(asked.after)
            .map(EventLogOffset::new),
        limit: Some(page_limit(asked.limit)?),
        ..EventFilter::default()
    };
    if wants_json_page(headers) {
        web.json_response(&queries::events(&web, &filter).await?)
    } else {
        event_stream(web, filter, parts).await
    }
}

/// Returns true if the client wants JSON pages instead of the stream: a browser that opens the URL shows a page.
fn wants_json_page(headers: &HeaderMap) -> bool {
    let accept = headers
        .get(header::ACCEPT)
        .and_then(|one| one.to_str().ok());
    accept.is_some_and(|accept| {
        let shows = accept.contains("application/json") || accept.contains("text/html");
        shows && !accept.contains("text/event-stream")
    })
}

/// Returns the id of the last event the browser received.
fn last_event_id(headers: &HeaderMap) -> Result<Option<u64>, ProblemDetails> {
    let Some(text) = headers.get("last-event-id") else {
        return Ok(None);
    };
    let number = text.to_str().ok().and_then(|text| text.trim().parse().ok());
    let wrong = || ProblemDetails::bad_request("`Last-Event-ID` must be a numeric event id");
    number.ok_or_else(wrong).map(Some)
}

async fn event_stream(
    web: Arc<WebState>,
    filter: EventFilter,
    parts: Parts,
) -> Result<Response, ProblemDetails> {
    let place = Arc::clone(&web.stream_slots)
        .try_acquire_owned()
        .map_err(|_| {
            let detail = "too many open event streams; close one or request pages instead";
            ProblemDetails::new(StatusCode::SERVICE_UNAVAILABLE, detail)
        })?;
    let after = match filter.after {
        Some(after) => after,
        None => queries::newest_event(&web).await?,
    };
    let news = web.store().follow(Some(after)).await?;
    // A client that is cut off before the first event reconnects here.
    let hello = Event::default()
        .id(after.number().to_string())
        .retry(RECONNECT_DELAY);
    let states = Arc::new(Mutex::new(SessionStateTracker::default()));
    let (closed, unwelcome) = (
        web.wait_for_close(),
        wait_until_unauthorized(Arc::clone(&web), parts),
    );
    let told = news
        // The client reconnects and resumes after the last event it received.
        .take_while(|news| std::future::ready(news.is_ok()))
        .flat_map(|news| stream::iter(news.unwrap_or_default()))
        .filter_map(move |placed| {
            let _held = &place;
            let (web, states) = (Arc::clone(&web), Arc::clone(&states));
            let filter = filter.clone();
            async move {
                // All events of a run determine its state, including those filtered out.
                let of_run = filter.run.as_ref();
                if of_run.is_some_and(|run| placed.record.run != *run) {
                    return None;
                }
                let mut states = states.lock().await;
                let state = states.state_after(web.store(), &placed.record).await;
                visible_event(&web, &filter, &placed, state.ok().flatten())
            }
        });
    let all = stream::iter([hello]).chain(told);
    let all = all.take_until(closed).take_until(unwelcome);
    let mut response = Sse::new(all.map(Ok::<_, Infallible>))
        .keep_alive(KeepAlive::new().interval(KEEP_ALIVE_INTERVAL))
        .into_response();
    response.extensions_mut().insert(AlreadyRedacted);
    Ok(response)
}

/// Waits until the client loses access because its token was revoked or its login ended.
async fn wait_until_unauthorized(web: Arc<WebState>, parts: Parts) {
    while auth_middleware::is_still_authorized(&web, &parts) {
        tokio::time::sleep(KEEP_ALIVE_INTERVAL).await;
    }
}

/// Returns the event as sent, if it matches the filter.
fn visible_event(
    web: &WebState,
    filter: &EventFilter,
    placed: &EventLogEntry,
    state: Option<SessionStatusSummary>,
) -> Option<Event> {
    let recorded = &*placed.record;
    let session = filter.session.as_ref();
    let of_session = session.is_none_or(|id| recorded.event.session() == Some(id));
    let name = recorded.event.name();
    let of_names = filter.names.is_empty() || filter.names.iter().any(|one| one == name);
    if !(of_session && of_names) {
        return None;
    }
    let id = placed.offset.number();
    let line = web.event_encoder.encode(placed, state, &web.redactor)?;
    Some(Event::default().id(id.to_string()).data(line))
}
