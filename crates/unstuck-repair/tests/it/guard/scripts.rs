//! Commands run without a shell behave as in a shell.

#![expect(
    clippy::disallowed_methods,
    reason = "here real processes are the point"
)]

use std::process::Command;

use proptest::collection::vec;
use proptest::prelude::*;
use unstuck_core::command_policy::DirectOrShell;

fn output(mut command: Command) -> String {
    let output = command.output().unwrap();
    String::from_utf8(output.stdout).unwrap()
}

fn by_shell(text: &str) -> String {
    let mut command = Command::new("/bin/sh");
    command.args(["-c", text]);
    output(command)
}

fn by_words(commands: &[Vec<String>]) -> String {
    let each = commands.iter().map(|words| {
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]);
        output(command)
    });
    each.collect()
}

fn word() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => "[A-Za-z0-9_./:@%+=,-]{1,6}",
        2 => "'[ -&(-~]{0,6}'",
        2 => "\"[ -&(-~]{0,6}\"",
        1 => "[ -~]{1,6}",
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, failure_persistence: None, ..ProptestConfig::default() })]

    /// S3-47: a command accepted as plain is split word for word as `/bin/sh` would.
    #[test]
    fn plain_commands_are_split_like_in_a_shell(lines in vec(vec(word(), 0..5), 1..3)) {
        let lines = lines.iter().map(|words| format!("/usr/bin/printf '%s\\n' {}", words.join(" ")));
        let text = lines.collect::<Vec<_>>().join(" && ");
        if let DirectOrShell::Direct(commands) = DirectOrShell::for_text(text.trim_end()) {
            prop_assert_eq!(by_words(&commands), by_shell(text.trim_end()));
        }
    }
}
