//! What the client gets when nothing helped: the upstream's own words where there are any.

use bytes::Bytes;
use hyper::header::{CONTENT_LENGTH, CONTENT_TYPE, HeaderName, HeaderValue, RETRY_AFTER};
use hyper::{HeaderMap, Response, StatusCode};
use std::time::Duration;
use unstuck_core::event::PassedOver;
use unstuck_core::traffic::Held;
use unstuck_core::{Diagnosis, Failure, Kind};

use super::account::Account;
use super::broken::Broken;
use super::decided::{GivenUp, Pause};
use super::tries::{Tries, Unfinished};
use super::{Call, Told};
use crate::answer::Answer;
use crate::clock;
use crate::lanes::Waits;
use crate::protocol::{Protocol, error_body, stop_status};

/// A client that comes back while an upstream is down is told to do so soon: it is held then.
const SOON: Duration = Duration::from_secs(5);

/// Tells the SDKs of clients whether to try by themselves.
const SHOULD_RETRY: HeaderName = HeaderName::from_static("x-should-retry");

impl Call {
    /// The client is told that it failed.
    pub(super) fn give_up(
        &self,
        account: &mut Account,
        broken: Broken,
        given: GivenUp,
    ) -> Response<Answer> {
        let mut told = Told::of(&broken, &given.diagnosis);
        match given.comes_back {
            Some(wait) => {
                told.comes_back = true;
                told.retry_after = Some(wait);
            }
            None => self.session.told_to_stop(),
        }
        let insists = self.insists(&told);
        if insists {
            self.stop(&mut told);
        }
        account.failed(given.diagnosis, &given.reason, told.status.as_u16());
        let Some((head, body)) = broken.answer.filter(|_| !insists) else {
            return self.say(account, &told);
        };
        let mut head = self.told(head, &account.record);
        advise(&mut head.headers, &told);
        // What was read of it is what is passed on.
        if head.headers.contains_key(CONTENT_LENGTH) {
            head.headers
                .insert(CONTENT_LENGTH, HeaderValue::from(body.len()));
        }
        let mut response = Response::from_parts(head, Answer::Whole(Some(body)));
        response.extensions_mut().insert(told);
        response
    }

    /// Whether the client is an agent that would ask again all the same. Only another status stops it; what really
    /// happened stands in the message, and whoever supervises the agent knows it from us.
    fn insists(&self, told: &Told) -> bool {
        if told.comes_back {
            return false;
        }
        // What they take for a rate limit, or for a hiccup of the API.
        let taken_for_passing = [Kind::RateLimit, Kind::QuotaExhausted, Kind::ModelNotFound];
        let would = told.status.is_server_error()
            || matches!(told.status.as_u16(), 401..=403 | 408 | 409)
            || taken_for_passing
                .iter()
                .any(|kind| told.code == kind.name());
        would && self.agent().is_some_and(|agent| agent.file().insists)
    }

    /// Tells it in the way that such agents heed. They look into the message, too: the words of a status, or `server error`,
    /// are reason enough for them to ask again.
    fn stop(&self, told: &mut Told) {
        told.status = StatusCode::from_u16(stop_status(self.endpoint)).unwrap_or(told.status);
        let cause = match told.code.parse() {
            Ok(Kind::RateLimit | Kind::RateLimitTimed) => "the provider lets nothing more through",
            Ok(Kind::QuotaExhausted) => "the credit or quota of the account is used up",
            Ok(Kind::ModelNotFound) => "the provider does not have this model",
            Ok(Kind::AuthRequired | Kind::AuthExpired) => "the key or the login is not accepted",
            Ok(Kind::ServerOverloaded) => "the provider is too busy",
            Ok(Kind::ServerError) => "the provider is broken",
            Ok(Kind::Timeout) => "the provider stays silent",
            Ok(Kind::NetworkError) => "the provider cannot be reached",
            Ok(_) | Err(_) => "the provider refuses it",
        };
        told.message = format!("unstuck: {cause}; asking again does not help now");
    }

    /// Tells the client of a request that is still waited for to come back: its own time is over, ours is not.
    pub(super) fn come_back(
        &self,
        account: &mut Account,
        tries: &Tries,
        broken: Option<Broken>,
        diagnosis: Diagnosis,
        pause: Pause,
    ) -> Response<Answer> {
        let upstream = &self.shared.settings.upstreams[tries.target.upstream].name;
        let status = match diagnosis.kind {
            Kind::RateLimit | Kind::RateLimitTimed => StatusCode::TOO_MANY_REQUESTS,
            Kind::Timeout => StatusCode::GATEWAY_TIMEOUT,
            _ => StatusCode::SERVICE_UNAVAILABLE,
        };
        let broken = broken.unwrap_or_else(|| Broken {
            failure: Failure::api(self.protocol.name()),
            answer: None,
            status,
            message: format!("unstuck: {upstream} is still waited for; come back"),
        });
        let wait = pause.delay;
        account.request = None;
        self.session.leave(
            self.request_hash(),
            Unfinished {
                history: tries.history.clone(),
                tries: tries.all(),
                diagnosis: diagnosis.clone(),
                next: clock::at().after(wait),
                wait_for: pause.wait_for,
                target: tries.next_target.clone(),
            },
        );
        let stated = diagnosis.retry_after.is_some();
        let given = GivenUp {
            diagnosis,
            reason: "the client does not wait any longer, and is told to come back".to_owned(),
            comes_back: Some(match stated {
                true => wait,
                false => wait.min(SOON),
            }),
        };
        self.give_up(account, broken, given)
    }

    /// Whether a client that cannot be held for so long is to come back, rather than to end: where somebody supervises it who
    /// can wait and go on with its conversation, long waits are theirs.
    pub(super) fn comes_back_after(&self, wait: Duration) -> bool {
        let is_patient = self.session.policy().give_up_after.is_some();
        is_patient && (self.session.setup().asks || wait <= self.shared.settings.limits.hold)
    }

    /// Nobody may be asked in time.
    pub(super) fn held(
        &self,
        account: &mut Account,
        tries: &Tries,
        waits: Waits,
        passed_over: &[PassedOver],
    ) -> Response<Answer> {
        let wait = waits.until.since(clock::at());
        let upstream = &self.shared.settings.upstreams[tries.target.upstream].name;
        let (status, code, why) = match waits.why {
            Held::RateLimit | Held::CoolDown => (
                StatusCode::TOO_MANY_REQUESTS,
                "rate_limit",
                "its rate limit is used up",
            ),
            Held::Breaker => (
                StatusCode::SERVICE_UNAVAILABLE,
                "server_overloaded",
                "it has been failing and is given a rest",
            ),
            Held::Pace | Held::Concurrency | Held::RetryBudget => (
                StatusCode::SERVICE_UNAVAILABLE,
                "server_overloaded",
                "it is overloaded and calls stand in line",
            ),
        };
        let mut message = format!(
            "unstuck: {upstream} is not asked for {:.0} s more: {why}",
            wait.as_secs_f64().ceil()
        );
        for passed in passed_over {
            message.push_str(&format!("; {passed}"));
        }
        let mut told = Told {
            status,
            code: code.to_owned(),
            message,
            retry_after: Some(wait),
            comes_back: self.comes_back_after(wait),
        };
        if self.insists(&told) {
            self.stop(&mut told);
        }
        account.refused(told.status.as_u16());
        self.say(account, &told)
    }

    /// There is nobody to ask.
    pub(super) fn nobody(&self, account: &mut Account) -> Response<Answer> {
        let told = Told {
            status: StatusCode::NOT_FOUND,
            code: "config_error".to_owned(),
            message: format!(
                "unstuck: no upstream for {} is configured",
                self.protocol.name()
            ),
            retry_after: None,
            comes_back: false,
        };
        account.refused(told.status.as_u16());
        self.say(account, &told)
    }

    /// Words of our own, in the client's protocol.
    pub(crate) fn say(&self, account: &Account, told: &Told) -> Response<Answer> {
        let mut response = said(self.protocol, told);
        self.sign(response.headers_mut(), &account.record);
        response
    }
}

/// Words of our own, in a protocol.
pub(super) fn said(protocol: Protocol, told: &Told) -> Response<Answer> {
    let (kind, body) = error_body(protocol, &told.told());
    let mut response = Response::new(Answer::Whole(Some(Bytes::clone(&body))));
    *response.status_mut() = told.status;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    headers.insert(CONTENT_LENGTH, HeaderValue::from(body.len()));
    advise(headers, told);
    response.extensions_mut().insert(told.clone());
    response
}

/// Tells a client whether to try by itself, and when it could.
fn advise(headers: &mut HeaderMap, told: &Told) {
    let should = match told.comes_back {
        true => "true",
        false => "false",
    };
    headers.insert(SHOULD_RETRY, HeaderValue::from_static(should));
    if let Some(wait) = told.retry_after {
        let seconds = wait.as_secs_f64().ceil() as u64;
        headers.insert(RETRY_AFTER, HeaderValue::from(seconds));
    }
}
