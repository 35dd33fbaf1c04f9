//! Checks before a call is sent: a spent budget or a looping agent blocks it.

use std::sync::Arc;
use std::time::Duration;

use hyper::StatusCode;
use tokio::time::Instant;
use unstuck_core::{Diagnosis, Failure};

use super::{ErrorResponse, GatewayCall};
use crate::loop_detection::ApiLoopSignal;
use crate::protocol::{stop_status, with_note};
use crate::recorder::GatewaySessionEventKind;
use crate::settings::OnLoop;
use crate::system_clock;

/// The interval for checking whether a held conversation was released.
const POLL_INTERVAL: Duration = Duration::from_millis(200);
/// The delay for a client that could not be held long enough.
const COME_BACK_AFTER: Duration = Duration::from_secs(5);

impl GatewayCall {
    /// Returns the error response for a blocked call; `None` if the call may be sent.
    pub(super) fn preflight_refusal(&self) -> Option<ErrorResponse> {
        self.budget_refusal().or_else(|| self.loop_refusal())
    }

    /// Inserts a note for the model into the request of a looping agent, once per signal.
    pub(super) fn insert_loop_note(&mut self) {
        if self.state.settings.loop_rules.action == OnLoop::Note
            && let Some(sign) = self.session.take_due_note()
        {
            self.body = with_note(self.endpoint, &self.body, &loop_note(&sign));
        }
    }

    fn budget_refusal(&self) -> Option<ErrorResponse> {
        let budgets = &self.state.settings.budgets;
        let reached = self.state.exhausted_budget(&self.session)?;
        let sentence = reached.description();
        let table = if reached.scope.is_shared_by_run() {
            "[budget]"
        } else {
            "[gateway.budgets]"
        };
        let told = ErrorResponse {
            status: StatusCode::PAYMENT_REQUIRED,
            code: "quota_exhausted".to_owned(),
            message: format!("unstuck: {sentence} (limit set in {table})"),
            retry_after: None,
            should_come_back: false,
        };
        let diagnosis = self.refusal_diagnosis(&told, &sentence);
        if self.session.record_budget_refusal(diagnosis, reached) {
            self.state.events.publish(
                &self.session,
                GatewaySessionEventKind::BudgetExhausted {
                    sentence: sentence.clone(),
                },
            );
        }
        if budgets.escalates {
            self.escalate_budget(reached);
        }
        Some(told)
    }

    /// Holds the calls of a looping conversation until a human releases it or the escalation's deadline passes.
    /// Returns the error response if the client cannot be held that long.
    pub(super) async fn wait_while_held(&self) -> Option<ErrorResponse> {
        let rules = &self.state.settings.loop_rules;
        if rules.action != OnLoop::Hold || !self.session.setup().escalates {
            return None;
        }
        let deadline = match self.keepalive_ping() {
            Some(_) => self.started + rules.hold,
            None => self.deadline(),
        };
        loop {
            let held = self.session.blocked_conversation(self.conversation)?;
            if held.is_refused {
                return self.loop_refusal();
            }
            self.escalate_loop(&held.signal);
            if held.since.after(rules.hold) <= system_clock::timestamp_now() {
                self.release_on_deadline();
                return None;
            }
            if Instant::now() >= deadline {
                return Some(ErrorResponse {
                    status: StatusCode::SERVICE_UNAVAILABLE,
                    code: "stuck".to_owned(),
                    message: format!(
                        "unstuck: loop detected ({}); calls are blocked until you answer (unstuck inbox)",
                        held.signal.sentence
                    ),
                    retry_after: Some(COME_BACK_AFTER),
                    should_come_back: true,
                });
            }
            tokio::time::sleep(
                POLL_INTERVAL.min(deadline.saturating_duration_since(Instant::now())),
            )
            .await;
        }
    }

    fn loop_refusal(&self) -> Option<ErrorResponse> {
        let (sign, way) = match self.state.settings.loop_rules.action {
            OnLoop::Warn | OnLoop::Note => return None,
            OnLoop::Hold if !self.session.setup().escalates => {
                let held = self.session.blocked_conversation(self.conversation)?;
                (held.signal, "calls are blocked until the next attempt")
            }
            OnLoop::Hold => {
                let held = self
                    .session
                    .blocked_conversation(self.conversation)
                    .filter(|one| one.is_refused)?;
                (held.signal, "calls stay blocked by your answer")
            }
            OnLoop::Stop => (self.session.loop_signal()?, "calls are blocked"),
        };
        let status = StatusCode::from_u16(stop_status(self.endpoint));
        Some(ErrorResponse {
            status: status.unwrap_or(StatusCode::FORBIDDEN),
            code: "stuck".to_owned(),
            message: format!(
                "unstuck: loop detected ({}); {way} (on_loop in [gateway])",
                sign.sentence
            ),
            retry_after: None,
            should_come_back: false,
        })
    }

    fn refusal_diagnosis(&self, told: &ErrorResponse, sentence: &str) -> Arc<Diagnosis> {
        let failure = Failure::api(self.protocol.name())
            .with_status(told.status.as_u16())
            .with_body(told.message.clone());
        let mut diagnosis = self.state.diagnose(&failure);
        diagnosis.evidence.line = sentence.to_owned();
        Arc::new(diagnosis)
    }
}

/// Returns the note for the model.
fn loop_note(sign: &ApiLoopSignal) -> String {
    format!(
        "[unstuck, the supervisor of this session] Loop detected: {} Do not repeat this. \
         State what you learned, then try a different approach or state what blocks you.",
        sign.sentence
    )
}
