//! Every writing command, killed at any moment: the store stays sound, acknowledged data is kept, and the next command
//! works.

use std::process::{Child, Stdio};
use std::time::Duration;

use unstuck_core::decision::SeededRng;

use crate::Place;

/// A writing command, the line that acknowledges its write, and how to verify the write afterwards.
struct Writing {
    args: &'static [&'static str],
    /// True if it needs an open request.
    needs_request: bool,
    /// After success, this command's output must contain, or must not contain, a text.
    kept: Option<(&'static [&'static str], &'static str, bool)>,
}

const fn writing(args: &'static [&'static str]) -> Writing {
    Writing {
        args,
        needs_request: false,
        kept: None,
    }
}

const fn answering(args: &'static [&'static str]) -> Writing {
    Writing {
        args,
        needs_request: true,
        kept: Some((&["inbox", "--json"], "\"id\"", false)),
    }
}

const COMMANDS: [Writing; 15] = [
    writing(&["exec", "--", "sh", "-c", "exit 0"]),
    writing(&["exec", "--", "claude", "-p", "x"]),
    writing(&["run", "--json"]),
    Writing {
        args: &["trust"],
        needs_request: false,
        kept: Some((&["trust", "--show", "--json"], "\"trusted\"", true)),
    },
    writing(&["token", "create", "--name", "one"]),
    writing(&["store", "prune", "--older-than", "0s"]),
    writing(&["store", "vacuum"]),
    writing(&["repair", "--", "sh", "-c", "exit 0"]),
    writing(&["preview", "touch made", "--apply"]),
    answering(&["abort", "--last"]),
    answering(&["skip", "--last"]),
    answering(&["reject", "--last"]),
    // The retried command fails again and opens a new request.
    Writing {
        args: &["resolve", "--last"],
        needs_request: true,
        kept: None,
    },
    Writing {
        args: &["retry", "--last", "--say", "once more"],
        needs_request: true,
        kept: None,
    },
    Writing {
        args: &["resume"],
        needs_request: true,
        kept: None,
    },
];

/// The number of rounds; two of each by default.
#[expect(
    clippy::disallowed_methods,
    reason = "how long to test is asked for by the environment"
)]
fn rounds() -> usize {
    let asked = std::env::var("UNSTUCK_KILLS").ok();
    let asked = asked.and_then(|asked| asked.parse().ok());
    asked.unwrap_or(2 * COMMANDS.len())
}

#[expect(
    clippy::disallowed_methods,
    reason = "the moment of the kill is the point of the test"
)]
fn pause() {
    std::thread::sleep(Duration::from_millis(2));
}

/// Kills the process after that time; returns the exit code if it ended before.
fn killed_after(child: &mut Child, time: Duration) -> Option<i32> {
    for _ in 0..time.as_millis() / 2 {
        if let Some(status) = child.try_wait().unwrap() {
            return status.code();
        }
        pause();
    }
    child.kill().unwrap();
    child.wait().unwrap();
    None
}

#[test]
fn kill_at_any_moment_of_any_command_loses_nothing() {
    let place = Place::new();
    place.write(
        "unstuck.toml",
        "[recovery]\nauto_approve = [\"true\"]\n[[role]]\nid = \"one\"\nagent = \"claude\"\nprompt = \"x\"\n",
    );
    place.tool(
        "claude",
        "#!/bin/sh\necho 'Invalid API key · Please run /login'; exit 1\n",
    );
    let mut dice = SeededRng::seeded(29);
    for round in 0..rounds() {
        let command = &COMMANDS[round % COMMANDS.len()];
        if command.needs_request {
            let asked = place.run(&["exec", "--", "claude", "-p", "x"], "");
            assert_eq!(asked.code, 3, "{}", asked.stderr);
        }
        let mut child = place
            .command(command.args)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let code = killed_after(&mut child, Duration::from_millis(dice.next_draw().0 % 250));
        let at = format!("round {round}: {:?} ended with {code:?}", command.args);
        let sound = place.run(&["store", "check"], "");
        assert_eq!(sound.code, 0, "{at}: {}{}", sound.stdout, sound.stderr);
        let runs = place.run(&["runs", "--json"], "");
        assert_eq!(runs.code, 0, "{at}: {}", runs.stderr);
        if let (Some(0), Some((look, text, is_there))) = (code, command.kept) {
            let seen = place.run(look, "").stdout;
            assert_eq!(seen.contains(text), is_there, "{at}: {seen}");
        }
        // Nothing blocks the next command.
        let all = place.run(&["abort", "--all", "--project", "."], "");
        assert!([0, 1].contains(&all.code), "{at}: {}", all.stderr);
        let open = place.run(&["inbox", "--json"], "");
        assert_eq!(open.stdout.trim(), "[]", "{at}: {}", all.stderr);
    }
}
