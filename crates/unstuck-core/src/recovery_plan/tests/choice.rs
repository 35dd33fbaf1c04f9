//! Tests of the strategies in a plan and their order.

use serde_json::json;

use super::*;
use crate::recovery_plan::TaskType;

/// S2-01: failures of agents and APIs are planned as changed attempts; S2-19: an escalation is always last.
#[test]
fn a_changed_attempt_is_a_plan_too() {
    let plan = Case::new(FailureKind::Timeout, Failure::agent("claude"), "").plan();
    assert_eq!(
        ids(&plan),
        [
            "focus_on_core",
            "longer_timeout",
            "fresh_session_more_time",
            "ask_user"
        ]
    );
    assert_eq!(
        plan[0].steps[0].args,
        json!({"changes": [{"prompt": "focus"}, {"timeout": 1.5}]})
    );
    let plan = Case::new(FailureKind::LockfileDrift, Failure::infra("npm"), "").plan();
    assert_eq!(plan[0].steps[0].tool, "repair");
    assert!(
        Case::new(FailureKind::TestFailure, Failure::infra("npm"), "")
            .plan()
            .is_empty()
    );
}

/// S2-15 to S2-18, S2-21: simple and confident strategies come first; the given order is kept for the ten tool kinds.
#[test]
fn strategies_are_ordered_by_confidence_and_simplicity() {
    let case = clone("https://github.com/u/r");
    let plan = case.plan();
    assert_eq!(
        plan.iter().map(|one| one.priority).collect::<Vec<_>>(),
        [1, 2, 3]
    );
    assert!(plan[0].confidence > 0.8 && plan[0].estimated_iterations <= 3);
    assert!((3..=5).contains(&plan[1].estimated_iterations));
    // S2-24, S2-28: learned success rates change the order.
    let plan = case.plan_with(|request| {
        for _ in 0..36 {
            request
                .odds
                .record(FailureKind::CommandNotFound, "alternative_command", false);
        }
    });
    assert_eq!(
        ids(&plan),
        ["manual_installation", "alternative_command", "ask_user"]
    );
    assert_eq!(plan[1].confidence, 0.09);
}

/// S2-23: without a shell, strategies that need one are omitted.
#[test]
fn strategies_without_their_tools_are_skipped() {
    let case = clone("https://github.com/u/r");
    let plan = case.plan_with(|request| request.tools = Some(words(&["read_file"])));
    assert_eq!(ids(&plan), ["ask_user"]);
    let plan = case.plan_with(|request| request.tools = Some(words(&["Bash"])));
    assert_eq!(plan[0].steps[2].args, json!({"command": "ls -la -- r"}));
}

/// S2-25: exploration tries strategies first that change nothing.
#[test]
fn exploration_prefers_strategies_that_change_nothing() {
    let line = "EACCES: permission denied, open '/etc/x'";
    let case = Case::tool(
        FailureKind::PermissionDenied,
        "write_file",
        json!({"path": "/etc/x", "content": ""}),
        line,
    );
    let first = |task| {
        case.plan_with(|request| request.task = Some(task))[0]
            .strategy
            .clone()
    };
    assert_eq!(first(TaskType::Implementation), "try_sandbox_directory");
    assert_eq!(first(TaskType::Exploratory), "check_permissions");
}

/// S2-26: forbidden strategies are not proposed, by id, by risk or by a word of the command.
#[test]
fn forbidden_strategies_are_omitted() {
    let case = clone("https://github.com/u/r");
    let forbidding = |list: &[&str]| {
        let plan = case.plan_with(|request| request.forbid = words(list));
        ids(&plan).join(" ")
    };
    assert_eq!(
        forbidding(&["manual_installation"]),
        "alternative_command ask_user"
    );
    assert_eq!(forbidding(&["install"]), "alternative_command ask_user");
    assert_eq!(forbidding(&["network"]), "ask_user");
    assert_eq!(
        forbidding(&["curl", "apt-get"]),
        "alternative_command ask_user"
    );
    assert_eq!(forbidding(&["tar", "apt-get", "ask_user"]), "ask_user");
}

#[test]
fn sudo_is_not_repeated_unless_it_is_allowed() {
    let case = Case::shell(
        FailureKind::CommandNotFound,
        "sudo python x.py",
        "sudo: python: command not found",
    );
    assert!(!ids(&case.plan()).contains(&"alternative_command"));
    let plan = case.plan_with(|request| request.allow = words(&["sudo"]));
    assert_eq!(scripts(&plan, "alternative_command"), ["sudo python3 x.py"]);
}

#[test]
fn values_of_a_call_cannot_escape_their_quotes() {
    let args = json!({"path": "a'; rm -rf ~; '", "pattern": "$(id)"});
    let case = Case::tool(FailureKind::ToolNotFound, "find_code", args, "unknown tool");
    let plan = case.plan_with(|request| request.tools = Some(words(&["run_bash"])));
    assert_eq!(
        scripts(&plan, "decompose_into_basic_tools"),
        [r"grep -rnI -e '$(id)' -- 'a'\''; rm -rf ~; '\''' | head -n 100"]
    );
}
