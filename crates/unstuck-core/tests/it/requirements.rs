//! The requirements on classification, each test with their ids, and what else must not go wrong.

use unstuck_core::{Category, Failure, Kind, Level};

use super::{diagnose, kind};

fn category(failure: &Failure) -> Category {
    diagnose(failure).category()
}

/// An agent that ran in a pipeline: its code, what it wrote, and what the checks found wrong.
fn agent(code: i32, stdout: &str, stderr: &str, checks: &[&str]) -> Failure {
    Failure::agent("implementer")
        .with_exit_code(code)
        .with_stdout(stdout)
        .with_stderr(stderr)
        .with_validation_errors(checks.iter().copied())
}

fn answer(status: u16, body: &str) -> Failure {
    Failure::api("openai").with_status(status).with_body(body)
}

mod categories {
    use super::*;

    /// S0-03: every failure is mapped to a category, and that follows from the kind alone.
    #[test]
    fn a_diagnosis_has_the_category_of_its_kind() {
        for failure in crate::texts::failures() {
            let diagnosis = diagnose(&failure);
            assert_eq!(diagnosis.category(), diagnosis.kind.category());
            assert_ne!(diagnosis.kind, Kind::Unknown, "{failure:?}");
        }
    }

    /// S0-25: a rate limit is transient.
    #[test]
    fn a_rate_limit_is_transient() {
        let failure = answer(429, r#"{"error":{"code":"rate_limit_exceeded"}}"#);
        assert_eq!(kind(&failure), Kind::RateLimit);
        assert_eq!(category(&failure), Category::Transient);
        assert_eq!(diagnose(&failure).level, Some(Level::Same));
    }

    /// S0-26: a crash of the CLI is systematic.
    #[test]
    fn a_crash_of_the_cli_is_systematic() {
        let failure = Failure::agent("claude")
            .with_exit_code(139)
            .with_stderr("Segmentation fault (core dumped)");
        assert_eq!(kind(&failure), Kind::CliCrash);
        assert_eq!(category(&failure), Category::Systematic);
        assert_eq!(diagnose(&failure).level, Some(Level::Alternative));
    }

    /// S0-27: a missing login is fatal.
    #[test]
    fn a_missing_login_is_fatal() {
        let failure = answer(401, r#"{"error":{"code":"invalid_api_key"}}"#);
        assert_eq!(kind(&failure), Kind::AuthRequired);
        assert_eq!(category(&failure), Category::Fatal);
        assert_eq!(diagnose(&failure).level, Some(Level::Escalate));
    }
}

mod agents {
    use super::*;

    /// S1-01: the error types of the pipeline are kinds of ours, by the same names.
    #[test]
    fn every_error_type_of_the_pipeline_is_a_kind() {
        for name in [
            "timeout",
            "empty_output",
            "format_validation",
            "missing_sections",
            "diff_parse_error",
            "context_error",
            "unknown",
        ] {
            assert_eq!(name.parse::<Kind>().unwrap().name(), name);
        }
    }

    /// S1-02, S1-03, S1-39: code 124 is a timeout, also if the output is empty, wrong or without its diff.
    #[test]
    fn code_124_is_a_timeout() {
        assert_eq!(kind(&agent(124, "", "", &[])), Kind::Timeout);
        let all = agent(124, "", "", &["Missing section: # Tests"]);
        assert_eq!(kind(&all.with_diff_expected()), Kind::Timeout);
    }

    /// S1-04: an empty output is that, also if checks failed because of it.
    #[test]
    fn no_output_is_empty_output() {
        for stdout in ["", "  \n\t\n"] {
            assert_eq!(kind(&agent(0, stdout, "", &[])), Kind::EmptyOutput);
            assert_eq!(kind(&agent(1, stdout, "", &[])), Kind::EmptyOutput);
            let checked = agent(0, stdout, "", &["Missing section: # Tests", "too short"]);
            assert_eq!(kind(&checked), Kind::EmptyOutput);
            assert_eq!(kind(&checked.with_diff_expected()), Kind::EmptyOutput);
        }
    }

    /// S1-05, S1-40: a check that misses a section says so, in any letter case.
    #[test]
    fn a_missing_section_is_told_from_other_checks() {
        for check in ["Missing section: # Tests", "MISSING SECTION `Plan`"] {
            let failure = agent(0, "output", "", &[check]);
            assert_eq!(kind(&failure), Kind::MissingSections, "{check}");
            let both = agent(0, "output", "", &["line 3 is too long", check]);
            assert_eq!(kind(&both), Kind::MissingSections, "{check}");
        }
    }

    /// S1-06: any other failed check is a format that is wrong.
    #[test]
    fn another_failed_check_is_format_validation() {
        for check in ["line 3 is too long", "expected a table", "x"] {
            let failure = agent(0, "output", "", &[check]);
            assert_eq!(kind(&failure), Kind::FormatValidation, "{check}");
            assert_eq!(kind(&failure.with_diff_expected()), Kind::FormatValidation);
        }
    }

    /// S1-07: an output that has to contain a diff and has none.
    #[test]
    fn a_diff_that_was_expected_and_is_absent_is_a_diff_parse_error() {
        let without = agent(0, "I changed the file as you asked.", "", &[]);
        assert_eq!(kind(&without), Kind::None);
        assert_eq!(kind(&without.with_diff_expected()), Kind::DiffParseError);
        let with = agent(0, "diff --git a/x b/x\n--- a/x\n+++ b/x\n", "", &[]);
        assert_eq!(kind(&with.with_diff_expected()), Kind::None);
        let refused = agent(1, "patching", "error: patch does not apply", &[]);
        assert_eq!(kind(&refused), Kind::DiffParseError);
    }

    /// S1-08: a prompt that could not be filled is a context error.
    #[test]
    fn a_missing_placeholder_is_a_context_error() {
        for stderr in [
            "KeyError: 'design'",
            "Missing placeholder: {plan}",
            "MISSING PLACEHOLDER",
        ] {
            let failure = agent(1, "output", stderr, &[]);
            assert_eq!(kind(&failure), Kind::ContextError, "{stderr}");
        }
    }

    /// S1-09: the rules come in this order: 124, empty, checks, diff, context, unknown.
    #[test]
    fn the_first_of_the_pipelines_rules_counts() {
        let context = agent(1, "output", "KeyError: 'x'", &[]);
        assert_eq!(kind(&context), Kind::ContextError);
        let diff = context.with_diff_expected();
        assert_eq!(kind(&diff), Kind::DiffParseError);
        let checked = diff.clone().with_validation_errors(["too short"]);
        assert_eq!(kind(&checked), Kind::FormatValidation);
        let empty = checked.with_stdout("").with_stderr("");
        assert_eq!(kind(&empty), Kind::EmptyOutput);
        assert_eq!(kind(&empty.with_exit_code(124)), Kind::Timeout);
        assert_eq!(
            kind(&agent(1, "output", "it did not go well", &[])),
            Kind::Unknown
        );
    }

    /// A typed cause wins over what follows from it: nothing was written because nobody was logged in.
    #[test]
    fn a_known_cause_wins_over_its_symptoms() {
        let refused = r#"API Error: 401 {"type":"error","error":{"type":"authentication_error","message":"invalid x-api-key"}}"#;
        let failure = agent(1, "", refused, &["Missing section: # Tests"]);
        assert_eq!(kind(&failure.with_diff_expected()), Kind::AuthRequired);
        let limited =
            r#"{"type":"error","error":{"type":"rate_limit_error","message":"slow down"}}"#;
        assert_eq!(kind(&agent(1, "", limited, &[])), Kind::RateLimit);
    }
}

mod answers {
    use super::*;

    /// S4-19, S4-23: what a status says if nothing else does.
    #[test]
    fn a_status_alone_tells_the_kind() {
        for (status, expected, retryable) in [
            (429, Kind::RateLimit, true),
            (500, Kind::ServerError, true),
            (502, Kind::ServerError, true),
            (503, Kind::ServerError, true),
            (504, Kind::ServerError, true),
            (529, Kind::ServerOverloaded, true),
            (400, Kind::InvalidRequest, false),
            (402, Kind::QuotaExhausted, false),
            (401, Kind::AuthRequired, false),
            (403, Kind::AuthRequired, false),
            (408, Kind::Timeout, true),
        ] {
            let diagnosis = diagnose(&answer(status, ""));
            assert_eq!(diagnosis.kind, expected, "{status}");
            assert_eq!(diagnosis.retryable(), retryable, "{status}");
        }
    }

    /// S4-19: the names of the error types are read as kinds.
    #[test]
    fn every_error_type_of_the_api_is_read_as_a_kind() {
        for (name, expected) in [
            ("rate_limit", Kind::RateLimit),
            ("server_error", Kind::ServerError),
            ("timeout", Kind::Timeout),
            ("context_limit", Kind::ContextLimit),
            ("content_filter", Kind::ContentFilter),
            ("invalid_request", Kind::InvalidRequest),
            ("auth_error", Kind::AuthRequired),
            ("unknown", Kind::Unknown),
        ] {
            assert_eq!(name.parse(), Ok(expected));
        }
    }

    /// S4-23: 400 with context_length, or in any provider's words, is a context limit and is not retried.
    #[test]
    fn a_context_that_is_too_long_is_told_from_other_bad_requests() {
        for body in [
            r#"{"error":{"code":"context_length_exceeded"}}"#,
            r#"{"error":{"message":"This model's maximum context length is 8192 tokens."}}"#,
            r#"{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 215342 tokens > 200000 maximum"}}"#,
            r#"{"error":{"code":400,"message":"The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).","status":"INVALID_ARGUMENT"}}"#,
        ] {
            let diagnosis = diagnose(&answer(400, body));
            assert_eq!(diagnosis.kind, Kind::ContextLimit, "{body}");
            assert!(!diagnosis.retryable());
        }
        let other = answer(
            400,
            r#"{"error":{"message":"Unknown parameter: 'temprature'."}}"#,
        );
        assert_eq!(kind(&other), Kind::InvalidRequest);
    }

    /// S4-23: a timeout of ours may be retried, and what is not an error of the API is unknown.
    #[test]
    fn timeouts_are_retried_and_the_rest_is_unknown() {
        for failure in [
            Failure::api("openai").with_body("TimeoutError: Request timed out"),
            Failure::api("openai").with_time_up(),
        ] {
            let diagnosis = diagnose(&failure);
            assert_eq!(diagnosis.kind, Kind::Timeout);
            assert!(diagnosis.retryable());
        }
        let other = Failure::api("openai").with_body("something else went wrong here");
        assert_eq!(kind(&other), Kind::Unknown);
        assert_eq!(kind(&answer(418, "I'm a teapot")), Kind::Unknown);
    }
}

mod traps {
    use super::*;

    /// Money comes as 400, 403 and 429; a bad key as 400.
    #[test]
    fn what_the_body_says_beats_the_status() {
        for (status, body, expected) in [
            (
                429,
                r#"{"error":{"code":"insufficient_quota"}}"#,
                Kind::QuotaExhausted,
            ),
            (
                400,
                r#"{"error":{"message":"Your credit balance is too low to access the Anthropic API"}}"#,
                Kind::QuotaExhausted,
            ),
            (
                400,
                r#"{"error":{"status":"INVALID_ARGUMENT","message":"API key not valid","details":[{"reason":"API_KEY_INVALID"}]}}"#,
                Kind::AuthRequired,
            ),
            (
                429,
                r#"{"error":{"details":[{"reason":"MODEL_CAPACITY_EXHAUSTED"}]}}"#,
                Kind::ServerOverloaded,
            ),
            (
                429,
                r#"{"error":{"message":"Request too large for gpt-5.1 on tokens per min (TPM): Limit 30000, Requested 48211."}}"#,
                Kind::ContextLimit,
            ),
        ] {
            assert_eq!(kind(&answer(status, body)), expected, "{body}");
        }
    }

    /// A typed field counts more than the words around it.
    #[test]
    fn structure_beats_text() {
        let body = r#"{"type":"error","error":{"type":"overloaded_error","message":"The request timed out in the queue after 401 tries: rate limit of the context length pool"}}"#;
        assert_eq!(kind(&answer(529, body)), Kind::ServerOverloaded);
    }

    /// What a log complains about early on is noise once the run went on.
    #[test]
    fn the_last_fatal_error_beats_early_noise() {
        let mut log = String::from(
            "warning: connection reset by peer, retrying\nnpm warn deprecated rimraf@2: 401 Unauthorized\n",
        );
        for step in 0..60 {
            log.push_str(&format!("compiled module {step}\n"));
        }
        log.push_str("write /var/cache/x: no space left on device\n");
        let failure = Failure::infra("make").with_exit_code(2).with_stderr(log);
        assert_eq!(kind(&failure), Kind::DiskFull);
    }

    /// A failed assertion is that, whatever it talks about.
    #[test]
    fn a_failed_test_that_mentions_429_is_a_test_failure() {
        let log = "running 1 test\ntest limits::answers_429 ... FAILED\n\n---- limits::answers_429 stdout ----\nthread 'limits::answers_429' panicked at src/limits.rs:12:9:\nassertion `left == right` failed: HTTP 429 Too Many Requests, rate limit exceeded\n  left: 200\n right: 429\n\ntest result: FAILED. 0 passed; 1 failed; 0 ignored\n\nerror: test failed, to rerun pass `--lib`\n";
        let failure = Failure::infra("cargo").with_exit_code(101).with_stdout(log);
        let diagnosis = diagnose(&failure);
        assert_eq!(diagnosis.kind, Kind::TestFailure);
        assert_eq!((diagnosis.level, diagnosis.retryable()), (None, false));
    }

    /// Never search what a successful run wrote for words of failure.
    #[test]
    fn a_success_that_mentions_429_is_no_failure() {
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
                Kind::None,
                "{failure:?}\n{:?}",
                diagnosis.evidence
            );
            assert_eq!((diagnosis.level, diagnosis.retry_after), (None, None));
        }
    }

    /// A run that ended well and wrote something did not fail.
    #[test]
    fn a_healthy_run_is_no_failure() {
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
            assert_eq!(kind(&failure), Kind::None, "{failure:?}");
        }
    }

    /// Shells and tools speak the language of their user.
    #[test]
    fn other_languages_are_understood() {
        for (text, expected) in [
            (
                "bash: Zeile 1: htpo: Kommando nicht gefunden.",
                Kind::CommandNotFound,
            ),
            (
                "bash: 行 1: pwsh: コマンドが見つかりません",
                Kind::CommandNotFound,
            ),
            (
                "cat: a.txt: Datei oder Verzeichnis nicht gefunden",
                Kind::FileNotFound,
            ),
            (
                "cat: a.txt: Aucun fichier ou dossier de ce type",
                Kind::FileNotFound,
            ),
            (
                "ls: impossible d'ouvrir le répertoire '/root': Permission non accordée",
                Kind::PermissionDenied,
            ),
            (
                "cp: невозможно создать обычный файл '/usr/bin/a': Отказано в доступе",
                Kind::PermissionDenied,
            ),
            (
                "rm: 无法删除 '/etc/hosts.allow': 权限不够",
                Kind::PermissionDenied,
            ),
            (
                "cp: Fehler beim Schreiben von 'b': Auf dem Gerät ist kein Speicherplatz mehr verfügbar",
                Kind::DiskFull,
            ),
        ] {
            let failure = Failure::tool("bash").with_exit_code(1).with_stderr(text);
            assert_eq!(kind(&failure), expected, "{text}");
        }
    }

    /// An answer that ended at its length limit is no failure, but is marked.
    #[test]
    fn a_cut_answer_is_marked() {
        let cut = |reason: &str| {
            diagnose(&answer(
                200,
                &format!(
                    r#"{{"type":"message","content":[{{"type":"text","text":"and then"}}],"stop_reason":"{reason}"}}"#
                ),
            ))
        };
        assert!(cut("max_tokens").truncated);
        assert_eq!(cut("max_tokens").kind, Kind::None);
        assert!(!cut("end_turn").truncated);
        let openai = answer(
            200,
            r#"{"choices":[{"message":{"content":"and"},"finish_reason":"length"}]}"#,
        );
        assert!(diagnose(&openai).truncated);
    }

    /// A stream that began well can still end in an error.
    #[test]
    fn an_error_event_inside_a_200_stream_is_a_failure() {
        let stream = "event: message_start\ndata: {\"type\":\"message_start\"}\n\nevent: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"delta\":{\"text\":\"429\"}}\n\nevent: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"Overloaded\"}}\n\n";
        let failure = Failure::api("anthropic").with_status(200).with_body(stream);
        assert_eq!(kind(&failure), Kind::ServerOverloaded);
    }

    /// Claude Code reports API failures with the subtype "success", goose and aider with code 0.
    #[test]
    fn an_agent_that_calls_its_failure_a_success_is_not_believed() {
        let result = r#"{"type":"result","subtype":"success","is_error":true,"api_error_status":429,"result":"API Error: Request rejected (429) · slow down"}"#;
        for code in [0, 1] {
            let failure = Failure::agent("claude")
                .with_exit_code(code)
                .with_stdout(result);
            assert_eq!(kind(&failure), Kind::RateLimit);
        }
        for (tool, text, expected) in [
            (
                "goose",
                "Ran into this error: Server error: Server error (500 Internal Server Error) at URL: x.",
                Kind::ServerError,
            ),
            (
                "aider",
                "litellm.RateLimitError: RateLimitError: OpenAIException - slow down",
                Kind::RateLimit,
            ),
        ] {
            let failure = Failure::agent(tool)
                .with_exit_code(0)
                .with_stdout(text)
                .with_stderr("");
            assert_eq!(kind(&failure), expected, "{text}");
        }
    }

    /// Gemini CLI exits with the HTTP status modulo 256: 144 to 147 are no signals.
    #[test]
    fn an_exit_code_that_is_a_status_is_no_signal() {
        let refused = Failure::agent("gemini").with_exit_code(145).with_stdout("").with_stderr(
            r#"{"session_id":"7f","error":{"type":"Error","message":"401 Unauthorized","code":401}}"#,
        );
        assert_eq!(kind(&refused), Kind::AuthRequired);
    }
}
