//! One client call: admitted, attempted until it succeeds or cannot be recovered, and answered.

mod call_recorder;
mod cost_budget;
mod error_response;
mod escalate;
mod failure_response;
mod fallback_ineligibility;
mod keepalive;
mod on_failure;
mod preflight;
mod response_timeout;
mod retry_state;
mod retry_wait;
mod routing;
mod stream_relay;
mod unusable_output_retry;
mod upstream_attempt;
mod upstream_error;

pub(crate) use error_response::ErrorResponse;
pub(crate) use retry_state::RetryLaterState;

use std::hash::{DefaultHasher, Hash, Hasher};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::Bytes;
use hyper::header::{CONTENT_LENGTH, HeaderValue, USER_AGENT};
use hyper::http::response::Parts;
use hyper::{HeaderMap, Method, Response};
use tokio::time::Instant;
use unstuck_core::admission::{ApiAdmissionRequest, HoldReason, ResponseRateLimits};
use unstuck_core::agent::{Agent, Agents, ClientRetryBehavior};
use unstuck_core::decision::{TokenUsage, WaitPurpose};
use unstuck_core::diagnosis::RetryAfterSource;
use unstuck_core::event::{ApiCallOutcome, ApiCallRecord, CallHeld, CallResumed, SkippedUpstream};
use unstuck_core::{Diagnosis, FailureKind, FailureLayer, Timestamp};

use self::call_recorder::{CallRecorder, SharedProbe};
use self::cost_budget::CallBudget;
use self::on_failure::{RetryPause, StepAfterFailure};
use self::response_timeout::TimeoutInputs;
use self::retry_state::RetryState;
use self::retry_wait::RetryWaitEnd;
use self::routing::{FallbackSelection, RequestRequirements, UpstreamSelector};
use self::stream_relay::StreamRelay;
use self::upstream_attempt::{
    ApiAttemptOutcome, CompleteResponse, StartedStream, UpstreamAttemptSender,
};
use self::upstream_error::{UpstreamError, classifier_headers};
use crate::admission_queue::{
    AdmissionPermit, AdmissionQueueKey, AdmissionWait, AdmissionWaitLimit,
};
use crate::client_response_body::ResponseBody;
use crate::loop_detection::ConversationId;
use crate::protocol::{LlmApiEndpoint, Protocol, RequestFacts, with_model};
use crate::recorder::GatewaySessionEventKind;
use crate::session::GatewaySession;
use crate::settings::StreamMode;
use crate::state::GatewayState;
use crate::system_clock;
use crate::upstream::{UpstreamRequest, remove_hop_by_hop};

/// The expected maximum of output tokens: clients allow far more than they get.
const EXPECTED_OUTPUT: u64 = 1000;

/// The longest pause of an upstream that states no time.
const MAX_UPSTREAM_REST: Duration = Duration::from_secs(60);
/// The shortest time for a response head, however short the client's own timeout is.
const MIN_HEAD_TIMEOUT: Duration = Duration::from_secs(1);
/// The longest hold of a client.
const MAX_HOLD: Duration = Duration::from_secs(7 * 24 * 3600);

/// A buffered client request and its context.
pub(crate) struct GatewayCall {
    pub(crate) state: Arc<GatewayState>,
    pub(crate) session: Arc<GatewaySession>,
    pub(crate) id: String,
    pub(crate) protocol: Protocol,
    pub(crate) endpoint: LlmApiEndpoint,
    pub(crate) method: Method,
    pub(crate) headers: HeaderMap,
    pub(crate) path: String,
    pub(crate) query: Option<String>,
    pub(crate) body: Bytes,
    pub(crate) request: RequestFacts,
    pub(crate) started: Instant,
    /// The deadline for holding the client, waits between attempts included.
    pub(crate) held_until: Instant,
    /// The time when the client leaves unless it receives something, if it says so.
    pub(crate) client_leaves_at: Option<Instant>,
    /// The conversation of the session that the call belongs to.
    pub(crate) conversation: ConversationId,
    /// The number of retries made by the client.
    pub(crate) client_retries: u32,
    /// The client's own retry policy.
    pub(crate) client_retry_policy: ClientRetryBehavior,
    /// Set once a hold of the call is recorded.
    pub(crate) was_held: Arc<AtomicBool>,
    /// Set while a recorded hold lasts: until the call is sent.
    pub(crate) is_waiting: AtomicBool,
}

impl GatewayCall {
    /// Attempts the call until it succeeds or cannot be recovered, and returns the response.
    pub(crate) async fn run(mut self: Box<Self>) -> Response<ResponseBody> {
        let mut account = self.new_recorder();
        if let Some(id) = self.agent_conversation_id() {
            self.session.set_conversation(id);
        }
        if let Some(told) = self.preflight_refusal() {
            account.refuse(told.status.as_u16());
            return self.error_response(&account, &told);
        }
        if let Some(told) = self.wait_while_held().await {
            account.refuse(told.status.as_u16());
            return self.error_response(&account, &told);
        }
        self.insert_loop_note();
        let needs_model = self.session.model().or_else(|| self.request.model.clone());
        let first = self
            .selector()
            .select_first(&self.requirements(needs_model.as_deref()));
        let Some(target) = first else {
            return self.no_upstream(&mut account);
        };
        let mut tries = RetryState::new(target, needs_model, system_clock::timestamp_now());
        if let Some(told) = self.await_due(&mut account, &mut tries).await {
            return told;
        }
        loop {
            if !self.has_turn(&tries) && self.fail_over(&mut tries).is_ok() {
                continue;
            }
            let waited = Instant::now();
            let entered = self.acquire_permit(&mut tries).await;
            account.add_wait(waited.elapsed());
            let permit = match entered {
                Ok(permit) => permit,
                Err(waits) => match self.fail_over(&mut tries) {
                    Ok(()) => continue,
                    Err(passed) => return self.wait_too_long(&mut account, &tries, waits, &passed),
                },
            };
            account.permit = Some(permit);
            self.count_attempt(&mut tries);
            self.record_attempt(&mut account, &tries);
            self.notify_resumed();
            let tried = self.attempt(&tries).await;
            let (broken, head) = match tried {
                ApiAttemptOutcome::Complete(whole) => {
                    if self.prepare_output_retry(&mut account, &mut tries, &whole.reader) {
                        continue;
                    }
                    return self.complete_response(&mut account, *whole);
                }
                ApiAttemptOutcome::Started(opened) => {
                    return self.stream_response(account, *opened);
                }
                ApiAttemptOutcome::Failed(broken, head) => (broken, head),
            };
            let network = self.network_state(&tries, &broken, head.is_some()).await;
            let next = self.on_failure(&mut account, &mut tries, &broken, head.as_ref(), network);
            match next {
                StepAfterFailure::Retry(wait, diagnosis) => {
                    let start = Instant::now();
                    let kind = diagnosis.kind;
                    let rested = self
                        .wait_before_retry(&mut tries, wait.wait_for, wait.delay, kind)
                        .await;
                    account.add_wait(start.elapsed());
                    self.begin_probe(&mut account, &tries, rested, false);
                    if rested == RetryWaitEnd::TimeUp {
                        let left = wait.remaining_after(start.elapsed());
                        let broken = Some(*broken);
                        return self.ask_client_to_retry(
                            &mut account,
                            &tries,
                            broken,
                            *diagnosis,
                            left,
                        );
                    }
                }
                StepAfterFailure::AskToComeBack(wait, diagnosis) => {
                    let broken = Some(*broken);
                    return self.ask_client_to_retry(
                        &mut account,
                        &tries,
                        broken,
                        *diagnosis,
                        wait,
                    );
                }
                StepAfterFailure::GiveUp(given) => {
                    return self.give_up(&mut account, *broken, given);
                }
            }
        }
    }

    /// Counts an attempt that is about to be made, and notes if its upstream was failing before the first one.
    fn count_attempt(&self, tries: &mut RetryState) {
        tries.attempts += 1;
        if tries.attempts_at_target == 0 {
            let health = self.state.health.get(&self.upstream_url(tries));
            tries.was_failing = health.is_failing();
        }
        tries.attempts_at_target += 1;
    }

    /// Waits until the first attempt is allowed after earlier failures; returns the error response if that takes too
    /// long.
    async fn await_due(
        &self,
        account: &mut CallRecorder,
        tries: &mut RetryState,
    ) -> Option<Response<ResponseBody>> {
        match self.resume_unfinished(account, tries).await {
            Some(told) => Some(told),
            None => self.await_probe(account, tries).await,
        }
    }

    /// Resumes a request whose client was asked to return; returns the error response if that again takes too long.
    async fn resume_unfinished(
        &self,
        account: &mut CallRecorder,
        tries: &mut RetryState,
    ) -> Option<Response<ResponseBody>> {
        let unfinished = self.session.take_unfinished(self.request_hash())?;
        tries.resume(&unfinished);
        self.record_attempt(account, tries);
        account.record.kind = Some(unfinished.diagnosis.kind);
        let wait = RetryPause {
            delay: unfinished
                .next_attempt_at
                .since(system_clock::timestamp_now()),
            wait_for: unfinished.wait_for,
        };
        let start = Instant::now();
        let diagnosis = unfinished.diagnosis;
        if !wait.delay.is_zero() {
            self.notify_held(
                unfinished.next_attempt_at,
                diagnosis.kind,
                RetryAfterSource::Guess,
            );
        }
        let rested = self.wait_before_retry(tries, wait.wait_for, wait.delay, diagnosis.kind);
        let rested = rested.await;
        account.add_wait(start.elapsed());
        self.begin_probe(account, tries, rested, false);
        let is_over = rested == RetryWaitEnd::TimeUp;
        is_over.then(|| {
            let left = wait.remaining_after(start.elapsed());
            self.ask_client_to_retry(account, tries, None, diagnosis, left)
        })
    }

    /// Waits for a probe permit if responses of the session broke off more often than its client would have retried by
    /// itself; returns the error response if that takes too long.
    async fn await_probe(
        &self,
        account: &mut CallRecorder,
        tries: &mut RetryState,
    ) -> Option<Response<ResponseBody>> {
        let broken = self.session.broken_streams();
        let is_patient = self.session.policy().give_up_after.is_some();
        if !is_patient
            || tries.earlier_attempts > 0
            || self
                .client_retry_policy
                .retries_broken_stream(broken, false)
        {
            return None;
        }
        let is_ahead = self.session.claim_request_ahead(self.request_hash());
        if self
            .client_retry_policy
            .retries_broken_stream(broken, is_ahead)
        {
            return None;
        }
        let start = Instant::now();
        let rested = self.wait_for_probe(tries, FailureKind::NetworkError).await;
        account.add_wait(start.elapsed());
        self.begin_probe(account, tries, rested, true);
        (rested == RetryWaitEnd::TimeUp).then(|| {
            let pause = RetryPause {
                delay: Duration::ZERO,
                wait_for: WaitPurpose::Retry,
            };
            let sentence = "repeated interrupted responses in this session";
            let diagnosis = Diagnosis::from_observation(
                FailureKind::NetworkError,
                FailureLayer::Api,
                "broken_streams",
                sentence,
            );
            self.ask_client_to_retry(account, tries, None, diagnosis, pause)
        })
    }

    /// Notes that the next attempt is the shared probe, if its wait ended so.
    fn begin_probe(
        &self,
        account: &mut CallRecorder,
        tries: &RetryState,
        rested: RetryWaitEnd,
        needs_whole_response: bool,
    ) {
        account.probe = (rested == RetryWaitEnd::Probe).then(|| SharedProbe {
            url: self.upstream_url(tries),
            needs_whole_response,
        });
    }

    /// Returns a hash of the request, to recognize it when it is sent again.
    fn request_hash(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        (&self.path, &self.body).hash(&mut hasher);
        hasher.finish()
    }

    async fn attempt(&self, tries: &RetryState) -> ApiAttemptOutcome {
        let upstream = &self.state.settings.upstreams[tries.target.upstream];
        let (path, body) = self.upstream_request(tries);
        let sending = UpstreamRequest {
            method: &self.method,
            headers: &self.headers,
            path: &path,
            query: self.query.as_deref(),
            is_inspected: true,
        };
        let silence = TimeoutInputs::for_request(&self.request, &self.body, upstream.is_nearby);
        let limits = &self.state.settings.limits;
        let before_fallback = silence.fallback_timeout(limits);
        let before_fallback = before_fallback.filter(|_| {
            self.select_fallback(tries, FailureKind::Timeout)
                .target
                .is_some()
        });
        let trying = UpstreamAttemptSender {
            sender: &self.state.client,
            protocol: self.protocol,
            endpoint: self.endpoint,
            stream: self.request.stream,
            keeps_text: self.request.wants_json || self.state.settings.retry_bad_output,
            buffered: upstream.stream.unwrap_or(self.state.settings.stream) == StreamMode::Buffered,
            head_timeout: before_fallback
                .unwrap_or_else(|| silence.head_timeout(limits))
                .min(self.client_timeout()),
            first_token_timeout: before_fallback,
            limits,
        };
        match sending.with_bytes(upstream, body) {
            Some(request) => self.with_client_deadline(pin!(trying.send(request))).await,
            None => ApiAttemptOutcome::Failed(
                Box::new(UpstreamError::malformed(
                    self.protocol,
                    "the upstream URL is invalid",
                )),
                None,
            ),
        }
    }

    /// Returns the time that the client itself would wait for the response head of an attempt. Keep-alive bytes make it
    /// wait longer, but alone it would have retried by then.
    fn client_timeout(&self) -> Duration {
        let stated = self.client_leaves_at.map_or(Duration::MAX, |gone| {
            gone.saturating_duration_since(self.started)
        });
        stated.max(MIN_HEAD_TIMEOUT)
    }

    /// Limits an attempt by the client's deadline: a later response reaches nobody, and silence says less than an
    /// error.
    async fn with_client_deadline(
        &self,
        trying: Pin<&mut impl Future<Output = ApiAttemptOutcome>>,
    ) -> ApiAttemptOutcome {
        let Some(gone) = self.client_deadline() else {
            return trying.await;
        };
        let tried = tokio::time::timeout_at(gone, trying).await;
        tried.unwrap_or_else(|_| {
            let limit = gone.saturating_duration_since(self.started);
            let silent = UpstreamError::timed_out(self.protocol, "no response", limit);
            ApiAttemptOutcome::Failed(Box::new(silent), None)
        })
    }

    /// Returns the client's body, unchanged unless another model is requested.
    fn upstream_request(&self, tries: &RetryState) -> (String, Bytes) {
        let path = || self.path.clone();
        let body = tries.corrected_body.as_ref().unwrap_or(&self.body);
        match &tries.target.model {
            Some(model) if self.request.model.as_ref() != Some(model) => {
                let changed = with_model(self.endpoint, &self.path, body, model);
                (
                    changed.path.unwrap_or_else(path),
                    changed.body.unwrap_or_else(|| body.clone()),
                )
            }
            _ => (path(), body.clone()),
        }
    }

    async fn acquire_permit(
        &self,
        tries: &mut RetryState,
    ) -> Result<AdmissionPermit, AdmissionWait> {
        let upstream = &self.state.settings.upstreams[tries.target.upstream];
        let key = match &upstream.key {
            Some(key) => key.reveal().as_bytes(),
            None => self.state.client_key(&self.headers),
        };
        let model = tries.target.model.as_deref().unwrap_or_default();
        let lane = self
            .state
            .admission
            .get(&AdmissionQueueKey::new(&upstream.name, key, model));
        let ask = ApiAdmissionRequest {
            attempt: tries.attempt,
            tokens: self.request.prompt_tokens,
        };
        if std::mem::take(&mut tries.is_requested) {
            return Ok(lane.acquire_on_request(ask));
        }
        let other = self.select_fallback(tries, FailureKind::ServerOverloaded);
        let has_other = other.target.is_some();
        let limits = &self.state.settings.limits;
        // Without a fallback, a failed upstream that pauses is waited for; only stated limits last longer.
        let most = if has_other {
            self.remaining_time().min(limits.fallback_after)
        } else {
            self.remaining_time()
                .min(limits.hold.max(MAX_UPSTREAM_REST))
        };
        let patience = AdmissionWaitLimit {
            max_wait: most,
            has_fallback: has_other,
        };
        let tell = |waits: AdmissionWait| {
            let (kind, source) = match waits.reason {
                HoldReason::RateLimit => (FailureKind::RateLimitTimed, RetryAfterSource::Header),
                HoldReason::CoolDown => (FailureKind::RateLimit, RetryAfterSource::Header),
                _ => (FailureKind::ServerOverloaded, RetryAfterSource::Guess),
            };
            self.notify_held(waits.until, kind, source);
        };
        let (name, since) = (self.session.name(), system_clock::timestamp_now());
        let entering = lane.acquire(&name, ask, patience, tell);
        let entered = self.unless_requested(since, entering).await;
        entered.unwrap_or_else(|| Ok(lane.acquire_on_request(ask)))
    }

    /// Returns true if the target may be used before its fallback: a failing upstream is used only now and then.
    fn has_turn(&self, tries: &RetryState) -> bool {
        let is_first =
            tries.attempts_at_target == 0 && tries.rounds == 0 && tries.earlier_attempts == 0;
        if !is_first || !self.selector().has_fallback(&tries.target, self.protocol) {
            return true;
        }
        self.state
            .health
            .get(&self.upstream_url(tries))
            .take_turn(system_clock::timestamp_now())
    }

    /// Records that the call is sent, if a hold was recorded.
    fn notify_resumed(&self) {
        self.session.call_waits().remove(&self.id);
        if !self.is_waiting.swap(false, Ordering::Relaxed) {
            return;
        }
        let resumed = CallResumed {
            session: self.session.setup().session.clone(),
            call: self.id.clone(),
        };
        let ledger = &self.state.recorder;
        ledger.record_event(&self.session, system_clock::timestamp_now(), resumed.into());
    }

    /// Records that the call is held, so that everybody can see it.
    pub(super) fn notify_held(
        &self,
        until: Timestamp,
        kind: FailureKind,
        source: RetryAfterSource,
    ) {
        self.was_held.store(true, Ordering::Relaxed);
        self.is_waiting.store(true, Ordering::Relaxed);
        self.session.call_waits().extend(&self.id, until, kind);
        let held = CallHeld {
            session: self.session.setup().session.clone(),
            call: self.id.clone(),
            until,
            kind,
            source,
        };
        let ledger = &self.state.recorder;
        ledger.record_event(&self.session, system_clock::timestamp_now(), held.into());
    }

    /// Switches to a fallback of an unavailable upstream, or returns the skipped upstreams.
    fn fail_over(&self, tries: &mut RetryState) -> Result<(), Vec<SkippedUpstream>> {
        let stand = self.select_fallback(tries, FailureKind::ServerOverloaded);
        self.notify_skipped(&stand.skipped);
        tries.switch_target(stand.target.ok_or(stand.skipped)?);
        Ok(())
    }

    /// Selects the fallback of the current target after a failure of that kind.
    fn select_fallback(&self, tries: &RetryState, kind: FailureKind) -> FallbackSelection {
        let choice = self.selector();
        if !choice.has_fallback(&tries.target, self.protocol) {
            return FallbackSelection::default();
        }
        let needs = self.requirements(tries.model.as_deref());
        choice.select_fallback(&tries.target, &needs, &self.budget(tries), kind)
    }

    /// Returns the remaining budget of the request.
    fn budget(&self, tries: &RetryState) -> CallBudget<'_> {
        CallBudget {
            remaining: self.state.remaining_budget(&self.session),
            policy: self.session.policy(),
            extra_spent: tries.history.extra_cost(),
            expected: self.expected_tokens(),
            catalog: self.state.knowledge.catalog(),
        }
    }

    /// Returns the expected tokens of the request and its response.
    fn expected_tokens(&self) -> TokenUsage {
        let most = self.request.max_output.unwrap_or(EXPECTED_OUTPUT);
        TokenUsage {
            input: self.request.prompt_tokens,
            cached: 0,
            output: most.min(EXPECTED_OUTPUT),
            requests: 1,
        }
    }

    /// Records the skipped upstreams.
    fn notify_skipped(&self, passed: &[SkippedUpstream]) {
        for one in passed {
            let what = GatewaySessionEventKind::UpstreamSkipped(one.clone());
            self.state.events.publish(&self.session, what);
        }
    }

    fn complete_response(
        &self,
        account: &mut CallRecorder,
        whole: CompleteResponse,
    ) -> Response<ResponseBody> {
        let CompleteResponse {
            head,
            body,
            reader: reading,
        } = whole;
        self.mark_upstream_up(account);
        account.end_probe(true);
        account.limits = self.rate_limits(&head);
        account.record.status = head.status.as_u16();
        account.add_sent_bytes(body.len());
        account.finish(&reading);
        let head = self.response_head(head, &account.record);
        Response::from_parts(head, ResponseBody::Whole(Some(body)))
    }

    fn stream_response(
        &self,
        mut account: Box<CallRecorder>,
        opened: StartedStream,
    ) -> Response<ResponseBody> {
        self.mark_upstream_up(&account);
        account.end_probe(false);
        account.limits = self.rate_limits(&opened.head);
        account.record.status = opened.head.status.as_u16();
        account.record.is_stream = true;
        if let Some(permit) = &account.permit {
            permit.record_limits(&account.limits);
        }
        account.head = Some(opened.head.clone());
        let mut head = self.response_head(opened.head.clone(), &account.record);
        // The final length is unknown: an error event of ours may follow.
        head.headers.remove(CONTENT_LENGTH);
        let relay = StreamRelay::new(
            opened,
            self.protocol,
            self.state.settings.limits.stall,
            self.client_retry_policy.stream_error,
            account,
        );
        Response::from_parts(head, ResponseBody::Generated(Box::pin(relay)))
    }

    /// Records the success of the upstream and wakes the calls that wait for it.
    fn mark_upstream_up(&self, account: &CallRecorder) {
        let mut upstreams = self.state.settings.upstreams.iter();
        let Some(upstream) = upstreams.find(|one| one.name == account.record.upstream) else {
            return;
        };
        let (url, now) = (upstream.base.to_string(), system_clock::timestamp_now());
        if self.state.health.get(&url).record_success(now) {
            self.state.recorder.record_upstream_recovery(&url, now);
        }
    }

    /// Returns the response head for the client.
    fn response_head(&self, mut head: Parts, record: &ApiCallRecord) -> Parts {
        remove_hop_by_hop(&mut head.headers);
        head.version = hyper::Version::HTTP_11;
        head.extensions = Default::default();
        self.add_gateway_headers(&mut head.headers, record);
        head
    }

    /// Adds the headers that describe what the gateway did.
    fn add_gateway_headers(&self, headers: &mut HeaderMap, record: &ApiCallRecord) {
        headers.insert("x-unstuck-attempts", HeaderValue::from(record.attempts));
        let text = |text: &str| HeaderValue::from_str(text).ok();
        if let Some(name) = text(&self.session.name()) {
            headers.insert("x-unstuck-session", name);
        }
        if let Some(model) = record.model.as_deref().and_then(text) {
            headers.insert("x-unstuck-model", model);
        }
    }

    fn rate_limits(&self, head: &Parts) -> ResponseRateLimits {
        ResponseRateLimits::from_headers(
            self.protocol.name(),
            &classifier_headers(&head.headers),
            &system_clock::clock_reading(),
        )
    }

    fn record_attempt(&self, account: &mut CallRecorder, tries: &RetryState) {
        let upstream = &self.state.settings.upstreams[tries.target.upstream];
        account.record.attempts = tries.attempts;
        account.record.upstream.clone_from(&upstream.name);
        account.record.model.clone_from(&tries.target.model);
    }

    fn selector(&self) -> UpstreamSelector<'_> {
        UpstreamSelector {
            upstreams: &self.state.settings.upstreams,
            catalog: self.state.knowledge.catalog(),
            route_around_refusals: self.state.settings.route_around_refusals,
        }
    }

    fn requirements<'a>(&'a self, model: Option<&'a str>) -> RequestRequirements<'a> {
        RequestRequirements {
            protocol: self.protocol,
            request: &self.request,
            model,
        }
    }

    /// Returns the agent's own conversation id, if the request names one.
    fn agent_conversation_id(&self) -> Option<&str> {
        let header = self.agent()?.file().session.header.as_deref()?;
        self.headers.get(header)?.to_str().ok()
    }

    /// Returns the agent that the client claims to be.
    fn agent(&self) -> Option<&'static Agent> {
        client_agent(&self.session, &self.headers)
    }

    /// Returns the time that the client still waits.
    fn remaining_time(&self) -> Duration {
        self.deadline().saturating_duration_since(Instant::now())
    }

    /// Returns the client's deadline. Keep-alive bytes extend it for as long as the policy allows.
    fn deadline(&self) -> Instant {
        if self.keepalive_ping().is_some() && self.session.policy().give_up_after.is_some() {
            return self.started + MAX_HOLD;
        }
        self.client_deadline()
            .map_or(self.held_until, |gone| gone.min(self.held_until))
    }

    /// Returns the deadline stated by a client that gets no keep-alive bytes.
    fn client_deadline(&self) -> Option<Instant> {
        self.client_leaves_at
            .filter(|_| self.keepalive_ping().is_none())
    }

    fn new_recorder(&self) -> Box<CallRecorder> {
        let setup = self.session.setup();
        Box::new(CallRecorder {
            state: Arc::clone(&self.state),
            session: Arc::clone(&self.session),
            conversation: self.conversation,
            started: self.started,
            head: None,
            permit: None,
            limits: ResponseRateLimits::default(),
            wasted_usage: None,
            probe: None,
            has_tools: self.request.tools,
            request: None,
            was_held: Arc::clone(&self.was_held),
            answer_end: None,
            is_finished: false,
            record: ApiCallRecord {
                call: self.id.clone(),
                run: setup.run.clone(),
                session: setup.session.clone(),
                at: system_clock::timestamp_now(),
                protocol: self.protocol.name().to_owned(),
                endpoint: self.endpoint.name().to_owned(),
                upstream: String::new(),
                requested_model: self.request.model.clone(),
                model: None,
                is_stream: self.request.stream,
                outcome: ApiCallOutcome::Answered,
                status: 0,
                kind: None,
                attempts: 0,
                waited_ms: 0,
                first_byte_ms: 0,
                duration_ms: 0,
                sent_bytes: 0,
                tokens: None,
                cost_usd: None,
            },
        })
    }
}

impl Drop for GatewayCall {
    /// It is answered, or its client went away.
    fn drop(&mut self) {
        self.session.call_waits().remove(&self.id);
    }
}

/// Returns the agent that a client is known or claims to be.
pub(crate) fn client_agent(
    session: &GatewaySession,
    headers: &HeaderMap,
) -> Option<&'static Agent> {
    let agents = Agents::built_in();
    let known = session.setup().agent.as_deref();
    let said = || {
        let client = headers.get(USER_AGENT)?.to_str().ok()?;
        agents.by_user_agent(client)
    };
    known.and_then(|id| agents.get(id)).or_else(said)
}

/// Returns the version that a client claims: the part after the slash in the first word of its user agent.
pub(crate) fn client_version(headers: &HeaderMap) -> Option<&str> {
    let client = headers.get(USER_AGENT)?.to_str().ok()?;
    let (_, version) = client.split_whitespace().next()?.split_once('/')?;
    version.split('/').next()
}
