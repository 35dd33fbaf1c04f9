//! The scripted agent: its output is input for the supervisor.

use std::time::Duration;

use assert_cmd::Command;
use serde_json::Value;
use unstuck_core::{Failure, FailureKind, classify};
use unstuck_faults::{FaultScript, FaultScriptReply, FaultServer, ScriptedToolFailure};

use crate::exchange::now;

/// The result of a run of the agent.
struct Ended {
    code: i32,
    stdout: String,
    stderr: String,
}

impl Ended {
    fn failure(&self) -> Failure {
        Failure::agent("claude")
            .with_exit_code(self.code)
            .with_stdout(self.stdout.as_str())
            .with_stderr(self.stderr.as_str())
    }

    fn kind(&self) -> FailureKind {
        classify(&self.failure(), &now()).kind
    }
}

fn agent(url: &str, args: &[&str]) -> Ended {
    let output = Command::cargo_bin("unstuck-faults")
        .unwrap()
        .args(["agent", "-p", "Fix the tests", "--timeout", "1"])
        .args(args)
        .env("FAULTS_API_URL", url)
        .output()
        .unwrap();
    Ended {
        code: output.status.code().unwrap(),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

fn meets(reply: FaultScriptReply, args: &[&str]) -> Ended {
    let server = FaultServer::start(FaultScript::default().with_step(reply)).unwrap();
    agent(&server.url(), args)
}

#[test]
fn text_output_is_only_the_answer() {
    let ended = meets(FaultScriptReply::answer("The tests pass."), &[]);
    assert_eq!(
        (ended.code, ended.stdout.as_str()),
        (0, "The tests pass.\n")
    );
    assert_eq!(ended.stderr, "");
}

#[test]
fn failures_are_diagnosed_in_both_formats_and_never_retried() {
    let expected = [
        (
            FaultScriptReply::RateLimit {
                retry_after: Some(7),
            },
            FailureKind::RateLimit,
        ),
        (
            FaultScriptReply::usage_limit(Duration::from_secs(3600)),
            FailureKind::RateLimitTimed,
        ),
        (FaultScriptReply::Quota, FailureKind::QuotaExhausted),
        (FaultScriptReply::Overloaded, FailureKind::ServerOverloaded),
        (FaultScriptReply::ServerError, FailureKind::ServerError),
        (FaultScriptReply::Auth, FailureKind::AuthRequired),
        (FaultScriptReply::ContextLimit, FailureKind::ContextLimit),
        (FaultScriptReply::ModelNotFound, FailureKind::ModelNotFound),
        (FaultScriptReply::Refusal, FailureKind::ContentFilter),
        (FaultScriptReply::Cut, FailureKind::NetworkError),
        (FaultScriptReply::StreamError, FailureKind::ServerOverloaded),
        (
            FaultScriptReply::Html { status: None },
            FailureKind::ServerError,
        ),
        (FaultScriptReply::Hang, FailureKind::Timeout),
        (FaultScriptReply::Stall, FailureKind::Timeout),
    ];
    let mut wrong = Vec::new();
    for (reply, kind) in expected {
        for format in ["text", "json"] {
            let server =
                FaultServer::start(FaultScript::default().with_step(reply.clone())).unwrap();
            let ended = agent(&server.url(), &["--output-format", format]);
            let found = (ended.code, ended.kind(), server.requests().len());
            if found != (1, kind, 1) {
                wrong.push(format!(
                    "{reply:?} in {format}: {found:?}, {}",
                    ended.stdout
                ));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn an_empty_answer_exits_with_success_but_is_diagnosed() {
    let ended = meets(FaultScriptReply::Empty, &["--output-format", "json"]);
    assert_eq!((ended.code, ended.kind()), (0, FailureKind::EmptyOutput));
}

#[test]
fn stated_waits_are_preserved_by_the_agent() {
    let limited = meets(
        FaultScriptReply::RateLimit {
            retry_after: Some(7),
        },
        &[],
    );
    let wait = classify(&limited.failure(), &now()).retry_after;
    assert_eq!(wait, Some(Duration::from_secs(7)));
    let limited = meets(
        FaultScriptReply::usage_limit(Duration::from_secs(3600)),
        &[],
    );
    let wait = classify(&limited.failure(), &now()).retry_after.unwrap();
    let expected = Duration::from_secs(3500)..=Duration::from_secs(3601);
    assert!(expected.contains(&wait), "{wait:?}");
}

#[test]
fn json_output_shows_failures_only_in_is_error() {
    let ended = meets(FaultScriptReply::Overloaded, &["--output-format", "json"]);
    let object: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!(
        (&object["type"], &object["subtype"]),
        (&"result".into(), &"success".into())
    );
    assert_eq!(
        (&object["is_error"], &object["api_error_status"]),
        (&true.into(), &529.into())
    );
    let ended = meets(
        FaultScriptReply::answer("Done"),
        &["--output-format", "json"],
    );
    let object: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!(
        (&object["is_error"], &object["result"]),
        (&false.into(), &"Done".into())
    );
    assert!(object["total_cost_usd"].as_f64() > Some(0.0));
    assert!(object["usage"]["input_tokens"].as_u64() > Some(0));
}

#[test]
fn a_resumed_session_keeps_its_id() {
    let server = FaultServer::start(FaultScript::answering("Done")).unwrap();
    let args = [
        "--resume",
        "session-7",
        "--output-format",
        "json",
        "--model",
        "opus",
    ];
    let ended = agent(&server.url(), &args);
    let object: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!(object["session_id"], "session-7");
    let request = &server.requests()[0];
    assert_eq!(
        (request.model.as_str(), request.header("x-session-id")),
        ("opus", Some("session-7"))
    );
}

#[test]
fn a_failing_tool_is_reported_on_standard_error() {
    let failure = ScriptedToolFailure {
        stderr: "cargo: error: No space left on device (os error 28)".into(),
        exit_code: 101,
    };
    let ended = meets(FaultScriptReply::ToolFailure(failure), &[]);
    assert_eq!((ended.code, ended.stdout.as_str()), (101, ""));
    assert_eq!(
        ended.stderr,
        "cargo: error: No space left on device (os error 28)\n"
    );
    assert_eq!(ended.kind(), FailureKind::DiskFull);
}

#[test]
fn an_unreachable_server_is_a_network_error() {
    let server = FaultServer::start(FaultScript::answering("Done")).unwrap();
    let url = server.url();
    server.stop();
    let ended = agent(&url, &[]);
    assert_eq!((ended.code, ended.kind()), (1, FailureKind::NetworkError));
}

#[test]
fn wrong_arguments_have_their_own_exit_code() {
    assert_eq!(agent("http://127.0.0.1:1", &["--no-such-flag"]).code, 2);
    let ended = agent("not an address", &[]);
    assert_eq!(ended.code, 1);
    assert!(
        ended.stdout.contains("`not an address` is not a URL"),
        "{}",
        ended.stdout
    );
}
