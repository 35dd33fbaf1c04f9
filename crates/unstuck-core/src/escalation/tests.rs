use super::*;
use crate::decision::EscalationReason;

fn offered(why: EscalationReason, of: &AnswerOptionsContext<'_>) -> Vec<EscalationAnswer> {
    answer_options(why, of)
        .into_iter()
        .map(|one| one.answer)
        .collect()
}

#[test]
fn every_answer_has_a_unique_name_and_key() {
    for answer in EscalationAnswer::ALL {
        assert_eq!(EscalationAnswer::from_name(answer.name()), Some(answer));
        assert_eq!(EscalationAnswer::from_name(answer.method()), Some(answer));
        let same = EscalationAnswer::ALL
            .iter()
            .filter(|one| one.key() == answer.key());
        assert_eq!(same.count(), 1, "{answer}");
    }
}

/// S0-14: of skip, retry with a message, manual fix and approval, only those that make sense are offered.
#[test]
fn only_answers_that_make_sense_are_offered() {
    let command = AnswerOptionsContext::default();
    let all = [
        EscalationAnswer::Resolve,
        EscalationAnswer::Skip,
        EscalationAnswer::Abort,
    ];
    assert_eq!(offered(EscalationReason::Fatal, &command), all);
    let agent = AnswerOptionsContext {
        role: Some("tester"),
        accepts_message: true,
        model: Some(StrongerModel {
            from: "sonnet",
            to: "opus",
            cost: Some(1.5),
        }),
        ..command
    };
    assert!(offered(EscalationReason::Exhausted, &agent).contains(&EscalationAnswer::SwitchModel));
    assert!(offered(EscalationReason::Exhausted, &agent).contains(&EscalationAnswer::Retry));
    let asked = offered(EscalationReason::CostlierModel, &agent);
    assert!(!asked.contains(&EscalationAnswer::SwitchModel));
    assert_eq!(
        asked[..2],
        [EscalationAnswer::Approve, EscalationAnswer::Reject]
    );
    assert_eq!(
        offered(EscalationReason::Trust, &agent),
        [EscalationAnswer::Resolve]
    );
    // Only a higher budget lets it continue; a retry without it would escalate again.
    let money = [
        EscalationAnswer::Approve,
        EscalationAnswer::Skip,
        EscalationAnswer::Abort,
    ];
    assert_eq!(offered(EscalationReason::MaxCost, &agent), money);
}

#[test]
fn each_answer_describes_its_effect() {
    let of = AnswerOptionsContext {
        repair: Some("npm ci"),
        role: Some("tester"),
        ..AnswerOptionsContext::default()
    };
    let said: Vec<String> = answer_options(EscalationReason::Repair, &of)
        .into_iter()
        .map(|one| format!("{}: {}", one.answer, one.effect))
        .collect();
    assert_eq!(
        said,
        [
            "approve: run `npm ci` once, then retry",
            "reject: retry without running it",
            "resolve: retry; you fixed it manually",
            "skip: skip tester and continue without it",
            "abort: abort the run",
        ]
    );
}

/// W1: a missing answer never raises a budget.
#[test]
fn a_missing_answer_never_raises_a_budget() {
    let after = Duration::from_secs(60);
    let kind = EscalationKind::CostConfirmation;
    let deadline = |answer, why| {
        let patience = EscalationDeadlinePolicy {
            deadlines: BTreeMap::from([(kind, (after, answer))]),
        };
        let model = StrongerModel {
            from: "sonnet",
            to: "opus",
            cost: None,
        };
        let of = AnswerOptionsContext {
            model: Some(model),
            ..AnswerOptionsContext::default()
        };
        let choices = answer_options(why, &of);
        patience.deadline_for(kind, why, Timestamp::from_seconds(0), &choices)
    };
    assert_eq!(
        deadline(EscalationAnswer::Approve, EscalationReason::MaxCost),
        None
    );
    assert!(deadline(EscalationAnswer::Abort, EscalationReason::MaxCost).is_some());
    assert!(deadline(EscalationAnswer::Approve, EscalationReason::CostlierModel).is_some());
}
