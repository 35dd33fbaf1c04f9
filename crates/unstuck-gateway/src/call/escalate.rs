//! Escalations for sessions whose calls are held.

use hyper::header::USER_AGENT;
use unstuck_core::FailureKind;
use unstuck_core::decision::{ConcreteAttemptChange, EscalationReason};
use unstuck_core::escalation::{AnswerOption, EscalationAnswer, EscalationDetails, binding_hash};
use unstuck_core::event::{
    BudgetReached, EscalationDeadline, EscalationKind, EscalationOpened, EscalationResolved, RunId,
};

use super::GatewayCall;
use crate::id_generation::is_client_session_name;
use crate::loop_detection::ApiLoopSignal;
use crate::recorder::GatewaySessionEventKind;
use crate::system_clock;

/// The content of an escalation.
struct CallEscalation {
    escalation: EscalationKind,
    kind: FailureKind,
    ask_reason: EscalationReason,
    reason: String,
    evidence: String,
    /// The default answer and its deadline.
    deadline: Option<EscalationDeadline>,
    /// The answer options; the first releases the calls.
    options: Vec<AnswerOption>,
    budget: Option<BudgetReached>,
}

impl GatewayCall {
    /// Creates an escalation for a looping agent, once.
    pub(super) fn escalate_loop(&self, sign: &ApiLoopSignal) {
        let let_go = answer_option(
            EscalationAnswer::Resolve,
            "unblock its calls; you fixed it manually",
        );
        let stay = answer_option(EscalationAnswer::Abort, "keep its calls blocked");
        self.escalate(|| CallEscalation {
            escalation: EscalationKind::Stuck,
            kind: FailureKind::Stuck,
            ask_reason: EscalationReason::Chain,
            reason: "Loop detected; the calls of the agent are blocked.".to_owned(),
            evidence: sign.sentence.clone(),
            deadline: Some(EscalationDeadline {
                at: system_clock::timestamp_now().after(self.state.settings.loop_rules.hold),
                answer: EscalationAnswer::Resolve,
            }),
            options: [Some(let_go), self.stronger_model_option(), Some(stay)]
                .into_iter()
                .flatten()
                .collect(),
            budget: None,
        });
    }

    /// Creates an escalation for a spent session budget, once.
    pub(super) fn escalate_budget(&self, reached: BudgetReached) {
        self.escalate(|| CallEscalation {
            escalation: EscalationKind::CostConfirmation,
            kind: FailureKind::QuotaExhausted,
            ask_reason: EscalationReason::MaxCost,
            reason: "Budget exceeded; the calls of the agent are blocked.".to_owned(),
            evidence: reached.description(),
            deadline: None,
            options: vec![
                answer_option(EscalationAnswer::Approve, &reached.approval_effect()),
                answer_option(EscalationAnswer::Abort, "keep its calls blocked"),
            ],
            budget: Some(reached),
        });
    }

    /// Releases held calls and resolves the escalation when the deadline passes.
    pub(super) fn release_on_deadline(&self) {
        let asked = self.session.open_escalation();
        self.session.clear_loops();
        let Some(number) = asked else {
            return;
        };
        let setup = self.session.setup();
        let resolved = EscalationResolved {
            session: Some(setup.session.clone()),
            id: Some(escalation_id(&setup.run, number)),
            by: "deadline".to_owned(),
            method: EscalationAnswer::Resolve.method().to_owned(),
            note: "deadline passed without an answer".to_owned(),
            user: None,
            changes: Vec::new(),
        };
        let ledger = &self.state.recorder;
        ledger.record_event(
            &self.session,
            system_clock::timestamp_now(),
            resolved.into(),
        );
    }

    fn escalate(&self, asking: impl FnOnce() -> CallEscalation) {
        let Some(number) = self.session.begin_escalation() else {
            return;
        };
        let setup = self.session.setup();
        let asking = asking();
        let id = escalation_id(&setup.run, number);
        let answer = asking.options.first().map(|first| first.answer);
        let asked = EscalationOpened {
            session: Some(setup.session.clone()),
            id: id.clone(),
            escalation_kind: asking.escalation,
            trigger: asking.escalation.trigger().to_owned(),
            kind: asking.kind,
            reason_code: asking.ask_reason,
            awaiting: "human".to_owned(),
            proposed: None,
            cost: None,
            repair: None,
            budget: asking.budget,
            details: EscalationDetails {
                activity: format!("calls of {}", self.client_label()),
                evidence: asking.evidence,
                hash: binding_hash(asking.ask_reason, &asking.reason, None, &asking.options),
                options: asking.options,
                deadline: asking.deadline,
                ..EscalationDetails::default()
            },
            reason: asking.reason,
        };
        let ledger = &self.state.recorder;
        ledger.record_event(
            &self.session,
            system_clock::timestamp_now(),
            Box::new(asked).into(),
        );
        if let Some(answer) = answer {
            let held = GatewaySessionEventKind::Held {
                escalation: id,
                answer,
            };
            self.state.events.publish(&self.session, held);
        }
    }

    /// Returns the display name of the client: its program if it has not named itself.
    fn client_label(&self) -> String {
        let name = &self.session.setup().name;
        let program = self.headers.get(USER_AGENT);
        let program = program.and_then(|value| value.to_str().ok()?.split_whitespace().next());
        match program.filter(|_| is_client_session_name(name)) {
            Some(program) => format!("{program} ({name})"),
            None => name.clone(),
        }
    }

    /// Returns the option to continue with the next model of the ladder, if there is one.
    fn stronger_model_option(&self) -> Option<AnswerOption> {
        let own = self
            .session
            .model()
            .or_else(|| self.request.model.clone())?;
        let next = self
            .state
            .knowledge
            .catalog()
            .next_model(&own)
            .ok()?
            .to_owned();
        let does = format!("unblock its calls and switch to {next}");
        Some(AnswerOption {
            changes: vec![ConcreteAttemptChange::Model {
                from: own,
                to: next,
            }],
            ..answer_option(EscalationAnswer::SwitchModel, &does)
        })
    }
}

fn answer_option(answer: EscalationAnswer, does: &str) -> AnswerOption {
    AnswerOption {
        answer,
        effect: does.to_owned(),
        changes: Vec::new(),
        cost: None,
    }
}

/// Returns the id of an escalation, from its number within the run.
fn escalation_id(run: &RunId, number: u32) -> String {
    format!("{run}-e{number}")
}
