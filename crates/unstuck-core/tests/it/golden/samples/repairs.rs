//! Events about repairs.

use unstuck_core::event::{
    ApprovalSource, Event, GuardWord, Proposer, RecoveryApproved, RecoveryExecuted, RecoveryFailed,
    RecoveryProposed, RecoveryRejected, RecoveryStarted, RepairTraces,
};
use unstuck_core::guard::{Confidence, RepairCategory};

use super::{session, words};

const TREE: &str = "4b825dc642cb6eb9a060e54bf8d69288fbee4904";

pub(super) fn all() -> Vec<Event> {
    let proposals = [
        (Proposer::Agent, GuardWord::Run, Confidence::High),
        (Proposer::Fallback, GuardWord::Ask, Confidence::Medium),
        (Proposer::Remembered, GuardWord::Deny, Confidence::Low),
        (Proposer::Owner, GuardWord::Run, Confidence::High),
        (Proposer::BuiltIn, GuardWord::Run, Confidence::High),
    ];
    let mut all: Vec<_> = proposals.map(proposed).into();
    all.push(Event::from(RecoveryRejected {
        session: Some(session()),
        reason: "`command` is missing".into(),
        document: Some("{}".into()),
    }));
    for source in [ApprovalSource::Auto, ApprovalSource::Human] {
        all.push(Event::from(RecoveryApproved {
            session: Some(session()),
            id: "r1".into(),
            source,
            command: "npm ci".into(),
        }));
        all.push(Event::from(RecoveryStarted {
            session: Some(session()),
            id: "r1".into(),
            source,
            command: "npm ci".into(),
            tree: Some(TREE.into()),
            unlisted: true,
        }));
    }
    all.push(executed());
    all.push(Event::from(RecoveryFailed {
        session: Some(session()),
        id: "r1".into(),
        command: "npm ci".into(),
        exit_code: Some(1),
        error: "it ended with 1".into(),
        cut_off: true,
    }));
    all
}

fn proposed((by, verdict, confidence): (Proposer, GuardWord, Confidence)) -> Event {
    Event::from(Box::new(RecoveryProposed {
        session: Some(session()),
        id: "r1".into(),
        category: RepairCategory::Dependency,
        command: "npm ci".into(),
        confidence,
        working_dir: Some("packages/web".into()),
        timeout_seconds: 300,
        by,
        root_cause: "node_modules is missing".into(),
        evidence: words("ENOENT"),
        expected_outcome: "the tests start".into(),
        fingerprint: "missing_dependency:0123456789abcdef".into(),
        fallback: Some("npm install".into()),
        document: Some("{}".into()),
        verdict,
        reason: "the owner allows it".into(),
        hash: "abc123".into(),
    }))
}

fn executed() -> Event {
    Event::from(RecoveryExecuted {
        session: Some(session()),
        id: "r1".into(),
        command: "npm ci".into(),
        exit_code: 0,
        duration_ms: 2100,
        sandbox: "full".into(),
        output: "added 1 package\n".into(),
        tree: Some(TREE.into()),
        traces: RepairTraces {
            missing: words("overlay"),
            notes: words("private-home"),
            planted: words(".git/hooks/post-commit"),
            discarded: words(".bashrc"),
            overtaken: words("package.json"),
            left: 1,
            survivors: 1,
        },
    })
}
