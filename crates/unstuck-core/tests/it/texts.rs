//! Realistic failures for mutation, without an expected kind.

use unstuck_core::{Failure, FailureLayer};

/// The text of a failure that contains a line.
#[derive(Clone, Copy)]
enum In {
    Body,
    Stdout,
    Stderr,
}

/// Layer, reporter, status or exit code, stream, text.
type Row = (FailureLayer, &'static str, i32, In, &'static str);

/// Returns the failures.
pub(crate) fn failures() -> Vec<Failure> {
    API.iter()
        .chain(AGENT)
        .chain(TOOL)
        .chain(INFRA)
        .map(failure)
        .collect()
}

fn failure((layer, reporter, number, stream, text): &Row) -> Failure {
    let failure = match layer {
        FailureLayer::Api => Failure::api(*reporter).with_status(u16::try_from(*number).unwrap()),
        FailureLayer::Agent => Failure::agent(*reporter).with_exit_code(*number),
        FailureLayer::Tool => Failure::tool(*reporter).with_exit_code(*number),
        FailureLayer::Infra => Failure::infra(*reporter).with_exit_code(*number),
    };
    match stream {
        In::Body => failure.with_body(*text),
        In::Stdout => failure.with_stdout(*text).with_stderr(""),
        In::Stderr => failure.with_stdout("").with_stderr(*text),
    }
}

const API: &[Row] = &[
    (
        FailureLayer::Api,
        "openai",
        429,
        In::Body,
        r#"{"error":{"message":"Rate limit reached for gpt-5.1 in organization org-3kq on tokens per min (TPM): Limit 30000, Used 22999, Requested 8033. Please try again in 2.064s. Visit https://platform.openai.com/account/rate-limits","type":"tokens","param":null,"code":"rate_limit_exceeded"}}"#,
    ),
    (
        FailureLayer::Api,
        "openai",
        429,
        In::Body,
        r#"{"error":{"message":"You exceeded your current quota, please check your plan and billing details.","type":"insufficient_quota","param":null,"code":"insufficient_quota"}}"#,
    ),
    (
        FailureLayer::Api,
        "openai",
        400,
        In::Body,
        r#"{"error":{"message":"This model's maximum context length is 128000 tokens. However, your messages resulted in 151223 tokens.","type":"invalid_request_error","param":"messages","code":"context_length_exceeded"}}"#,
    ),
    (
        FailureLayer::Api,
        "openai",
        401,
        In::Body,
        r#"{"error":{"message":"Incorrect API key provided: sk-x***42.","type":"invalid_request_error","param":null,"code":"invalid_api_key"}}"#,
    ),
    (
        FailureLayer::Api,
        "openai",
        502,
        In::Body,
        "<html>\r\n<head><title>502 Bad Gateway</title></head>\r\n<body>\r\n<center><h1>502 Bad Gateway</h1></center>\r\n</body>\r\n</html>\r\n",
    ),
    (
        FailureLayer::Api,
        "anthropic",
        529,
        In::Body,
        r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"},"request_id":"req_011CSNw2"}"#,
    ),
    (
        FailureLayer::Api,
        "anthropic",
        400,
        In::Body,
        r#"{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 215342 tokens > 200000 maximum"}}"#,
    ),
    (
        FailureLayer::Api,
        "anthropic",
        400,
        In::Body,
        r#"{"type":"error","error":{"type":"invalid_request_error","message":"You have reached your specified API usage limits. You will regain access on 2026-12-01 at 00:00 UTC."}}"#,
    ),
    (
        FailureLayer::Api,
        "anthropic",
        200,
        In::Body,
        "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"msg_1\",\"content\":[]}}\n\nevent: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"Overloaded while answering\"}}\n\n",
    ),
    (
        FailureLayer::Api,
        "gemini",
        429,
        In::Body,
        "{\n  \"error\": {\n    \"code\": 429,\n    \"message\": \"You exceeded your current quota\",\n    \"status\": \"RESOURCE_EXHAUSTED\",\n    \"details\": [\n      {\"@type\": \"type.googleapis.com/google.rpc.QuotaFailure\", \"violations\": [{\"quotaId\": \"GenerateRequestsPerMinutePerProjectPerModel\"}]},\n      {\"@type\": \"type.googleapis.com/google.rpc.RetryInfo\", \"retryDelay\": \"37s\"}\n    ]\n  }\n}\n",
    ),
    (
        FailureLayer::Api,
        "gemini",
        503,
        In::Body,
        r#"[{"error":{"code":503,"message":"The model is overloaded. Please try again later.","status":"UNAVAILABLE"}}]"#,
    ),
    (
        FailureLayer::Api,
        "bedrock",
        429,
        In::Body,
        r#"{"message":"Too many tokens, please wait before trying again."}"#,
    ),
    (
        FailureLayer::Api,
        "zhipu",
        429,
        In::Body,
        r#"{"error":{"code":"1308","message":"已达到 5 小时的使用上限。您的限额将在 2026-11-16 07:41:44 重置。"}}"#,
    ),
];

const AGENT: &[Row] = &[
    (
        FailureLayer::Agent,
        "claude",
        1,
        In::Stdout,
        r#"{"type":"result","subtype":"success","is_error":true,"api_error_status":429,"duration_ms":181004,"num_turns":3,"result":"API Error: Request rejected (429) · This request would exceed your account's rate limit. Please try again later.","session_id":"2b1f6c1e-6a3c-4a55-9f5e-2f2d2a7c9e10","total_cost_usd":0.0312}"#,
    ),
    (
        FailureLayer::Agent,
        "claude",
        1,
        In::Stdout,
        "You've hit your 5-hour limit · resets 9:30pm (Europe/Berlin)\n",
    ),
    (
        FailureLayer::Agent,
        "claude",
        1,
        In::Stdout,
        "Claude AI usage limit reached|1794780000\n",
    ),
    (
        FailureLayer::Agent,
        "codex",
        1,
        In::Stdout,
        "{\"type\":\"thread.started\",\"thread_id\":\"0199\"}\n{\"type\":\"turn.started\"}\n{\"type\":\"error\",\"message\":\"Reconnecting... 1/5 (unexpected status 500)\"}\n{\"type\":\"turn.failed\",\"error\":{\"message\":\"stream disconnected before completion: error sending request\"}}\n",
    ),
    (
        FailureLayer::Agent,
        "codex",
        1,
        In::Stderr,
        "■ You’ve hit your usage limit. Upgrade to Pro (https://openai.com/chatgpt/pricing) or try again at 8:36 PM.\n",
    ),
    (
        FailureLayer::Agent,
        "gemini",
        144,
        In::Stderr,
        "Error when talking to Gemini API\n    at handle (file:///home/dev/bundle/gemini.js:1:2)\n{\n  \"session_id\": \"7f\",\n  \"error\": {\n    \"type\": \"Error\",\n    \"message\": \"The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).\",\n    \"code\": 400\n  }\n}\n",
    ),
    (
        FailureLayer::Agent,
        "goose",
        0,
        In::Stdout,
        "Ran into this error: Rate limit exceeded: slow down.\n\nPlease retry if you think this is a transient or recoverable error.\n",
    ),
    (
        FailureLayer::Agent,
        "aider",
        0,
        In::Stdout,
        "litellm.AuthenticationError: AuthenticationError: OpenAIException - no key\nThe API provider is not able to authenticate you. Check your API key.\n",
    ),
    (
        FailureLayer::Agent,
        "opencode",
        1,
        In::Stdout,
        "{\"type\":\"error\",\"error\":{\"name\":\"APIError\",\"data\":{\"message\":\"Internal error\",\"statusCode\":500,\"isRetryable\":true}}}\n",
    ),
    (
        FailureLayer::Agent,
        "claude",
        139,
        In::Stderr,
        "Segmentation fault (core dumped)\n",
    ),
    (
        FailureLayer::Agent,
        "langchain",
        1,
        In::Stderr,
        "Traceback (most recent call last):\n  File \"/home/dev/app.py\", line 12, in <module>\n    chain.invoke({})\nKeyError: \"Input to PromptTemplate is missing variables {'topic'}.\"\n",
    ),
];

const TOOL: &[Row] = &[
    (
        FailureLayer::Tool,
        "bash",
        127,
        In::Stderr,
        "bash: line 1: htpo: command not found\n",
    ),
    (
        FailureLayer::Tool,
        "docker-compose",
        127,
        In::Stderr,
        "bash: Zeile 1: docker-compose: Kommando nicht gefunden.\n",
    ),
    (
        FailureLayer::Tool,
        "cat",
        1,
        In::Stderr,
        "cat: config/settings.local.yml: No such file or directory\n",
    ),
    (
        FailureLayer::Tool,
        "rm",
        1,
        In::Stderr,
        "rm: 无法删除 '/etc/hosts.allow': 权限不够\n",
    ),
    (
        FailureLayer::Tool,
        "curl",
        28,
        In::Stderr,
        "curl: (28) Failed to connect to 203.0.113.9 port 80 after 2000 ms: Timeout was reached\n",
    ),
    (
        FailureLayer::Tool,
        "curl",
        22,
        In::Stdout,
        "HTTP/1.1 429 Too Many Requests\r\nServer: nginx\r\nDate: Sun, 15 Nov 2026 22:12:22 GMT\r\nRetry-After: 17\r\n\r\nToo Many Requests\n",
    ),
    (
        FailureLayer::Tool,
        "git",
        128,
        In::Stderr,
        "fatal: Unable to create '/home/dev/notes/.git/index.lock': Permission denied\n",
    ),
    (
        FailureLayer::Tool,
        "dd",
        1,
        In::Stderr,
        "dd: error writing 'm/big': No space left on device\n2+0 records in\n1+0 records out\n",
    ),
    (
        FailureLayer::Tool,
        "node",
        1,
        In::Stderr,
        "node:events:497\n      throw er;\n      ^\n\nError: listen EADDRINUSE: address already in use :::3000\n    at Server.setupListenHandle [as _listen2] (node:net:1817:16) {\n  code: 'EADDRINUSE',\n  errno: -98,\n  port: 3000\n}\n",
    ),
    (
        FailureLayer::Tool,
        "python3",
        1,
        In::Stderr,
        "Traceback (most recent call last):\n  File \"/home/dev/web/app.py\", line 1, in <module>\n    import fastparquet\nModuleNotFoundError: No module named 'fastparquet'\n",
    ),
    (FailureLayer::Tool, "grep", 1, In::Stdout, ""),
];

const INFRA: &[Row] = &[
    (
        FailureLayer::Infra,
        "cargo",
        101,
        In::Stderr,
        "    Checking x v0.1.0 (/home/dev/repo)\nerror[E0308]: mismatched types\n --> src/main.rs:1:25\n  |\n1 | fn main(){ let x: u32 = \"a\"; }\n  |                   ---   ^^^ expected `u32`, found `&str`\n\nerror: could not compile `x` (bin \"x\") due to 1 previous error\n",
    ),
    (
        FailureLayer::Infra,
        "vitest",
        1,
        In::Stdout,
        " RUN  v3.2.4 /home/dev/shop\n\n ❯ src/limit.test.ts (1 test | 1 failed) 12ms\n   × answers 429 when the limit is reached 9ms\n     → expected 200 to be 429 // Object.is equality\n\n Test Files  1 failed (1)\n      Tests  1 failed (1)\n",
    ),
    (
        FailureLayer::Infra,
        "npm",
        1,
        In::Stderr,
        "npm error code ERESOLVE\nnpm error ERESOLVE unable to resolve dependency tree\nnpm error\nnpm error Found: react@19.2.0\nnpm error Could not resolve dependency:\nnpm error peer react@\"^17.0.0\" from legacy-lib@1.0.0\n",
    ),
    (
        FailureLayer::Infra,
        "yarn",
        1,
        In::Stderr,
        "error Your lockfile needs to be updated, but yarn was run with `--frozen-lockfile`.\n",
    ),
    (
        FailureLayer::Infra,
        "vite",
        1,
        In::Stderr,
        "✘ [ERROR] Cannot start service: Host version \"0.21.5\" does not match binary version \"0.27.2\"\n",
    ),
    (
        FailureLayer::Infra,
        "tsc",
        2,
        In::Stdout,
        "src/a.ts(3,7): error TS2322: Type 'string' is not assignable to type 'number'.\n",
    ),
    (
        FailureLayer::Infra,
        "pytest",
        1,
        In::Stdout,
        "=================================== FAILURES ===================================\nE       AssertionError: assert 'Connection refused' == 'ok'\n=========================== short test summary info ============================\nFAILED test_net.py::test_ok - AssertionError\n============================== 1 failed in 0.03s ===============================\n",
    ),
];
