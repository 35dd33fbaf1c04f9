//! Attacks on displayed and stored data, with the real binary.

use std::process::Stdio;

use crate::gateway::{Serving, api};
use crate::output_snapshot::assert_output;
use crate::{Ended, Place, anywhere};

/// An API key that an upstream echoes in its error.
const KEY: &str = "sk-proj-ECHOEDSECRETabcdef0123456789";
const QUICK: &str =
    "[policy]\njitter = \"none\"\nbackoffBase = 0.01\nmaxBackoff = 0.02\nmaxRetries = 1\n";

/// An API that echoes a key in every error.
fn echoing() -> unstuck_faults::FaultServer {
    api(&format!(
        "[[step]]\nstatus = {{ code = 500, message = \"boom {KEY} is wrong\" }}\ntimes = \"always\"\n"
    ))
}

fn ended(command: &mut std::process::Command) -> Ended {
    let output = command.stdin(Stdio::null()).output().unwrap();
    Ended {
        code: output.status.code().unwrap_or(-1),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

/// M5: `serve` reports failed calls on its output, which a journal may store.
#[test]
fn key_echoed_by_an_upstream_is_not_in_the_output_of_serve() {
    let place = Place::new();
    place.write("unstuck.toml", QUICK);
    let api = echoing();
    let upstream = format!("anthropic={}", api.url());
    let serving = Serving::start(&place, &["--upstream", &upstream]);
    let answer = serving.ask(&place);
    assert_ne!(answer.code, 0);
    let (_, out, err) = serving.stop();
    assert_output!(place, err);
    assert!(!err.contains(KEY) && !out.contains(KEY), "{err}");
    assert!(!anywhere(&place.folder.path().join(".local"), KEY));
}

/// M5: `exec` and `run` report the same about their agents' calls through the private gateways.
#[test]
fn key_echoed_by_an_upstream_is_not_in_the_output_of_exec_and_run() {
    let place = Place::new();
    let unstuck = env!("CARGO_BIN_EXE_unstuck");
    let pipeline = "[[roles]]\nid = \"worker\"\nagent = \"claude\"\nprompt = \"do it\"\n";
    place.write("unstuck.toml", &format!("{QUICK}\n{pipeline}"));
    // The agent's own output is passed through, and is not tested here.
    place.tool(
        "claude",
        &format!(
            "#!/bin/sh\nFAULTS_API_URL=\"$ANTHROPIC_BASE_URL\" \"{unstuck}\" __demo-agent --output-format json -p x > /dev/null 2>&1; echo 'API Error: 500' >&2; exit 1\n"
        ),
    );
    let api = echoing();
    for args in [&["exec", "--", "claude", "-p", "x"][..], &["run"]] {
        let mut command = place.command(args);
        command
            .env("ANTHROPIC_BASE_URL", api.url())
            .env("ANTHROPIC_API_KEY", "agents-own-key-123");
        let told = ended(&mut command);
        // The agent's own line may come before or after those of the gateway.
        assert_output!(place, told.stderr.replace("API Error: 500\n", ""));
        assert!(!told.stderr.contains(KEY), "{}", told.stderr);
        assert!(!told.stdout.contains(KEY), "{}", told.stdout);
    }
    assert!(!anywhere(&place.folder.path().join(".local"), KEY));
}

/// M5: errors, hints and argument errors, as text and JSON.
#[test]
fn key_in_an_error_is_not_shown() {
    let place = Place::new();
    for args in [
        &["show", KEY][..],
        &["show", KEY, "--json"],
        &["exec", "--timeout", KEY, "--", "true"],
        &[
            "--store",
            &format!("/proc/{KEY}/x.db"),
            "exec",
            "--",
            "true",
        ],
        &["config", "check", &format!("{KEY}.toml")],
    ] {
        let told = place.run(args, "");
        let all = format!("{}{}", told.stdout, told.stderr);
        assert!(!all.contains(KEY), "{args:?}: {all}");
        assert!(all.contains("[redacted:openai_key]"), "{args:?}: {all}");
    }
}

/// The value of an owner's variable that only its name reveals as secret.
#[test]
fn value_of_a_secret_variable_is_not_shown() {
    let place = Place::new();
    let mut command = place.command(&["show", "correct-horse-battery-9"]);
    command.env("DEPLOY_TOKEN", "correct-horse-battery-9");
    let told = ended(&mut command);
    assert_output!(place, told.stderr);
    assert!(!told.stderr.contains("correct-horse"), "{}", told.stderr);
}

/// The wrapped command's output is passed through unchanged; only stored copies are redacted.
#[test]
fn output_of_the_wrapped_command_is_unchanged() {
    let place = Place::new();
    let vault = ["hvs.", "CAESIJ4kQabcdefghij0123456789ABCDEFGH"].concat();
    let line = format!("echo {vault}; echo {KEY} >&2");
    let told = place.run(&["exec", "--policy", "off", "--", "sh", "-c", &line], "");
    assert_eq!(told.stdout, format!("{vault}\n"));
    assert!(told.stderr.contains(KEY), "{}", told.stderr);
    let logs = place.run(&["logs"], "");
    assert_eq!(logs.stdout, "[redacted:vault_token]\n");
    assert!(
        logs.stderr.contains("[redacted:openai_key]"),
        "{}",
        logs.stderr
    );
    // The command line itself was given on purpose, and is redacted where it is stored.
    assert!(!anywhere(&place.folder.path().join(".local"), &vault));
    assert!(!anywhere(&place.project().join(".unstuck"), &vault));
}

/// L2: stored output must not control the reader's terminal.
#[test]
fn logs_on_a_terminal_contain_only_text_and_colors() {
    let place = Place::new();
    let attack = r"printf '\033]0;title\007\033]52;c;cm0gLXJm\033\\\033[2J\033[31mred\033[0m \033]8;;http://evil\033\\link\033]8;;\033\\ \302\2332K end\n'";
    let print = [attack, &format!("{attack} >&2")].join("; ");
    place.run(&["exec", "--policy", "off", "--", "sh", "-c", &print], "");
    let raw = place.run(&["logs"], "");
    assert!(raw.stdout.contains("\x1b]52;c;"), "a pipe gets every byte");
    let shown = |args: &[&str]| {
        let unstuck = env!("CARGO_BIN_EXE_unstuck");
        let line = format!("{unstuck} {}", args.join(" "));
        let mut command = place.program("script", &["-qec", &line, "/dev/null"]);
        ended(command.env("TERM", "xterm-256color")).stdout
    };
    let safe = shown(&["logs"]);
    for sequence in ["\x1b]", "\x1b[2J", "\u{9b}", "\x07", "title", "evil"] {
        assert!(!safe.contains(sequence), "{sequence:?} in {safe:?}");
    }
    assert_eq!(
        safe.matches("\x1b[31mred\x1b[0m link 2K end").count(),
        2,
        "{safe:?}"
    );
    let exact = shown(&["logs", "--raw"]);
    assert!(exact.contains("\x1b]52;c;"), "{exact:?}");
}

/// Returns the output of a command on a terminal, both streams.
fn on_a_terminal(place: &Place, args: &[&str]) -> String {
    let unstuck = env!("CARGO_BIN_EXE_unstuck");
    let line = format!("{unstuck} {}", args.join(" "));
    let mut command = place.program("script", &["-qec", &line, "/dev/null"]);
    let ended = ended(command.env("TERM", "xterm-256color"));
    format!("{}{}", ended.stdout, ended.stderr)
}

/// A title, the clipboard, a cleared screen, a link, a one-byte control character, a bell and a bidi mark.
const STEERS: &str = "\x1b]0;title\x07\x1b]52;c;cm0gLXJm\x1b\\\x1b[2J\x1b]8;;http://evil\x1b\\link\x1b]8;;\x1b\\\u{9b}2K\x07\u{202e}";

/// L2: asserts that a text contains no control sequences except styles.
#[track_caller]
fn steers_nothing(args: &[&str], shown: &str) {
    for sequence in ["\x1b]", "\x1b[2J", "\u{9b}", "\x07", "\u{202e}"] {
        assert!(
            !shown.contains(sequence),
            "{args:?}: {sequence:?} in {shown:?}"
        );
    }
}

/// L2: everything that displays a run sanitizes what an agent prints, proposes or is told.
#[test]
fn terminal_output_of_a_run_is_sanitized() {
    let place = Place::new();
    let document = serde_json::json!({
        "version": 1,
        "timestamp": "2026-11-16T05:36:33Z",
        "category": "dependency",
        "severity": "blocking",
        "diagnosis": {
            "error_pattern": format!("pattern{STEERS}"),
            "root_cause": format!("cause{STEERS}"),
            "evidence": [format!("evidence{STEERS}")],
        },
        "recovery": {
            "command": "touch healed; id",
            "expected_outcome": format!("outcome{STEERS}"),
            "confidence": "high",
        },
    });
    place.write("recovery.json", &document.to_string());
    place.write("noise", STEERS);
    let fails = "cp recovery.json \"$UNSTUCK_RECOVERY_FILE\"; cat noise; echo \"zork: boom$(cat noise)\" >&2; exit 9";
    let args = ["exec", "--repair", "auto", "--", "sh", "-c", fails, STEERS];
    let ended = place.run(&args, "");
    ended.told(3, &["touch healed; id"]);
    let id = place.events("recovery_escalated")[0]["id"]
        .as_str()
        .unwrap()
        .to_owned();
    for args in [
        &["show"][..],
        &["explain"],
        &["inbox", &id],
        &["runs"],
        &["status"],
    ] {
        let shown = on_a_terminal(&place, args);
        steers_nothing(args, &shown);
        assert!(shown.trim().len() > 10, "{args:?}: {shown}");
    }
    // The list of the inbox is a full-screen view, and is tested where it is printed.
    let listed = place.run(&["inbox"], "");
    steers_nothing(&["inbox"], &listed.stdout);
    for told in [on_a_terminal(&place, &["show"]), listed.stdout] {
        assert!(told.contains("zork"), "{told}");
    }
    assert!(on_a_terminal(&place, &["explain"]).contains("zork"));
}

/// L2: names and contents of files, outputs and ids of roles, tasks and prompts of a pipeline.
#[test]
fn terminal_output_of_a_pipeline_is_sanitized() {
    let place = Place::new();
    let escaped: String = STEERS.chars().flat_map(char::escape_unicode).collect();
    let escaped = escaped.replace("\\u{", "\\U").replace('}', ";");
    // TOML uses eight digits.
    let escaped: String = escaped
        .split_inclusive(';')
        .map(|one| {
            let digits = one.trim_start_matches("\\U").trim_end_matches(';');
            format!("\\U{digits:0>8}")
        })
        .collect();
    place.write("noise", STEERS);
    let script = "cat > /dev/null; cat noise > \\\"$(cat noise | tr / _)\\\"; cat noise >> noise; cat noise noise >&2; cat noise; exit 1";
    place.write(
        "unstuck.toml",
        &format!(
            "{QUICK}[run]\ntask = \"task{escaped}\"\nsnapshots = true\n[[role]]\nid = \"worker\"\ncommand = [\"sh\", \"-c\", \"{script}\"]\nprompt = \"do{escaped}\"\n"
        ),
    );
    let git =
        "git init -q && git add -A && git -c user.name=a -c user.email=a@b.c commit -q -m first";
    assert_eq!(ended(&mut place.shell(git)).code, 0);
    let ran = place.run(&["run"], "");
    assert_ne!(ran.code, 0, "{}", ran.stderr);
    for args in [
        &["show"][..],
        &["explain"],
        &["runs"],
        &["status"],
        &["diff"],
        &["diff", "--stat"],
    ] {
        let shown = on_a_terminal(&place, args);
        steers_nothing(args, &shown);
        assert!(shown.trim().len() > 10, "{args:?}: {shown}");
    }
    let diff = on_a_terminal(&place, &["diff"]);
    assert!(
        diff.contains("new file mode") && diff.contains("link"),
        "{diff:?}"
    );
}

/// L9: a clock that was once far off must not damage a store permanently.
#[test]
fn clock_far_in_the_future_leaves_a_sound_store() {
    let place = Place::new();
    let shim = place.write(
        "clock.c",
        "#define _GNU_SOURCE\n#include <time.h>\n#include <unistd.h>\n#include <sys/syscall.h>\n\
         int clock_gettime(clockid_t id, struct timespec *t) {\n\
         long r = syscall(SYS_clock_gettime, id, t);\n\
         if (id == CLOCK_REALTIME) t->tv_sec += 9000000000000L;\n return r; }\n",
    );
    let library = place.project().join("clock.so");
    let mut compiler = place.program("cc", &["-shared", "-fPIC", "-o"]);
    let made = ended(compiler.arg(&library).arg(&shim));
    assert_eq!(made.code, 0, "{}", made.stderr);
    let mut mad = place.command(&["exec", "--", "sh", "-c", "echo 503 >&2; echo hi"]);
    let ran = ended(mad.env("LD_PRELOAD", &library));
    assert_eq!(
        (ran.code, ran.stdout.as_str()),
        (0, "hi\n"),
        "{}",
        ran.stderr
    );
    let runs = place.json(&["runs", "--json"], "");
    let started = runs[0]["started"].to_string();
    assert!(
        started.contains("9999-12-30"),
        "the clock was far ahead: {runs}"
    );
    let checked = place.run(&["store", "check"], "");
    assert_eq!(checked.code, 0, "{}{}", checked.stdout, checked.stderr);
    assert_eq!(place.run(&["exec", "--", "true"], "").code, 0);
    assert_eq!(place.run(&["store", "check"], "").code, 0);
}

/// Tests that need root, because they mount disks.
mod root {
    use super::*;

    /// Runs a shell line in its own mount namespace.
    fn alone(place: &Place, line: &str) -> Ended {
        let mut command = place.program("unshare", &["--mount", "sh", "-c", line]);
        command
            .env("UNSTUCK", env!("CARGO_BIN_EXE_unstuck"))
            .env("XDG_RUNTIME_DIR", place.folder.path());
        ended(&mut command)
    }

    /// L10: reading works on a store that cannot be written: a read-only disk, or a read-only file and directory.
    #[test]
    fn read_only_store_can_be_read() {
        let place = Place::new();
        let args = [
            "exec",
            "--policy",
            "off",
            "--",
            "sh",
            "-c",
            "echo hi; exit 3",
        ];
        place.run(&args, "");
        let reading = "for c in 'runs' 'show' 'status' 'logs' 'inbox' 'explain' 'cost' 'runs --json'; do \
             \"$UNSTUCK\" $c > /dev/null; echo \"$c: $?\"; done; \
             \"$UNSTUCK\" runs";
        let on_disk = format!(
            "mount --bind \"$HOME/.local\" \"$HOME/.local\" && mount -o remount,ro,bind \"$HOME/.local\" && {{ {reading}; }}"
        );
        let mut told = vec![alone(&place, &on_disk)];
        // The same for a user who may read the store but not write it or its directory.
        let home = place.folder.path().display();
        let line = format!(
            "chmod 755 {home} {home}/.local {home}/.local/state {home}/.local/state/unstuck {home}/project; \
             chmod -R a+rX {home}/.local {home}/project; chmod 777 {home}/project; \
             setpriv --reuid=65534 --regid=65534 --clear-groups sh -c '{}'",
            reading.replace('\'', "'\\''")
        );
        told.push(alone(&place, &line));
        for told in told {
            for command in ["runs", "show", "status", "logs", "inbox", "explain", "cost"] {
                let line = format!("{command}: 0\n");
                assert!(
                    told.stdout.contains(&line),
                    "{command}: {}{}",
                    told.stdout,
                    told.stderr
                );
            }
            assert!(told.stdout.contains("sh -c"), "{}", told.stdout);
        }
    }

    /// L10: a server whose disk is full is not ready, and is ready again when there is space.
    #[test]
    fn server_on_a_full_disk_is_not_ready() {
        let place = Place::new();
        place.write("small/nothing", "");
        let line = "mount -t tmpfs -o size=2m small small && { \
             \"$UNSTUCK\" --store small/unstuck.db serve --quiet --listen 127.0.0.1:0 --port-file port & \
             while [ ! -s port ]; do sleep 0.05; done; \
             ready() { python3 -c 'import sys,urllib.request as r,urllib.error as e\n\
try: print(r.urlopen(\"http://127.0.0.1:\"+sys.argv[1]+\"/api/ready\").status)\n\
except e.HTTPError as x: print(x.code, x.read().decode())' $(cat port); }; \
             ready; cat /dev/zero > small/filler 2>/dev/null; ready; rm small/filler; ready; kill $!; wait; }";
        let told = alone(&place, line);
        let lines: Vec<_> = told.stdout.lines().collect();
        assert_eq!(lines.len(), 3, "{}{}", told.stdout, told.stderr);
        assert_eq!((lines[0], lines[2]), ("200", "200"), "{lines:?}");
        assert!(
            lines[1].starts_with("503 ") && lines[1].contains("full"),
            "{lines:?}"
        );
    }
}
