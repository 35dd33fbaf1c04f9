//! Whether a call may go at all: a budget that is used up, or an agent that goes in circles, keeps it back.

use std::sync::Arc;
use std::time::Duration;

use hyper::StatusCode;
use tokio::time::Instant;
use unstuck_core::{Diagnosis, Failure};

use super::{Call, Told};
use crate::clock;
use crate::ledger::Noticed;
use crate::protocol::{stop_status, with_note};
use crate::settings::OnCircles;
use crate::watch::Sign;

/// How often it is looked whether a conversation that is held may go on.
const LOOK: Duration = Duration::from_millis(200);
/// When a client shall come back that could not be held for long enough.
const COME_BACK: Duration = Duration::from_secs(5);

impl Call {
    /// What the client is told instead of an answer; none if the call may go.
    pub(super) fn refusal(&self) -> Option<Told> {
        self.spent_up().or_else(|| self.circling())
    }

    /// Puts a note to the model into the request of an agent that goes in circles, once for each sign.
    pub(super) fn take_note(&mut self) {
        if self.shared.settings.watch.then == OnCircles::Note
            && let Some(sign) = self.session.due_note()
        {
            self.body = with_note(self.endpoint, &self.body, &note(&sign));
        }
    }

    fn spent_up(&self) -> Option<Told> {
        let budgets = &self.shared.settings.budgets;
        let reached = self.shared.used_up(&self.session)?;
        let sentence = reached.sentence();
        let table = match reached.scope.is_shared_by_run() {
            true => "[budget]",
            false => "[gateway.budgets]",
        };
        let told = Told {
            status: StatusCode::PAYMENT_REQUIRED,
            code: "quota_exhausted".to_owned(),
            message: format!("unstuck: {sentence}; {table} says so"),
            retry_after: None,
            comes_back: false,
        };
        let diagnosis = self.diagnosis(&told, &sentence);
        if self.session.refused(diagnosis, reached) {
            self.shared.crier.tell(
                &self.session,
                Noticed::SpentUp {
                    sentence: sentence.clone(),
                },
            );
        }
        if budgets.asks {
            self.ask_about_budget(reached);
        }
        Some(told)
    }

    /// Holds the calls of a conversation that repeats itself until a person lets it go on, or nobody has answered for so long
    /// that it does so by itself. What the client is told that cannot be held for that long.
    pub(super) async fn held_back(&self) -> Option<Told> {
        let rules = &self.shared.settings.watch;
        if rules.then != OnCircles::Hold || !self.session.setup().asks {
            return None;
        }
        let deadline = match self.sign_of_life() {
            Some(_) => self.started + rules.hold,
            None => self.deadline(),
        };
        loop {
            let held = self.session.held(self.talk)?;
            if held.is_refused {
                return self.circling();
            }
            self.ask_about_circles(&held.sign);
            if held.since.after(rules.hold) <= clock::at() {
                self.release();
                return None;
            }
            if Instant::now() >= deadline {
                return Some(Told {
                    status: StatusCode::SERVICE_UNAVAILABLE,
                    code: "stuck".to_owned(),
                    message: format!(
                        "unstuck: the agent goes in circles ({}): it is held until a person lets it go on (unstuck inbox)",
                        held.sign.sentence
                    ),
                    retry_after: Some(COME_BACK),
                    comes_back: true,
                });
            }
            tokio::time::sleep(LOOK.min(deadline.saturating_duration_since(Instant::now()))).await;
        }
    }

    fn circling(&self) -> Option<Told> {
        let (sign, way) = match self.shared.settings.watch.then {
            OnCircles::Warn | OnCircles::Note => return None,
            OnCircles::Hold if !self.session.setup().asks => {
                let held = self.session.held(self.talk)?;
                (held.sign, "its calls are held until its next attempt")
            }
            OnCircles::Hold => {
                let held = self.session.held(self.talk).filter(|one| one.is_refused)?;
                (held.sign, "a person does not let it go on")
            }
            OnCircles::Stop => (self.session.circling()?, "its calls are stopped"),
        };
        let status = StatusCode::from_u16(stop_status(self.endpoint));
        Some(Told {
            status: status.unwrap_or(StatusCode::FORBIDDEN),
            code: "stuck".to_owned(),
            message: format!(
                "unstuck: the agent goes in circles ({}): {way}; [gateway] on_loop says so",
                sign.sentence
            ),
            retry_after: None,
            comes_back: false,
        })
    }

    fn diagnosis(&self, told: &Told, sentence: &str) -> Arc<Diagnosis> {
        let failure = Failure::api(self.protocol.name())
            .with_status(told.status.as_u16())
            .with_body(told.message.clone());
        let mut diagnosis = self.shared.diagnose(&failure);
        diagnosis.evidence.line = sentence.to_owned();
        Arc::new(diagnosis)
    }
}

/// What the model is told.
fn note(sign: &Sign) -> String {
    format!(
        "[unstuck, the supervisor of this session] You seem to go in circles: {}. Do not repeat it. \
         Say what you learnt from it, and try something else, or say what keeps you from going on.",
        sign.sentence
    )
}
