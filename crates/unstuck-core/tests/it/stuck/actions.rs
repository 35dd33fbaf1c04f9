//! Loop detection on the events in each agent's stream.

use std::fmt::Write;

use serde_json::{Value, json};
use unstuck_core::loop_detection::{AgentLoopLimits, LoopDetector, LoopKind};

use super::{watched, what};

/// One shell call and its result, as encoded in each agent's stream.
struct Step<'a> {
    command: &'a str,
    output: &'a str,
    failed: bool,
}

const AGENTS: [&str; 5] = ["claude", "codex", "gemini", "goose", "opencode"];

/// Returns the records of the n-th step.
fn records(agent: &str, n: usize, step: &Step<'_>) -> Vec<Value> {
    let Step {
        command,
        output,
        failed,
    } = *step;
    let id = format!("call_{n}_abc");
    match agent {
        "claude" => vec![
            json!({"type": "assistant", "session_id": "11-22", "message": {"role": "assistant", "content": [
                {"type": "tool_use", "id": id, "name": "Bash", "input": {"command": command, "description": format!("Try no. {n}")}}]}}),
            json!({"type": "user", "session_id": "11-22", "message": {"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": id, "content": output, "is_error": failed}]}}),
        ],
        "codex" => vec![
            json!({"type": "item.started", "item": {"id": id, "type": "command_execution", "command": command}}),
            json!({"type": "item.completed", "item": {"id": id, "type": "command_execution", "command": command,
                "aggregated_output": output, "exit_code": i32::from(failed), "status": if failed { "failed" } else { "completed" }}}),
        ],
        "gemini" => vec![
            json!({"type": "tool_use", "timestamp": "2026-11-15T10:00:00Z", "tool_name": "run_shell_command", "tool_id": id,
                "parameters": {"command": command}}),
            json!({"type": "tool_result", "tool_id": id, "status": if failed { "error" } else { "success" },
                "output": output, "error": failed.then(|| json!({"type": "exec", "message": output}))}),
        ],
        "goose" => vec![
            json!({"type": "message", "message": {"role": "assistant", "content": [
                {"type": "toolRequest", "id": id, "toolCall": {"status": "success", "value": {"name": "developer__shell", "arguments": {"command": command}}}}]}}),
            json!({"type": "message", "message": {"role": "user", "content": [
                {"type": "toolResponse", "id": id, "toolResult": {"status": "success", "value": {"content": [{"type": "text", "text": output}], "isError": failed}}}]}}),
        ],
        _ => vec![
            json!({"type": "tool_use", "timestamp": 1_791_184_019_332_u64 + n as u64, "sessionID": "ses_1", "part": {
            "type": "tool", "tool": "bash", "callID": id, "state": {"status": "completed", "input": {"command": command},
            "output": output, "metadata": {"exit": i32::from(failed)}}}}),
        ],
    }
}

/// Returns a message as encoded in each agent's stream.
fn message(agent: &str, text: &str) -> Vec<Value> {
    let turn = json!({"type": "other"});
    match agent {
        "claude" => vec![
            json!({"type": "assistant", "message": {"role": "assistant", "content": [{"type": "text", "text": text}]}}),
        ],
        "codex" => vec![
            json!({"type": "item.completed", "item": {"id": "i", "type": "agent_message", "text": text}}),
        ],
        "opencode" => vec![
            json!({"type": "text", "sessionID": "ses_1", "part": {"text": text}}),
            turn,
        ],
        "gemini" => {
            let (one, other) = text.split_at(text.floor_char_boundary(text.len() / 2));
            let piece = |text| json!({"type": "message", "role": "assistant", "content": text, "delta": true});
            vec![piece(one), piece(other)]
        }
        _ => {
            let (one, other) = text.split_at(text.floor_char_boundary(text.len() / 2));
            let piece = |text| json!({"type": "message", "message": {"role": "assistant", "content": [{"type": "text", "text": text}]}});
            vec![piece(one), piece(other)]
        }
    }
}

fn stream(records: impl IntoIterator<Item = Vec<Value>>) -> String {
    let mut text = String::new();
    for record in records.into_iter().flatten() {
        writeln!(text, "{record}").unwrap();
    }
    text
}

/// Returns a stream of this many steps.
fn steps<'a>(agent: &str, count: usize, step: impl Fn(usize) -> Step<'a>) -> String {
    stream((0..count).map(|n| records(agent, n, &step(n))))
}

fn failing(command: &str) -> Step<'_> {
    Step {
        command,
        output: "npm error Missing script: \"lint\"",
        failed: true,
    }
}

fn fine<'a>(command: &'a str, output: &'a str) -> Step<'a> {
    Step {
        command,
        output,
        failed: false,
    }
}

#[test]
fn same_failing_call_five_times_is_a_loop_for_every_agent() {
    for agent in AGENTS {
        let text = steps(agent, 5, |_| failing("npm run lint"));
        let sign = watched(agent, &text).unwrap();
        assert_eq!(
            (sign.kind, sign.times, &*sign.repeated),
            (LoopKind::RepeatingAction, 5, "npm run lint"),
            "{agent}"
        );
        assert!(
            sign.to_string().starts_with(
                "it ran `npm run lint` 5 times in this attempt and got the same error each time: npm error Missing script"
            ),
            "{sign}"
        );
        let text = steps(agent, 4, |_| failing("npm run lint"));
        assert_eq!(watched(agent, &text), None, "{agent}");
    }
}

#[test]
fn changed_times_and_reasons_do_not_make_another_call() {
    let output = |n| {
        format!(
            "Exit code 1\nerror: cannot find the module, after {}.{n}s",
            n + 1
        )
    };
    let outputs: Vec<String> = (0..5).map(output).collect();
    for agent in AGENTS {
        let text = steps(agent, 5, |n| Step {
            command: "node app.js",
            output: &outputs[n],
            failed: true,
        });
        assert_eq!(
            what(agent, &text),
            Some(LoopKind::RepeatingAction),
            "{agent}"
        );
    }
}

#[test]
fn test_with_fewer_errors_each_time_is_work() {
    let outputs: Vec<String> = (0..30)
        .map(|n| format!("{} tests failed", 30 - n))
        .collect();
    for agent in AGENTS {
        let text = steps(agent, 30, |n| Step {
            command: "npm test",
            output: &outputs[n],
            failed: true,
        });
        assert_eq!(watched(agent, &text), None, "{agent}");
    }
}

#[test]
fn same_error_with_changes_in_between_may_occur_twice_as_often() {
    let edits: Vec<String> = (0..40)
        .map(|n| format!("sed -i s/a/{n}/ src/x.rs"))
        .collect();
    for agent in AGENTS {
        let step = |n: usize| match n % 2 {
            0 => failing("npm run lint"),
            _ => fine(&edits[n], ""),
        };
        assert_eq!(watched(agent, &steps(agent, 18, step)), None, "{agent}");
        let sign = watched(agent, &steps(agent, 20, step)).unwrap();
        assert_eq!((sign.kind, sign.times), (LoopKind::RepeatingAction, 10));
    }
}

#[test]
fn different_calls_with_the_same_error_are_a_loop() {
    let commands: Vec<String> = (0..10).map(|n| format!("cat src/part{n}.rs")).collect();
    let outputs: Vec<String> = (0..10)
        .map(|n| format!("cat: src/part{n}.rs: Permission denied"))
        .collect();
    for agent in AGENTS {
        let step = |n: usize| Step {
            command: &commands[n],
            output: &outputs[n],
            failed: true,
        };
        assert_eq!(
            what(agent, &steps(agent, 10, step)),
            Some(LoopKind::RepeatingError),
            "{agent}"
        );
        assert_eq!(watched(agent, &steps(agent, 9, step)), None, "{agent}");
    }
}

#[test]
fn searching_for_something_missing_is_work() {
    let commands: Vec<String> = (0..60).map(|n| format!("grep -r word{n} src")).collect();
    for agent in AGENTS {
        let text = steps(agent, 60, |n| Step {
            command: &commands[n],
            output: "",
            failed: true,
        });
        assert_eq!(watched(agent, &text), None, "{agent}");
    }
}

#[test]
fn repeated_reading_is_a_loop_unless_something_else_is_done() {
    let edits: Vec<String> = (0..60)
        .map(|n| format!("sed -i s/a/{n}/ src/x.rs"))
        .collect();
    for agent in AGENTS {
        let reading = steps(agent, 10, |_| fine("cat src/x.rs", "fn main() {}"));
        let sign = watched(agent, &reading).unwrap();
        assert_eq!(
            (sign.kind, sign.times),
            (LoopKind::RepeatingResult, 10),
            "{agent}"
        );
        let working = steps(agent, 60, |n| match n % 2 {
            0 => fine("git diff --stat", "1 file"),
            _ => fine(&edits[n], ""),
        });
        assert_eq!(watched(agent, &working), None, "{agent}");
    }
}

#[test]
fn waiting_for_something_is_work() {
    for agent in AGENTS {
        for step in [
            fine("sleep 30 && gh run view 12", "completed: no"),
            fine("curl -s localhost:3000/health", "no"),
            fine("cat build.log", "the build is still running"),
            fine("kubectl get pods", "web 0/1 ContainerCreating"),
        ] {
            let again = |_| Step { ..step };
            assert_eq!(
                watched(agent, &steps(agent, 60, again)),
                None,
                "{agent} {}",
                step.command
            );
        }
    }
}

#[test]
fn words_about_waiting_in_content_are_not_waiting() {
    let content = "fn loading() { running(); waiting() }\n".repeat(50);
    for agent in AGENTS {
        for (command, output) in [
            ("cat src/status.rs", content.as_str()),
            ("git status", "clean"),
        ] {
            let text = steps(agent, 10, |_| fine(command, output));
            assert_eq!(
                what(agent, &text),
                Some(LoopKind::RepeatingResult),
                "{agent} {command}"
            );
        }
        let text = steps(agent, 5, |_| failing("sed -n /status/p ready.txt"));
        assert_eq!(
            what(agent, &text),
            Some(LoopKind::RepeatingAction),
            "{agent}"
        );
    }
}

#[test]
fn ordinary_work_of_many_steps_is_work() {
    let commands: Vec<String> = (0..300)
        .map(|n| match n % 3 {
            0 => format!("cat src/part{}.rs", n / 9),
            1 => format!("sed -i s/a/b{n}/ src/part{}.rs", n / 9),
            _ => "cargo test".to_owned(),
        })
        .collect();
    let outputs: Vec<String> = (0..300)
        .map(|n| format!("{} of 300 passed", n / 2))
        .collect();
    for agent in AGENTS {
        let text = steps(agent, 300, |n| Step {
            command: &commands[n],
            output: &outputs[n],
            failed: n % 6 == 2,
        });
        assert_eq!(watched(agent, &text), None, "{agent}");
    }
}

#[test]
fn same_message_four_times_without_new_actions_is_a_loop() {
    let text = "Now I will write the file.";
    for agent in AGENTS {
        // A message that arrives in pieces ends when something else arrives.
        let turn = |n: usize| {
            let mut turn = message(agent, text);
            turn.extend(records(agent, n, &fine("ls", "a")));
            turn
        };
        let sign = watched(agent, &stream((0..5).map(turn))).unwrap();
        assert_eq!(
            (sign.kind, sign.times),
            (LoopKind::RepeatingMessage, 4),
            "{agent}"
        );
        assert_eq!(watched(agent, &stream((0..3).map(turn))), None, "{agent}");
    }
}

#[test]
fn same_message_before_a_new_action_each_time_is_work() {
    let commands: Vec<String> = (0..40).map(|n| format!("sed -i s/a/{n}/ x")).collect();
    for agent in AGENTS {
        let turn = |n: usize| {
            let mut turn = message(agent, "Let me go on with the next one.");
            turn.extend(records(agent, n, &fine(&commands[n], "")));
            turn
        };
        assert_eq!(watched(agent, &stream((0..40).map(turn))), None, "{agent}");
    }
}

#[test]
fn endlessly_repeating_message_is_a_loop() {
    let text = "I will fix the import now. Then I will run all of the tests again.\n".repeat(60);
    for agent in AGENTS {
        let said = stream([message(agent, &text)]);
        assert_eq!(
            what(agent, &said),
            Some(LoopKind::RepeatingOutput),
            "{agent}"
        );
    }
}

#[test]
fn empty_turns_and_failed_requests_are_counted() {
    let empty = json!({"type": "step_finish", "sessionID": "ses_1", "part": {"reason": "unknown"}});
    let sign = watched("opencode", &stream(vec![vec![empty]; 5])).unwrap();
    assert_eq!(sign.repeated, "model request");
    let overflow = json!({"type": "error", "error": {"name": "ContextOverflowError",
        "data": {"message": "the input is too long for the model"}}});
    let sign = watched("opencode", &stream(vec![vec![overflow]; 5])).unwrap();
    assert_eq!(sign.result, "the input is too long for the model");
}

#[test]
fn limits_can_be_lowered_and_raised() {
    let text = steps("codex", 9, |_| failing("make"));
    let codex = unstuck_core::agent::Agents::built_in().get("codex");
    for (repeats, stuck) in [(3, true), (9, true), (10, false)] {
        let limits = AgentLoopLimits {
            repeats,
            ..AgentLoopLimits::default()
        };
        let mut watcher = LoopDetector::new(&limits, codex);
        watcher.push_stdout(text.as_bytes());
        assert_eq!(watcher.signal().is_some(), stuck, "{repeats}");
    }
}

#[test]
fn json_of_a_non_agent_program_is_ordinary_text() {
    let text = steps("claude", 50, |_| failing("npm run lint"));
    assert_eq!(watched("", &text), None);
    assert_eq!(watched("aider", &text), None);
}
