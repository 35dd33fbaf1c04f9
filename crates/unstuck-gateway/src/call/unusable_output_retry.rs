//! Retries responses with unusable output (empty, truncated, refused or not JSON), with the error, if configured.

use unstuck_core::admission::ApiAttemptKind;
use unstuck_core::decision::{
    DecisionInput, RecoveryAction, RetryCapabilities, RetryChangeCapability, decide,
};
use unstuck_core::event::CallFailed;
use unstuck_core::{Diagnosis, Event, Evidence, FailureKind, FailureLayer, RecoveryLevel};

use super::GatewayCall;
use super::call_recorder::CallRecorder;
use super::retry_state::RetryState;
use crate::protocol::{FinishReason, JsonValidity, ResponseReader, with_error_context};
use crate::system_clock;

/// The problem of an unusable response.
struct BadOutput {
    kind: FailureKind,
    /// The reason; completes "Your last answer …".
    why: &'static str,
}

impl GatewayCall {
    /// Prepares the retry of an unusable response; returns true if it is retried.
    pub(super) fn prepare_output_retry(
        &self,
        account: &mut CallRecorder,
        tries: &mut RetryState,
        reading: &ResponseReader,
    ) -> bool {
        if !self.state.settings.retry_bad_output {
            return false;
        }
        let Some(wrong) = self.find_bad_output(reading) else {
            return false;
        };
        let now = system_clock::timestamp_now();
        let diagnosis = self.bad_output_diagnosis(&wrong);
        let playbook = self.state.knowledge.playbook();
        let Some(known) = playbook.kind(wrong.kind) else {
            return false;
        };
        let policy = self.session.policy();
        let mut situation =
            DecisionInput::new(&policy, &tries.history, &diagnosis, known, playbook, now);
        // Each call holds its whole conversation, so changing and continuing it look the same.
        situation.capabilities = RetryCapabilities::NONE
            .with(RetryChangeCapability::Prompt)
            .with(RetryChangeCapability::OutputLimit)
            .with(RetryChangeCapability::Resume)
            .with(RetryChangeCapability::Fresh);
        let decision = decide(&situation, self.state.random_draw());
        let again = matches!(
            decision.action,
            RecoveryAction::Retry { .. } | RecoveryAction::Change { .. }
        );
        // Without a retry the client gets the response unchanged.
        if again {
            account.discard(wrong.kind, reading)
        } else {
            account.record.kind = Some(wrong.kind)
        }
        let event = CallFailed {
            session: self.session.setup().session.clone(),
            call: self.id.clone(),
            number: tries.attempts,
            upstream: account.record.upstream.clone(),
            model: tries.target.model.clone(),
            status: None,
            diagnosis,
            decision: decision.clone(),
            fallback: None,
            skipped_upstreams: Vec::new(),
            policy_hash: policy.fingerprint(),
            conversation: self.session.conversation(),
        };
        self.note_waiting(&decision, now);
        let ledger = &self.state.recorder;
        ledger.record_event(&self.session, now, Event::from(Box::new(event)));
        if again {
            tries.history.attempts.extend(decision.to_retry_record(0.0));
            tries.attempt = ApiAttemptKind::Retry;
            let said = reading.text().unwrap_or_default();
            let body = with_error_context(self.endpoint, &self.body, said, wrong.why);
            tries.corrected_body = Some(body);
        }
        again
    }

    fn find_bad_output(&self, reading: &ResponseReader) -> Option<BadOutput> {
        let said = reading.summary();
        let is_refused = matches!(
            said.finish,
            Some(FinishReason::Refusal | FinishReason::ContentFilter)
        );
        let (kind, why) = match said.finish {
            // Working around a refusal is left to humans.
            _ if is_refused && !self.state.settings.route_around_refusals => return None,
            _ if is_refused => (FailureKind::ContentFilter, "was a refusal"),
            Some(FinishReason::MaxTokens) => (
                FailureKind::FormatValidation,
                "was truncated because it was too long",
            ),
            _ if said.is_empty() => (FailureKind::EmptyOutput, "was empty"),
            _ if self.request.wants_json
                && said.json == JsonValidity::Invalid
                && said.calls.is_empty() =>
            {
                (FailureKind::JsonParseError, "was not valid JSON")
            }
            _ => return None,
        };
        Some(BadOutput { kind, why })
    }

    fn bad_output_diagnosis(&self, wrong: &BadOutput) -> Diagnosis {
        let known = self.state.knowledge.playbook().kind(wrong.kind);
        let (title, hint) = known.map_or(("", ""), |known| {
            (&known.title, known.hint_for_layer(FailureLayer::Api))
        });
        Diagnosis {
            kind: wrong.kind,
            layer: FailureLayer::Api,
            level: Some(RecoveryLevel::Alternative),
            confidence: 1.0,
            retry_after: None,
            retry_after_source: None,
            evidence: Evidence {
                rule: "gateway/output".to_owned(),
                line: format!("the response {}", wrong.why),
            },
            fingerprint: format!("gateway/output/{}", wrong.kind),
            message: format!("{title}: the response {}", wrong.why),
            hint: hint.to_owned(),
            truncated: false,
        }
    }
}
