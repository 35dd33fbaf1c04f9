//! The response to a call that failed permanently: the upstream's own error where there is one.

use bytes::Bytes;
use hyper::header::{CONTENT_LENGTH, CONTENT_TYPE, HeaderName, HeaderValue, RETRY_AFTER};
use hyper::{HeaderMap, Response, StatusCode};
use std::time::Duration;
use unstuck_core::admission::HoldReason;
use unstuck_core::event::SkippedUpstream;
use unstuck_core::{Diagnosis, Failure, FailureKind};

use super::call_recorder::CallRecorder;
use super::on_failure::{GiveUpReason, RetryPause};
use super::retry_state::{RetryLaterState, RetryState};
use super::upstream_error::UpstreamError;
use super::{ErrorResponse, GatewayCall};
use crate::admission_queue::AdmissionWait;
use crate::client_response_body::ResponseBody;
use crate::protocol::{Protocol, error_body, stop_status};
use crate::system_clock;

/// The delay for a client that returns while an upstream is down; it is held then.
const COME_BACK_SOON: Duration = Duration::from_secs(5);

/// The header that tells client SDKs whether to retry.
const SHOULD_RETRY: HeaderName = HeaderName::from_static("x-should-retry");

impl GatewayCall {
    /// Answers the client with the failure.
    pub(super) fn give_up(
        &self,
        account: &mut CallRecorder,
        broken: UpstreamError,
        given: GiveUpReason,
    ) -> Response<ResponseBody> {
        let mut told = ErrorResponse::from_upstream_error(&broken, &given.diagnosis);
        match given.come_back_after {
            Some(wait) => {
                told.should_come_back = true;
                told.retry_after = Some(wait);
            }
            None => self.session.mark_given_up(),
        }
        let insists = self.is_retrying_agent(&told);
        if insists {
            self.make_final(&mut told);
        }
        account.fail(given.diagnosis, &given.reason, told.status.as_u16());
        let Some((head, body)) = broken.response.filter(|_| !insists) else {
            return self.error_response(account, &told);
        };
        let mut head = self.response_head(head, &account.record);
        set_retry_headers(&mut head.headers, &told);
        // What was already read of the response is passed on.
        if head.headers.contains_key(CONTENT_LENGTH) {
            head.headers
                .insert(CONTENT_LENGTH, HeaderValue::from(body.len()));
        }
        let mut response = Response::from_parts(head, ResponseBody::Whole(Some(body)));
        response.extensions_mut().insert(told);
        response
    }

    /// Returns true if the client is an agent that would retry anyway. Only another status stops it; the real cause is
    /// in the message, and the agent's supervisor learns it from the gateway.
    fn is_retrying_agent(&self, told: &ErrorResponse) -> bool {
        if told.should_come_back {
            return false;
        }
        // Agents take these for a rate limit or a transient API error.
        let taken_for_passing = [
            FailureKind::RateLimit,
            FailureKind::QuotaExhausted,
            FailureKind::ModelNotFound,
        ];
        let would = told.status.is_server_error()
            || matches!(told.status.as_u16(), 401..=403 | 408 | 409)
            || taken_for_passing
                .iter()
                .any(|kind| told.code == kind.name());
        would
            && self
                .agent()
                .is_some_and(|agent| agent.file().ignores_no_retry)
    }

    /// Changes the response so that such agents stop. They also look at the message: the text of a status or `server
    /// error` is enough for them to retry.
    fn make_final(&self, told: &mut ErrorResponse) {
        told.status = StatusCode::from_u16(stop_status(self.endpoint)).unwrap_or(told.status);
        let cause = match told.code.parse() {
            Ok(FailureKind::RateLimit | FailureKind::RateLimitTimed) => {
                "the provider accepts no more requests"
            }
            Ok(FailureKind::QuotaExhausted) => "the account has no quota or credit left",
            Ok(FailureKind::ModelNotFound) => "the provider does not have this model",
            Ok(FailureKind::AuthRequired | FailureKind::AuthExpired) => "authentication failed",
            Ok(FailureKind::ServerOverloaded) => "the provider is too busy",
            Ok(FailureKind::ServerError) => "the provider is not working",
            Ok(FailureKind::Timeout) => "the provider does not respond",
            Ok(FailureKind::NetworkError) => "the provider cannot be reached",
            Ok(_) | Err(_) => "the provider rejects the request",
        };
        told.message = format!("unstuck: {cause}; another request will not help now");
    }

    /// Asks the client of a pending request to return: its own time limit is over, ours is not.
    pub(super) fn ask_client_to_retry(
        &self,
        account: &mut CallRecorder,
        tries: &RetryState,
        broken: Option<UpstreamError>,
        diagnosis: Diagnosis,
        pause: RetryPause,
    ) -> Response<ResponseBody> {
        let upstream = &self.state.settings.upstreams[tries.target.upstream].name;
        let status = match diagnosis.kind {
            FailureKind::RateLimit | FailureKind::RateLimitTimed => StatusCode::TOO_MANY_REQUESTS,
            FailureKind::Timeout => StatusCode::GATEWAY_TIMEOUT,
            _ => StatusCode::SERVICE_UNAVAILABLE,
        };
        let broken = broken.unwrap_or_else(|| UpstreamError {
            failure: Failure::api(self.protocol.name()),
            response: None,
            status,
            message: format!("unstuck: still waiting for {upstream}; send the request again"),
        });
        let wait = pause.delay;
        account.request = None;
        self.session.keep_unfinished(
            self.request_hash(),
            RetryLaterState {
                history: tries.history.clone(),
                attempts: tries.total_attempts(),
                diagnosis: diagnosis.clone(),
                next_attempt_at: system_clock::timestamp_now().after(wait),
                wait_for: pause.wait_for,
                target: tries.next_target.clone(),
            },
        );
        let stated = diagnosis.retry_after.is_some();
        let given = GiveUpReason {
            diagnosis,
            reason: "client timeout reached; told the client to retry".to_owned(),
            come_back_after: Some(if stated {
                wait
            } else {
                wait.min(COME_BACK_SOON)
            }),
        };
        self.give_up(account, broken, given)
    }

    /// Returns true if a client that cannot be held that long should return instead of failing. Long waits are left to
    /// a supervisor that can wait and continue the conversation.
    pub(super) fn should_ask_client_to_retry(&self, wait: Duration) -> bool {
        let is_patient = self.session.policy().give_up_after.is_some();
        is_patient && (self.session.setup().escalates || wait <= self.state.settings.limits.hold)
    }

    /// Reports that no upstream is available in time.
    pub(super) fn wait_too_long(
        &self,
        account: &mut CallRecorder,
        tries: &RetryState,
        waits: AdmissionWait,
        passed_over: &[SkippedUpstream],
    ) -> Response<ResponseBody> {
        let wait = waits.until.since(system_clock::timestamp_now());
        let upstream = &self.state.settings.upstreams[tries.target.upstream].name;
        let (status, code, why) = match waits.reason {
            HoldReason::RateLimit | HoldReason::CoolDown => (
                StatusCode::TOO_MANY_REQUESTS,
                "rate_limit",
                "rate limit reached",
            ),
            HoldReason::Breaker => (
                StatusCode::SERVICE_UNAVAILABLE,
                "server_overloaded",
                "circuit breaker open after repeated failures",
            ),
            HoldReason::Rate | HoldReason::Concurrency | HoldReason::RetryBudget => (
                StatusCode::SERVICE_UNAVAILABLE,
                "server_overloaded",
                "overloaded; requests are queued",
            ),
        };
        let mut message = format!(
            "unstuck: {upstream} is unavailable for {:.0} s: {why}",
            wait.as_secs_f64().ceil()
        );
        for passed in passed_over {
            message.push_str(&format!("; {passed}"));
        }
        let mut told = ErrorResponse {
            status,
            code: code.to_owned(),
            message,
            retry_after: Some(wait),
            should_come_back: self.should_ask_client_to_retry(wait),
        };
        if self.is_retrying_agent(&told) {
            self.make_final(&mut told);
        }
        account.refuse(told.status.as_u16());
        self.error_response(account, &told)
    }

    /// Reports that no upstream is configured.
    pub(super) fn no_upstream(&self, account: &mut CallRecorder) -> Response<ResponseBody> {
        let told = ErrorResponse {
            status: StatusCode::NOT_FOUND,
            code: "config_error".to_owned(),
            message: format!(
                "unstuck: no upstream configured for {}",
                self.protocol.name()
            ),
            retry_after: None,
            should_come_back: false,
        };
        account.refuse(told.status.as_u16());
        self.error_response(account, &told)
    }

    /// Builds an error response of the gateway in the client's protocol.
    pub(crate) fn error_response(
        &self,
        account: &CallRecorder,
        told: &ErrorResponse,
    ) -> Response<ResponseBody> {
        let mut response = render_error(self.protocol, told);
        self.add_gateway_headers(response.headers_mut(), &account.record);
        response
    }
}

/// Builds an error response of the gateway in the given protocol.
pub(super) fn render_error(protocol: Protocol, told: &ErrorResponse) -> Response<ResponseBody> {
    let (kind, body) = error_body(protocol, &told.details());
    let mut response = Response::new(ResponseBody::Whole(Some(Bytes::clone(&body))));
    *response.status_mut() = told.status;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    headers.insert(CONTENT_LENGTH, HeaderValue::from(body.len()));
    set_retry_headers(headers, told);
    response.extensions_mut().insert(told.clone());
    response
}

/// Sets the headers that tell a client whether and when to retry.
fn set_retry_headers(headers: &mut HeaderMap, told: &ErrorResponse) {
    let should = if told.should_come_back {
        "true"
    } else {
        "false"
    };
    headers.insert(SHOULD_RETRY, HeaderValue::from_static(should));
    if let Some(wait) = told.retry_after {
        let seconds = wait.as_secs_f64().ceil() as u64;
        headers.insert(RETRY_AFTER, HeaderValue::from(seconds));
    }
}
