//! Invariants for any output.

use proptest::prelude::*;
use unstuck_core::agent::Agents;
use unstuck_core::loop_detection::{
    AgentLoopLimits, LoopDetector, LoopSignal, detect_question_answer,
};

use std::time::Duration;

/// Returns the signals for this output, written in pieces of these sizes.
fn watched(agent: &str, bytes: &[u8], sizes: &[usize]) -> (Option<LoopSignal>, Option<LoopSignal>) {
    let mut watcher = LoopDetector::new(&AgentLoopLimits::default(), Agents::built_in().get(agent));
    let mut rest = bytes;
    for size in sizes.iter().cycle() {
        let (piece, after) = rest.split_at((*size).min(rest.len()));
        watcher.push_stdout(piece);
        rest = after;
        if rest.is_empty() {
            break;
        }
    }
    let silent = watcher.signal_after_silence(Duration::from_secs(3600));
    (watcher.signal(), silent)
}

/// Generates output that may or may not be repeated, as text or as a stream of an agent.
fn any_output() -> impl Strategy<Value = Vec<u8>> {
    let block = prop_oneof![
        "[a-z \n]{0,400}",
        "(I will (read|write) the [a-z]{1,9} again\\.[ \n]){1,3}",
        Just("{\"type\":\"item.completed\",\"item\":{\"type\":\"command_execution\",\"command\":\"make\",\"aggregated_output\":\"no rule\",\"exit_code\":2}}\n".to_owned()),
        Just("Overwrite? (y/N) ".to_owned()),
        "[0-9:.ms \r\u{1b}\\[⠋é]{0,60}\n",
    ];
    let part = (block, 1_usize..30).prop_map(|(block, times)| block.repeat(times).into_bytes());
    prop::collection::vec(part, 1..5).prop_map(|parts| parts.concat())
}

proptest! {
    #[test]
    fn chunking_of_the_output_makes_no_difference(
        output in any_output(),
        sizes in prop::collection::vec(1_usize..700, 1..6),
    ) {
        for agent in ["", "codex"] {
            let whole = watched(agent, &output, &[usize::MAX]);
            prop_assert_eq!(watched(agent, &output, &sizes), whole);
        }
    }

    #[test]
    fn random_text_is_never_a_loop(text in "([a-z]{2,9} ){3,9}\n(([a-z]{2,9}|[0-9]{1,5}) ?){200,900}") {
        for agent in ["", "claude"] {
            prop_assert_eq!(watched(agent, text.as_bytes(), &[usize::MAX]).0, None);
        }
    }

    #[test]
    fn any_bytes_are_accepted(bytes in prop::collection::vec(any::<u8>(), 0..3000), sizes in prop::collection::vec(1_usize..99, 1..4)) {
        for agent in ["", "claude", "goose"] {
            let whole = watched(agent, &bytes, &[usize::MAX]);
            prop_assert_eq!(watched(agent, &bytes, &sizes), whole);
        }
        detect_question_answer(&String::from_utf8_lossy(&bytes));
    }

    #[test]
    fn signal_is_short_and_on_one_line(block in "([A-Za-z]{2,9} ){4,60}\n", lines in 1_usize..4) {
        let text = block.repeat(lines * 200);
        if let Some(sign) = watched("", text.as_bytes(), &[usize::MAX]).0 {
            prop_assert!(sign.repeated.chars().count() <= 161 && !sign.to_string().contains('\n'));
            prop_assert!(sign.diagnosis().evidence.line.chars().count() <= 400);
        }
    }
}

#[test]
fn first_signal_stays() {
    let first = "I will have a look at the file again.\n".repeat(200);
    let mut watcher = LoopDetector::new(&AgentLoopLimits::default(), None);
    watcher.push_stdout(first.as_bytes());
    let sign = watcher.signal();
    watcher.push_stdout(
        "Something else is said here now, for ever.\n"
            .repeat(200)
            .as_bytes(),
    );
    assert!(sign.is_some() && watcher.signal() == sign);
}
