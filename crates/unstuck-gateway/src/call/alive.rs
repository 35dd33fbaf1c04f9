//! Signs of life for a client that is held for long, so that it does not take the silence for an end.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use hyper::body::{Body, Frame};
use hyper::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderValue};
use hyper::{Response, StatusCode};
use tokio::time::{Interval, MissedTickBehavior, interval_at};
use unstuck_core::Kind;

use super::broken::STOPPED;
use super::give_up::said;
use super::{Call, Told};
use crate::answer::Answer;
use crate::elsewhere::PageError;
use crate::ending::Hearing;
use crate::protocol::{Endpoint, Protocol, Reading, error_event, keep_alive};

/// A call that is answered, unless the gateway ends first: then its client is told that.
struct Running {
    call: Pin<Box<dyn Future<Output = Response<Answer>> + Send>>,
    protocol: Protocol,
    ending: Hearing,
}

impl Future for Running {
    type Output = Response<Answer>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Response<Answer>> {
        let running = self.get_mut();
        if Pin::new(&mut running.ending).poll(context).is_ready() {
            return Poll::Ready(running.cut_off());
        }
        running.call.as_mut().poll(context)
    }
}

impl Running {
    fn cut_off(&self) -> Response<Answer> {
        let told = Told {
            status: StatusCode::SERVICE_UNAVAILABLE,
            code: Kind::NetworkError.name().to_owned(),
            message: format!("unstuck: {STOPPED}"),
            retry_after: None,
            comes_back: false,
        };
        said(self.protocol, &told)
    }
}

/// An answer that has begun before anything is known of it.
pub(crate) struct Alive {
    running: Option<Running>,
    answer: Option<Answer>,
    endpoint: Endpoint,
    ping: &'static [u8],
    pings: Interval,
}

impl Call {
    /// Answers; whoever is held for long is sent signs of life, where its parser allows them and when it
    /// would not wait without them any longer.
    pub(crate) async fn answer(self: Box<Self>) -> Response<Answer> {
        let every = self.shared.settings.limits.keep_alive;
        let silence = self.agent().map(|agent| agent.file().silence);
        let mut after = every.max(silence.unwrap_or_default());
        if let Some(gone) = self.gone_at {
            after = after.min(gone.saturating_duration_since(self.started));
        }
        let ping = self.sign_of_life();
        let (endpoint, session) = (self.endpoint, self.session.name());
        let mut running = Running {
            ending: self.shared.ending.hear(),
            protocol: self.protocol,
            call: Box::pin(self.run()),
        };
        let Some(ping) = ping else {
            return running.await;
        };
        match tokio::time::timeout(after, &mut running).await {
            Ok(response) => response,
            Err(_) => begun(running, endpoint, ping, every, &session),
        }
    }
}

impl Call {
    /// What keeps the client while it is held; none where its parser does not allow it, or it is not wanted.
    pub(super) fn sign_of_life(&self) -> Option<&'static [u8]> {
        let every = self.shared.settings.limits.keep_alive;
        keep_alive(self.endpoint).filter(|_| self.asked.stream && !every.is_zero())
    }
}

fn begun(
    running: Running,
    endpoint: Endpoint,
    ping: &'static [u8],
    every: Duration,
    session: &str,
) -> Response<Answer> {
    let mut pings = interval_at(tokio::time::Instant::now(), every);
    pings.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let alive = Alive {
        running: Some(running),
        answer: None,
        endpoint,
        ping,
        pings,
    };
    let mut response = Response::new(Answer::Made(Box::pin(alive)));
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

impl Alive {
    /// Goes on with the answer that has come; an error becomes one of the stream.
    fn took(&mut self, mut response: Response<Answer>) {
        let told = response.extensions_mut().remove::<Told>();
        self.answer = Some(match told {
            None => response.into_body(),
            Some(told) => {
                let reading = Reading::new(self.endpoint);
                Answer::Whole(Some(error_event(&reading, &told.told())))
            }
        });
    }
}

impl Body for Alive {
    type Data = Bytes;
    type Error = PageError;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, PageError>>> {
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
                    alive.took(response);
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
