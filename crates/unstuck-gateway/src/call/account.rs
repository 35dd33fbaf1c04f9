//! What is kept of a call while it runs, and written down when it is over.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use hyper::http::response::Parts;
use tokio::time::Instant;
use unstuck_core::decision::Tokens;
use unstuck_core::duration::in_millis;
use unstuck_core::event::{CallOutcome, CallRecord, Finish, LastCall};
use unstuck_core::traffic::Limits;
use unstuck_core::{Diagnosis, Event, Kind};

use super::broken::Broken;
use super::trouble::Told;
use crate::clock;
use crate::counted::{Counted, sum};
use crate::lanes::Permit;
use crate::ledger::Noticed;
use crate::protocol::{Reading, Said};
use crate::session::Session;
use crate::shared::Shared;
use crate::watch::Talk;

/// What is kept of a call while it runs.
pub(crate) struct Account {
    pub(super) shared: Arc<Shared>,
    pub(super) session: Arc<Session>,
    pub(super) talk: Talk,
    pub(super) record: CallRecord,
    /// Whether the client offered tools.
    pub(super) has_tools: bool,
    /// The request by its hash, once it has failed; none if its client is to come back with it.
    pub(super) request: Option<u64>,
    /// Whether it was written down that the call waits.
    pub(super) was_held: Arc<AtomicBool>,
    /// Why the answer ended, and whether there was nothing in it; none while none has ended.
    pub(super) answer_end: Option<(Option<Finish>, bool)>,
    pub(super) started: Instant,
    /// The head of the answer.
    pub(super) head: Option<Parts>,
    pub(super) permit: Option<Permit>,
    pub(super) limits: Limits,
    /// What answers used and cost that could not be used, in USD.
    pub(super) wasted: Option<(Tokens, f64)>,
    pub(super) is_closed: bool,
}

impl Account {
    /// The head of the answer that is passed on.
    pub(crate) fn head(&self) -> Option<&Parts> {
        self.head.as_ref()
    }

    /// So many bytes were passed on.
    pub(crate) fn sent(&mut self, bytes: usize) {
        if self.record.sent_bytes == 0 {
            self.record.first_byte_ms = in_millis(self.started.elapsed());
        }
        self.record.sent_bytes += bytes as u64;
    }

    /// Time passed without anything being asked.
    pub(crate) fn waited(&mut self, time: Duration) {
        self.record.waited_ms += in_millis(time);
    }

    /// All of the answer was passed on.
    pub(crate) fn close(&mut self, reading: &Reading) {
        let said = reading.said();
        let tokens = said.tokens.map_or(0, |tokens| tokens.input + tokens.output);
        if let Some(permit) = self.permit.take() {
            permit.answered(&self.limits, tokens, self.started.elapsed());
        }
        self.record.outcome = match self.record.kind {
            None => CallOutcome::Answered,
            Some(_) => CallOutcome::Recovered,
        };
        self.settle(reading);
        if self.record.outcome == CallOutcome::Recovered {
            let attempts = self.record.attempts;
            self.tell(Noticed::Recovered { attempts });
        }
        self.write();
    }

    /// The answer came and cannot be used; what it cost counts all the same.
    pub(crate) fn wasted(&mut self, kind: Kind, reading: &Reading) {
        let said = reading.said();
        let tokens = said.tokens.map_or(0, |tokens| tokens.input + tokens.output);
        if let Some(permit) = self.permit.take() {
            permit.answered(&self.limits, tokens, self.started.elapsed());
        }
        let model = said.model.as_deref().or(self.record.model.as_deref());
        let cost = self.shared.cost(model, said).unwrap_or(0.0);
        let (used, spent) = self.wasted.unwrap_or_default();
        self.wasted = Some((sum(used, said.tokens.unwrap_or_default()), spent + cost));
        self.record.kind = Some(kind);
    }

    /// The answer broke off after some of it had been passed on.
    pub(crate) fn cut(&mut self, broken: &Broken, reading: &Reading) -> Told {
        let diagnosis = self.shared.diagnose(&broken.failure);
        if let Some(permit) = self.permit.take() {
            permit.failed(diagnosis.kind, diagnosis.retry_after, &self.limits);
        }
        self.record.kind = Some(diagnosis.kind);
        self.record.outcome = CallOutcome::Cut;
        self.settle(reading);
        let told = Told::of(broken, &diagnosis);
        self.gave_up(
            diagnosis,
            "the answer had begun, so it is not asked for again",
        );
        self.write();
        told
    }

    /// The client is told that it failed.
    pub(crate) fn failed(&mut self, diagnosis: Diagnosis, reason: &str, status: u16) {
        self.record.kind = Some(diagnosis.kind);
        self.record.outcome = CallOutcome::Failed;
        self.record.status = status;
        if let Some(sign) = self.session.failed(self.talk, diagnosis.kind, clock::at()) {
            self.tell(Noticed::Circling(sign));
        }
        self.gave_up(diagnosis, reason);
        self.write();
    }

    /// It was not let through.
    pub(crate) fn refused(&mut self, status: u16) {
        self.record.outcome = CallOutcome::Refused;
        self.record.status = status;
        self.write();
    }

    /// Nobody takes the rest of the answer.
    pub(crate) fn abandon(&mut self, reading: &Reading) {
        let used = self.count(reading);
        self.session.count(used);
    }

    fn settle(&mut self, reading: &Reading) {
        let used = self.count(reading);
        let said = reading.said();
        self.answer_end = Some((said.finish.clone(), said.is_empty()));
        let sign = self.session.answered(self.talk, said, used, clock::at());
        if let Some(sign) = sign {
            self.tell(Noticed::Circling(sign));
        }
        if used.cost_usd.is_none() && !said.is_empty() {
            self.tell_uncounted(said);
        }
    }

    /// A budget that cannot hold a session would be believed to.
    fn tell_uncounted(&self, said: &Said) {
        if self.shared.left(&self.session).is_none() || !self.session.is_first_uncounted() {
            return;
        }
        let model = self.record.model.as_deref().unwrap_or("its model");
        let sentence = match said.tokens {
            None => format!(
                "answers of {model} do not tell what they used (OpenAI streams do with stream_options.include_usage)"
            ),
            Some(_) => {
                format!(
                    "the price of {model} is not known; [models] in the configuration can tell it"
                )
            }
        };
        self.tell(Noticed::Uncounted { sentence });
    }

    /// Takes in what an answer says that it used.
    fn count(&mut self, reading: &Reading) -> Counted {
        let said = reading.said();
        if said.model.is_some() {
            self.record.model.clone_from(&said.model);
        }
        self.record.tokens = said.tokens;
        self.record.cost_usd = self.shared.cost(self.record.model.as_deref(), said);
        if let Some((used, spent)) = self.wasted.take() {
            self.record.tokens = Some(sum(used, said.tokens.unwrap_or_default()));
            self.record.cost_usd = self.record.cost_usd.map(|cost| cost + spent);
        }
        let cost = self.record.cost_usd.unwrap_or(0.0);
        self.shared.spending.add(cost, clock::at());
        Counted {
            cost_usd: self.record.cost_usd,
            tokens: self.record.tokens,
        }
    }

    fn gave_up(&self, diagnosis: Diagnosis, reason: &str) {
        let diagnosis = Arc::new(diagnosis);
        self.session.gave_up(Arc::clone(&diagnosis));
        self.tell(Noticed::GaveUp {
            diagnosis,
            reason: reason.to_owned(),
        });
    }

    fn tell(&self, what: Noticed) {
        self.shared.crier.tell(&self.session, what);
    }

    /// The session knows how its newest call ended; one whose client went away says nothing.
    fn tell_end(&mut self) {
        let outcome = self.record.outcome;
        if outcome == CallOutcome::Cancelled {
            return;
        }
        let (finish, is_empty) = self.answer_end.take().unwrap_or((None, true));
        self.session.ended(LastCall {
            at: clock::at(),
            outcome,
            kind: self.record.kind,
            finish,
            is_empty,
            has_tools: self.has_tools,
        });
    }

    fn write(&mut self) {
        self.is_closed = true;
        // Answers that could not be used were paid for, whatever came after them.
        if let Some((tokens, usd)) = self.wasted.take() {
            self.record.tokens = Some(tokens);
            self.record.cost_usd = Some(usd);
            self.session.count(Counted {
                cost_usd: Some(usd),
                tokens: Some(tokens),
            });
            self.shared.spending.add(usd, clock::at());
        }
        self.record.duration_ms = in_millis(self.started.elapsed());
        self.tell_end();
        if let Some(request) = self.request {
            self.session.request_ended(request);
        }
        if self.record.kind.is_some() || self.was_held.load(Ordering::Relaxed) {
            let event = Event::from(Box::new(self.record.clone()));
            self.shared.ledger.event(&self.session, clock::at(), event);
        }
        self.shared.ledger.call(self.record.clone());
    }
}

impl Drop for Account {
    /// The client went away, or the gateway ends.
    fn drop(&mut self) {
        if !self.is_closed {
            self.record.outcome = match (self.shared.ending.is_over(), self.record.sent_bytes) {
                (false, _) => CallOutcome::Cancelled,
                (true, 0) => CallOutcome::Failed,
                (true, _) => CallOutcome::Cut,
            };
            self.write();
        }
    }
}
