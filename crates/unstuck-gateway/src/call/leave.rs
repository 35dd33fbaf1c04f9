//! Whether a call may go at all: a budget that is used up, or an agent that goes in circles, keeps it back.

use std::sync::Arc;

use hyper::StatusCode;
use unstuck_core::{Diagnosis, Failure};

use super::{Call, Told};
use crate::ledger::Noticed;
use crate::protocol::{stop_status, with_note};
use crate::settings::OnCircles;
use crate::watch::Sign;

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
        let sentence = self.shared.used_up(&self.session)?;
        let told = Told {
            status: StatusCode::PAYMENT_REQUIRED,
            code: "quota_exhausted".to_owned(),
            message: format!("unstuck: {sentence}; [gateway.budgets] says so"),
            retry_after: None,
        };
        if self.session.refused(self.diagnosis(&told, &sentence)) {
            self.shared.crier.tell(
                &self.session,
                Noticed::SpentUp {
                    sentence: sentence.clone(),
                },
            );
        }
        if budgets.asks {
            self.ask_about_budget(&sentence);
        }
        Some(told)
    }

    fn circling(&self) -> Option<Told> {
        let way = match self.shared.settings.watch.then {
            OnCircles::Warn | OnCircles::Note => return None,
            OnCircles::Hold if !self.session.setup().asks => {
                "its calls are held until its next attempt"
            }
            OnCircles::Hold => {
                "its calls are held until a person lets them through (unstuck inbox)"
            }
            OnCircles::Stop => "its calls are stopped",
        };
        let sign = self.session.circling()?;
        if self.shared.settings.watch.then == OnCircles::Hold {
            self.ask_about_circles(&sign);
        }
        let status = StatusCode::from_u16(stop_status(self.endpoint));
        Some(Told {
            status: status.unwrap_or(StatusCode::FORBIDDEN),
            code: "stuck".to_owned(),
            message: format!(
                "unstuck: the agent goes in circles ({}): {way}; [gateway] on_circles says so",
                sign.sentence
            ),
            retry_after: None,
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
