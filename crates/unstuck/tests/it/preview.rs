//! `unstuck preview`: the effect of a command before it is approved.

use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};
use std::process::Command;

use serde_json::Value;

use crate::output_snapshot::assert_output;
use crate::{Ended, Place};

/// A project with a few files.
fn shop() -> Place {
    let place = Place::new();
    place.write("src/main.js", "one\ntwo\nthree\n");
    place.write("package.json", "{}\n");
    place.write("node_modules/a/index.js", "a\n");
    place.write("node_modules/b/index.js", "b\n");
    place
}

/// Returns the output without the parts that vary.
fn steady(place: &Place, text: &str) -> String {
    let text = text.replace(&place.folder.path().display().to_string(), "~");
    let mut steady = String::new();
    for line in text.lines() {
        let words: Vec<_> = line.split(' ').collect();
        let words: Vec<_> = words
            .iter()
            .enumerate()
            .map(|(at, word)| match word {
                word if word.len() == 12 && word.bytes().all(|b| b.is_ascii_hexdigit()) => "ID",
                word if at > 0 && words[at - 1] == "after" && word.parse::<f64>().is_ok() => "N",
                &"ms" if at > 1 && words[at - 2] == "after" => "s",
                word => word,
            })
            .collect();
        steady.push_str(words.join(" ").trim_end());
        steady.push('\n');
    }
    steady
}

fn previewed(place: &Place, args: &[&str]) -> Ended {
    place.run(&[&["preview"], args].concat(), "")
}

/// Returns the only stored preview.
fn kept(place: &Place) -> Value {
    let listed = place.json(&["preview", "--json"], "");
    let all = listed.as_array().unwrap();
    assert_eq!(all.len(), 1, "{listed}");
    all[0].clone()
}

fn read(place: &Place, name: &str) -> String {
    fs::read_to_string(place.project().join(name)).unwrap_or_default()
}

#[test]
fn preview_shows_the_effect_of_a_command() {
    let place = shop();
    let line = "sed -i s/two/TWO/ src/main.js && rm -rf node_modules/b && mkdir lib && echo new > lib/new && rm package.json && echo done";
    let ended = previewed(&place, &[line]);
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    insta::assert_snapshot!(steady(&place, &ended.stdout), @r#"
    sed -i s/two/TWO/ src/main.js && rm -rf node_modules/b && mkdir lib && echo new > lib/new && rm package.json && echo done
    on an overlay of ~/project · exit 0 after N s · without network

    It would change 1 file, add 1, delete 2:
      add     lib/             1 file, 4 B
      delete  node_modules/b/  1 file
      delete  package.json     3 B
      change  src/main.js      +1 -1

    src/main.js
    @@ -1,3 +1,3 @@
     one
    -two
    +TWO
     three

    last lines of output:
      done

    Only file changes are shown, not network effects.

    The project is unchanged. Preview ID is kept for 1 day:
      unstuck preview --apply ID
      unstuck preview --drop ID
    "#);
    assert_eq!(read(&place, "src/main.js"), "one\ntwo\nthree\n");
    assert!(!place.project().join("lib").exists());
}

#[test]
fn preview_without_changes_is_empty_and_not_kept() {
    let place = shop();
    let ended = previewed(
        &place,
        &["cp -r node_modules /tmp/n && rm -rf node_modules && cp -r /tmp/n node_modules"],
    );
    insta::assert_snapshot!(steady(&place, &ended.stdout), @r#"
    cp -r node_modules /tmp/n && rm -rf node_modules && cp -r /tmp/n node_modules
    on an overlay of ~/project · exit 0 after N s · without network

    It would change nothing.
      2 files in node_modules/ rewritten without changes

    Only file changes are shown, not network effects.
    "#);
    assert_eq!(
        place.json(&["preview", "--json"], ""),
        Value::Array(Vec::new())
    );
}

#[test]
fn preview_is_applied_by_id() {
    let place = shop();
    previewed(&place, &["echo new > src/main.js; echo more > more"]);
    let id = kept(&place)["id"].as_str().unwrap().to_owned();
    let shown = previewed(&place, &["--show", &id]);
    assert!(
        shown.stdout.contains("change  src/main.js"),
        "{}",
        shown.stdout
    );
    let listed = previewed(&place, &[]);
    insta::assert_snapshot!(steady(&place, &listed.stdout), @r#"ID  just now    echo new > src/main.js; echo more > more  would change 1 file, add 1 · ~/project"#);
    let applied = previewed(&place, &["--apply", &id[..5]]);
    assert_eq!(applied.code, 0);
    assert_output!(place, applied.stdout);
    assert_eq!(
        [read(&place, "src/main.js"), read(&place, "more")],
        ["new\n", "more\n"]
    );
    assert_eq!(
        previewed(&place, &["--apply", &id]).code,
        1,
        "it is applied once"
    );
}

#[test]
fn preview_can_be_discarded() {
    let place = shop();
    previewed(&place, &["echo new > src/main.js"]);
    let id = kept(&place)["id"].as_str().unwrap().to_owned();
    let dropped = previewed(&place, &["--drop", &id]);
    assert_output!(place, dropped.stdout);
    assert_eq!(read(&place, "src/main.js"), "one\ntwo\nthree\n");
    assert_output!(place, previewed(&place, &[]).stderr);
}

#[test]
fn only_successful_preview_is_applied_at_once_on_request() {
    let place = shop();
    let ended = previewed(&place, &["echo new > src/main.js", "--apply"]);
    assert_eq!(
        (ended.code, read(&place, "src/main.js").as_str()),
        (0, "new\n")
    );
    let ended = previewed(&place, &["echo half > src/main.js; exit 4", "--apply"]);
    assert_eq!(
        (ended.code, read(&place, "src/main.js").as_str()),
        (4, "new\n")
    );
    assert_output!(place, ended.stderr);
    assert_eq!(kept(&place)["execution"]["exit_code"], 4);
}

#[test]
fn preview_of_a_changed_project_is_not_applied() {
    let place = shop();
    previewed(&place, &["echo new > src/main.js; echo other > other"]);
    let id = kept(&place)["id"].as_str().unwrap().to_owned();
    place.write("src/main.js", "mine\n");
    let refused = previewed(&place, &["--apply", &id]);
    assert_eq!((refused.code, refused.stdout.as_str()), (1, ""));
    insta::assert_snapshot!(refused.stderr, @r#"
    error: not applied: changed since the preview: src/main.js
    hint: the project is unchanged; run the preview again
    "#);
    assert_eq!(read(&place, "src/main.js"), "mine\n");
    assert!(!place.project().join("other").exists());
}

#[test]
fn json_output_is_complete() {
    let place = shop();
    let ended = previewed(
        &place,
        &["--json", "echo new > src/main.js; echo said; exit 3"],
    );
    assert_eq!(ended.code, 3);
    let told: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!(told["id"], kept(&place)["id"]);
    assert_eq!(
        (&told["fate"], &told["execution"]["exit_code"]),
        (&"kept".into(), &3.into())
    );
    assert_eq!(told["rows"][0]["path"], "src/main.js");
    assert_eq!(told["counts"]["changed"], 1);
    assert_eq!(told["execution"]["output"][0], "said");
}

#[test]
fn agent_cannot_apply_a_preview() {
    let place = shop();
    previewed(&place, &["echo new > src/main.js"]);
    let id = kept(&place)["id"].as_str().unwrap().to_owned();
    for args in [vec!["--apply", &id], vec!["echo evil > evil", "--apply"]] {
        let mut command = place.command(&[&["preview"], args.as_slice()].concat());
        let output = command.env("UNSTUCK_RUN", "k3v9").output().unwrap();
        let told = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{told}");
        assert_output!(place, told);
    }
    assert_eq!(read(&place, "src/main.js"), "one\ntwo\nthree\n");
    assert_eq!(kept(&place)["id"], id.as_str());
}

#[test]
fn preview_output_is_sanitized_for_the_terminal() {
    let place = shop();
    let ended = previewed(
        &place,
        &[
            "printf 'x\\033[2J\\n' > \"$(printf 'n\\033]0;evil\\007')\"; printf '\\033[31mred\\033[0m\\n'; printf '\\342\\200\\256' >&2",
        ],
    );
    assert!(
        !ended.stdout.contains(['\u{1b}', '\u{7}', '\u{202e}']),
        "{}",
        ended.stdout
    );
    assert!(
        ended.stdout.contains(r"n\u{1b}]0;evil\u{7}"),
        "{}",
        ended.stdout
    );
}

#[test]
fn errors_are_reported_with_a_fix() {
    let place = shop();
    let cases = [
        vec!["--apply", "zz"],
        vec!["--drop"],
        vec!["npm ci", "--apply", "zz"],
        vec!["touch x", "--working-dir", "../outside"],
        vec!["echo \u{202e}"],
    ];
    let told: Vec<_> = cases
        .iter()
        .map(|args| {
            let ended = previewed(&place, args);
            format!("{} {}", ended.code, ended.stderr)
        })
        .collect();
    insta::assert_snapshot!(told.join("\n"), @r#"
    1 error: preview `zz` not found
    hint: `unstuck preview` lists saved previews

    2 error: a preview id is required
    hint: `unstuck preview` lists saved previews

    2 error: cannot combine a command with a preview id
    hint: put --apply or --drop after the command: unstuck preview "npm ci" --apply

    2 error: working_dir `../outside` is outside the project
    hint: --working-dir is relative to the project root

    2 error: `command` contains the character U+202E, which is not allowed because it is invisible or misleading
    hint: this command cannot be proposed or approved either
    "#);
}

#[test]
fn missing_namespaces_are_reported_and_nothing_runs() {
    let place = shop();
    let line = "echo 0 > /proc/sys/user/max_user_namespaces && exec \"$UNSTUCK\" preview 'touch x'";
    let mut inside = place.program("unshare", &["-Ur", "sh", "-c", line]);
    inside.env("UNSTUCK", env!("CARGO_BIN_EXE_unstuck"));
    let output = inside.output().unwrap();
    let told = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{told}");
    assert!(told.contains("previews are not available here"), "{told}");
    assert!(!place.project().join("x").exists());
}

/// Tests that need root.
mod root {
    use super::*;

    #[test]
    fn ordinary_user_can_preview_and_apply() {
        let place = shop();
        let folder = place.folder.path();
        chown(folder, Some(65534), Some(65534)).unwrap();
        fs::set_permissions(folder, fs::Permissions::from_mode(0o755)).unwrap();
        let mut own = place.program("chown", &["-R", "65534:65534", "."]);
        assert!(own.status().unwrap().success());
        let as_user = |args: &[&str]| {
            let user = ["--reuid=65534", "--regid=65534", "--clear-groups"];
            let program = env!("CARGO_BIN_EXE_unstuck");
            let all = [&user[..], &[program, "preview"], args].concat();
            let output = place.program("setpriv", &all).output().unwrap();
            assert!(
                output.status.success(),
                "{}",
                String::from_utf8_lossy(&output.stderr)
            );
            String::from_utf8(output.stdout).unwrap()
        };
        let told = as_user(&[
            "rm -rf node_modules && mkdir node_modules && echo c > node_modules/c && chmod 600 package.json",
            "--json",
        ]);
        let told: Value = serde_json::from_str(&told).unwrap();
        let id = told["id"].as_str().unwrap();
        assert_output!(place, as_user(&["--apply", id]));
        assert_eq!(read(&place, "node_modules/c"), "c\n");
        assert!(!place.project().join("node_modules/a").exists());
    }
}

/// Types an answer at a terminal.
fn answered(place: &Place, answer: &str) -> String {
    let line = format!(
        "'{}' preview 'echo new > src/main.js'",
        env!("CARGO_BIN_EXE_unstuck")
    );
    let mut terminal: Command = place.program("script", &["-qec", &line, "/dev/null"]);
    terminal
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped());
    let mut child = terminal.spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    std::io::Write::write_all(&mut stdin, format!("{answer}\n").as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    drop(stdin);
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn terminal_preview_asks_for_confirmation() {
    let place = shop();
    let kept = answered(&place, "");
    assert!(
        kept.contains("Apply it?") && kept.contains("is kept for 1 day"),
        "{kept}"
    );
    let dropped = answered(&place, "d");
    assert!(dropped.contains("Dropped."), "{dropped}");
    assert_eq!(read(&place, "src/main.js"), "one\ntwo\nthree\n");
    let applied = answered(&place, "a");
    assert!(applied.contains("Applied"), "{applied}");
    assert_eq!(read(&place, "src/main.js"), "new\n");
}

/// There is no repository here, so it fails at once, as an installer without network does after a while.
const FETCHES: &str = "git fetch";

#[test]
fn preview_that_failed_without_network_explains_how_to_allow_it() {
    let place = shop();
    let ended = previewed(&place, &[FETCHES]);
    assert_eq!(ended.code, 128, "{}{}", ended.stdout, ended.stderr);
    assert!(!ended.stdout.contains("would change nothing"));
    for told in [
        "The command failed, so its actual changes may differ.",
        "unstuck preview 'git fetch' --network",
    ] {
        assert!(ended.stdout.contains(told), "{told}: {}", ended.stdout);
    }
    for told in ["needs network access", "hint: --network"] {
        assert!(ended.stderr.contains(told), "{told}: {}", ended.stderr);
    }
    let ended = previewed(&place, &[FETCHES, "--network"]);
    assert!(!ended.stdout.contains("--network") && !ended.stderr.contains("--network"));
}

#[test]
fn long_preview_shows_progress_and_how_to_cancel() {
    let place = shop();
    let ended = previewed(&place, &["sleep 2"]);
    assert_eq!(ended.code, 0);
    // Its timeout is part of what this is about.
    insta::assert_snapshot!(ended.stderr);
}

/// Ctrl-C ends the command and the preview; nothing is kept.
#[test]
fn preview_can_be_canceled() {
    let place = shop();
    let mut command = place.command(&["preview", "echo half > src/main.js; sleep 600"]);
    let mut child = command
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut stderr = std::io::BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    std::io::BufRead::read_line(&mut stderr, &mut line).unwrap();
    assert!(line.contains("Ctrl-C to cancel"), "{line}");
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    assert!(!child.wait().unwrap().success());
    let mut rest = String::new();
    std::io::Read::read_to_string(&mut stderr, &mut rest).unwrap();
    assert_output!(place, rest);
    assert_eq!(read(&place, "src/main.js"), "one\ntwo\nthree\n");
    assert_output!(place, previewed(&place, &[]).stderr);
}

#[test]
fn installers_do_not_retry_without_network() {
    let place = shop();
    let line = "test 0 = \"$npm_config_fetch_retries\" && test 0 = \"$PIP_RETRIES\"";
    assert_eq!(previewed(&place, &[line]).code, 0);
    assert_eq!(previewed(&place, &[line, "--network"]).code, 1);
}
