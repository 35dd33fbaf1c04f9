//! The gateway that `exec` and `run` put between their agents and the API.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::Stdio;

use serde_json::json;

use super::{QUICK, api, asked, by_user, claude, ended, exec, until};
use crate::Place;
use crate::output_snapshot::assert_output;

fn with_claude() -> Place {
    let place = Place::new();
    place.write("unstuck.toml", QUICK);
    claude(&place);
    place
}

const LINE: [&str; 6] = ["exec", "--", "claude", "-p", "--output-format", "json"];

/// S4-01, S4-04: a transient failure does not even end the attempt.
#[test]
fn call_recovers_without_the_agent_noticing() {
    let place = with_claude();
    let api = api(
        "[[step]]\nrate_limit = { retry_after = 0 }\n[[step]]\nanswer = { text = \"All done.\" }\n",
    );
    let ended = exec(&place, &api, &LINE);
    ended.told(0, &[]);
    assert_output!(place, ended.stderr);
    assert!(ended.stdout.contains("All done."), "{}", ended.stdout);
    assert_eq!((place.lines("count").len(), asked(&api)), (1, 2));
}

/// The retries of the agent, the gateway and `exec` do not multiply.
#[test]
fn retries_of_agent_gateway_and_exec_do_not_multiply() {
    let place = with_claude();
    let api = api("[[step]]\noverloaded = {}\ntimes = \"always\"\n");
    let ended = exec(
        &place,
        &api,
        &[&LINE[..], &["--model", "claude-opus-5-5"]].concat(),
    );
    ended.told(3, &[]);
    assert_output!(place, ended.stderr);
    let variables = place.lines("variables").join("\n");
    assert!(
        !variables.contains("CLAUDE_CODE_MAX_RETRIES"),
        "its own retries stay: {variables}"
    );
    let failed = place.events("attempt_failed");
    assert_eq!(
        failed[0]["diagnosis"]["kind"], "server_overloaded",
        "{failed:?}"
    );
    // The first attempt and two retries, all of them by the gateway.
    assert_eq!((asked(&api), failed.len()), (3, 1), "{}", ended.stderr);
}

/// If the limit resets later than the agent can be held, the agent ends, and its conversation continues afterwards.
#[test]
fn long_wait_ends_the_attempt_and_the_conversation_continues() {
    let place = with_claude();
    by_user(&place, "[gateway.timeouts]\nclient_wait = \"1s\"\n");
    let api = api(
        "[[step]]\nusage_limit = { resets_in = \"3s\" }\n[[step]]\nanswer = { text = \"All done.\" }\n",
    );
    let ended = exec(&place, &api, &LINE);
    ended.told(0, &[]);
    assert_output!(place, ended.stderr);
    assert_eq!((place.lines("count").len(), asked(&api)), (2, 2));
    let waits = place.events("waiting_until");
    assert!(waits.len() == 1 && waits[0]["stated"] == true, "{waits:?}");
    let lines = place.lines("lines");
    assert!(lines[1].contains("--resume"), "{lines:?}");
}

/// The API traffic makes a vague agent message precise.
#[test]
fn failure_is_known_from_the_api_traffic() {
    let place = with_claude();
    place.tool(
        "claude",
        &format!(
            "#!/bin/sh\nFAULTS_API_URL=\"$ANTHROPIC_BASE_URL\" \"{}\" __demo-agent -p x >/dev/null 2>&1\necho 'Something went wrong.' >&2\nexit 1\n",
            env!("CARGO_BIN_EXE_unstuck")
        ),
    );
    let api = api("[[step]]\nquota = {}\ntimes = \"always\"\n");
    let ended = exec(&place, &api, &LINE);
    ended.told(3, &[]);
    // The agent's own line may come before or after that of the gateway.
    assert_output!(place, ended.stderr.replace("Something went wrong.\n", ""));
    assert_eq!(asked(&api), 1);
}

#[test]
fn no_gateway_leaves_the_agent_alone() {
    let place = with_claude();
    let api = api("[[step]]\nanswer = { text = \"Done.\" }\ntimes = \"always\"\n");
    let words = [&["exec", "--no-gateway"][..], &LINE[1..]].concat();
    exec(&place, &api, &words).told(0, &[]);
    by_user(&place, "[gateway]\nenabled = false\n");
    exec(&place, &api, &LINE).told(0, &[]);
    by_user(&place, "");
    let off = [&["exec", "--policy", "off"][..], &LINE[1..]].concat();
    exec(&place, &api, &off).told(0, &[]);
    let address = format!("ANTHROPIC_BASE_URL={}", api.url());
    let variables = place.lines("variables");
    let own = variables.iter().filter(|line| **line == address);
    assert_eq!(own.count(), 3, "{variables:?}");
    assert!(
        !variables
            .iter()
            .any(|line| line.starts_with("UNSTUCK_GATEWAY="))
    );
}

#[test]
fn no_second_gateway_behind_our_own() {
    let place = with_claude();
    for (name, value) in [
        ("ANTHROPIC_BASE_URL", "http://127.0.0.1:9/s/abc-1/anthropic"),
        ("ANTHROPIC_BASE_URL", "http://127.0.0.1:9/anthropic"),
        ("UNSTUCK_GATEWAY", "http://127.0.0.1:9/s/abc-1"),
    ] {
        let mut command = place.command(&[
            "exec",
            "--policy",
            "standard",
            "--",
            "sh",
            "-c",
            "env > now",
        ]);
        ended(command.env("ANTHROPIC_API_KEY", "k").env(name, value)).told(0, &[]);
        let now = place.text("now");
        assert!(now.contains(&format!("{name}={value}")), "{now}");
        assert!(!now.contains("CLAUDE_CODE_MAX_RETRIES"), "{now}");
    }
}

/// An unknown command gets a gateway if its environment shows that it uses an API, and no variable beyond that.
#[test]
fn unknown_command_with_an_api_key_gets_a_gateway() {
    let place = Place::new();
    let line = ["exec", "--", "sh", "-c", "env > now"];
    place.run(&line, "").told(0, &[]);
    assert!(
        !place.text("now").contains("_BASE_URL"),
        "{}",
        place.text("now")
    );
    ended(place.command(&line).env("OPENAI_API_KEY", "k")).told(0, &[]);
    let now = place.text("now");
    let url = now
        .lines()
        .find_map(|line| line.strip_prefix("OPENAI_BASE_URL="));
    let url = url.unwrap();
    assert!(url.contains("/s/") && url.ends_with("/openai/v1"), "{url}");
    assert!(!now.contains("ANTHROPIC_BASE_URL"), "{now}");
    assert!(now.contains("UNSTUCK_GATEWAY=http://127.0.0.1:"), "{now}");
}

/// The user's own variables stay, and calls to the gateway bypass the user's proxy.
#[test]
fn user_set_variables_are_kept() {
    let place = with_claude();
    let api = api("[[step]]\nanswer = { text = \"Done.\" }\ntimes = \"always\"\n");
    let mut command = place.command(&LINE);
    command
        .env("ANTHROPIC_BASE_URL", api.url())
        .env("CLAUDE_CODE_MAX_RETRIES", "7")
        .env("http_proxy", "http://127.0.0.1:9")
        .env("NO_PROXY", "127.0.0.1,internal.example");
    ended(&mut command).told(0, &[]);
    let variables = place.lines("variables");
    for line in [
        "CLAUDE_CODE_MAX_RETRIES=7",
        "NO_PROXY=127.0.0.1,internal.example,127.0.0.1,localhost",
    ] {
        assert!(
            variables.iter().any(|one| one == line),
            "{line} in {variables:?}"
        );
    }
}

#[test]
fn agents_of_a_pipeline_share_a_gateway() {
    let place = with_claude();
    let role = |id: &str| {
        format!("[[role]]\nid = \"{id}\"\nagent = \"claude\"\nprompt = \"Do the work\"\n")
    };
    place.write(
        "unstuck.toml",
        &format!("{}{}{QUICK}", role("a"), role("b")),
    );
    let api = api(
        "[[step]]\noverloaded = {}\n[[step]]\nanswer = { text = \"Done.\" }\ntimes = \"always\"\n",
    );
    let ended = exec(&place, &api, &["run", "--task", "x"]);
    ended.told(
        0,
        &["API call failed: server_overloaded", "API call recovered"],
    );
    assert_eq!((place.lines("count").len(), asked(&api)), (2, 3));
    let variables = place.lines("variables");
    let urls: std::collections::BTreeSet<_> = variables
        .iter()
        .filter_map(|line| {
            line.strip_prefix("ANTHROPIC_BASE_URL=http://")?
                .split('/')
                .next()
        })
        .collect();
    assert_eq!(urls.len(), 1, "{urls:?}");
}

/// An exhausted budget blocks the next call and creates an escalation.
#[test]
fn exhausted_budget_blocks_the_next_call() {
    let place = with_claude();
    let unstuck = env!("CARGO_BIN_EXE_unstuck");
    place.tool(
        "claude",
        &format!(
            "#!/bin/sh\nexport FAULTS_API_URL=\"$ANTHROPIC_BASE_URL\"\necho x >> count\n\"{unstuck}\" __demo-agent --model claude-sonnet-5-5 -p one && exec \"{unstuck}\" __demo-agent --output-format json --model claude-sonnet-5-5 -p two\n"
        ),
    );
    by_user(&place, "[gateway.budgets]\nper_session = 0.000001\n");
    let api = api(
        "[[step]]\nanswer = { text = \"Done.\", input_tokens = 1000, output_tokens = 100 }\ntimes = \"always\"\n",
    );
    let ended = exec(&place, &api, &LINE);
    ended.told(3, &[]);
    assert_output!(place, ended.stderr);
    assert_eq!((place.lines("count").len(), asked(&api)), (1, 1));
}

/// The budget of a run is enforced between the calls of an attempt, not only before the next attempt.
#[test]
fn run_budget_is_enforced_within_an_attempt() {
    let place = with_claude();
    let unstuck = env!("CARGO_BIN_EXE_unstuck");
    place.tool(
        "claude",
        &format!(
            "#!/bin/sh\nexport FAULTS_API_URL=\"$ANTHROPIC_BASE_URL\"\necho x >> count\n\"{unstuck}\" __demo-agent --model claude-sonnet-5-5 -p one && exec \"{unstuck}\" __demo-agent --output-format json --model claude-sonnet-5-5 -p two\n"
        ),
    );
    let role = "[[role]]\nid = \"a\"\nagent = \"claude\"\nprompt = \"Do it\"\n";
    let config = format!("{role}[budget]\nper_run.usd = 0.001\n");
    place.write("unstuck.toml", &config);
    let api = api(PRICED);
    let ended = exec(&place, &api, &["run", "--task", "x"]);
    ended.told(3, &[]);
    assert_output!(place, ended.stderr);
    assert_eq!((place.lines("count").len(), asked(&api)), (1, 1));
    let question = place.json_of_run("escalation.json");
    assert_eq!(question["type"], "cost_confirmation");
}

/// Returns a place whose `claude` calls its API once, reports neither cost nor tokens, and exits with that code.
fn silent_claude(place: &Place, code: u8) {
    let unstuck = env!("CARGO_BIN_EXE_unstuck");
    place.tool(
        "claude",
        &format!(
            "#!/bin/sh\necho x >> count\nFAULTS_API_URL=\"$ANTHROPIC_BASE_URL\" \"{unstuck}\" __demo-agent --model claude-sonnet-5-5 -p one || exit 1\nexit {code}\n"
        ),
    );
}

const PRICED: &str = "[[step]]\nanswer = { text = \"Done.\", input_tokens = 1000, output_tokens = 100 }\ntimes = \"always\"\n";

/// S4-35: the budget of a session or a day also applies after a resume, and to all processes of one store.
#[test]
fn budgets_apply_across_processes() {
    for (budget, on_reached, resumed) in [
        ("per_session = 0.000001", "stop", 1),
        ("per_session = 0.000001", "ask", 2),
        ("per_day = 0.000001", "stop", 1),
    ] {
        let place = with_claude();
        silent_claude(&place, 7);
        let text = format!("[gateway.budgets]\n{budget}\non_reached = \"{on_reached}\"\n");
        by_user(&place, &text);
        let api = api(PRICED);
        // Its one call is answered; the next attempt is refused.
        let refused = exec(&place, &api, &LINE);
        refused.told(3, &[]);
        assert_output!(place, refused.stderr);
        assert_eq!(asked(&api), 1, "{text}");
        let again = exec(&place, &api, &["resume"]);
        assert_eq!(asked(&api), 1, "{text}{}", again.stderr);
        assert_output!(place, again.stderr);
        // W1: only an answer with a name raises it.
        if on_reached == "ask" {
            exec(&place, &api, &["approve"]);
        }
        assert_eq!(asked(&api), resumed, "{text}");
        // Another run has its own session, but the same day.
        exec(&place, &api, &LINE);
        let is_day = budget.starts_with("per_day");
        assert_eq!(asked(&api), resumed + usize::from(!is_day), "{text}");
    }
}

/// The budget of a day applies between the calls of an attempt, whichever process spends the rest of it.
#[test]
fn parallel_runs_share_the_budget_of_a_day() {
    let place = with_claude();
    let unstuck = env!("CARGO_BIN_EXE_unstuck");
    // The role makes up to a hundred cheap calls after the other agent's expensive one.
    place.tool(
        "claude",
        &format!(
            "#!/bin/sh
export FAULTS_API_URL=\"$ANTHROPIC_BASE_URL\"
call() {{ \"{unstuck}\" __demo-agent --output-format json --model claude-sonnet-5-5 -p one; }}
[ -n \"$EXPENSIVE\" ] && call && exit 0
call > answer && touch started
while [ ! -e spent ]; do sleep 0.05; done
for i in 1 2 3 4 5 6 7 8 9 10; do for j in 1 2 3 4 5 6 7 8 9 10; do call > answer || exit 1; sleep 0.05; done; done
cat answer
"
        ),
    );
    let role = "[[role]]\nid = \"a\"\nagent = \"claude\"\nprompt = \"Do it\"\n";
    place.write(
        "unstuck.toml",
        &format!("{role}[budget]\nper_day.usd = 10\n"),
    );
    let cheap = api(PRICED);
    let mut command = place.command(&["run", "--task", "x"]);
    command
        .env("ANTHROPIC_BASE_URL", cheap.url())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped());
    let child = command.spawn().unwrap();
    until("the role runs", || {
        fs::metadata(place.project().join("started")).ok()
    });
    let expensive = api(
        "[[step]]\nanswer = { text = \"Done.\", input_tokens = 100000000, output_tokens = 100 }\ntimes = \"always\"\n",
    );
    let mut other = place.command(&LINE);
    other
        .env("ANTHROPIC_BASE_URL", expensive.url())
        .env("EXPENSIVE", "1");
    ended(&mut other).told(0, &[]);
    place.write("spent", "");
    let output = child.wait_with_output().unwrap();
    let told = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(3), "{told}");
    assert!(
        told.contains("of $10.00 for all runs today (UTC)"),
        "{told}"
    );
    assert!(asked(&cheap) < 101, "{told}");
    let asked_for = place.json(&["inbox", "--json"], "");
    assert_eq!(asked_for[0]["type"], "cost_confirmation", "{asked_for}");
}

/// The budget of a run applies although its agent does not report usage: the gateway has measured it.
#[test]
fn unreported_usage_is_taken_from_the_gateway() {
    let role = |id: &str, after: &str| {
        format!(
            "[[role]]\nid = \"{id}\"\nagent = \"claude\"\nprompt = \"Do it\"\ndepends_on = [{after}]\n"
        )
    };
    let (first, second) = (role("a", ""), role("b", "\"a\""));
    for (config, words, code) in [
        (format!("{QUICK}maxCost = 0.000001\n"), &LINE[..], 7),
        (
            format!("{first}{second}[budget]\nper_run.usd = 0.000001\n"),
            &["run", "--task", "x"],
            0,
        ),
    ] {
        let place = with_claude();
        silent_claude(&place, code);
        place.write("unstuck.toml", &config);
        let api = api(PRICED);
        let ended = exec(&place, &api, words);
        assert_eq!(ended.code, 3, "{}", ended.stderr);
        assert_eq!((place.lines("count").len(), asked(&api)), (1, 1));
        let name = if code == 0 {
            "attempt_succeeded"
        } else {
            "attempt_failed"
        };
        let used = &place.events(name)[0]["usage"];
        assert!(used["cost_usd"].as_f64().unwrap() > 0.0, "{used}");
        assert_eq!(used["tokens"]["output"], 100, "{used}");
        // It is not counted twice.
        let spent = place.json(&["cost", "--by", "run", "--json"], "");
        let run = place.json(&["runs", "--json"], "");
        assert_eq!(run[0]["cost_usd"], spent[0]["cost_usd"], "{run} {spent}");
    }
}

#[test]
fn invalid_url_is_reported_and_the_agent_runs_without_gateway() {
    let place = Place::new();
    let mut command = place.command(&["exec", "--", "sh", "-c", "env > now"]);
    let ended = ended(command.env("ANTHROPIC_BASE_URL", "nonsense"));
    ended.told(0, &[]);
    assert_output!(place, ended.stderr);
    assert!(place.text("now").contains("ANTHROPIC_BASE_URL=nonsense"));
}

/// Sends the `turns`th request of an agent that repeats the same tool call with the same result.
fn repeat(base: &str, turns: usize) {
    let mut messages = vec![json!({"role": "user", "content": "fix the tests"})];
    for turn in 0..turns {
        let id = format!("toolu_{turn}");
        messages.push(json!({"role": "assistant", "content": [{"type": "tool_use", "id": id, "name": "Bash", "input": {"command": "ls"}}]}));
        messages.push(json!({"role": "user", "content": [{"type": "tool_result", "tool_use_id": id, "content": "a.txt"}]}));
    }
    let body = json!({"model": "claude-sonnet-5-5", "max_tokens": 9, "tools": [{"name": "Bash"}], "messages": messages}).to_string();
    let (host, path) = base
        .strip_prefix("http://")
        .unwrap()
        .split_once('/')
        .unwrap();
    let mut stream = TcpStream::connect(host).unwrap();
    write!(
        stream,
        "POST /{path}/v1/messages HTTP/1.1\r\nhost: {host}\r\nx-api-key: k\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    )
    .unwrap();
    // The gateway may end with the attempt before the whole response was read.
    let _ = stream.read_to_string(&mut String::new());
}

/// A loop that the agent does not notice is detected from its calls, and handled like any other stuck agent.
#[test]
fn looping_agent_is_stopped_as_stuck() {
    let place = Place::new();
    place.write("unstuck.toml", QUICK);
    by_user(&place, "[gateway.loop_detection]\nrepeats = 3\n");
    place.tool(
        "claude",
        "#!/bin/sh\necho x >> count\n[ $(wc -l < count) -ge 2 ] && echo '{\"type\":\"result\",\"subtype\":\"success\",\"is_error\":false,\"result\":\"done\",\"session_id\":\"s1\"}' && exit 0\necho \"$ANTHROPIC_BASE_URL\" > url.new; mv url.new url\nwhile :; do sleep 0.1; done\n",
    );
    let api = api("[[step]]\nanswer = { text = \"Let me look.\" }\ntimes = \"always\"\n");
    let mut command = place.command(&LINE);
    command
        .env("ANTHROPIC_BASE_URL", api.url())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped());
    let child = command.spawn().unwrap();
    let url = until("the agent runs", || {
        fs::read_to_string(place.project().join("url")).ok()
    });
    for turns in 1..=4 {
        repeat(url.trim(), turns);
    }
    let output = child.wait_with_output().unwrap();
    let told = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{told}");
    assert!(told.contains("loop detected"), "{told}");
    let failed = place.events("attempt_failed");
    assert_eq!(failed.len(), 1, "{told}");
    assert_eq!(failed[0]["diagnosis"]["kind"], "stuck");
    let rule = &failed[0]["diagnosis"]["evidence"]["rule"];
    assert_eq!(rule, "stuck.looping");
}
