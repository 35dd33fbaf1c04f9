//! Agents that go round in circles are seen, and work that only looks like it is not stopped.

mod actions;
mod laws;
mod outputs;

use std::time::Duration;

use serde::Deserialize;
use unstuck_core::action::{PromptContext, PromptLimits, Prompts};
use unstuck_core::agent::Agents;
use unstuck_core::stuck::{StuckLimits, StuckSign, StuckWhat, Watcher, asks_back};
use unstuck_core::{Failure, Kind, Level};

const FILE: &str = include_str!("../../data/stuck.toml");

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

/// What is seen when an agent, or any other program, writes this.
fn watched(agent: &str, stdout: &str) -> Option<StuckSign> {
    let mut watcher = Watcher::new(&StuckLimits::default(), Agents::built_in().get(agent));
    watcher.stdout(stdout.as_bytes());
    watcher.verdict()
}

fn what(agent: &str, stdout: &str) -> Option<StuckWhat> {
    watched(agent, stdout).map(|sign| sign.what)
}

#[test]
fn every_sample_of_repeated_lines_is_judged_as_it_says() {
    let samples = samples().repeated;
    for sample in &samples {
        let text = format!("{}\n", sample.lines.trim_matches('\n')).repeat(500);
        assert_eq!(what("", &text).is_some(), sample.stuck, "{}", sample.lines);
    }
    let fine = samples.iter().filter(|sample| !sample.stuck).count();
    assert!(fine >= samples.len() - fine);
}

#[test]
fn every_screen_is_judged_as_its_sample_says() {
    let minute = Duration::from_secs(60);
    for screen in samples().screen {
        for on_stderr in [false, true] {
            let mut watcher = Watcher::new(&StuckLimits::default(), None);
            match on_stderr {
                true => watcher.stderr(screen.text.as_bytes()),
                false => watcher.stdout(screen.text.as_bytes()),
            }
            let sign = watcher.silent(minute);
            assert_eq!(sign.is_some(), screen.waits, "{:?}", screen.text);
            assert_eq!(watcher.silent(minute - Duration::from_secs(1)), None);
            assert_eq!(watcher.verdict(), None);
        }
    }
}

#[test]
fn what_was_written_last_counts_whichever_stream_it_was() {
    let mut watcher = Watcher::new(&StuckLimits::default(), None);
    watcher.stdout(b"Overwrite? (y/N) ");
    watcher.stderr(b"overwritten\n");
    assert_eq!(watcher.silent(Duration::from_secs(999)), None);
    watcher.stdout(b"\nOverwrite? (y/N) ");
    let sign = watcher.silent(Duration::from_secs(999)).unwrap();
    assert_eq!(
        sign.to_string(),
        "it waits for an answer that nobody will give: Overwrite? (y/N)"
    );
}

#[test]
fn every_final_answer_is_judged_as_its_sample_says() {
    for answer in samples().r#final {
        let sign = asks_back(&answer.text);
        assert_eq!(sign.is_some(), answer.asks, "{:?}", answer.text);
    }
    let sign = asks_back("It would drop a table. Should I go on?").unwrap();
    assert_eq!(sign.repeated, "Should I go on?");
}

#[test]
fn who_is_not_to_be_watched_is_not() {
    let mut watcher = Watcher::new(&StuckLimits::off(), None);
    let text = "I will read the file once more, then I will know.\n".repeat(999);
    watcher.stdout(text.as_bytes());
    watcher.stdout(b"Overwrite? (y/N) ");
    assert_eq!(watcher.verdict(), None);
    assert_eq!(watcher.silent(Duration::from_secs(999)), None);
}

#[test]
fn a_sign_is_a_certain_diagnosis_and_the_next_prompt_names_what_was_repeated() {
    let text = "I will read the file once more, then I will know.\n".repeat(99);
    let sign = watched("", &text).unwrap();
    let diagnosis = sign.diagnosis();
    assert_eq!((diagnosis.kind, diagnosis.confidence), (Kind::Stuck, 1.0));
    assert_eq!(diagnosis.level, Some(Level::Alternative));
    assert_eq!(diagnosis.evidence.rule, "stuck.repeating_output");
    assert!(diagnosis.evidence.line.contains("I will read the file"));
    assert_eq!(
        diagnosis.message,
        format!("Going round in circles: {}", diagnosis.evidence.line)
    );
    let more = StuckSign {
        times: 77,
        ..sign.clone()
    };
    assert_eq!(more.diagnosis().fingerprint, diagnosis.fingerprint);
    let other = StuckSign {
        repeated: "something else".to_owned(),
        ..sign
    };
    assert_ne!(other.diagnosis().fingerprint, diagnosis.fingerprint);

    let context = PromptContext::read(&Failure::agent("claude"), &diagnosis);
    let prompts = Prompts::builtin().unwrap();
    let limits = PromptLimits::default();
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
fn signs_are_written_and_read_back() {
    let sign = watched("", &"Let me have another look at the file.\n".repeat(99)).unwrap();
    let written = serde_json::to_value(&sign).unwrap();
    assert_eq!(written["what"], "repeating_output");
    assert_eq!(serde_json::from_value::<StuckSign>(written).unwrap(), sign);
}
