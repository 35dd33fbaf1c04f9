//! Loops of agents are detected, and work that only looks like a loop is not interrupted.

mod actions;
mod laws;
mod outputs;

use std::time::Duration;

use serde::Deserialize;
use unstuck_core::agent::Agents;
use unstuck_core::loop_detection::{
    AgentLoopLimits, LoopDetector, LoopKind, LoopSignal, detect_question_answer,
};
use unstuck_core::recovery_plan::{PromptNoteLimits, PromptNoteTemplates, PromptNoteVars};
use unstuck_core::{Failure, FailureKind, RecoveryLevel};

const FILE: &str = include_str!("../../data/loop_detection.toml");

#[derive(Debug, Deserialize)]
struct Samples {
    repeated: Vec<Repeated>,
    screen: Vec<Screen>,
    r#final: Vec<Final>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Repeated {
    lines: String,
    stuck: bool,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Screen {
    text: String,
    waits: bool,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Final {
    text: String,
    asks: bool,
}

fn samples() -> Samples {
    toml::from_str(FILE).unwrap()
}

/// Returns the signal for this output of an agent or any other program.
fn watched(agent: &str, stdout: &str) -> Option<LoopSignal> {
    let mut watcher = LoopDetector::new(&AgentLoopLimits::default(), Agents::built_in().get(agent));
    watcher.push_stdout(stdout.as_bytes());
    watcher.signal()
}

fn what(agent: &str, stdout: &str) -> Option<LoopKind> {
    watched(agent, stdout).map(|sign| sign.kind)
}

#[test]
fn every_sample_of_repeated_lines_is_evaluated_as_stated() {
    let samples = samples().repeated;
    for sample in &samples {
        let text = format!("{}\n", sample.lines.trim_matches('\n')).repeat(500);
        assert_eq!(what("", &text).is_some(), sample.stuck, "{}", sample.lines);
    }
    let fine = samples.iter().filter(|sample| !sample.stuck).count();
    assert!(fine >= samples.len() - fine);
}

#[test]
fn every_screen_is_evaluated_as_its_sample_states() {
    let minute = Duration::from_secs(60);
    for screen in samples().screen {
        for on_stderr in [false, true] {
            let mut watcher = LoopDetector::new(&AgentLoopLimits::default(), None);
            if on_stderr {
                watcher.push_stderr(screen.text.as_bytes())
            } else {
                watcher.push_stdout(screen.text.as_bytes())
            }
            let sign = watcher.signal_after_silence(minute);
            assert_eq!(sign.is_some(), screen.waits, "{:?}", screen.text);
            assert_eq!(
                watcher.signal_after_silence(minute - Duration::from_secs(1)),
                None
            );
            assert_eq!(watcher.signal(), None);
        }
    }
}

#[test]
fn last_written_output_is_evaluated_on_either_stream() {
    let mut watcher = LoopDetector::new(&AgentLoopLimits::default(), None);
    watcher.push_stdout(b"Overwrite? (y/N) ");
    watcher.push_stderr(b"overwritten\n");
    assert_eq!(watcher.signal_after_silence(Duration::from_secs(999)), None);
    watcher.push_stdout(b"\nOverwrite? (y/N) ");
    let sign = watcher
        .signal_after_silence(Duration::from_secs(999))
        .unwrap();
    assert_eq!(
        sign.to_string(),
        "it is waiting for interactive input: Overwrite? (y/N)"
    );
}

#[test]
fn every_final_answer_is_evaluated_as_its_sample_states() {
    for answer in samples().r#final {
        let sign = detect_question_answer(&answer.text);
        assert_eq!(sign.is_some(), answer.asks, "{:?}", answer.text);
    }
    let sign = detect_question_answer("It would drop a table. Should I go on?").unwrap();
    assert_eq!(sign.repeated, "Should I go on?");
}

#[test]
fn disabled_detection_reports_nothing() {
    let mut watcher = LoopDetector::new(&AgentLoopLimits::off(), None);
    let text = "I will read the file once more, then I will know.\n".repeat(999);
    watcher.push_stdout(text.as_bytes());
    watcher.push_stdout(b"Overwrite? (y/N) ");
    assert_eq!(watcher.signal(), None);
    assert_eq!(watcher.signal_after_silence(Duration::from_secs(999)), None);
}

#[test]
fn signal_is_a_certain_diagnosis_and_the_next_prompt_names_the_repetition() {
    let text = "I will read the file once more, then I will know.\n".repeat(99);
    let sign = watched("", &text).unwrap();
    let diagnosis = sign.diagnosis();
    assert_eq!(
        (diagnosis.kind, diagnosis.confidence),
        (FailureKind::Stuck, 1.0)
    );
    assert_eq!(diagnosis.level, Some(RecoveryLevel::Alternative));
    assert_eq!(diagnosis.evidence.rule, "stuck.repeating_output");
    assert!(diagnosis.evidence.line.contains("I will read the file"));
    assert_eq!(
        diagnosis.message,
        format!("Stuck in a loop: {}", diagnosis.evidence.line)
    );
    let more = LoopSignal {
        times: 77,
        ..sign.clone()
    };
    assert_eq!(more.diagnosis().fingerprint, diagnosis.fingerprint);
    let other = LoopSignal {
        repeated: "something else".to_owned(),
        ..sign
    };
    assert_ne!(other.diagnosis().fingerprint, diagnosis.fingerprint);

    let context = PromptNoteVars::from_failure(&Failure::agent("claude"), &diagnosis);
    let prompts = PromptNoteTemplates::load_embedded().unwrap();
    let limits = PromptNoteLimits::default();
    let prompt = prompts
        .apply("Task", "approach", &context, &limits)
        .unwrap();
    assert!(
        prompt.contains("I will read the file once more"),
        "{prompt}"
    );
    assert!(prompt.contains(&diagnosis.hint), "{prompt}");
}

#[test]
fn signals_round_trip() {
    let sign = watched("", &"Let me have another look at the file.\n".repeat(99)).unwrap();
    let written = serde_json::to_value(&sign).unwrap();
    assert_eq!(written["kind"], "repeating_output");
    assert_eq!(serde_json::from_value::<LoopSignal>(written).unwrap(), sign);
}
