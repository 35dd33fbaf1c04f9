//! The samples and decoys of the knowledge files, each against all rules.

use unstuck_core::knowledge::{DiagnosisKnowledge, KindKnowledge};
use unstuck_core::{
    Classifier, ClockReading, Diagnosis, Failure, FailureInputRecord, FailureKind, RecoveryLevel,
};

fn read(case: &FailureInputRecord) -> Diagnosis {
    let at = case.now.as_deref().unwrap_or(super::NOW).parse().unwrap();
    Classifier::built_in().diagnose(&case.clone().into_failure(), &ClockReading::utc(at))
}

fn described(case: &FailureInputRecord, diagnosis: &Diagnosis) -> String {
    let text = [&case.body, &case.stdout, &case.stderr]
        .into_iter()
        .flatten()
        .map(|text| text.to_str().trim().chars().take(160).collect::<String>())
        .collect::<Vec<_>>()
        .join(" / ");
    format!(
        "got {} by {} at `{}`: {text}",
        diagnosis.kind, diagnosis.evidence.rule, diagnosis.evidence.line
    )
}

fn misread(kind: FailureKind, file: &KindKnowledge) -> Vec<String> {
    let numbered = |word: &str, at: usize, case: &FailureInputRecord, read: &Diagnosis| {
        format!("{kind}, {word} {}: {}", at + 1, described(case, read))
    };
    let samples = file.sample.iter().enumerate().filter_map(|(at, case)| {
        let read = read(case);
        (read.kind != kind).then(|| numbered("sample", at, case, &read))
    });
    let decoys = file.decoy.iter().enumerate().filter_map(|(at, case)| {
        let read = read(case);
        (read.kind == kind).then(|| numbered("decoy", at, case, &read))
    });
    samples.chain(decoys).collect()
}

#[test]
fn every_sample_is_classified_and_no_decoy_is() {
    let misread: Vec<_> = DiagnosisKnowledge::with_samples()
        .kinds
        .iter()
        .flat_map(|(kind, file)| misread(*kind, file))
        .collect();
    assert!(
        misread.is_empty(),
        "{} of the samples and decoys are misread:\n{}",
        misread.len(),
        misread.join("\n")
    );
}

#[test]
fn every_kind_but_unknown_has_three_samples_and_a_decoy() {
    let thin: Vec<_> = DiagnosisKnowledge::with_samples()
        .kinds
        .iter()
        .filter(|(kind, file)| {
            **kind != FailureKind::Unknown && (file.sample.len() < 3 || file.decoy.is_empty())
        })
        .map(|(kind, file)| {
            format!(
                "{kind}: {} samples, {} decoys",
                file.sample.len(),
                file.decoy.len()
            )
        })
        .collect();
    assert!(
        thin.is_empty(),
        "{} kinds have fewer than three samples or no decoy:\n{}",
        thin.len(),
        thin.join("\n")
    );
}

/// Claude Code reports an exhausted plan in a separate record without human-readable text.
#[test]
fn failure_without_text_shows_the_message_of_the_last_record() {
    let records = r#"{"type":"rate_limit_event","rate_limit_info":{"status":"rejected","resetsAt":1794805680}}
{"duration_api_ms":0,"usage":{"input_tokens":0},"is_error":true,"result":"You've hit your 5-hour limit · resets 5:08am (UTC)","type":"result"}
"#;
    let failure = Failure::agent("claude")
        .with_exit_code(1)
        .with_stdout(records);
    let diagnosis = super::diagnose(&failure);
    assert_eq!(diagnosis.kind, FailureKind::RateLimitTimed);
    assert_eq!(
        diagnosis.evidence.line,
        "You've hit your 5-hour limit · resets 5:08am (UTC)"
    );
}

/// More money needs approval; more steps do not.
#[test]
fn exhausted_budget_escalates_and_a_step_limit_continues() {
    let level = |subtype: &str| {
        let record = format!(r#"{{"type":"result","subtype":"{subtype}","is_error":true}}"#);
        let failure = Failure::agent("claude")
            .with_exit_code(1)
            .with_stdout(record);
        let diagnosis = super::diagnose(&failure);
        assert_eq!(diagnosis.kind, FailureKind::StepLimit, "{subtype}");
        diagnosis.level
    };
    assert_eq!(level("error_max_budget_usd"), Some(RecoveryLevel::Escalate));
    assert_eq!(level("error_max_turns"), Some(RecoveryLevel::Alternative));
}

/// Waiting half an hour does not help with an untrusted certificate or a merge conflict.
#[test]
fn failures_that_waiting_cannot_fix_are_never_plainly_retried() {
    for (tool, text, kind) in [
        (
            "curl",
            "curl: (60) SSL certificate problem: certificate has expired",
            FailureKind::CertificateError,
        ),
        (
            "git",
            "error: could not apply 1f2e3d4... Add a total",
            FailureKind::VcsConflict,
        ),
    ] {
        let diagnosis = super::diagnose(&Failure::tool(tool).with_exit_code(1).with_stderr(text));
        assert_eq!(diagnosis.kind, kind);
        assert!(!diagnosis.is_retryable());
    }
}

/// The line a human would point at: neither the path of a log nor a link to documentation.
#[test]
fn evidence_is_the_line_that_states_the_cause() {
    for (tool, text, line) in [
        (
            "npm",
            "npm error code ERESOLVE\nnpm error ERESOLVE could not resolve\nnpm error\nnpm error While resolving: shop@1.0.0\nnpm error For a full report see:\nnpm error /home/dev/.npm/_logs/2026-11-15T19_32_00_834Z-eresolve-report.txt\nnpm error A complete log of this run can be found in: /home/dev/.npm/_logs/x-debug-0.log\n",
            "npm error ERESOLVE could not resolve",
        ),
        (
            "cargo",
            "error[E0786]: found invalid metadata files for crate `shapes`\n --> src/main.rs:3:9\n\nFor more information about this error, try `rustc --explain E0786`.\nerror: could not compile `geo` (bin \"geo\") due to 1 previous error\n",
            "error[E0786]: found invalid metadata files for crate `shapes`",
        ),
        (
            "run.sh",
            "step 3 of 9: upload was rejected, error 77\nfor more information, see the log\n",
            "step 3 of 9: upload was rejected, error 77",
        ),
        (
            "script",
            "Failed\u{1b}[1Cto\u{1b}[1Cconnect\u{1b}[1Cto\u{1b}[1Capi.example.com:\u{1b}[1CENOTFOUND\r\n\u{0}",
            "Failed to connect to api.example.com: ENOTFOUND",
        ),
    ] {
        let failure = Failure::tool(tool).with_exit_code(1).with_stderr(text);
        assert_eq!(super::diagnose(&failure).evidence.line, line);
    }
}

#[test]
fn hint_matches_its_reader() {
    let hint = |failure: Failure| super::diagnose(&failure.with_exit_code(1)).hint;
    let crash = "Segmentation fault (core dumped)";
    assert!(!hint(Failure::tool("sh").with_stderr(crash)).contains("agent"));
    assert!(hint(Failure::agent("claude").with_stderr(crash)).contains("agent"));
    let login = "Not logged in";
    for (agent, command) in [
        ("claude", "`claude /login`"),
        ("codex", "`codex login`"),
        ("opencode", "`opencode auth login`"),
    ] {
        let told = hint(Failure::agent(agent).with_stderr(login));
        assert!(told.contains(command), "{told}");
    }
    assert_eq!(
        hint(Failure::agent("my-agent").with_stderr(login)),
        "Log in, or set the provider's API key."
    );
    for kind in FailureKind::ALL {
        let file = DiagnosisKnowledge::built_in().kind(*kind);
        assert!(!file.hint.contains("by itself then"), "{kind}");
    }
}
