//! What a person is asked about a session whose calls are held.

use hyper::header::USER_AGENT;
use unstuck_core::Kind;
use unstuck_core::decision::{AskWhy, Changed};
use unstuck_core::event::{
    BudgetReached, Deadline, EscalationKind, RecoveryEscalated, RecoveryResolved, RunId,
};
use unstuck_core::question::{Answer, Choice, Shown, binding};

use super::Call;
use crate::clock;
use crate::identity::is_of_client;
use crate::ledger::Noticed;
use crate::watch::Sign;

/// What is asked.
struct Asking {
    question: EscalationKind,
    kind: Kind,
    why: AskWhy,
    reason: String,
    evidence: String,
    /// What counts where nobody answers, and when.
    deadline: Option<Deadline>,
    /// The first lets the calls through.
    choices: Vec<Choice>,
    budget: Option<BudgetReached>,
}

impl Call {
    /// Asks what shall become of an agent that goes in circles, once.
    pub(super) fn ask_about_circles(&self, sign: &Sign) {
        let let_go = choice(
            Answer::Resolve,
            "lets its calls through again: you have seen to it",
        );
        let stay = choice(Answer::Abort, "its calls stay refused");
        self.ask(|| Asking {
            question: EscalationKind::Stuck,
            kind: Kind::Stuck,
            why: AskWhy::Chain,
            reason: "The agent goes in circles, and its calls are held.".to_owned(),
            evidence: sign.sentence.clone(),
            deadline: Some(Deadline {
                at: clock::at().after(self.shared.settings.watch.hold),
                answer: Answer::Resolve,
            }),
            choices: [Some(let_go), self.stronger(), Some(stay)]
                .into_iter()
                .flatten()
                .collect(),
            budget: None,
        });
    }

    /// Asks whether a session may spend its budget once more, once.
    pub(super) fn ask_about_budget(&self, reached: BudgetReached) {
        self.ask(|| Asking {
            question: EscalationKind::CostConfirmation,
            kind: Kind::QuotaExhausted,
            why: AskWhy::MaxCost,
            reason: "A budget is used up, and its calls are held.".to_owned(),
            evidence: reached.sentence(),
            deadline: None,
            choices: vec![
                choice(Answer::Approve, &reached.approval()),
                choice(Answer::Abort, "its calls stay refused"),
            ],
            budget: Some(reached),
        });
    }

    /// Nobody has answered in time: what is held goes on, and the question is settled.
    pub(super) fn release(&self) {
        let asked = self.session.asked_question();
        self.session.let_go();
        let Some(number) = asked else {
            return;
        };
        let setup = self.session.setup();
        let resolved = RecoveryResolved {
            session: Some(setup.session.clone()),
            id: Some(question_id(&setup.run, number)),
            by: "deadline".to_owned(),
            method: Answer::Resolve.method().to_owned(),
            note: "nobody answered in time".to_owned(),
            who: None,
            changes: Vec::new(),
        };
        let ledger = &self.shared.ledger;
        ledger.event(&self.session, clock::at(), resolved.into());
    }

    fn ask(&self, asking: impl FnOnce() -> Asking) {
        let Some(number) = self.session.question() else {
            return;
        };
        let setup = self.session.setup();
        let asking = asking();
        let id = question_id(&setup.run, number);
        let answer = asking.choices.first().map(|first| first.answer);
        let asked = RecoveryEscalated {
            session: Some(setup.session.clone()),
            id: id.clone(),
            question: asking.question,
            trigger: asking.question.trigger().to_owned(),
            kind: asking.kind,
            why: asking.why,
            awaiting: "human".to_owned(),
            proposed: None,
            cost: None,
            repair: None,
            budget: asking.budget,
            shown: Shown {
                doing: format!("calls of {}", self.client()),
                evidence: asking.evidence,
                hash: binding(asking.why, &asking.reason, None, &asking.choices),
                choices: asking.choices,
                deadline: asking.deadline,
                ..Shown::default()
            },
            reason: asking.reason,
        };
        let ledger = &self.shared.ledger;
        ledger.event(&self.session, clock::at(), Box::new(asked).into());
        if let Some(answer) = answer {
            let held = Noticed::Held {
                question: id,
                answer,
            };
            self.shared.crier.tell(&self.session, held);
        }
    }

    /// What the client is called: by its program, too, where it has given itself no name.
    fn client(&self) -> String {
        let name = &self.session.setup().name;
        let program = self.headers.get(USER_AGENT);
        let program = program.and_then(|value| value.to_str().ok()?.split_whitespace().next());
        match program.filter(|_| is_of_client(name)) {
            Some(program) => format!("{program} ({name})"),
            None => name.clone(),
        }
    }

    /// To go on with the next model of the ladder, where there is one.
    fn stronger(&self) -> Option<Choice> {
        let own = self.session.model().or_else(|| self.asked.model.clone())?;
        let next = self.shared.knowledge.catalog().next(&own).ok()?.to_owned();
        let does = format!("lets its calls through again, to {next}");
        Some(Choice {
            changes: vec![Changed::Model {
                from: own,
                to: next,
            }],
            ..choice(Answer::Escalate, &does)
        })
    }
}

fn choice(answer: Answer, does: &str) -> Choice {
    Choice {
        answer,
        does: does.to_owned(),
        changes: Vec::new(),
        cost: None,
    }
}

/// What the question of a number about a run is called.
fn question_id(run: &RunId, number: u32) -> String {
    format!("{run}-e{number}")
}
