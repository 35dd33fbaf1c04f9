//! Plans for rejected calls: paths, arguments, syntax, ports, disks.

use serde_json::json;

use super::*;

/// S2-05: a path outside the allowed root is rewritten under the sandbox directory.
#[test]
fn a_forbidden_path_moves_into_the_sandbox() {
    let line = "EACCES: permission denied, open '/etc/app/conf.yaml'";
    let args = json!({"path": "/etc/app/conf.yaml", "content": "a: 1"});
    let plan = Case::tool(FailureKind::PermissionDenied, "write_file", args, line).plan();
    assert_eq!(
        ids(&plan),
        [
            "try_sandbox_directory",
            "check_permissions",
            "ask_user_for_permissions"
        ]
    );
    assert_eq!(
        plan[0].steps[1].args,
        json!({"path": ".unstuck/sandbox/etc/app/conf.yaml", "content": "a: 1"})
    );
    let shell = Case::shell(
        FailureKind::PermissionDenied,
        "cp a.txt '/etc/x y'",
        "cp: cannot create regular file '/etc/x y': Permission denied",
    );
    assert_eq!(
        scripts(&shell.plan(), "try_sandbox_directory"),
        [
            "mkdir -p -- .unstuck/sandbox/etc",
            "cp a.txt '.unstuck/sandbox/etc/x y'"
        ]
    );
    assert_eq!(
        scripts(&shell.plan(), "check_permissions"),
        ["ls -ld -- '/etc/x y' /etc; id"]
    );
}

#[test]
fn a_script_of_the_project_may_be_made_executable_but_nothing_else() {
    let line = "bash: ./run.sh: Permission denied";
    let plan = Case::shell(FailureKind::PermissionDenied, "./run.sh --all", line).plan();
    assert_eq!(
        scripts(&plan, "check_permissions")[1],
        "chmod u+x -- ./run.sh"
    );
    let plan = Case::shell(
        FailureKind::PermissionDenied,
        "/opt/run.sh",
        "bash: /opt/run.sh: Permission denied",
    )
    .plan();
    assert!(
        scripts(&plan, "check_permissions")
            .iter()
            .all(|one| !one.contains("chmod"))
    );
}

/// S2-07: the directory is listed, the most similar name is tried, the base name is searched.
#[test]
fn a_missing_file_is_searched_under_a_similar_name() {
    let line = "ENOENT: no such file or directory, open 'conf/confg.yaml'";
    let case = Case::tool(
        FailureKind::FileNotFound,
        "read_file",
        json!({"path": "conf/confg.yaml"}),
        line,
    );
    let plan = case.plan_with(|request| request.listing = words(&["config.yaml", "main.rs"]));
    assert_eq!(
        ids(&plan),
        ["verify_path", "create_missing_file", "ask_user_for_path"]
    );
    let steps = &plan[0].steps;
    assert_eq!(steps[0].action, "List conf: did you mean config.yaml?");
    assert_eq!(
        (steps[0].tool.as_str(), &steps[0].args),
        ("read_dir", &json!({"dir": "conf"}))
    );
    assert_eq!(steps[1].args, json!({"path": "conf/config.yaml"}));
    assert!(
        steps[2].args["script"]
            .as_str()
            .unwrap()
            .starts_with("find . -iname confg.yaml ")
    );
    let shell = Case::shell(
        FailureKind::FileNotFound,
        "cat Readme.md",
        "cat: Readme.md: No such file or directory",
    );
    let plan = shell.plan_with(|request| request.listing = words(&["README.md"]));
    assert_eq!(plan[0].steps[1].args["script"], "cat README.md");
}

#[test]
fn nothing_is_created_outside_the_root() {
    let line = "cat: /etc/nope: No such file or directory";
    let plan = Case::shell(FailureKind::FileNotFound, "cat /etc/nope", line).plan();
    assert_eq!(ids(&plan), ["verify_path", "ask_user_for_path"]);
}

/// S2-08: types as the message asks, then the schema, then only the needed arguments.
#[test]
fn invalid_arguments_are_corrected() {
    let args = json!({"path": "a.rs", "limit": "20", "colour": "red"});
    let line = "Invalid arguments: limit: Expected number, received string";
    let plan = Case::tool(FailureKind::InvalidArguments, "read_file", args, line).plan();
    assert_eq!(
        ids(&plan),
        [
            "fix_parameter_types",
            "check_schema",
            "simplify_arguments",
            "ask_user"
        ]
    );
    assert_eq!(
        plan[0].steps[0].args,
        json!({"path": "a.rs", "limit": 20, "colour": "red"})
    );
    assert_eq!(plan[2].steps[0].args, json!({"path": "a.rs"}));
    let shell = Case::shell(
        FailureKind::InvalidArguments,
        "ls --colr -l src",
        "ls: unrecognized option '--colr'",
    );
    let plan = shell.plan();
    assert_eq!(scripts(&plan, "fix_parameter_types"), ["ls -l src"]);
    assert_eq!(
        scripts(&plan, "check_schema"),
        ["ls --help 2>&1 | head -n 60"]
    );
}

/// S2-09: quotes closed, split at operators, portable syntax.
#[test]
fn syntax_is_corrected_split_or_made_portable() {
    let line = "sh: 1: Syntax error: Unterminated quoted string";
    let plan = Case::shell(FailureKind::SyntaxError, "echo 'a && ls", line).plan();
    assert_eq!(scripts(&plan, "fix_syntax"), ["echo 'a && ls'"]);
    let plan = Case::shell(
        FailureKind::SyntaxError,
        "make |& tee log && cat log &&",
        line,
    )
    .plan();
    assert_eq!(
        ids(&plan),
        [
            "fix_syntax",
            "use_simpler_command",
            "try_alternative_syntax",
            "ask_user"
        ]
    );
    assert_eq!(
        scripts(&plan, "use_simpler_command"),
        ["make |& tee log", "cat log"]
    );
    assert_eq!(
        scripts(&plan, "try_alternative_syntax"),
        ["make 2>&1 | tee log && cat log"]
    );
}

/// S2-12: a full disk is inspected; removing anything is only proposed.
#[test]
fn a_full_disk_is_never_cleaned_without_asking() {
    let plan = Case::shell(FailureKind::DiskFull, "make", "No space left on device").plan();
    assert_eq!(
        ids(&plan),
        ["clean_up_temp_files", "ask_user_to_free_space"],
        "what `make` writes cannot be made smaller from outside"
    );
    let text = serde_json::to_string(&plan).unwrap();
    assert!(!text.contains("rm ") && !text.contains("-delete"), "{text}");
    assert_eq!(plan[0].steps.last().unwrap().tool, "ask_user");
}

#[test]
fn a_port_in_use_is_changed_in_the_command() {
    let line = "Error: listen EADDRINUSE: address already in use :::3000";
    let plan = Case::shell(FailureKind::PortInUse, "vite --port 3000", line).plan();
    assert_eq!(scripts(&plan, "use_other_port"), ["vite --port 3001"]);
    let plan = Case::shell(FailureKind::PortInUse, "node server.js", line).plan();
    assert_eq!(
        scripts(&plan, "use_other_port"),
        ["env PORT=3001 node server.js"]
    );
}
