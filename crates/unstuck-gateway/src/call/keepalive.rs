//! Keep-alive bytes for clients that are held for long, so that they do not time out.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use hyper::body::{Body, Frame};
use hyper::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderValue};
use hyper::{Response, StatusCode};
use tokio::time::{Interval, MissedTickBehavior, interval_at};
use unstuck_core::FailureKind;

use super::failure_response::render_error;
use super::upstream_error::STOPPED;
use super::{ErrorResponse, GatewayCall};
use crate::client_response_body::ResponseBody;
use crate::non_llm_request_handler::BodyError;
use crate::protocol::{LlmApiEndpoint, Protocol, ResponseReader, error_event, keep_alive};
use crate::shutdown_cutoff::CutoffSignal;

/// A call in progress; if the gateway stops first, its client gets an error.
struct RunningCall {
    call: Pin<Box<dyn Future<Output = Response<ResponseBody>> + Send>>,
    protocol: Protocol,
    ending: CutoffSignal,
}

impl Future for RunningCall {
    type Output = Response<ResponseBody>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Response<ResponseBody>> {
        let running = self.get_mut();
        if Pin::new(&mut running.ending).poll(context).is_ready() {
            return Poll::Ready(running.interrupted_response());
        }
        running.call.as_mut().poll(context)
    }
}

impl RunningCall {
    fn interrupted_response(&self) -> Response<ResponseBody> {
        let told = ErrorResponse {
            status: StatusCode::SERVICE_UNAVAILABLE,
            code: FailureKind::NetworkError.name().to_owned(),
            message: format!("unstuck: {STOPPED}"),
            retry_after: None,
            should_come_back: false,
        };
        render_error(self.protocol, &told)
    }
}

/// A response that has started before its content is known.
pub(crate) struct KeepAliveBody {
    running: Option<RunningCall>,
    answer: Option<ResponseBody>,
    endpoint: LlmApiEndpoint,
    ping: &'static [u8],
    pings: Interval,
}

impl GatewayCall {
    /// Answers the call. A client held for long gets keep-alive bytes if its parser accepts them and it would not wait
    /// without them.
    pub(crate) async fn respond(self: Box<Self>) -> Response<ResponseBody> {
        let every = self.state.settings.limits.keep_alive;
        let silence = self.agent().map(|agent| agent.file().silent_wait);
        let mut after = every.max(silence.unwrap_or_default());
        if let Some(gone) = self.client_leaves_at {
            after = after.min(gone.saturating_duration_since(self.started));
        }
        let ping = self.keepalive_ping();
        let (endpoint, session) = (self.endpoint, self.session.name());
        let mut running = RunningCall {
            ending: self.state.shutdown.signal(),
            protocol: self.protocol,
            call: Box::pin(self.run()),
        };
        let Some(ping) = ping else {
            return running.await;
        };
        match tokio::time::timeout(after, &mut running).await {
            Ok(response) => response,
            Err(_) => begin_keepalive(running, endpoint, ping, every, &session),
        }
    }
}

impl GatewayCall {
    /// Returns the keep-alive bytes; `None` if the client's parser does not accept them or they are disabled.
    pub(super) fn keepalive_ping(&self) -> Option<&'static [u8]> {
        let every = self.state.settings.limits.keep_alive;
        keep_alive(self.endpoint).filter(|_| self.request.stream && !every.is_zero())
    }
}

fn begin_keepalive(
    running: RunningCall,
    endpoint: LlmApiEndpoint,
    ping: &'static [u8],
    every: Duration,
    session: &str,
) -> Response<ResponseBody> {
    let mut pings = interval_at(tokio::time::Instant::now(), every);
    pings.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let alive = KeepAliveBody {
        running: Some(running),
        answer: None,
        endpoint,
        ping,
        pings,
    };
    let mut response = Response::new(ResponseBody::Generated(Box::pin(alive)));
    *response.status_mut() = StatusCode::OK;
    let headers = response.headers_mut();
    headers.insert(
        CONTENT_TYPE,
        HeaderValue::from_static("text/event-stream; charset=utf-8"),
    );
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    if let Ok(session) = HeaderValue::from_str(session) {
        headers.insert("x-unstuck-session", session);
    }
    response
}

impl KeepAliveBody {
    /// Continues with the actual response; an error becomes an error event of the stream.
    fn continue_with(&mut self, mut response: Response<ResponseBody>) {
        let told = response.extensions_mut().remove::<ErrorResponse>();
        self.answer = Some(match told {
            None => response.into_body(),
            Some(told) => {
                let reading = ResponseReader::new(self.endpoint);
                ResponseBody::Whole(Some(error_event(&reading, &told.details())))
            }
        });
    }
}

impl Body for KeepAliveBody {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        let alive = self.get_mut();
        loop {
            if let Some(answer) = &mut alive.answer {
                return Pin::new(answer).poll_frame(context);
            }
            let Some(running) = &mut alive.running else {
                return Poll::Ready(None);
            };
            match Pin::new(running).poll(context) {
                Poll::Ready(response) => {
                    alive.running = None;
                    alive.continue_with(response);
                }
                Poll::Pending => {
                    return alive
                        .pings
                        .poll_tick(context)
                        .map(|_| Some(Ok(Frame::data(Bytes::from_static(alive.ping)))));
                }
            }
        }
    }
}
