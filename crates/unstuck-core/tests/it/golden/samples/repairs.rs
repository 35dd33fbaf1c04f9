//! Events about repairs.

use unstuck_core::command_policy::{ProposalConfidence, RepairCategory};
use unstuck_core::event::{
    ApprovalSource, Event, PolicyVerdict, RepairApproved, RepairExecuted, RepairFailed,
    RepairProposalOrigin, RepairProposed, RepairRejected, RepairSandboxReport, RepairStarted,
};

use super::{session, words};

const TREE: &str = "4b825dc642cb6eb9a060e54bf8d69288fbee4904";

pub(super) fn all() -> Vec<Event> {
    let proposals = [
        (
            RepairProposalOrigin::Agent,
            PolicyVerdict::Run,
            ProposalConfidence::High,
        ),
        (
            RepairProposalOrigin::Fallback,
            PolicyVerdict::Ask,
            ProposalConfidence::Medium,
        ),
        (
            RepairProposalOrigin::Remembered,
            PolicyVerdict::Deny,
            ProposalConfidence::Low,
        ),
        (
            RepairProposalOrigin::Owner,
            PolicyVerdict::Run,
            ProposalConfidence::High,
        ),
        (
            RepairProposalOrigin::BuiltIn,
            PolicyVerdict::Run,
            ProposalConfidence::High,
        ),
    ];
    let mut all: Vec<_> = proposals.map(proposed).into();
    all.push(Event::from(RepairRejected {
        session: Some(session()),
        reason: "`command` is missing".into(),
        document: Some("{}".into()),
    }));
    for source in [ApprovalSource::Auto, ApprovalSource::Human] {
        all.push(Event::from(RepairApproved {
            session: Some(session()),
            id: "r1".into(),
            source,
            command: "npm ci".into(),
        }));
        all.push(Event::from(RepairStarted {
            session: Some(session()),
            id: "r1".into(),
            source,
            command: "npm ci".into(),
            tree: Some(TREE.into()),
            is_unlisted: true,
        }));
    }
    all.push(executed());
    all.push(Event::from(RepairFailed {
        session: Some(session()),
        id: "r1".into(),
        command: "npm ci".into(),
        exit_code: Some(1),
        error: "it ended with 1".into(),
        was_interrupted: true,
    }));
    all
}

fn proposed(
    (by, verdict, confidence): (RepairProposalOrigin, PolicyVerdict, ProposalConfidence),
) -> Event {
    Event::from(Box::new(RepairProposed {
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
    Event::from(RepairExecuted {
        session: Some(session()),
        id: "r1".into(),
        command: "npm ci".into(),
        exit_code: 0,
        duration_ms: 2100,
        sandbox: "full".into(),
        output: "added 1 package\n".into(),
        tree: Some(TREE.into()),
        side_effects: RepairSandboxReport {
            missing: words("overlay"),
            notes: words("private-home"),
            injected_files: words(".git/hooks/post-commit"),
            discarded: words(".bashrc"),
            overwritten_by_others: words("package.json"),
            leftover_processes: 1,
            surviving_processes: 1,
        },
    })
}
