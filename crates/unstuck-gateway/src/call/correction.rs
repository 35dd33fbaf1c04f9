//! Answers that came and cannot be used: asked for again with what was wrong, where that is wanted.

use unstuck_core::decision::{Capabilities, Capability, Chosen, Situation, decide};
use unstuck_core::event::CallFailed;
use unstuck_core::traffic::Try;
use unstuck_core::{Diagnosis, Event, Evidence, Kind, Layer, Level};

use super::Call;
use super::account::Account;
use super::tries::Tries;
use crate::clock;
use crate::protocol::{Finish, JsonState, Reading, with_error_context};

/// What is wrong with an answer.
struct Wrong {
    kind: Kind,
    /// Completes "That answer cannot be used: …".
    why: &'static str,
}

impl Call {
    /// Prepares to ask again for an answer that cannot be used; whether it is asked for again.
    pub(super) fn corrects(
        &self,
        account: &mut Account,
        tries: &mut Tries,
        reading: &Reading,
    ) -> bool {
        if !self.shared.settings.retry_bad_output {
            return false;
        }
        let Some(wrong) = self.wrong(reading) else {
            return false;
        };
        let now = clock::at();
        let diagnosis = self.found(&wrong);
        let playbook = self.shared.knowledge.playbook();
        let Some(known) = playbook.kind(wrong.kind) else {
            return false;
        };
        let policy = self.session.policy();
        let mut situation =
            Situation::new(&policy, &tries.history, &diagnosis, known, playbook, now);
        // Each call brings its whole conversation along, so it can be changed and gone on with alike.
        situation.can = Capabilities::NONE
            .with(Capability::Prompt)
            .with(Capability::OutputLimit)
            .with(Capability::Resume)
            .with(Capability::Fresh);
        let decision = decide(&situation, self.shared.draw());
        let again = matches!(
            decision.action,
            Chosen::Retry { .. } | Chosen::Change { .. }
        );
        match again {
            true => account.wasted(wrong.kind, reading),
            // The client gets it as it is.
            false => account.record.kind = Some(wrong.kind),
        }
        let event = CallFailed {
            session: self.session.setup().session.clone(),
            call: self.id.clone(),
            number: tries.number,
            upstream: account.record.upstream.clone(),
            model: tries.target.model.clone(),
            status: None,
            diagnosis,
            decision: decision.clone(),
            fallback: None,
            passed_over: Vec::new(),
            policy_hash: policy.fingerprint(),
            conversation: self.session.conversation(),
        };
        self.waits_by(&decision, now);
        let ledger = &self.shared.ledger;
        ledger.event(&self.session, now, Event::from(Box::new(event)));
        if again {
            tries.history.attempts.extend(decision.attempted(0.0));
            tries.attempt = Try::Again;
            let said = reading.text().unwrap_or_default();
            let body = with_error_context(self.endpoint, &self.body, said, wrong.why);
            tries.corrected = Some(body);
        }
        again
    }

    fn wrong(&self, reading: &Reading) -> Option<Wrong> {
        let said = reading.said();
        let is_refused = matches!(said.finish, Some(Finish::Refusal | Finish::ContentFilter));
        let (kind, why) = match said.finish {
            // Going round a refusal is a person's to decide.
            _ if is_refused && !self.shared.settings.route_around_refusals => return None,
            _ if is_refused => (Kind::ContentFilter, "it is a refusal."),
            Some(Finish::MaxTokens) => (
                Kind::FormatValidation,
                "it was cut off because it was too long.",
            ),
            _ if said.is_empty() => (Kind::EmptyOutput, "it is empty."),
            _ if self.asked.wants_json
                && said.json == JsonState::Invalid
                && said.calls.is_empty() =>
            {
                (Kind::JsonParseError, "it is not valid JSON.")
            }
            _ => return None,
        };
        Some(Wrong { kind, why })
    }

    fn found(&self, wrong: &Wrong) -> Diagnosis {
        let known = self.shared.knowledge.playbook().kind(wrong.kind);
        let (title, hint) =
            known.map_or(("", ""), |known| (&known.title, known.hint_in(Layer::Api)));
        Diagnosis {
            kind: wrong.kind,
            layer: Layer::Api,
            level: Some(Level::Alternative),
            confidence: 1.0,
            retry_after: None,
            retry_after_source: None,
            evidence: Evidence {
                rule: "gateway/output".to_owned(),
                line: wrong.why.to_owned(),
            },
            fingerprint: format!("gateway/output/{}", wrong.kind),
            message: format!("{title}: {}", wrong.why),
            hint: hint.to_owned(),
            truncated: false,
        }
    }
}
