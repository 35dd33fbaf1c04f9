//! Known pitfalls of providers and agents.

use super::*;

/// Quota errors use 400, 403 and 429; an invalid key uses 400.
#[test]
fn body_beats_the_status() {
    for (status, body, expected) in [
        (
            429,
            r#"{"error":{"code":"insufficient_quota"}}"#,
            FailureKind::QuotaExhausted,
        ),
        (
            400,
            r#"{"error":{"message":"Your credit balance is too low to access the Anthropic API"}}"#,
            FailureKind::QuotaExhausted,
        ),
        (
            400,
            r#"{"error":{"status":"INVALID_ARGUMENT","message":"API key not valid","details":[{"reason":"API_KEY_INVALID"}]}}"#,
            FailureKind::AuthRequired,
        ),
        (
            429,
            r#"{"error":{"details":[{"reason":"MODEL_CAPACITY_EXHAUSTED"}]}}"#,
            FailureKind::ServerOverloaded,
        ),
        (
            429,
            r#"{"error":{"message":"Request too large for gpt-5.1 on tokens per min (TPM): Limit 30000, Requested 48211."}}"#,
            FailureKind::ContextLimit,
        ),
    ] {
        assert_eq!(kind(&answer(status, body)), expected, "{body}");
    }
}

/// A typed field weighs more than the surrounding words.
#[test]
fn structure_beats_text() {
    let body = r#"{"type":"error","error":{"type":"overloaded_error","message":"The request timed out in the queue after 401 tries: rate limit of the context length pool"}}"#;
    assert_eq!(kind(&answer(529, body)), FailureKind::ServerOverloaded);
}

/// Early errors in a log are noise once the run continued.
#[test]
fn last_fatal_error_beats_early_noise() {
    let mut log = String::from(
        "warning: connection reset by peer, retrying\nnpm warn deprecated rimraf@2: 401 Unauthorized\n",
    );
    for step in 0..60 {
        log.push_str(&format!("compiled module {step}\n"));
    }
    log.push_str("write /var/cache/x: no space left on device\n");
    let failure = Failure::infra("make").with_exit_code(2).with_stderr(log);
    assert_eq!(kind(&failure), FailureKind::DiskFull);
}

/// A failed assertion is a test failure, whatever its text mentions.
#[test]
fn failed_test_that_mentions_429_is_a_test_failure() {
    let log = "running 1 test\ntest limits::answers_429 ... FAILED\n\n---- limits::answers_429 stdout ----\nthread 'limits::answers_429' panicked at src/limits.rs:12:9:\nassertion `left == right` failed: HTTP 429 Too Many Requests, rate limit exceeded\n  left: 200\n right: 429\n\ntest result: FAILED. 0 passed; 1 failed; 0 ignored\n\nerror: test failed, to rerun pass `--lib`\n";
    let failure = Failure::infra("cargo").with_exit_code(101).with_stdout(log);
    let diagnosis = diagnose(&failure);
    assert_eq!(diagnosis.kind, FailureKind::TestFailure);
    assert_eq!((diagnosis.level, diagnosis.is_retryable()), (None, false));
}

/// The output of a successful run is never searched for failure words.
#[test]
fn success_that_mentions_429_is_not_a_failure() {
    let words = "Added a retry for 429 Too Many Requests: rate limit exceeded, 401 Unauthorized and timeouts.";
    for failure in [
        Failure::agent("claude")
            .with_exit_code(0)
            .with_stdout(words)
            .with_stderr(""),
        Failure::tool("cat").with_exit_code(0).with_stdout(words),
        Failure::tool("make")
            .with_exit_code(0)
            .with_stdout(words)
            .with_stderr(""),
        Failure::api("openai").with_status(200).with_body(format!(
            r#"{{"choices":[{{"message":{{"content":"{words}"}},"finish_reason":"stop"}}]}}"#
        )),
        Failure::agent("claude")
            .with_exit_code(0)
            .with_stdout(format!(
                r#"{{"type":"result","subtype":"success","is_error":false,"result":"{words}"}}"#
            )),
    ] {
        let diagnosis = diagnose(&failure);
        assert_eq!(
            diagnosis.kind,
            FailureKind::None,
            "{failure:?}\n{:?}",
            diagnosis.evidence
        );
        assert_eq!((diagnosis.level, diagnosis.retry_after), (None, None));
    }
}

/// A run that ended well and wrote something did not fail.
#[test]
fn healthy_run_is_not_a_failure() {
    for failure in [
        Failure::agent("codex")
            .with_exit_code(0)
            .with_stdout("Done: 3 files changed.")
            .with_stderr(""),
        Failure::tool("ls")
            .with_exit_code(0)
            .with_stdout("a\nb\n")
            .with_stderr(""),
        Failure::tool("true")
            .with_exit_code(0)
            .with_stdout("")
            .with_stderr(""),
        Failure::tool("grep")
            .with_exit_code(1)
            .with_stdout("")
            .with_stderr(""),
        Failure::infra("pytest")
            .with_exit_code(0)
            .with_stdout("===== 12 passed in 0.31s ====="),
    ] {
        assert_eq!(kind(&failure), FailureKind::None, "{failure:?}");
    }
}

/// Shells and tools use the language of their user.
#[test]
fn other_languages_are_understood() {
    for (text, expected) in [
        (
            "bash: Zeile 1: htpo: Kommando nicht gefunden.",
            FailureKind::CommandNotFound,
        ),
        (
            "bash: 行 1: pwsh: コマンドが見つかりません",
            FailureKind::CommandNotFound,
        ),
        (
            "cat: a.txt: Datei oder Verzeichnis nicht gefunden",
            FailureKind::FileNotFound,
        ),
        (
            "cat: a.txt: Aucun fichier ou dossier de ce type",
            FailureKind::FileNotFound,
        ),
        (
            "ls: impossible d'ouvrir le répertoire '/root': Permission non accordée",
            FailureKind::PermissionDenied,
        ),
        (
            "cp: невозможно создать обычный файл '/usr/bin/a': Отказано в доступе",
            FailureKind::PermissionDenied,
        ),
        (
            "rm: 无法删除 '/etc/hosts.allow': 权限不够",
            FailureKind::PermissionDenied,
        ),
        (
            "cp: Fehler beim Schreiben von 'b': Auf dem Gerät ist kein Speicherplatz mehr verfügbar",
            FailureKind::DiskFull,
        ),
    ] {
        let failure = Failure::tool("bash").with_exit_code(1).with_stderr(text);
        assert_eq!(kind(&failure), expected, "{text}");
    }
}

/// A response truncated at its length limit is not a failure, but is marked.
#[test]
fn truncated_response_is_marked() {
    let cut = |reason: &str| {
        diagnose(&answer(
            200,
            &format!(
                r#"{{"type":"message","content":[{{"type":"text","text":"and then"}}],"stop_reason":"{reason}"}}"#
            ),
        ))
    };
    assert!(cut("max_tokens").truncated);
    assert_eq!(cut("max_tokens").kind, FailureKind::None);
    assert!(!cut("end_turn").truncated);
    let openai = answer(
        200,
        r#"{"choices":[{"message":{"content":"and"},"finish_reason":"length"}]}"#,
    );
    assert!(diagnose(&openai).truncated);
}

/// A stream that began well can still end in an error.
#[test]
fn error_event_inside_a_200_stream_is_a_failure() {
    let stream = "event: message_start\ndata: {\"type\":\"message_start\"}\n\nevent: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"delta\":{\"text\":\"429\"}}\n\nevent: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"Overloaded\"}}\n\n";
    let failure = Failure::api("anthropic").with_status(200).with_body(stream);
    assert_eq!(kind(&failure), FailureKind::ServerOverloaded);
}

/// Claude Code reports API failures with the subtype "success", goose and aider with code 0.
#[test]
fn failure_reported_as_success_is_detected() {
    let result = r#"{"type":"result","subtype":"success","is_error":true,"api_error_status":429,"result":"API Error: Request rejected (429) · slow down"}"#;
    for code in [0, 1] {
        let failure = Failure::agent("claude")
            .with_exit_code(code)
            .with_stdout(result);
        assert_eq!(kind(&failure), FailureKind::RateLimit);
    }
    for (tool, text, expected) in [
        (
            "goose",
            "Ran into this error: Server error: Server error (500 Internal Server Error) at URL: x.",
            FailureKind::ServerError,
        ),
        (
            "aider",
            "litellm.RateLimitError: RateLimitError: OpenAIException - slow down",
            FailureKind::RateLimit,
        ),
    ] {
        let failure = Failure::agent(tool)
            .with_exit_code(0)
            .with_stdout(text)
            .with_stderr("");
        assert_eq!(kind(&failure), expected, "{text}");
    }
}

/// Gemini CLI exits with the HTTP status modulo 256: 144 to 147 are not signals.
#[test]
fn exit_code_that_encodes_a_status_is_not_a_signal() {
    let refused = Failure::agent("gemini").with_exit_code(145).with_stdout("").with_stderr(
        r#"{"session_id":"7f","error":{"type":"Error","message":"401 Unauthorized","code":401}}"#,
    );
    assert_eq!(kind(&refused), FailureKind::AuthRequired);
}
