//! Success, failure and waits of an agent, as shown by its API calls.

use std::process::Stdio;

use super::{QUICK, api, asked, by_user, claude, ended, exec, until};
use crate::Place;
use crate::output_snapshot::assert_output;

/// Returns a place with an agent that calls its API once per execution, and always ends in this way.
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

/// Runs `exec` for agents that read other variables.
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

/// aider always exits with code 0: the result of its last API call decides.
#[test]
fn broken_response_is_a_failure_despite_exit_code_0() {
    let place = agent("aider", "ANTHROPIC_API_BASE", "echo 'As far as it'; exit 0");
    let api = api("[[step]]\ncut = {}\ntimes = \"always\"\n");
    let ended = exec_with(&place, &api, "ANTHROPIC_API_BASE", &AIDER);
    ended.told(3, &[]);
    assert_output!(place, ended.stderr);
    assert!(place.events("attempt_succeeded").is_empty());
}

#[test]
fn next_attempt_succeeds_after_a_broken_response() {
    let place = agent("aider", "ANTHROPIC_API_BASE", "echo 'All done'; exit 0");
    let api = api(
        "[[step]]\ncut = {}\n[[step]]\nanswer = { text = \"All done.\" }\ntimes = \"always\"\n",
    );
    let ended = exec_with(&place, &api, "ANTHROPIC_API_BASE", &AIDER);
    ended.told(0, &[]);
    assert_output!(place, ended.stderr);
    assert_eq!(place.lines("count").len(), 2);
}

/// Its messages about failures that it recovered from are ignored.
#[test]
fn agent_that_recovered_by_itself_is_not_rerun() {
    let said = "echo 'litellm.InternalServerError: AnthropicException - Overloaded'; echo 'Retrying in 0.2 seconds...'; echo 'All done.'; exit 0";
    let place = agent("aider", "ANTHROPIC_API_BASE", said);
    let api = api("[[step]]\nanswer = { text = \"All done.\" }\ntimes = \"always\"\n");
    exec_with(&place, &api, "ANTHROPIC_API_BASE", &AIDER).told(0, &[]);
    assert_eq!(place.lines("count").len(), 1);
    assert!(place.events("attempt_failed").is_empty());
}

/// A start-up warning on the screen does not hide the API's error.
#[test]
fn failed_call_overrides_the_screen_output() {
    let place = agent(
        "qwen",
        "ANTHROPIC_BASE_URL",
        "echo 'Ripgrep not available: spawn rg EACCES: permission denied' >&2; exit 1",
    );
    let api = api("[[step]]\nquota = {}\ntimes = \"always\"\n");
    let ended = exec(&place, &api, &["exec", "--", "qwen", "-p", "do the work"]);
    ended.told(3, &[]);
    // The agent's own line may come before or after that of the gateway.
    let warning = "Ripgrep not available: spawn rg EACCES: permission denied\n";
    assert_output!(place, ended.stderr.replace(warning, ""));
    let failed = place.events("attempt_failed");
    assert_eq!(failed[0]["diagnosis"]["kind"], "quota_exhausted");
}

/// The gateway is not used there, and the agent must not be treated as if it were.
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

/// Agents with a subscription login that uses another URL than the configured one: the name, and the login's file.
const SUBSCRIPTION_LOGINS: [(&str, &str, &str); 3] = [
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

/// Writes the file of a login.
fn log_in(place: &Place, file: &str, login: &str) {
    let path = place.folder.path().join(file);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, login).unwrap();
}

/// A login that bypasses the gateway still allows this: the agent's own output is diagnosed, and it is retried.
#[test]
fn agent_with_a_subscription_login_is_retried_without_the_gateway() {
    for (name, file, login) in SUBSCRIPTION_LOGINS {
        let place = agent(
            name,
            "API_OF_LOGIN",
            "[ -e failed ] && echo 'All done.' && exit 0; touch failed; \
             echo 'API Error: 529 overloaded_error: Overloaded' >&2; exit 1",
        );
        log_in(&place, file, login);
        let api = api("[[step]]\nanswer = { text = \"Done.\" }\ntimes = \"always\"\n");
        let line = match name {
            "codex" => ["exec", "--", name, "exec", "do the work"],
            _ => ["exec", "--", name, "-p", "do the work"],
        };
        let mut command = place.command(&line);
        command.env("API_OF_LOGIN", api.url());
        let ended = ended(&mut command);
        ended.told(0, &["server_overloaded"]);
        assert!(
            ended.stdout.contains("All done."),
            "{name} {}",
            ended.stdout
        );
        assert_eq!((place.lines("count").len(), asked(&api)), (2, 2), "{name}");
        let variables = place.lines("variables").join("\n");
        assert!(!variables.contains("UNSTUCK_GATEWAY"), "{name} {variables}");
    }
}

/// Logins that use another URL are left alone; one that uses the configured URL is not.
#[test]
fn subscription_logins_that_would_bypass_the_gateway_are_left_alone() {
    for (name, file, login) in SUBSCRIPTION_LOGINS {
        let place = agent(name, "ANTHROPIC_BASE_URL", "echo 'Done.'; exit 0");
        log_in(&place, file, login);
        let line = match name {
            "codex" => ["exec", "--", name, "exec", "do the work"],
            _ => ["exec", "--", name, "-p", "do the work"],
        };
        // The result does not matter here: only the command line.
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

/// Copilot CLI exits with code 1 and no message when the response to a resumed conversation is empty.
#[test]
fn silent_exit_after_an_empty_response_is_an_empty_response_failure() {
    let place = agent(
        "aider",
        "ANTHROPIC_API_BASE",
        "[ -e second ] && echo 'All done.' && exit 0; touch second; exit 1",
    );
    let api = api(
        "[[step]]\nempty = {}\n[[step]]\nanswer = { text = \"All done.\" }\ntimes = \"always\"\n",
    );
    let ended = exec_with(&place, &api, "ANTHROPIC_API_BASE", &AIDER);
    ended.told(0, &[]);
    assert_output!(place, ended.stderr);
}

/// Codex prints the prompt before its work. Without a gateway only its output is known, and the prompt is not part of
/// its messages.
#[test]
fn printed_prompt_is_not_taken_for_a_failure() {
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
    ended.told(0, &[]);
    assert_output!(place, ended.stderr);
    assert_eq!(place.lines("count").len(), 2);
}

/// With a GitHub login our URL would break the login; a provider configured by the user goes through the gateway.
#[test]
fn copilot_uses_the_gateway_only_with_its_own_provider() {
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

/// Work done before an escalation is kept.
#[test]
fn conversation_continues_after_an_answered_escalation() {
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
fn killed_gateway_wait_is_resumed_with_the_conversation() {
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
    // Called once before the reset, once after it.
    assert_eq!(asked(&api), 2);
    let lines = place.lines("lines").join("\n");
    assert!(lines.contains("--resume"), "{lines}");
    assert!(
        lines.contains("crashed before the task was done"),
        "{lines}"
    );
    let waits = place.events("waiting_until");
    assert_eq!(waits.len(), 1, "{waits:?}");
    let shown = place.run(&["show"], "");
    assert!(!shown.stdout.contains("first attempt"), "{}", shown.stdout);
}

/// A conversation that never began, or is gone, costs one attempt and no escalation.
#[test]
fn lost_conversation_is_started_again() {
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
    ended.told(0, &["no longer exists"]);
    let lines = place.lines("lines");
    assert_eq!(lines.len(), 3, "{lines:?}");
    assert!(lines[1].contains("--resume") && !lines[2].contains("--resume"));
    assert!(lines[2].contains("was interrupted"), "{}", lines[2]);
}

/// Raw events of an agent are not an answer, and no other role can use them.
#[test]
fn role_without_an_answer_fails_and_has_no_output() {
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
    let ended = place.run(&["run"], "");
    ended.told(0, &[]);
    assert_output!(place, ended.stderr);
    assert_eq!(place.lines("count").len(), 2);
    assert_eq!(place.of_run("roles/builder/output.md").trim(), "Built.");
}
