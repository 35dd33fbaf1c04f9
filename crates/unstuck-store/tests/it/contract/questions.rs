//! What people are asked: which questions wait, and whose answer counts.

use unstuck_core::decision::AskWhy;
use unstuck_core::event::{
    EscalationKind, Event, Outcome, RecoveryEscalated, RecoveryResolved, RunId,
};
use unstuck_core::question::{Answer, Shown};
use unstuck_core::{Kind, Timestamp};
use unstuck_store::{Answers, Append, QuestionFilter, Standing, StoreError};

use super::Place;
use crate::samples::{append, finished, later, resumed, run, started, started_in};

fn question(run: &RunId, number: u32) -> RecoveryEscalated {
    let question = EscalationKind::Hiccup;
    RecoveryEscalated {
        session: Some(run.session(1)),
        id: format!("{run}-e{number}"),
        question,
        trigger: question.trigger().into(),
        kind: Kind::AuthRequired,
        why: AskWhy::Fatal,
        reason: "a person has to log in".into(),
        awaiting: "human".into(),
        proposed: None,
        cost: None,
        repair: None,
        budget: None,
        shown: Shown {
            hash: format!("h{number}"),
            ..Shown::default()
        },
    }
}

fn asked(run: &RunId, number: u32) -> Event {
    Event::from(Box::new(question(run, number)))
}

fn answer(run: &RunId, number: u32, who: &str, at: Timestamp) -> Append {
    let resolved = RecoveryResolved {
        who: Some(who.into()),
        ..RecoveryResolved::answering(&question(run, number), Answer::Skip)
    };
    let answers = Answers {
        question: format!("{run}-e{number}"),
        hash: format!("h{number}"),
    };
    Append::new(run.clone(), at, [Event::from(resolved)]).answering(answers)
}

pub(crate) async fn what_waits_is_listed_the_newest_first(place: &Place) {
    let store = place.open().await;
    let (one, two) = (run(1), run(2));
    let at = |append, seconds| Append {
        at: later(seconds),
        ..append
    };
    let first = append(&two, [started_in(&two, "/home/me/other"), asked(&two, 1)]);
    store.append(at(first, 5)).await.unwrap();
    let second = append(&one, [started(&one), asked(&one, 1)]);
    store.append(at(second, 9)).await.unwrap();
    let all = store.questions(&QuestionFilter::default()).await.unwrap();
    let ids: Vec<_> = all.iter().map(|one| one.asked.id.clone()).collect();
    assert_eq!(ids, [format!("{one}-e1"), format!("{two}-e1")]);
    assert_eq!(
        (all[1].project.as_str(), all[1].at),
        ("/home/me/other", later(5))
    );
    let filter = QuestionFilter {
        prefix: Some(one.as_str().to_owned()),
        ..QuestionFilter::default()
    };
    assert_eq!(store.questions(&filter).await.unwrap().len(), 1);
    assert!(store.waits(&one, &format!("{one}-e1")).await.unwrap());
}

pub(crate) async fn many_questions_are_listed_in_parts(place: &Place) {
    let store = place.open().await;
    for number in 1..=5 {
        let run = run(number);
        let asking = append(&run, [started(&run), asked(&run, 1)]);
        store.append(asking).await.unwrap();
    }
    for (number, seconds) in [(2, 30), (4, 20), (5, 40)] {
        let answer = answer(&run(number), 1, "me", later(seconds));
        store.append(answer).await.unwrap();
    }
    assert_eq!(store.waiting_questions().await.unwrap(), 2);
    for (standing, order) in [
        (Standing::Waiting, vec![3, 1]),
        (Standing::Answered, vec![5, 2, 4]),
        (Standing::Any, vec![5, 4, 3, 2, 1]),
    ] {
        let ids: Vec<_> = order
            .iter()
            .map(|one| format!("{}-e1", run(*one)))
            .collect();
        let mut seen = Vec::new();
        let mut after = None;
        // One at a time, until there is none.
        loop {
            let filter = QuestionFilter {
                standing,
                after,
                limit: Some(1),
                ..QuestionFilter::default()
            };
            let Some(one) = store.questions(&filter).await.unwrap().pop() else {
                break;
            };
            after = Some(one.asked.id.clone());
            seen.push(one.asked.id);
        }
        assert_eq!(seen, ids, "{standing:?}");
    }
}

pub(crate) async fn the_first_answer_counts(place: &Place) {
    let (here, there) = (place.open().await, place.open().await);
    let run = run(1);
    here.append(append(&run, [started(&run), asked(&run, 1)]))
        .await
        .unwrap();
    here.append(answer(&run, 1, "ann", later(3))).await.unwrap();
    let refused = there.append(answer(&run, 1, "bob", later(4))).await;
    let Err(StoreError::Answered { answered, .. }) = refused else {
        panic!("two answers count: {refused:?}");
    };
    let said = answered.answer.as_ref().unwrap();
    assert_eq!(
        (said.who.as_deref(), said.method.as_str()),
        (Some("ann"), "skip")
    );
    assert_eq!(answered.at, later(3));
    let events = there.load(&run).await.unwrap();
    assert_eq!(events.len(), 3, "the second left no trace");
    assert!(!there.waits(&run, &format!("{run}-e1")).await.unwrap());
}

pub(crate) async fn of_many_answers_at_once_one_counts(place: &Place) {
    let store = place.open().await;
    let run = run(1);
    store
        .append(append(&run, [started(&run), asked(&run, 1)]))
        .await
        .unwrap();
    let answers = (0..20).map(|number| {
        let (store, answer) = (
            store.clone(),
            answer(&run, 1, &number.to_string(), later(1)),
        );
        async move { store.append(answer).await.is_ok() }
    });
    let mut taken = 0;
    for answered in futures_util::future::join_all(answers).await {
        taken += u32::from(answered);
    }
    assert_eq!(taken, 1);
}

pub(crate) async fn an_answer_binds_to_what_was_shown(place: &Place) {
    let store = place.open().await;
    let run = run(1);
    store
        .append(append(&run, [started(&run), asked(&run, 1)]))
        .await
        .unwrap();
    let mut other = answer(&run, 1, "ann", later(1));
    other.answers = Some(Answers {
        question: format!("{run}-e1"),
        hash: "of something else".into(),
    });
    let refused = store.append(other).await;
    assert!(matches!(refused, Err(StoreError::OtherQuestion { .. })));
    let unknown = store.append(answer(&run, 7, "ann", later(1))).await;
    assert!(matches!(unknown, Err(StoreError::NoQuestion { .. })));
}

pub(crate) async fn what_went_on_or_ended_asks_no_more(place: &Place) {
    let store = place.open().await;
    let (one, two) = (run(1), run(2));
    for run in [&one, &two] {
        store
            .append(append(run, [started(run), asked(run, 1)]))
            .await
            .unwrap();
    }
    store.append(append(&one, [resumed()])).await.unwrap();
    store
        .append(append(&two, [finished(Outcome::Failed)]))
        .await
        .unwrap();
    let open = store.questions(&QuestionFilter::default()).await.unwrap();
    assert!(open.is_empty());
}

/// W1: neither a resume nor an answer to something else settles a question about a budget.
pub(crate) async fn a_question_about_a_budget_waits_for_its_own_answer(place: &Place) {
    let store = place.open().await;
    let run = run(1);
    let money = RecoveryEscalated {
        question: EscalationKind::CostConfirmation,
        why: AskWhy::MaxCost,
        ..question(&run, 1)
    };
    let events = [
        started(&run),
        asked(&run, 2),
        Event::from(Box::new(money.clone())),
        resumed(),
        RecoveryResolved::by_hand(Some(run.session(1))).into(),
        RecoveryResolved::by_hand(None).into(),
    ];
    store.append(append(&run, events)).await.unwrap();
    let open = store.questions(&QuestionFilter::default()).await.unwrap();
    let ids: Vec<_> = open.iter().map(|one| one.asked.id.clone()).collect();
    assert_eq!(ids, std::slice::from_ref(&money.id));
    let approved = RecoveryResolved::answering(&money, Answer::Approve);
    let approved = append(&run, [Event::from(approved)]);
    store.append(approved).await.unwrap();
    let open = store.questions(&QuestionFilter::default()).await.unwrap();
    assert!(open.is_empty());
}
