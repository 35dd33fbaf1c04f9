//! The recorded command-line contract: the help of every command, and exit codes.

use std::fmt::Write as _;

use unstuck_testkit::golden::assert_golden;

use crate::Place;

/// Returns the names of the commands that a help text lists.
fn listed(help: &str) -> Vec<String> {
    let lines = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    let lines = lines.take_while(|line| !line.is_empty());
    // Continuation lines of long descriptions are indented further.
    let names = lines.filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    let names = names.filter_map(|line| line.split_whitespace().next());
    names
        .filter(|name| *name != "help")
        .map(str::to_owned)
        .collect()
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
        "a person is needed",
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
    (&["status"], "nothing needs a person"),
    (&["inbox", "--json"], "no question is open"),
    (&["approve", "nosuchrun"], "no such question"),
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
