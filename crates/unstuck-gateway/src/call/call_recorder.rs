//! Collects the record of a call and writes it when the call ends.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use hyper::http::response::Parts;
use tokio::time::Instant;
use unstuck_core::admission::ResponseRateLimits;
use unstuck_core::decision::{CircuitBreaker, TokenUsage};
use unstuck_core::duration::to_millis;
use unstuck_core::event::{ApiCallOutcome, ApiCallRecord, FinishReason, LastApiCall};
use unstuck_core::{Diagnosis, Event, FailureKind};

use super::error_response::ErrorResponse;
use super::upstream_error::UpstreamError;
use crate::admission_queue::AdmissionPermit;
use crate::loop_detection::ConversationId;
use crate::protocol::{ResponseReader, ResponseSummary};
use crate::recorder::GatewaySessionEventKind;
use crate::session::GatewaySession;
use crate::state::GatewayState;
use crate::system_clock;
use crate::usage::{CallUsage, sum_tokens};

/// The probe that a call makes on behalf of all calls that wait for an upstream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SharedProbe {
    /// The URL of the upstream.
    pub(super) url: String,
    /// True if only a whole response shows that the upstream has recovered: before, responses broke off.
    pub(super) needs_whole_response: bool,
}

/// The record of a call in progress.
pub(crate) struct CallRecorder {
    pub(super) state: Arc<GatewayState>,
    pub(super) session: Arc<GatewaySession>,
    pub(super) conversation: ConversationId,
    pub(super) record: ApiCallRecord,
    /// True if the client offered tools.
    pub(super) has_tools: bool,
    /// The hash of a failed request; `None` if its client is expected to send it again.
    pub(super) request: Option<u64>,
    /// Set once a hold of the call is recorded.
    pub(super) was_held: Arc<AtomicBool>,
    /// The finish reason of the last response and whether it was empty; `None` before one ended.
    pub(super) answer_end: Option<(Option<FinishReason>, bool)>,
    pub(super) started: Instant,
    /// The head of the response.
    pub(super) head: Option<Parts>,
    pub(super) permit: Option<AdmissionPermit>,
    pub(super) limits: ResponseRateLimits,
    /// The usage and cost in USD of unusable responses.
    pub(super) wasted_usage: Option<(TokenUsage, f64)>,
    /// The shared probe, if the current attempt is one.
    pub(super) probe: Option<SharedProbe>,
    pub(super) is_finished: bool,
}

impl CallRecorder {
    /// Returns the head of the response that is passed on.
    pub(crate) fn response_head(&self) -> Option<&Parts> {
        self.head.as_ref()
    }

    /// Adds to the number of bytes passed on.
    pub(crate) fn add_sent_bytes(&mut self, bytes: usize) {
        if self.record.sent_bytes == 0 {
            self.record.first_byte_ms = to_millis(self.started.elapsed());
        }
        self.record.sent_bytes += bytes as u64;
    }

    /// Adds time spent waiting between attempts.
    pub(crate) fn add_wait(&mut self, time: Duration) {
        self.record.waited_ms += to_millis(time);
    }

    /// Records a response that was passed on completely.
    pub(crate) fn finish(&mut self, reading: &ResponseReader) {
        self.end_probe(true);
        let said = reading.summary();
        let tokens = said.tokens.map_or(0, |tokens| tokens.input + tokens.output);
        if let Some(permit) = self.permit.take() {
            permit.release_succeeded(&self.limits, tokens, self.started.elapsed());
        }
        self.record.outcome = match self.record.kind {
            None => ApiCallOutcome::Answered,
            Some(_) => ApiCallOutcome::Recovered,
        };
        self.record_response(reading);
        if self.record.outcome == ApiCallOutcome::Recovered {
            let attempts = self.record.attempts;
            self.notify(GatewaySessionEventKind::Recovered { attempts });
        }
        self.write_record();
    }

    /// Wakes the calls that wait for the upstream if the current attempt is their probe and shows that it is back.
    pub(crate) fn end_probe(&mut self, is_whole: bool) {
        let is_shown = |probe: &mut SharedProbe| is_whole || !probe.needs_whole_response;
        if let Some(probe) = self.probe.take_if(is_shown) {
            let now = system_clock::timestamp_now();
            self.state.health.get(&probe.url).mark_recovered(now);
            let recorder = &self.state.recorder;
            recorder.record_upstream_recovery(&probe.url, now);
        }
    }

    /// Records that the upstream refused or broke off the current attempt, so that released calls wait again.
    pub(crate) fn fail_probe(&mut self, kind: FailureKind) {
        self.probe = None;
        let is_waited_for = CircuitBreaker::is_outage(kind)
            || matches!(kind, FailureKind::RateLimit | FailureKind::RateLimitTimed);
        let mut upstreams = self.state.settings.upstreams.iter();
        let name = &self.record.upstream;
        if let Some(upstream) = upstreams
            .find(|one| one.name == *name)
            .filter(|_| is_waited_for)
        {
            let url = upstream.base.to_string();
            self.state.health.get(&url).record_setback();
        }
    }

    /// Records a complete but unusable response; its cost is still counted.
    pub(crate) fn discard(&mut self, kind: FailureKind, reading: &ResponseReader) {
        self.end_probe(true);
        let said = reading.summary();
        let tokens = said.tokens.map_or(0, |tokens| tokens.input + tokens.output);
        if let Some(permit) = self.permit.take() {
            permit.release_succeeded(&self.limits, tokens, self.started.elapsed());
        }
        let model = said.model.as_deref().or(self.record.model.as_deref());
        let cost = self.state.cost_usd(model, said).unwrap_or(0.0);
        let (used, spent) = self.wasted_usage.unwrap_or_default();
        self.wasted_usage = Some((
            sum_tokens(used, said.tokens.unwrap_or_default()),
            spent + cost,
        ));
        self.record.kind = Some(kind);
    }

    /// Records a response that broke off after some of it had been passed on.
    pub(crate) fn break_off(
        &mut self,
        broken: &UpstreamError,
        reading: &ResponseReader,
    ) -> ErrorResponse {
        let diagnosis = self.state.diagnose(&broken.failure);
        self.fail_probe(diagnosis.kind);
        if let Some(permit) = self.permit.take() {
            permit.release_failed(diagnosis.kind, diagnosis.retry_after, &self.limits);
        }
        self.record.kind = Some(diagnosis.kind);
        self.record.outcome = ApiCallOutcome::Truncated;
        self.record_response(reading);
        let told = ErrorResponse::from_upstream_error(broken, &diagnosis);
        self.notify_gave_up(diagnosis, "not retried: the response had already started");
        self.write_record();
        told
    }

    /// Records a failure reported to the client.
    pub(crate) fn fail(&mut self, diagnosis: Diagnosis, reason: &str, status: u16) {
        self.record.kind = Some(diagnosis.kind);
        self.record.outcome = ApiCallOutcome::Failed;
        self.record.status = status;
        if let Some(sign) = self.session.record_failure(
            self.conversation,
            diagnosis.kind,
            system_clock::timestamp_now(),
        ) {
            self.notify(GatewaySessionEventKind::LoopDetected(sign));
        }
        self.notify_gave_up(diagnosis, reason);
        self.write_record();
    }

    /// Records a call that was rejected.
    pub(crate) fn refuse(&mut self, status: u16) {
        self.record.outcome = ApiCallOutcome::Refused;
        self.record.status = status;
        self.write_record();
    }

    /// Records a response whose client went away.
    pub(crate) fn abandon(&mut self, reading: &ResponseReader) {
        let used = self.add_usage(reading);
        self.session.add_usage(used);
    }

    fn record_response(&mut self, reading: &ResponseReader) {
        let used = self.add_usage(reading);
        let said = reading.summary();
        self.answer_end = Some((said.finish.clone(), said.is_empty()));
        let sign = self.session.record_response(
            self.conversation,
            said,
            used,
            system_clock::timestamp_now(),
        );
        if let Some(sign) = sign {
            self.notify(GatewaySessionEventKind::LoopDetected(sign));
        }
        if used.cost_usd.is_none() && !said.is_empty() {
            self.notify_cost_unknown(said);
        }
    }

    /// Reports usage of unknown cost: otherwise a budget would seem to work although it cannot.
    fn notify_cost_unknown(&self, said: &ResponseSummary) {
        if self.state.remaining_budget(&self.session).is_none() || !self.session.note_cost_unknown()
        {
            return;
        }
        let model = self.record.model.as_deref().unwrap_or("its model");
        let sentence = match said.tokens {
            None => format!(
                "responses of {model} do not include usage (for OpenAI streams, set stream_options.include_usage)"
            ),
            Some(_) => {
                format!("the price of {model} is unknown; set it in [models] of the configuration")
            }
        };
        self.notify(GatewaySessionEventKind::CostUnknown { sentence });
    }

    /// Adds the usage reported by a response.
    fn add_usage(&mut self, reading: &ResponseReader) -> CallUsage {
        let said = reading.summary();
        if said.model.is_some() {
            self.record.model.clone_from(&said.model);
        }
        self.record.tokens = said.tokens;
        self.record.cost_usd = self.state.cost_usd(self.record.model.as_deref(), said);
        if let Some((used, spent)) = self.wasted_usage.take() {
            self.record.tokens = Some(sum_tokens(used, said.tokens.unwrap_or_default()));
            self.record.cost_usd = self.record.cost_usd.map(|cost| cost + spent);
        }
        let cost = self.record.cost_usd.unwrap_or(0.0);
        self.state.spending.add(cost, system_clock::timestamp_now());
        CallUsage {
            cost_usd: self.record.cost_usd,
            tokens: self.record.tokens,
        }
    }

    fn notify_gave_up(&self, diagnosis: Diagnosis, reason: &str) {
        let diagnosis = Arc::new(diagnosis);
        self.session.record_give_up(Arc::clone(&diagnosis));
        self.notify(GatewaySessionEventKind::GaveUp {
            diagnosis,
            reason: reason.to_owned(),
        });
    }

    fn notify(&self, what: GatewaySessionEventKind) {
        self.state.events.publish(&self.session, what);
    }

    /// Updates the outcome of the session's newest call; a client that went away changes nothing.
    fn record_session_end(&mut self) {
        let outcome = self.record.outcome;
        if outcome == ApiCallOutcome::Cancelled {
            return;
        }
        let (finish, is_empty) = self.answer_end.take().unwrap_or((None, true));
        self.session.record_call_end(LastApiCall {
            at: system_clock::timestamp_now(),
            outcome,
            kind: self.record.kind,
            finish,
            is_empty,
            has_tools: self.has_tools,
        });
    }

    fn write_record(&mut self) {
        self.is_finished = true;
        // Unusable responses are paid for, whatever followed.
        if let Some((tokens, usd)) = self.wasted_usage.take() {
            self.record.tokens = Some(tokens);
            self.record.cost_usd = Some(usd);
            self.session.add_usage(CallUsage {
                cost_usd: Some(usd),
                tokens: Some(tokens),
            });
            self.state.spending.add(usd, system_clock::timestamp_now());
        }
        self.record.duration_ms = to_millis(self.started.elapsed());
        self.record_session_end();
        if let Some(request) = self.request {
            self.session.end_request_ahead(request);
        }
        if self.record.kind.is_some() || self.was_held.load(Ordering::Relaxed) {
            let event = Event::from(Box::new(self.record.clone()));
            self.state
                .recorder
                .record_event(&self.session, system_clock::timestamp_now(), event);
        }
        self.state.recorder.record_call(self.record.clone());
    }
}

impl Drop for CallRecorder {
    /// The client went away, or the gateway stops.
    fn drop(&mut self) {
        if !self.is_finished {
            self.record.outcome = match (self.state.shutdown.is_over(), self.record.sent_bytes) {
                (false, _) => ApiCallOutcome::Cancelled,
                (true, 0) => ApiCallOutcome::Failed,
                (true, _) => ApiCallOutcome::Truncated,
            };
            self.write_record();
        }
    }
}
