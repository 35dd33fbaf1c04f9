//! What an agent's API calls tell of its success, of its failures, and of what it waited for.

use std::process::Stdio;

use super::{QUICK, api, asked, by_user, claude, ended, exec, until};
use crate::Place;

/// An agent that asks its API once each time it is called, and ends in this way whatever comes of it.
fn agent(name: &str, variable: &str, end: &str) -> Place {
    let place = Place::new();
    place.write("unstuck.toml", QUICK);
    let unstuck = env!("CARGO_BIN_EXE_unstuck");
    place.tool(
        name,
        &format!(
            "#!/bin/sh\necho x >> count; echo \"$*\" >> lines; env >> variables\nFAULTS_API_URL=\"${variable}\" \"{unstuck}\" __demo-agent -p x\n{end}\n"
        ),
    );
    place
}

/// As `exec`, but for agents that read other variables.
fn exec_with(
    place: &Place,
    api: &unstuck_faults::FaultServer,
    variable: &str,
    args: &[&str],
) -> crate::Ended {
    let mut command = place.command(args);
    command.env(variable, api.url());
    ended(&mut command)
}

const AIDER: [&str; 5] = ["exec", "--", "aider", "-m", "do the work"];

/// aider always ends with exit code 0: what its last API call came to decides.
#[test]
fn an_answer_that_broke_off_is_no_success_though_the_exit_code_is_0() {
    let place = agent("aider", "ANTHROPIC_API_BASE", "echo 'As far as it'; exit 0");
    let api = api("[[step]]\ncut = {}\ntimes = \"always\"\n");
    let ended = exec_with(&place, &api, "ANTHROPIC_API_BASE", &AIDER);
    ended.told(3, &["network_error"]);
    assert!(place.events("attempt_succeeded").is_empty());
}

#[test]
fn after_an_answer_that_broke_off_the_next_attempt_succeeds() {
    let place = agent("aider", "ANTHROPIC_API_BASE", "echo 'All done'; exit 0");
    let api = api(
        "[[step]]\ncut = {}\n[[step]]\nanswer = { text = \"All done.\" }\ntimes = \"always\"\n",
    );
    exec_with(&place, &api, "ANTHROPIC_API_BASE", &AIDER).told(0, &["recovered"]);
    assert_eq!(place.lines("count").len(), 2);
}

/// What it says of failures that it has got over by itself is history.
#[test]
fn an_agent_that_recovered_by_itself_is_not_run_again() {
    let said = "echo 'litellm.InternalServerError: AnthropicException - Overloaded'; echo 'Retrying in 0.2 seconds...'; echo 'All done.'; exit 0";
    let place = agent("aider", "ANTHROPIC_API_BASE", said);
    let api = api("[[step]]\nanswer = { text = \"All done.\" }\ntimes = \"always\"\n");
    exec_with(&place, &api, "ANTHROPIC_API_BASE", &AIDER).told(0, &[]);
    assert_eq!(place.lines("count").len(), 1);
    assert!(place.events("attempt_failed").is_empty());
}

/// A start-up warning on the screen does not hide what the API said.
#[test]
fn the_call_that_failed_says_more_than_the_screen() {
    let place = agent(
        "qwen",
        "ANTHROPIC_BASE_URL",
        "echo 'Ripgrep not available: spawn rg EACCES: permission denied' >&2; exit 1",
    );
    let api = api("[[step]]\nquota = {}\ntimes = \"always\"\n");
    let ended = exec(&place, &api, &["exec", "--", "qwen", "-p", "do the work"]);
    ended.told(3, &["quota_exhausted"]);
    let failed = place.events("attempt_failed");
    assert_eq!(failed[0]["diagnosis"]["kind"], "quota_exhausted");
}

/// There the gateway is not in the path, and nothing about the agent may be changed as if it were.
#[test]
fn claude_on_bedrock_is_left_alone() {
    let place = agent("claude", "ANTHROPIC_BASE_URL", "echo 'Done.'; exit 0");
    let api = api("[[step]]\nanswer = { text = \"Done.\" }\ntimes = \"always\"\n");
    let line = ["exec", "--", "claude", "-p", "do the work"];
    let mut command = place.command(&line);
    command.env("ANTHROPIC_BASE_URL", api.url());
    command.env("CLAUDE_CODE_USE_BEDROCK", "1");
    ended(&mut command).told(0, &[]);
    let variables = place.lines("variables").join("\n");
    assert!(!variables.contains("UNSTUCK_GATEWAY"), "{variables}");
    exec(&place, &api, &line).told(0, &[]);
    let variables = place.lines("variables").join("\n");
    assert!(variables.contains("UNSTUCK_GATEWAY"), "{variables}");
}

/// Logins whose traffic has another address are left alone; one that goes where it is sent is not.
#[test]
fn subscription_logins_that_would_bypass_the_gateway_are_left_alone() {
    let logins = [
        (
            "codex",
            ".codex/auth.json",
            r#"{"tokens":{"refresh_token":"r"}}"#,
        ),
        (
            "gemini",
            ".gemini/settings.json",
            r#"{"security":{"auth":{"selectedType":"oauth-personal"}}}"#,
        ),
        (
            "qwen",
            ".qwen/settings.json",
            r#"{"security":{"auth":{"selectedType":"qwen-oauth"}}}"#,
        ),
    ];
    for (name, file, login) in logins {
        let place = agent(name, "ANTHROPIC_BASE_URL", "echo 'Done.'; exit 0");
        let path = place.folder.path().join(file);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, login).unwrap();
        let line = match name {
            "codex" => ["exec", "--", name, "exec", "do the work"],
            _ => ["exec", "--", name, "-p", "do the work"],
        };
        // What comes of it does not matter here: only how it is called.
        place.run(&line, "");
        let variables = place.lines("variables").join("\n");
        assert!(!variables.contains("UNSTUCK_GATEWAY"), "{name} {variables}");
    }
    let place = agent("claude", "ANTHROPIC_BASE_URL", "exit 0");
    let api = api("[[step]]\nanswer = { text = \"Done.\" }\ntimes = \"always\"\n");
    let mut command = place.command(&["exec", "--", "claude", "-p", "do the work"]);
    command.env("ANTHROPIC_BASE_URL", api.url());
    command.env("CLAUDE_CODE_OAUTH_TOKEN", "made-up");
    ended(&mut command).told(0, &[]);
    let variables = place.lines("variables").join("\n");
    assert!(variables.contains("UNSTUCK_GATEWAY"), "{variables}");
    assert_eq!(asked(&api), 1);
}

/// Copilot CLI ends with exit code 1 and without a word when the answer to a resumed conversation is empty.
#[test]
fn an_agent_that_ended_after_an_empty_answer_without_a_word_has_failed_of_that() {
    let place = agent(
        "aider",
        "ANTHROPIC_API_BASE",
        "[ -e second ] && echo 'All done.' && exit 0; touch second; exit 1",
    );
    let api = api(
        "[[step]]\nempty = {}\n[[step]]\nanswer = { text = \"All done.\" }\ntimes = \"always\"\n",
    );
    let ended = exec_with(&place, &api, "ANTHROPIC_API_BASE", &AIDER);
    ended.told(0, &["empty_output", "recovered"]);
}

/// Codex prints the prompt before its work. Without a gateway its words alone tell, and those of the prompt are not its own.
#[test]
fn a_prompt_that_an_agent_prints_is_not_taken_for_its_failure() {
    let place = Place::new();
    place.write("unstuck.toml", QUICK);
    place.tool(
        "codex",
        r#"#!/bin/sh
echo x >> count; for last; do :; done
printf 'session id: 01a1\n--------\nuser\n%s\n' "$last" >&2
[ $(wc -l < count) -ge 2 ] && echo 'All done.' && exit 0
printf "ERROR: You\342\200\231ve hit your usage limit. Try again in 1 second.\n" >&2; exit 1
"#,
    );
    let login = place.folder.path().join(".codex/auth.json");
    std::fs::create_dir_all(login.parent().unwrap()).unwrap();
    std::fs::write(login, r#"{"tokens":{"refresh_token":"r"}}"#).unwrap();
    let prompt = "find out why it says: ERROR: You've hit your usage limit";
    let ended = place.run(&["exec", "--", "codex", "exec", prompt], "");
    ended.told(
        0,
        &[
            "rate_limit",
            "goes on in the same conversation",
            "recovered",
        ],
    );
    assert_eq!(place.lines("count").len(), 2);
}

/// With a GitHub login an address of ours would undo the login; a provider of the user's own is sent through the gateway.
#[test]
fn copilot_is_sent_through_the_gateway_only_where_it_has_a_provider_of_its_own() {
    let place = agent("copilot", "COPILOT_PROVIDER_BASE_URL", "exit 0");
    let api = api("[[step]]\nanswer = { text = \"Done.\" }\ntimes = \"always\"\n");
    let line = ["exec", "--", "copilot", "-p", "do the work"];
    let mut command = place.command(&line);
    command.env("FAULTS_API_URL", api.url());
    ended(&mut command);
    let variables = place.lines("variables").join("\n");
    assert!(
        !variables.contains("COPILOT_PROVIDER_BASE_URL"),
        "{variables}"
    );
    let mut command = place.command(&line);
    command.env("COPILOT_PROVIDER_BASE_URL", format!("{}/v1", api.url()));
    ended(&mut command);
    let variables = place.lines("variables").join("\n");
    assert!(variables.contains("/openai/v1"), "{variables}");
    let lines = place.lines("lines");
    assert!(lines[1].contains("--session-id"), "{lines:?}");
}

const CLAUDE: [&str; 7] = [
    "exec",
    "--",
    "claude",
    "-p",
    "--output-format",
    "json",
    "do the work",
];

/// The work that was done before a person was asked is not thrown away.
#[test]
fn after_an_answered_question_the_conversation_goes_on() {
    let place = Place::new();
    place.write("unstuck.toml", QUICK);
    place.tool(
        "claude",
        r#"#!/bin/sh
echo x >> count; echo "$*" | tr '\n' ' ' >> lines; echo >> lines
case "$*" in
*--resume*) echo '{"type":"result","is_error":false,"result":"All done.","session_id":"11-22","usage":{"output_tokens":9}}';;
*) echo '{"type":"assistant","session_id":"11-22","message":{"content":[{"type":"tool_use","id":"a","name":"Bash","input":{"command":"make"}}]}}'
echo '{"type":"result","is_error":true,"api_error_status":401,"result":"Invalid API key · Fix external API key","session_id":"11-22","num_turns":3,"usage":{"output_tokens":90}}'; exit 1;;
esac
"#,
    );
    let line = [
        "exec",
        "--",
        "claude",
        "-p",
        "do the work",
        "--output-format",
        "stream-json",
    ];
    place.run(&line, "").told(3, &[]);
    place.run(&["resume"], "").told(0, &[]);
    let lines = place.lines("lines");
    assert_eq!(lines.len(), 2, "{lines:?}");
    let second = &lines[1];
    assert!(second.contains("--resume 11-22"), "{second}");
    assert!(second.contains("The unfinished step is `Bash"), "{second}");
    assert!(second.contains("do the work"), "{second}");
}

/// A wait inside the gateway survives kill -9, and so does the conversation.
#[test]
fn after_a_kill_during_a_wait_of_the_gateway_the_limit_is_waited_out_and_the_conversation_goes_on()
{
    let place = Place::new();
    place.write("unstuck.toml", QUICK);
    claude(&place);
    by_user(&place, "[gateway.timeouts]\nclient_wait = \"1m\"\n");
    let api = api(
        "[[step]]\nusage_limit = { resets_in = \"5s\" }\n[[step]]\nanswer = { text = \"All done.\" }\ntimes = \"always\"\n",
    );
    let mut command = place.command(&CLAUDE);
    command.env("ANTHROPIC_BASE_URL", api.url());
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    until("the wait is written down", || {
        let shown = place.run(&["show"], "");
        shown.stdout.contains("rate_limit_timed").then_some(())
    });
    child.kill().unwrap();
    child.wait().unwrap();
    let mut command = place.command(&["resume"]);
    command.env("ANTHROPIC_BASE_URL", api.url());
    let resumed = ended(&mut command);
    resumed.told(0, &[]);
    // Asked once before the reset, once after it.
    assert_eq!(asked(&api), 2);
    let lines = place.lines("lines").join("\n");
    assert!(lines.contains("--resume"), "{lines}");
    assert!(lines.contains("crashed before the task was done"), "{lines}");
    let waits = place.events("waiting_until");
    assert_eq!(waits.len(), 1, "{waits:?}");
    let shown = place.run(&["show"], "");
    assert!(!shown.stdout.contains("first try"), "{}", shown.stdout);
}

/// A conversation that was never begun, or is gone, costs one attempt and no question.
#[test]
fn a_conversation_that_is_gone_is_begun_anew() {
    let place = Place::new();
    place.write("unstuck.toml", QUICK);
    place.tool(
        "claude",
        r#"#!/bin/sh
echo x >> count; echo "$*" | tr '\n' ' ' >> lines; echo >> lines
case "$*" in *--resume*) echo 'No conversation found with session ID: 11-22' >&2; exit 1;; esac
[ $(wc -l < count) -ge 3 ] && echo 'All done.' && exit 0
echo '{"type":"result","is_error":true,"api_error_status":429,"result":"Claude AI usage limit reached|'$(($(date +%s)+1))'","session_id":"11-22"}'; exit 1
"#,
    );
    let ended = place.run(&["exec", "--", "claude", "-p", "do the work"], "");
    ended.told(0, &["not there any more"]);
    let lines = place.lines("lines");
    assert_eq!(lines.len(), 3, "{lines:?}");
    assert!(lines[1].contains("--resume") && !lines[2].contains("--resume"));
    assert!(lines[2].contains("was interrupted"), "{}", lines[2]);
}

/// Raw events of an agent are no answer, and nothing that another role could build on.
#[test]
fn a_role_without_an_answer_has_failed_and_its_events_are_not_its_output() {
    let place = Place::new();
    place.write(
        "unstuck.toml",
        &format!("{QUICK}[[role]]\nid = \"builder\"\nagent = \"codex\"\nprompt = \"Build.\"\n"),
    );
    place.tool(
        "codex",
        r#"#!/bin/sh
cat > /dev/null; echo x >> count
echo '{"type":"thread.started","thread_id":"t1"}'
[ $(wc -l < count) -ge 2 ] && echo '{"type":"item.completed","item":{"type":"agent_message","text":"Built."}}'
echo '{"type":"turn.completed","usage":{"input_tokens":9,"output_tokens":0}}'
"#,
    );
    place.run(&["run"], "").told(0, &["empty_output"]);
    assert_eq!(place.lines("count").len(), 2);
    assert_eq!(place.of_run("roles/builder/output.md").trim(), "Built.");
}
