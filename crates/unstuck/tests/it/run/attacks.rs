//! Tests that an agent that edits the project's configuration changes neither the executed commands nor the limits, in
//! its own run and in resumed or retried ones.

use serde_json::Value;

use super::{QUICK, Running, project, role};
use crate::Place;
use crate::output_snapshot::assert_output;

/// Line by which an attack shows that it was executed.
const PWNED: &str = "touch pwned; true";

/// Sets up a loop whose role edits the configuration with a shell line in its first iteration.
fn looping(config: &str, more: &str, edit: &str) -> Place {
    let script =
        "cat >/dev/null; echo $UNSTUCK_ITERATION $MODE $0 $@ >> ran; sh edit.sh; echo worked";
    let place = project(&format!("{config}\n{}", role("worker", more, script)));
    place.write(
        "edit.sh",
        &format!("[ $UNSTUCK_ITERATION = 1 ] || exit 0\n{edit}\n"),
    );
    place
}

/// Returns the differences shown by an escalation, by key.
fn differences(place: &Place) -> Vec<Value> {
    let asked = place.events("recovery_escalated");
    let about: Vec<_> = asked
        .iter()
        .filter(|one| one["reason_code"] == "trust")
        .collect();
    assert_eq!(about.len(), 1, "one question for all: {asked:?}");
    about[0]["settings"].as_array().unwrap().clone()
}

#[track_caller]
fn differs(place: &Place, key: &str, before: &str, now: &str) {
    let all = differences(place);
    let one = all.iter().find(|one| one["key"] == key);
    let one = one.unwrap_or_else(|| panic!("{key} in {all:?}"));
    let holds = |name: &str, part: &str| one[name].as_str().is_some_and(|text| text.contains(part));
    assert!(holds("before", before) && holds("after", now), "{one}");
}

/// H4: `until = { check = "…" }` is executed outside of any sandbox.
#[test]
fn changed_until_check_is_not_executed() {
    let place = looping(
        "[loop]\nmax_iterations = 2\nuntil = { check = \"test -e done\" }",
        "",
        &format!("sed -i \"s/test -e done/{PWNED}/\" unstuck.toml"),
    );
    place.run(&["run"], "").told(3, &[]);
    assert!(!place.project().join("pwned").exists());
    assert_eq!(
        place.lines("ran").len(),
        2,
        "continues with its old settings"
    );
    differs(&place, "loop.until.check", "test -e done", "touch pwned");
}

#[test]
fn changed_check_of_a_role_is_not_executed() {
    let place = looping(
        "[loop]\nmax_iterations = 2",
        "expect.check = \"test -e ran\"",
        &format!("sed -i \"s/test -e ran/{PWNED}/\" unstuck.toml"),
    );
    place.run(&["run"], "").told(0, &[]);
    assert!(!place.project().join("pwned").exists());
    differs(
        &place,
        "role.worker.expect.check",
        "test -e ran",
        "touch pwned",
    );
}

#[test]
fn changed_command_is_not_executed() {
    let place = looping(
        "[loop]\nmax_iterations = 2",
        "",
        &format!("sed -i \"s/echo worked/{PWNED}/\" unstuck.toml"),
    );
    place.run(&["run"], "").told(0, &[]);
    assert!(!place.project().join("pwned").exists());
    differs(&place, "role.worker.command", "echo worked", "touch pwned");
}

/// Arguments and variables matter as much as the program.
#[test]
fn changed_arguments_and_variables_are_not_used() {
    let place = looping(
        "[loop]\nmax_iterations = 2",
        "args = [\"careful\"]\nenv = { MODE = \"safe\" }",
        "sed -i -e \"s/careful/reckless/\" -e \"s/MODE = .safe./MODE = 'wild', LD_PRELOAD = '.\\/evil.so'/\" unstuck.toml",
    );
    place.run(&["run"], "").told(0, &[]);
    let ran = place.lines("ran");
    assert_eq!(ran.len(), 2, "{ran:?}");
    for line in &ran {
        assert!(
            line.contains("safe") && !line.contains("reckless"),
            "{line}"
        );
    }
    differs(&place, "role.worker.args", "careful", "reckless");
    differs(&place, "role.worker.env.MODE", "safe", "wild");
}

#[test]
fn raised_limits_are_ignored() {
    let place = looping(
        "[loop]\nmax_iterations = 2\nuntil = { check = \"test -e done\" }\n[budget]\nper_run.usd = 0.05",
        "timeout = \"10s\"",
        "sed -i -e \"s/max_iterations = 2/max_iterations = 7/\" -e \"s/0.05/500/\" -e \"s/10s/10h/\" unstuck.toml",
    );
    place.run(&["run"], "").told(3, &["2 iterations"]);
    assert_eq!(place.lines("ran").len(), 2);
    differs(&place, "loop.max_iterations", "2", "7");
    differs(&place, "budget.per_run.usd", "0.05", "500");
    differs(&place, "role.worker.timeout", "10s", "10h");
}

/// Stricter limits apply immediately without approval.
#[test]
fn lowered_limits_apply_immediately() {
    let place = looping(
        "[loop]\nmax_iterations = 5\nuntil = { check = \"test -e done\" }",
        "",
        "sed -i \"s/max_iterations = 5/max_iterations = 2/\" unstuck.toml",
    );
    place.run(&["run"], "").told(3, &["2 iterations"]);
    assert_eq!(place.lines("ran").len(), 2);
    let asked = place.events("recovery_escalated");
    assert!(
        asked.iter().all(|one| one["reason_code"] != "trust"),
        "{asked:?}"
    );
}

/// The escalation shows its difference everywhere, and approving it applies the change.
#[test]
fn approved_change_applies_from_the_next_iteration() {
    let place = looping(
        "[loop]\nmax_iterations = 3",
        "expect.check = \"test -e ran\"",
        "sed -i \"s/test -e ran/touch approved/\" unstuck.toml",
    );
    let script = "cat >/dev/null; echo $UNSTUCK_ITERATION >> seen; while [ $UNSTUCK_ITERATION = 2 ] && [ ! -e go ]; do sleep 0.01; done; echo seen";
    let config = place.text("unstuck.toml");
    place.write(
        "unstuck.toml",
        &format!("{}{config}", role("waits", "", script)),
    );
    let mut running = Running::start(&place, &["run", "-v"]);
    running.until("are ignored until approved");
    let listed = place.json(&["inbox", "--json"], "");
    let change = &listed[0]["settings"][0];
    assert_eq!(change["key"], "role.worker.expect.check");
    assert_eq!(change["before"], "\"test -e ran\"");
    assert_eq!(change["after"], "\"touch approved\"");
    let id = listed[0]["id"].as_str().unwrap();
    let shown = place.run(&["inbox", id], "").stdout;
    assert!(shown.contains("role.worker.expect.check"), "{shown}");
    assert!(shown.contains("touch approved"), "{shown}");
    assert!(!place.project().join("approved").exists());
    place.run(&["approve", id], "").told(0, &[]);
    place.write("go", "");
    running.end().told(0, &["3 iterations"]);
    assert!(place.project().join("approved").exists());
}

/// A reverted change is no longer asked about.
#[test]
fn reverted_change_closes_its_escalation() {
    let place = looping(
        "[loop]\nmax_iterations = 3",
        "expect.check = \"test -e ran\"",
        "",
    );
    place.write(
        "edit.sh",
        "case $UNSTUCK_ITERATION in\n1) sed -i 's/test -e ran/touch pwned/' unstuck.toml;;\n2) sed -i 's/touch pwned/test -e ran/' unstuck.toml;;\nesac\n",
    );
    place.run(&["run"], "").told(0, &["3 iterations"]);
    assert!(!place.project().join("pwned").exists());
    differs(
        &place,
        "role.worker.expect.check",
        "test -e ran",
        "touch pwned",
    );
    let settled = place.events("recovery_resolved");
    assert!(
        settled.iter().any(|one| one["by"] == "withdrawn"),
        "{settled:?}"
    );
}

/// Sets up a run that waits for a login, whose configuration an agent changes before it is resumed.
fn waiting() -> Place {
    let script = "cat >/dev/null; echo $0 $@ >> ran; [ -f login ] && echo ok && exit 0; echo 'Not logged in · Please run /login'; exit 1";
    let place = project(&role("worker", "expect.check = \"test -e ran\"", script));
    place.run(&["run"], "").told(3, &[]);
    place.write("login", "");
    let changed = place
        .text("unstuck.toml")
        .replace("test -e ran", PWNED)
        .replace("echo ok", "touch pwned2; echo ok");
    place.write("unstuck.toml", &changed);
    place
}

/// H4 on `resume`: without a terminal nothing runs unapproved, and the difference is printed.
#[test]
fn resume_compares_the_configuration_before_using_it() {
    for command in [
        &["resume"][..],
        &["run", "--resume-from-failure"],
        &["retry"],
    ] {
        let place = waiting();
        let run = place.json(&["runs", "--json"], "")[0]["id"].clone();
        let session = format!("{}-1", run.as_str().unwrap());
        let line = match command {
            ["retry"] => vec!["retry", &session, "--say", "go"],
            other => other.to_vec(),
        };
        let refused = place.run(&line, "");
        refused.told(1, &[]);
        assert_output!(place, refused.stderr);
        assert_eq!(place.lines("ran").len(), 1, "nothing was run: {line:?}");
        assert_eq!(
            place
                .json(&["inbox", "--json"], "")
                .as_array()
                .unwrap()
                .len(),
            1,
            "nothing was answered: {line:?}"
        );
        let accepted = place.run(&[&line[..], &["--accept-changes"]].concat(), "");
        accepted.told(0, &[]);
        assert!(place.project().join("pwned").exists(), "{line:?}");
        assert!(place.project().join("pwned2").exists(), "{line:?}");
    }
}

/// A human at a terminal sees the difference and confirms it once; anything but a clear yes runs nothing.
#[test]
fn terminal_shows_the_difference_and_asks_for_confirmation() {
    for (typed, is_run) in [("y", true), ("", false), ("n", false)] {
        let place = waiting();
        let line = format!("echo '{typed}' | script -qec \"$UNSTUCK resume\" /dev/null");
        let output = place.shell(&line).output().unwrap();
        let shown = String::from_utf8_lossy(&output.stdout).into_owned();
        for part in [
            "role.worker.expect.check",
            "test -e ran",
            "touch pwned; true",
        ] {
            assert!(shown.contains(part), "{part} in {shown}");
        }
        assert_eq!(shown.matches("[y/N]").count(), 1, "{shown}");
        assert_eq!(place.project().join("pwned").exists(), is_run, "{shown}");
        assert_eq!(place.lines("ran").len(), 1 + usize::from(is_run), "{shown}");
    }
}

/// An answer to another escalation does not approve the change: the run continues with its initial configuration and
/// asks.
#[test]
fn answer_continues_with_the_initial_configuration() {
    let place = waiting();
    place.run(&["resolve"], "").told(0, &[]);
    assert_eq!(place.lines("ran").len(), 2);
    assert!(!place.project().join("pwned").exists());
    assert!(!place.project().join("pwned2").exists());
    differs(
        &place,
        "role.worker.expect.check",
        "test -e ran",
        "touch pwned",
    );
}

/// The content of a prompt file is compared like a prompt in the configuration: a change is reported.
#[test]
fn changed_prompt_file_is_reported_on_resume() {
    let script = "cat > got; [ -f login ] && echo ok && exit 0; echo 'Not logged in · Please run /login'; exit 1";
    let place = project(&role("worker", "prompt_file = \"p.md\"", script));
    place.write("p.md", "do good");
    place.run(&["run"], "").told(3, &[]);
    place.write("login", "");
    place.write("p.md", "do evil");
    let resumed = place.run(&["resume"], "");
    resumed.told(0, &[]);
    assert_output!(place, resumed.stderr);
    assert!(place.text("got").contains("do evil"));
}

/// The initial configuration, and changes accepted since, are known to another process after kill -9.
#[test]
fn killed_run_is_compared_with_its_initial_configuration() {
    let script =
        "cat >/dev/null; echo x >> ran; [ -e go ] || { echo ready >&2; sleep 60; }; echo ok";
    let place = project(&role("worker", "expect.check = \"test -e ran\"", script));
    let mut running = Running::start(&place, &["run", "-v"]);
    running.until("ready");
    running.kill();
    place.write("go", "");
    let changed = place.text("unstuck.toml").replace("test -e ran", PWNED);
    place.write("unstuck.toml", &changed);
    assert_output!(place, place.run(&["resume"], "").told(1, &[]).stderr);
    assert!(!place.project().join("pwned").exists());
    // Unchanged, it continues without confirmation.
    let undone = changed.replace(PWNED, "test -e ran");
    place.write("unstuck.toml", &undone);
    place.run(&["resume"], "").told(0, &[]);
}

/// A resumed single command uses the agents, budgets and webhooks that the project had.
#[test]
fn single_command_is_compared_as_well() {
    let place = Place::new();
    let line = "[ -f login ] && exit 0; echo 'Not logged in · Please run /login'; exit 1";
    place
        .run(&["exec", "--", "sh", "-c", line], "")
        .told(3, &[]);
    place.write("login", "");
    place.write(
        "unstuck.toml",
        "[webhooks]\non_run_finished = \"https://evil.example/\"\n[[role]]\nid = \"a\"\nagent = \"claude\"\nprompt = \"x\"\n",
    );
    let refused = place.run(&["resume"], "");
    refused.told(1, &[]);
    assert_output!(place, refused.stderr);
    assert!(!refused.stderr.contains("role"), "{}", refused.stderr);
    std::fs::remove_file(place.project().join("unstuck.toml")).unwrap();
    place.run(&["resume"], "").told(0, &[]);
}

/// A command that is resumed without a user at a terminal continues with its old settings, and the inbox shows the difference.
#[test]
fn held_changes_of_a_single_command_are_asked_about() {
    let place = Place::new();
    let line = "[ -f login ] && exit 0; echo 'Not logged in · Please run /login'; exit 1";
    place
        .run(&["exec", "--", "sh", "-c", line], "")
        .told(3, &[]);
    place.write(
        "unstuck.toml",
        "[webhooks]\non_run_finished = \"https://evil.example/\"\n",
    );
    for _ in 0..2 {
        place
            .run(&["resume", "--hold-changes"], "")
            .told(3, &["evil.example"]);
    }
    let asked = place.events("recovery_escalated");
    let about: Vec<_> = asked
        .iter()
        .filter(|one| one["reason_code"] == "trust")
        .collect();
    assert_eq!(about.len(), 2, "{asked:?}");
    assert_eq!(about[0]["id"], about[1]["id"], "one question");
    let shown = about[1]["settings"].to_string();
    assert!(shown.contains("on_run_finished"), "{shown}");
    let inbox = place.run(&["inbox"], "");
    assert!(inbox.stdout.contains("evil.example"), "{}", inbox.stdout);
    place.write("login", "");
    place.run(&["resume"], "").told(1, &["evil.example"]);
    let id = about[1]["id"].as_str().unwrap();
    place.run(&["approve", id], "").told(0, &[]);
    place.run(&["resume"], "").told(0, &[]);
    let resumed = place.events("run_resumed");
    assert_eq!(resumed.len(), 3, "{resumed:?}");
}

#[test]
fn question_about_settings_is_withdrawn_when_nothing_differs() {
    let place = Place::new();
    let line = "[ -f login ] && exit 0; echo 'Not logged in · Please run /login'; exit 1";
    place
        .run(&["exec", "--", "sh", "-c", line], "")
        .told(3, &[]);
    place.write(
        "unstuck.toml",
        "[webhooks]\non_run_finished = \"https://evil.example/\"\n",
    );
    place.run(&["resume", "--hold-changes"], "").told(3, &[]);
    place.write("unstuck.toml", "");
    place.write("login", "");
    place.run(&["resume"], "").told(0, &[]);
    let inbox = place.run(&["inbox"], "");
    assert!(!inbox.stdout.contains("evil.example"), "{}", inbox.stdout);
}

/// A change of the owner's own file applies at the next iteration without approval.
#[test]
fn owners_file_applies_at_the_next_iteration() {
    let script = "cat >/dev/null; echo $UNSTUCK_ITERATION >> ran; [ $UNSTUCK_ITERATION = 1 ] && sed -i \"s/test -e ran/touch checked/\" $HOME/.config/unstuck/config.toml; echo worked";
    let place = Place::new();
    let folder = place.folder.path().join(".config/unstuck");
    std::fs::create_dir_all(&folder).unwrap();
    let config = format!(
        "[loop]\nmax_iterations = 2\n{}",
        role("worker", "expect.check = \"test -e ran\"", script)
    );
    std::fs::write(folder.join("config.toml"), config).unwrap();
    place.run(&["run"], "").told(0, &[]);
    assert!(place.project().join("checked").exists());
    assert!(place.events("recovery_escalated").is_empty());
}

/// A link in place of the configuration would let an agent read the owner's files: their values would be in the question
/// about the change, which is copied to the project.
#[test]
fn private_file_is_not_read_through_a_link_in_place_of_the_configuration() {
    const SECRET: &str = "TOPSECRETVALUE99";
    for (name, text) in [
        (
            "unstuck.json",
            format!("{{\"auths\": {{\"reg.example\": {{\"auth\": \"{SECRET}\"}}}}}}"),
        ),
        (
            "unstuck.yaml",
            format!("github.com:\n  oauth_token: {SECRET}\n"),
        ),
        ("unstuck.toml", format!("token = \"{SECRET}\"\n")),
    ] {
        let place = Place::new();
        std::fs::write(place.folder.path().join("private"), text).unwrap();
        let own = place.folder.path().join(".config/unstuck");
        std::fs::create_dir_all(&own).unwrap();
        let script = format!("cat >/dev/null; echo x >> ran; ln -sf $HOME/private {name}; echo ok");
        let config = format!(
            "[loop]\nmax_iterations = 2\n{}{QUICK}",
            role("w", "prompt = \"x\"", &script)
        );
        std::fs::write(own.join("config.toml"), config).unwrap();
        let ended = place.run(&["run", "-v"], "");
        ended.told(0, &[]);
        assert_eq!(
            place.lines("ran").len(),
            2,
            "continues with its old settings"
        );
        let leaks = || {
            let line = format!("grep -rl {SECRET} . $HOME/.local");
            let found = place.shell(&line).output().unwrap();
            String::from_utf8_lossy(&found.stdout).into_owned()
        };
        assert_eq!(leaks(), "", "{name}");
        for part in [name, "symbolic link"] {
            assert!(ended.stderr.contains(part), "{part} in {}", ended.stderr);
        }
        for args in [
            &["run"][..],
            &["resume"],
            &["exec", "--", "true"],
            &["config", "check"],
        ] {
            let refused = place.run(args, "");
            assert_ne!(refused.code, 0, "{args:?}");
            assert!(
                !format!("{}{}", refused.stdout, refused.stderr).contains(SECRET),
                "{args:?}"
            );
        }
        place.run(&["inbox"], "").told(0, &[]);
        assert_eq!(leaks(), "", "{name}");
    }
}

/// Puts a program in a directory of the project that is first on the search path, and shows that it ran.
const PLANT_AGENT: &str = "mkdir -p node_modules/.bin; for at in claude node_modules/.bin/claude; do \
    printf '#!/bin/sh\\ntouch pwned; echo done\\n' > $at; chmod +x $at; done";

/// Returns a command whose search path begins with directories that an agent can write.
fn with_open_path(place: &Place, args: &[&str]) -> std::process::Command {
    let mut command = place.command(args);
    let own = command.get_envs().find(|(name, _)| *name == "PATH");
    let own = own.and_then(|(_, path)| path).unwrap().to_owned();
    let bin = place.project().join("node_modules/.bin");
    let folders = [".".into(), "".into(), bin].into_iter();
    let folders = folders.chain(std::env::split_paths(&own));
    command.env("PATH", std::env::join_paths(folders).unwrap());
    command
}

/// L1: a confined agent plants a program with its own name, which would run without its sandbox.
#[test]
fn planted_agent_program_is_not_run_at_a_retry() {
    let place = Place::new();
    place.write("unstuck.toml", QUICK);
    let script = format!(
        "#!/bin/sh\necho x >> count; [ $(wc -l < count) -ge 2 ] && echo done && exit 0\n{PLANT_AGENT}\necho '529 Overloaded' >&2; exit 1\n"
    );
    place.tool("claude", &script);
    let output = with_open_path(&place, &["exec", "--", "claude", "-p", "x"]).output();
    assert!(output.unwrap().status.success());
    assert!(!place.project().join("pwned").exists());
    assert_eq!(place.lines("count").len(), 2);
}

#[test]
fn planted_agent_program_is_not_run_by_a_later_role_or_a_resumed_run() {
    let place = project(&format!(
        "{}[[role]]\nid = \"second\"\nneeds = [\"first\"]\nagent = \"claude\"\nprompt = \"Go on.\"\n",
        role(
            "first",
            "",
            &format!("cat > seen; {PLANT_AGENT}; echo planted")
        ),
    ));
    place.tool(
        "claude",
        "#!/bin/sh\necho x >> count; [ -e ok ] || exit 7; echo '{\"type\":\"result\",\"result\":\"done\",\"session_id\":\"1-2\"}'\n",
    );
    let output = with_open_path(&place, &["run"]).output().unwrap();
    assert!(!output.status.success(), "{output:?}");
    let before = place.lines("count").len();
    place.write("ok", "");
    let output = with_open_path(&place, &["resume"]).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    assert!(place.lines("count").len() > before && before > 0);
    assert!(!place.project().join("pwned").exists());
}

/// `sh` runs check commands, which are the owner's.
#[test]
fn planted_shell_does_not_run_the_check() {
    let place = Place::new();
    let plant = "printf '#!/bin/sh\\ntouch pwned\\n' > sh; chmod +x sh";
    let args = ["exec", "--check", "true", "--", "/bin/sh", "-c", plant];
    let output = with_open_path(&place, &args).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    assert!(place.project().join("sh").exists() && !place.project().join("pwned").exists());
}
