//! The recorded command-line contract: the help of every command, and exit codes.

use std::fmt::Write as _;

use unstuck_testkit::golden::assert_golden;

use crate::Place;

/// Headings of a help text that are not followed by commands.
const NO_COMMANDS: [&str; 5] = ["Arguments:", "Options:", "Examples:", "Example:", "Layers:"];

/// Returns the names of the commands that a help text lists: below `Commands:`, or in groups.
fn listed(help: &str) -> Vec<String> {
    let is_top = help.contains("\nRun:\n");
    let is_heading = |line: &str| {
        let is_group = is_top && !NO_COMMANDS.contains(&line);
        line == "Commands:" || is_group && line.ends_with(':') && !line.starts_with(' ')
    };
    let mut names = Vec::new();
    let mut is_listing = false;
    for line in help.lines() {
        if is_heading(line) {
            is_listing = true;
        } else if line.is_empty() {
            is_listing = false;
        } else if is_listing && line.starts_with("  ") && !line.starts_with("   ") {
            // Continuation lines of long descriptions are indented further.
            names.extend(line.split_whitespace().next().map(str::to_owned));
        }
    }
    names.retain(|name| name != "help");
    names
}

fn help_of(place: &Place, path: &[String], made: &mut String) {
    let mut words: Vec<_> = path.iter().map(String::as_str).collect();
    words.push("--help");
    let output = place.command(&words).env("COLUMNS", "100").output();
    let help = String::from_utf8(output.unwrap().stdout).unwrap();
    let _ = writeln!(made, "$ unstuck {}\n{help}", words.join(" "));
    for name in listed(&help) {
        help_of(place, &[path, &[name]].concat(), made);
    }
}

#[test]
fn help_of_every_command_matches_the_recorded_one() {
    let mut made = String::new();
    help_of(&Place::new(), &[], &mut made);
    // Deprecated aliases are not listed.
    for hidden in ["approve-recovery", "reject-recovery", "resolve-recovery"] {
        help_of(&Place::new(), &[hidden.to_owned()], &mut made);
    }
    assert!(made.lines().filter(|line| line.starts_with("$ ")).count() > 40);
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/help.txt");
    assert_golden(path.as_ref(), &made);
}

/// A command line and its situation.
const ENDS: [(&[&str], &str); 20] = [
    (&["exec", "--", "true"], "the command succeeds"),
    (
        &["exec", "--policy", "off", "--", "sh", "-c", "exit 7"],
        "the command fails, policy off",
    ),
    (
        &["exec", "--policy", "off", "--", "sh", "-c", "kill -9 $$"],
        "a signal ends it, policy off",
    ),
    (
        &["exec", "--policy", "off", "--", "no-such-program"],
        "not found, policy off",
    ),
    (
        &[
            "exec",
            "--policy",
            "off",
            "--timeout",
            "1s",
            "--",
            "sleep",
            "20",
        ],
        "timed out, policy off",
    ),
    (
        &["exec", "--", "sh", "-c", "echo 'Not logged in'; exit 7"],
        "needs your input",
    ),
    (&["exec"], "no command"),
    (
        &["exec", "--no-such-option", "--", "true"],
        "unknown option",
    ),
    (&["run"], "no configuration with roles"),
    (&["resume"], "nothing to resume"),
    (&["resume", "nosuchrun"], "no such run"),
    (&["show", "nosuchrun"], "no such run"),
    (&["runs"], "no history"),
    (&["status"], "nothing needs your input"),
    (&["inbox", "--json"], "no open requests"),
    (&["approve", "nosuchrun"], "request not found"),
    (&["kinds", "rate_limt"], "no such kind"),
    (&["policy", "show", "nosuchpolicy"], "no such policy"),
    (
        &["--config", "/nowhere.toml", "runs"],
        "no such configuration",
    ),
    (&["no-such-command"], "no such command"),
];

#[test]
fn exit_codes_match_the_recorded_ones() {
    let mut made = String::new();
    for (words, situation) in ENDS {
        let code = Place::new().run(words, "").code;
        let _ = writeln!(
            made,
            "{code:>3}  unstuck {}  # {situation}",
            words.join(" ")
        );
    }
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/exit-codes.txt");
    assert_golden(path.as_ref(), &made);
}
