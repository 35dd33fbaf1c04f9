//! Plans for calls that timed out or failed in the network.

use serde_json::json;

use super::*;

/// S2-06: less, longer, in batches, in the background, and then an escalation (S2-19).
#[test]
fn a_slow_command_gets_less_to_do_or_more_time() {
    let case = Case::shell(
        FailureKind::Timeout,
        "grep -rn TODO .",
        "timed out after 15000 ms",
    );
    let plan = case.plan();
    assert_eq!(
        ids(&plan),
        [
            "reduce_scope",
            "increase_timeout",
            "stream_results",
            "background_execution",
            "ask_user"
        ]
    );
    assert_eq!(
        scripts(&plan, "reduce_scope"),
        ["grep -m 5 -rn TODO . | head -n 100"]
    );
    assert_eq!(
        plan[1].steps[0].args,
        json!({"script": "grep -rn TODO .", "timeout_ms": 30000})
    );
    assert!(scripts(&plan, "stream_results")[0].contains("| xargs -0 -n 50 grep -nI -e TODO"));
    let background = scripts(&plan, "background_execution");
    assert_eq!(
        background[0],
        "mkdir -p -- .unstuck/sandbox && { nohup sh -c 'grep -rn TODO .' > .unstuck/sandbox/output.log 2>&1 & echo $! > .unstuck/sandbox/process.pid; }"
    );
    assert!(background[1].contains("tail -n 20 -- .unstuck/sandbox/output.log"));
}

/// S2-06: ten files instead of a hundred.
#[test]
fn many_arguments_become_ten() {
    let files: Vec<String> = (0..100).map(|n| format!("f{n}.txt")).collect();
    let case = Case::shell(
        FailureKind::Timeout,
        &format!("convert -v {}", files.join(" ")),
        "timeout",
    );
    let plan = case.plan();
    assert_eq!(
        scripts(&plan, "reduce_scope"),
        [format!("convert -v {}", files[..10].join(" "))]
    );
    assert!(scripts(&plan, "stream_results")[0].ends_with("| xargs -0 -n 10 convert -v"));
    let case = Case::tool(
        FailureKind::Timeout,
        "read_many",
        json!({"files": files}),
        "timeout",
    );
    let plan = case.plan();
    assert_eq!(plan[0].steps[0].args["files"].as_array().unwrap().len(), 10);
}

#[test]
fn a_time_limit_in_the_command_doubles_too() {
    let plan = Case::shell(FailureKind::Timeout, "timeout 60 make all", "exit 124").plan();
    assert_eq!(
        strategy(&plan, "increase_timeout").steps[0].args["script"],
        "timeout 120 make all"
    );
}

/// S2-10: wait and retry, a mirror, the cache, and then a question about the network.
#[test]
fn a_network_error_is_waited_out_or_bypassed() {
    let url = "https://raw.githubusercontent.com/u/r/main/install.sh";
    let case = Case::shell(
        FailureKind::NetworkError,
        &format!("curl -fsSL {url}"),
        "curl: (6) Could not resolve host",
    );
    let plan = case.plan();
    assert_eq!(
        ids(&plan),
        [
            "retry_with_backoff",
            "alternative_host",
            "use_cached_data",
            "ask_user_about_connectivity"
        ]
    );
    assert_eq!(
        scripts(&plan, "retry_with_backoff"),
        ["sleep 2", &format!("curl -fsSL {url}")]
    );
    assert_eq!(
        scripts(&plan, "alternative_host"),
        ["curl -fsSL https://cdn.jsdelivr.net/gh/u/r@main/install.sh"]
    );
    let plan = Case::shell(
        FailureKind::NetworkError,
        "cd x && npm install",
        "ENOTFOUND registry.npmjs.org",
    )
    .plan();
    assert_eq!(
        scripts(&plan, "alternative_host"),
        ["cd x && npm install --registry https://registry.yarnpkg.com"]
    );
    assert_eq!(
        scripts(&plan, "use_cached_data"),
        ["cd x && npm install --offline"]
    );
}

/// S2-11: the stated delay is waited, 60 seconds if none is stated.
#[test]
fn a_rate_limit_is_waited_for() {
    let case = Case::shell(
        FailureKind::RateLimit,
        "curl https://api.h.org/x",
        "429 Too Many Requests",
    );
    assert_eq!(scripts(&case.plan(), "wait_and_retry")[0], "sleep 60");
    let case = case.after(17);
    let plan = case.plan();
    assert_eq!(
        ids(&plan),
        [
            "wait_and_retry",
            "reduce_request_frequency",
            "alternative_source",
            "ask_user"
        ]
    );
    assert_eq!(
        scripts(&plan, "wait_and_retry"),
        ["sleep 17", "curl https://api.h.org/x"]
    );
    let pause = &strategy(&plan, "wait_and_retry").steps[0].args;
    assert_eq!(
        pause["timeout_ms"], 22_000,
        "the shell's own limit of 15 s would end it"
    );
    let fetch = Case::tool(
        FailureKind::RateLimit,
        "fetch",
        json!({"url": "https://h.org"}),
        "429",
    )
    .after(5);
    let plan = fetch.plan_with(|request| request.tools = Some(words(&["fetch"])));
    assert_eq!(
        (plan[0].steps[0].tool.as_str(), &plan[0].steps[0].args),
        ("wait", &json!({"seconds": 5}))
    );
}
