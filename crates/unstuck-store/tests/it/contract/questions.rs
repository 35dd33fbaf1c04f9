//! Escalations: which are open, and which answer applies.

use unstuck_core::decision::EscalationReason;
use unstuck_core::escalation::{EscalationAnswer, EscalationDetails};
use unstuck_core::event::{
    EscalationKind, EscalationOpened, EscalationResolved, Event, RunId, RunOutcome,
};
use unstuck_core::{FailureKind, Timestamp};
use unstuck_store::{
    EscalationAnswerPrecondition, EscalationFilter, EscalationStatusFilter, RunEventBatch,
    StoreError,
};

use super::Place;
use crate::samples::{append, finished, later, resumed, run, started, started_in};

fn question(run: &RunId, number: u32) -> EscalationOpened {
    let question = EscalationKind::Hiccup;
    EscalationOpened {
        session: Some(run.session_id(1)),
        id: format!("{run}-e{number}"),
        escalation_kind: question,
        trigger: question.trigger().into(),
        kind: FailureKind::AuthRequired,
        reason_code: EscalationReason::Fatal,
        reason: "a person has to log in".into(),
        awaiting: "human".into(),
        proposed: None,
        cost: None,
        repair: None,
        budget: None,
        details: EscalationDetails {
            hash: format!("h{number}"),
            ..EscalationDetails::default()
        },
    }
}

pub(crate) fn escalation_opened(run: &RunId, number: u32) -> Event {
    Event::from(Box::new(question(run, number)))
}

pub(crate) fn answer(run: &RunId, number: u32, who: &str, at: Timestamp) -> RunEventBatch {
    let resolved = EscalationResolved {
        user: Some(who.into()),
        ..EscalationResolved::answer_to(&question(run, number), EscalationAnswer::Skip)
    };
    let answers = EscalationAnswerPrecondition {
        escalation: format!("{run}-e{number}"),
        hash: format!("h{number}"),
    };
    RunEventBatch::new(run.clone(), at, [Event::from(resolved)]).with_answer_guard(answers)
}

pub(crate) async fn open_escalations_are_listed_newest_first(place: &Place) {
    let store = place.open().await;
    let (one, two) = (run(1), run(2));
    let at = |append, seconds| RunEventBatch {
        at: later(seconds),
        ..append
    };
    let first = append(
        &two,
        [
            started_in(&two, "/home/me/other"),
            escalation_opened(&two, 1),
        ],
    );
    store.append(at(first, 5)).await.unwrap();
    let second = append(&one, [started(&one), escalation_opened(&one, 1)]);
    store.append(at(second, 9)).await.unwrap();
    let all = store
        .escalations(&EscalationFilter::default())
        .await
        .unwrap();
    let ids: Vec<_> = all.iter().map(|one| one.request.id.clone()).collect();
    assert_eq!(ids, [format!("{one}-e1"), format!("{two}-e1")]);
    assert_eq!(
        (all[1].project.as_str(), all[1].at),
        ("/home/me/other", later(5))
    );
    let filter = EscalationFilter {
        prefix: Some(one.as_str().to_owned()),
        ..EscalationFilter::default()
    };
    assert_eq!(store.escalations(&filter).await.unwrap().len(), 1);
    assert!(
        store
            .is_escalation_open(&one, &format!("{one}-e1"))
            .await
            .unwrap()
    );
}

pub(crate) async fn escalations_are_listed_in_pages(place: &Place) {
    let store = place.open().await;
    for number in 1..=5 {
        let run = run(number);
        let asking = append(&run, [started(&run), escalation_opened(&run, 1)]);
        store.append(asking).await.unwrap();
    }
    for (number, seconds) in [(2, 30), (4, 20), (5, 40)] {
        let answer = answer(&run(number), 1, "me", later(seconds));
        store.append(answer).await.unwrap();
    }
    assert_eq!(store.count_open_escalations().await.unwrap(), 2);
    for (standing, order) in [
        (EscalationStatusFilter::Open, vec![3, 1]),
        (EscalationStatusFilter::Closed, vec![5, 2, 4]),
        (EscalationStatusFilter::Any, vec![5, 4, 3, 2, 1]),
    ] {
        let ids: Vec<_> = order
            .iter()
            .map(|one| format!("{}-e1", run(*one)))
            .collect();
        let mut seen = Vec::new();
        let mut after = None;
        // One at a time, until there are none.
        loop {
            let filter = EscalationFilter {
                status: standing,
                after,
                limit: Some(1),
                ..EscalationFilter::default()
            };
            let Some(one) = store.escalations(&filter).await.unwrap().pop() else {
                break;
            };
            after = Some(one.request.id.clone());
            seen.push(one.request.id);
        }
        assert_eq!(seen, ids, "{standing:?}");
    }
}

pub(crate) async fn first_answer_wins(place: &Place) {
    let (here, there) = (place.open().await, place.open().await);
    let run = run(1);
    here.append(append(&run, [started(&run), escalation_opened(&run, 1)]))
        .await
        .unwrap();
    here.append(answer(&run, 1, "ann", later(3))).await.unwrap();
    let refused = there.append(answer(&run, 1, "bob", later(4))).await;
    let Err(StoreError::AlreadyAnswered {
        closure: answered, ..
    }) = refused
    else {
        panic!("two answers count: {refused:?}");
    };
    let said = answered.answer.as_ref().unwrap();
    assert_eq!(
        (said.user.as_deref(), said.method.as_str()),
        (Some("ann"), "skip")
    );
    assert_eq!(answered.at, later(3));
    let events = there.load(&run).await.unwrap();
    assert_eq!(events.len(), 3, "the second left no trace");
    assert!(
        !there
            .is_escalation_open(&run, &format!("{run}-e1"))
            .await
            .unwrap()
    );
}

pub(crate) async fn concurrent_answers_have_one_winner(place: &Place) {
    let store = place.open().await;
    let run = run(1);
    store
        .append(append(&run, [started(&run), escalation_opened(&run, 1)]))
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

pub(crate) async fn answer_is_bound_to_the_shown_request(place: &Place) {
    let store = place.open().await;
    let run = run(1);
    store
        .append(append(&run, [started(&run), escalation_opened(&run, 1)]))
        .await
        .unwrap();
    let mut other = answer(&run, 1, "ann", later(1));
    other.answer_guard = Some(EscalationAnswerPrecondition {
        escalation: format!("{run}-e1"),
        hash: "of something else".into(),
    });
    let refused = store.append(other).await;
    assert!(matches!(refused, Err(StoreError::EscalationChanged { .. })));
    let unknown = store.append(answer(&run, 7, "ann", later(1))).await;
    assert!(matches!(unknown, Err(StoreError::UnknownEscalation { .. })));
}

pub(crate) async fn resumed_or_ended_run_has_no_open_escalations(place: &Place) {
    let store = place.open().await;
    let (one, two) = (run(1), run(2));
    for run in [&one, &two] {
        store
            .append(append(run, [started(run), escalation_opened(run, 1)]))
            .await
            .unwrap();
    }
    store.append(append(&one, [resumed()])).await.unwrap();
    store
        .append(append(&two, [finished(RunOutcome::Failed)]))
        .await
        .unwrap();
    let open = store
        .escalations(&EscalationFilter::default())
        .await
        .unwrap();
    assert!(open.is_empty());
}

/// W1: neither a resume nor an answer to another escalation closes one about a budget.
pub(crate) async fn budget_escalation_needs_its_own_answer(place: &Place) {
    let store = place.open().await;
    let run = run(1);
    let money = EscalationOpened {
        escalation_kind: EscalationKind::CostConfirmation,
        reason_code: EscalationReason::MaxCost,
        ..question(&run, 1)
    };
    let events = [
        started(&run),
        escalation_opened(&run, 2),
        Event::from(Box::new(money.clone())),
        resumed(),
        EscalationResolved::by_hand(Some(run.session_id(1))).into(),
        EscalationResolved::by_hand(None).into(),
    ];
    store.append(append(&run, events)).await.unwrap();
    let open = store
        .escalations(&EscalationFilter::default())
        .await
        .unwrap();
    let ids: Vec<_> = open.iter().map(|one| one.request.id.clone()).collect();
    assert_eq!(ids, std::slice::from_ref(&money.id));
    let approved = EscalationResolved::answer_to(&money, EscalationAnswer::Approve);
    let approved = append(&run, [Event::from(approved)]);
    store.append(approved).await.unwrap();
    let open = store
        .escalations(&EscalationFilter::default())
        .await
        .unwrap();
    assert!(open.is_empty());
}
