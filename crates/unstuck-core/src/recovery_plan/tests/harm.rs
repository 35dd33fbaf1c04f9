//! Tests that a plan never makes things worse.

use serde_json::json;

use super::*;

/// Returns all shell commands of a plan.
fn all_scripts(plan: &[PlannedStrategy]) -> Vec<&str> {
    let steps = plan.iter().flat_map(|one| &one.steps);
    steps
        .filter_map(|step| step.args.get("script")?.as_str())
        .collect()
}

#[test]
fn an_option_that_keeps_a_call_harmless_is_never_removed() {
    let line = "error: unknown option: --dry-run";
    for command in [
        "./deploy.sh prod --dry-run",
        "terraform apply --plan-only x",
    ] {
        let plan = Case::shell(FailureKind::InvalidArguments, command, line).plan();
        let runs = all_scripts(&plan)
            .into_iter()
            .filter(|script| !script.contains("--help"));
        assert_eq!(runs.count(), 0, "{command}");
    }
    let args = json!({"path": "a", "dry_run": true, "colour": "red"});
    let plan = Case::tool(
        FailureKind::InvalidArguments,
        "apply",
        args,
        "invalid input",
    )
    .plan();
    for step in plan[..plan.len() - 1].iter().flat_map(|one| &one.steps) {
        assert_eq!(step.args["dry_run"], true);
    }
}

#[test]
fn a_command_keeps_its_directory_and_its_variables() {
    for command in [
        "cd build && rm -rf *",
        "D=build; rm -rf $D/*",
        "cd a || exit; rm -rf *",
    ] {
        let plan = Case::shell(FailureKind::SyntaxError, command, "syntax error").plan();
        for script in all_scripts(&plan) {
            let whole = script.contains("cd ") || script.contains("D=build");
            assert!(whole || !script.contains("rm "), "{script}");
        }
    }
}

#[test]
fn the_rest_of_a_command_does_not_run_without_its_variables() {
    let command = "D=out; git clone https://github.com/u/r \"$D\" && rm -rf $D/.git";
    let plan = Case::shell(
        FailureKind::CommandNotFound,
        command,
        "git: command not found",
    )
    .plan();
    assert_eq!(ids(&plan), ["manual_installation", "ask_user"]);
}

#[test]
fn a_path_cannot_become_an_option() {
    let case = Case::tool(
        FailureKind::ToolNotFound,
        "browse",
        json!({"path": "-delete"}),
        "unknown tool",
    );
    let plan = case.plan_with(|request| request.tools = Some(words(&["run_bash"])));
    assert!(scripts(&plan, "decompose_into_basic_tools")[1].starts_with("find ./-delete "));
}

#[test]
fn a_read_only_command_does_not_become_a_change() {
    for (command, program) in [
        ("unzip -l a.zip", "unzip"),
        ("rsync -an a b", "rsync"),
        ("rsync -a --delete a b", "rsync"),
        ("http POST https://h.org a=b", "http"),
        ("curl -XDELETE https://h.org/x", "curl"),
    ] {
        let line = format!("{program}: command not found");
        let plan = Case::shell(FailureKind::CommandNotFound, command, &line).plan();
        assert!(!ids(&plan).contains(&"alternative_command"), "{command}");
    }
}
