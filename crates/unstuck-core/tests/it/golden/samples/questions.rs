//! Events about questions to a person and their answers.

use unstuck_core::Kind;
use unstuck_core::decision::AskWhy;
use unstuck_core::event::{
    Answer, BudgetReached, BudgetScope, BudgetUnit, Choice, Deadline, EscalationKind, Event,
    RecoveryEscalated, RecoveryResolved, RepairConditions, Shown, Tried,
};
use unstuck_core::settings::SettingChange;

use super::{decisions, later, session, words};

const REASONS: [AskWhy; 11] = [
    AskWhy::Fatal,
    AskWhy::Exhausted,
    AskWhy::NotRepeatable,
    AskWhy::Chain,
    AskWhy::WaitTooLong,
    AskWhy::MaxElapsed,
    AskWhy::MaxAttempts,
    AskWhy::MaxCost,
    AskWhy::DearerModel,
    AskWhy::Repair,
    AskWhy::Trust,
];

pub(super) fn all() -> Vec<Event> {
    let kinds = EscalationKind::ALL.into_iter().cycle();
    let questions = REASONS.into_iter().zip(kinds);
    let questions = questions.map(|(why, kind)| Event::from(Box::new(question(kind, why))));
    let asked = question(EscalationKind::Hiccup, AskWhy::Fatal);
    let answers = Answer::ALL.map(|answer| RecoveryResolved {
        note: "seen".into(),
        who: Some("ada".into()),
        ..RecoveryResolved::answering(&asked, answer)
    });
    let others = [
        RecoveryResolved::by_repair(Some(session()), "r1"),
        RecoveryResolved::withdrawing(&asked),
        RecoveryResolved::by_hand(Some(session())),
    ];
    questions
        .chain(answers.map(Event::from))
        .chain(others.map(Event::from))
        .collect()
}

fn question(question: EscalationKind, why: AskWhy) -> RecoveryEscalated {
    let budget = BudgetReached::new(BudgetScope::Run, BudgetUnit::Usd, 21.5, 20.0, 20.0);
    RecoveryEscalated {
        session: Some(session()),
        id: "k3v9x0m2qa-e1".into(),
        question,
        trigger: question.trigger().into(),
        kind: Kind::AuthExpired,
        why,
        reason: "The login has expired.".into(),
        awaiting: "human".into(),
        proposed: Some(decisions::proposed()),
        cost: Some(decisions::cost()),
        repair: Some("r1".into()),
        budget: Some(budget),
        shown: shown(),
    }
}

fn shown() -> Shown {
    let choice = |answer: Answer| Choice {
        answer,
        does: format!("does what `{answer}` does"),
        changes: decisions::changes(),
        cost: Some(0.142),
    };
    Shown {
        doing: "fixing the tests".into(),
        role: Some("builder".into()),
        evidence: "login expired".into(),
        tried: vec![Tried {
            what: "the same again".into(),
            why: "the login is still expired".into(),
        }],
        command: Some("npm ci".into()),
        choices: Answer::ALL.map(choice).into(),
        fingerprint: "auth_expired:0123456789abcdef".into(),
        hash: "abc123".into(),
        deadline: Some(Deadline {
            at: later(3600),
            answer: Answer::Skip,
        }),
        unrepeatable: Some("it pushes".into()),
        settings: vec![SettingChange {
            key: "policy.maxRetries".into(),
            before: Some("3".into()),
            now: Some("5".into()),
        }],
        accepts: Some("abc123".into()),
        reread: Some(decisions::reread()),
        conditions: Some(RepairConditions {
            sandbox: "full".into(),
            missing: words("overlay"),
            network: true,
            variables: words("NPM_TOKEN"),
            effects: words("node_modules"),
        }),
    }
}
