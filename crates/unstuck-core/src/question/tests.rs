use super::*;
use crate::decision::AskWhy;

fn offered(why: AskWhy, of: &Circumstances<'_>) -> Vec<Answer> {
    choices(why, of).into_iter().map(|one| one.answer).collect()
}

#[test]
fn every_answer_has_a_name_and_a_key_of_its_own() {
    for answer in Answer::ALL {
        assert_eq!(Answer::named(answer.name()), Some(answer));
        assert_eq!(Answer::named(answer.method()), Some(answer));
        let same = Answer::ALL.iter().filter(|one| one.key() == answer.key());
        assert_eq!(same.count(), 1, "{answer}");
    }
}

/// S0-14: of skip, retry with words, by hand and ours, those that make sense.
#[test]
fn only_answers_that_make_sense_are_offered() {
    let command = Circumstances::default();
    let all = [Answer::Resolve, Answer::Skip, Answer::Abort];
    assert_eq!(offered(AskWhy::Fatal, &command), all);
    let agent = Circumstances {
        role: Some("tester"),
        words: true,
        model: Some(NextModel {
            from: "sonnet",
            to: "opus",
            cost: Some(1.5),
        }),
        ..command
    };
    assert!(offered(AskWhy::Exhausted, &agent).contains(&Answer::Escalate));
    assert!(offered(AskWhy::Exhausted, &agent).contains(&Answer::Retry));
    let asked = offered(AskWhy::DearerModel, &agent);
    assert!(!asked.contains(&Answer::Escalate));
    assert_eq!(asked[..2], [Answer::Approve, Answer::Reject]);
    assert_eq!(offered(AskWhy::Trust, &agent), [Answer::Resolve]);
    // Nothing but more money lets it go on, and whoever tries again without would be asked the same.
    let money = [Answer::Approve, Answer::Skip, Answer::Abort];
    assert_eq!(offered(AskWhy::MaxCost, &agent), money);
}

#[test]
fn each_answer_says_what_it_does() {
    let of = Circumstances {
        repair: Some("npm ci"),
        role: Some("tester"),
        ..Circumstances::default()
    };
    let said: Vec<String> = choices(AskWhy::Repair, &of)
        .into_iter()
        .map(|one| format!("{}: {}", one.answer, one.does))
        .collect();
    assert_eq!(
        said,
        [
            "approve: runs `npm ci` once, then tries again",
            "reject: does not run it, and tries again without",
            "resolve: tries again: you have seen to it",
            "skip: leaves tester out; the others go on without it",
            "abort: ends the run",
        ]
    );
}

/// W1: the lack of an answer raises no budget.
#[test]
fn nobody_who_does_not_answer_allows_money() {
    let after = Duration::from_secs(60);
    let kind = EscalationKind::CostConfirmation;
    let deadline = |answer, why| {
        let patience = Patience {
            ends: BTreeMap::from([(kind, (after, answer))]),
        };
        let model = NextModel {
            from: "sonnet",
            to: "opus",
            cost: None,
        };
        let of = Circumstances {
            model: Some(model),
            ..Circumstances::default()
        };
        let choices = choices(why, &of);
        patience.deadline(kind, why, Timestamp::from_seconds(0), &choices)
    };
    assert_eq!(deadline(Answer::Approve, AskWhy::MaxCost), None);
    assert!(deadline(Answer::Abort, AskWhy::MaxCost).is_some());
    assert!(deadline(Answer::Approve, AskWhy::DearerModel).is_some());
}
