//! Events about escalations and their answers.

use unstuck_core::FailureKind;
use unstuck_core::decision::EscalationReason;
use unstuck_core::event::{
    AnswerOption, BudgetReached, BudgetScope, BudgetUnit, EscalationAnswer, EscalationDeadline,
    EscalationDetails, EscalationKind, EscalationOpened, EscalationPriorAttempt,
    EscalationResolved, Event, RepairConfinement,
};
use unstuck_core::project_settings_snapshot::ProjectSettingChange;

use super::{decisions, later, session, words};

const REASONS: [EscalationReason; 11] = [
    EscalationReason::Fatal,
    EscalationReason::Exhausted,
    EscalationReason::NotRepeatable,
    EscalationReason::Chain,
    EscalationReason::WaitTooLong,
    EscalationReason::MaxElapsed,
    EscalationReason::MaxAttempts,
    EscalationReason::MaxCost,
    EscalationReason::CostlierModel,
    EscalationReason::Repair,
    EscalationReason::Trust,
];

pub(super) fn all() -> Vec<Event> {
    let kinds = EscalationKind::ALL.into_iter().cycle();
    let questions = REASONS.into_iter().zip(kinds);
    let questions = questions.map(|(why, kind)| Event::from(Box::new(question(kind, why))));
    let asked = question(EscalationKind::Hiccup, EscalationReason::Fatal);
    let answers = EscalationAnswer::ALL.map(|answer| EscalationResolved {
        note: "seen".into(),
        user: Some("ada".into()),
        ..EscalationResolved::answer_to(&asked, answer)
    });
    let others = [
        EscalationResolved::by_repair(Some(session()), "r1"),
        EscalationResolved::new_withdrawal(&asked),
        EscalationResolved::by_hand(Some(session())),
    ];
    questions
        .chain(answers.map(Event::from))
        .chain(others.map(Event::from))
        .collect()
}

fn question(question: EscalationKind, why: EscalationReason) -> EscalationOpened {
    let budget = BudgetReached::new(BudgetScope::Run, BudgetUnit::Usd, 21.5, 20.0, 20.0);
    EscalationOpened {
        session: Some(session()),
        id: "k3v9x0m2qa-e1".into(),
        escalation_kind: question,
        trigger: question.trigger().into(),
        kind: FailureKind::AuthExpired,
        reason_code: why,
        reason: "The login has expired.".into(),
        awaiting: "human".into(),
        proposed: Some(decisions::proposed()),
        cost: Some(decisions::cost()),
        repair: Some("r1".into()),
        budget: Some(budget),
        details: shown(),
    }
}

fn shown() -> EscalationDetails {
    let choice = |answer: EscalationAnswer| AnswerOption {
        answer,
        effect: format!("does what `{answer}` does"),
        changes: decisions::changes(),
        cost: Some(0.142),
    };
    EscalationDetails {
        activity: "fixing the tests".into(),
        role: Some("builder".into()),
        evidence: "login expired".into(),
        prior_attempts: vec![EscalationPriorAttempt {
            what: "the same again".into(),
            failure_reason: "the login is still expired".into(),
        }],
        command: Some("npm ci".into()),
        options: EscalationAnswer::ALL.map(choice).into(),
        fingerprint: "auth_expired:0123456789abcdef".into(),
        hash: "abc123".into(),
        deadline: Some(EscalationDeadline {
            at: later(3600),
            answer: EscalationAnswer::Skip,
        }),
        unrepeatable_reason: Some("it pushes".into()),
        settings: vec![ProjectSettingChange {
            key: "policy.maxRetries".into(),
            before: Some("3".into()),
            after: Some("5".into()),
        }],
        accepted_settings: Some("abc123".into()),
        reread: Some(decisions::reread()),
        conditions: Some(RepairConfinement {
            sandbox: "full".into(),
            missing: words("overlay"),
            network: true,
            variables: words("NPM_TOKEN"),
            effects: words("node_modules"),
        }),
    }
}
