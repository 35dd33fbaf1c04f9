//! Outputs of working programs: none of them is a loop, however long.

use std::fmt::Write;

use unstuck_core::loop_detection::{AgentLoopLimits, LoopDetector, LoopKind, LoopSignal};

use super::what;

/// Returns the signal for this output of any program, on either stream.
fn watched_on_both(text: &str) -> Option<LoopSignal> {
    let mut watcher = LoopDetector::new(&AgentLoopLimits::default(), None);
    watcher.push_stdout(text.as_bytes());
    watcher.push_stderr(text.as_bytes());
    watcher.signal()
}

fn lines(count: usize, line: impl Fn(usize) -> String) -> String {
    let mut text = String::new();
    for n in 0..count {
        writeln!(text, "{}", line(n)).unwrap();
    }
    text
}

const NAMES: [&str; 7] = ["alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta"];

fn name(n: usize) -> String {
    format!("{}-{}", NAMES[n % 7], NAMES[n / 7 % 7])
}

#[test]
fn working_programs_are_not_loops() {
    let works: [(&str, String); 24] = [
        ("cargo build", lines(400, |n| format!("   Compiling {} v1.0.{n}", name(n)))),
        ("cargo test", lines(900, |n| format!("test {}::works_with_{n} ... ok", name(n)))),
        ("cargo test -q of many crates", "\nrunning 0 tests\n\ntest result: ok. 0 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s\n".repeat(90)),
        ("tap", lines(900, |n| format!("ok {n} - it is as it should be"))),
        ("pytest -v", lines(900, |n| format!("tests/test_a.py::test_the_same[{n}] PASSED  [ {}%]", n / 9))),
        ("a failing test for each input", lines(90, |n| format!("FAILED tests/test_a.py::test_total[{n}] - the sum is not what it should be"))),
        ("npm install", lines(300, |n| format!("npm warn deprecated {}@1.{n}.0: this package is no longer supported", name(n)))),
        ("npm spinner", "\u{1b}[1G\u{1b}[0K⠙\u{1b}[1G\u{1b}[0K⠹\u{1b}[1G\u{1b}[0K⠸".repeat(2000)),
        ("docker pull", lines(200, |n| format!("{:012x}: Pulling fs layer", n * 7919 + 11_259_375))),
        ("docker build", lines(300, |n| format!("#{n} {}.{n} Get:{n} http://deb.example.org/debian bookworm/main amd64 {}", n / 3, name(n)))),
        ("progress bar", lines(300, |n| format!("\r[{}>{}] {}% of the files are copied", "=".repeat(n / 10), " ".repeat(30 - n / 10), n / 3)).replace('\n', "")),
        ("progress lines", lines(300, |n| format!("Epoch {}/300, the loss is going down", n + 1))),
        ("webpack watch", "asset main.js 1.22 MiB [emitted] (name: main)\nruntime modules 27.5 KiB 13 modules\nwebpack 5.88.2 compiled successfully in 312 ms\n".repeat(90)),
        ("polling", lines(300, |n| format!("waiting for the server to answer on port 3000 ({n}s)"))),
        ("JSON dump", "  {\n    \"status\": \"there is nothing new\",\n    \"value\": 0\n  },\n".repeat(900)),
        ("JSON lines", "{\"level\":30,\"msg\":\"the same request came in once more from somewhere\"}\n".repeat(900)),
        ("log of different lines", lines(10_000, |n| format!("job {n} was taken by the worker {}", name(n)))),
        ("CSV", lines(900, |n| format!("{n},{},open,EUR,2026-11-15", name(n)))),
        ("CSV of equal rows", "2026-11-15,the customer has paid the bill,EUR,10.00\n".repeat(900)),
        ("table", lines(200, |_| "+------+------+\n| some | text |".to_owned())),
        ("diff", lines(300, |_| "-    this is a comment that was in every file\n+    this is another comment in every file".to_owned())),
        ("base64", format!("{}\n", "QUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFB".repeat(2000))),
        ("stack overflow", format!("Exception in thread \"main\" java.lang.StackOverflowError\n{}", "\tat com.example.Tree.walk(Tree.java:12)\n\tat com.example.Tree.visit(Tree.java:31)\n".repeat(512))),
        ("source code", "    if value is None:\n        return the default value of this\n".repeat(20)),
    ];
    for (work, text) in works {
        assert_eq!(watched_on_both(&text), None, "{work}");
    }
}

#[test]
fn repeated_sentence_is_a_loop_even_without_line_ends() {
    let sentence = "I think I should look at the file again before I change anything. ";
    assert_eq!(
        what("", &sentence.repeat(200)),
        Some(LoopKind::RepeatingOutput)
    );
    let words = "then I will go on and then I will stop and ";
    assert_eq!(
        what("", &words.repeat(2000)),
        Some(LoopKind::RepeatingOutput)
    );
}

#[test]
fn short_blocks_need_more_repeats_than_long_ones() {
    let stuck_after =
        |block: &str| (1_usize..200).find(|times| what("", &block.repeat(*times)).is_some());
    let paragraph = "Let me look at the error message first, because it tells what is wrong with the module.\nIt says that the module cannot be found, so I have to add it to the list of the modules that are loaded.\nThen I run the tests again.\n";
    assert_eq!(stuck_after(paragraph), Some(8));
    assert_eq!(stuck_after("Let me try that again now.\n"), Some(62));
}

#[test]
fn blocks_of_up_to_forty_lines_are_detected() {
    let block = |count| {
        lines(count, |n| {
            format!("{} is not what I looked for, so I go on", name(n))
        })
    };
    assert_eq!(
        what("", &block(40).repeat(9)),
        Some(LoopKind::RepeatingOutput)
    );
    assert_eq!(what("", &block(41).repeat(20)), None);
}

#[test]
fn colors_times_and_spinners_do_not_hide_a_repetition() {
    let text = lines(90, |n| {
        format!(
            "\u{1b}[{}m[10:{:02}:{:02}]\u{1b}[0m Error: the module cannot be found after {n}.5s",
            31 + n % 3,
            n / 60,
            n % 60
        )
    });
    assert_eq!(what("", &text), Some(LoopKind::RepeatingOutput));
}

#[test]
fn streams_are_evaluated_separately() {
    let mut watcher = LoopDetector::new(&AgentLoopLimits::default(), None);
    for n in 0..200 {
        watcher.push_stdout(b"I will have a look at the file again.\n");
        watcher.push_stderr(format!("{n}\n").as_bytes());
    }
    assert!(watcher.signal().is_some());
}
