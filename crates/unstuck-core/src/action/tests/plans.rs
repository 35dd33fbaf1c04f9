//! Plans for the failures that agents meet most.

use serde_json::json;

use super::*;
use crate::action::TaskType;

fn clone(url: &str) -> Case {
    let command = format!("git clone {url}");
    Case::shell(
        Kind::CommandNotFound,
        &command,
        "bash: git: command not found",
    )
}

/// S2-03, S2-13, S2-14: without git a clone becomes a tarball, its extraction and a look at the result.
#[test]
fn a_clone_without_git_becomes_a_tarball() {
    let plan = clone("https://github.com/gatewaybuddy/forgekeeper").plan();
    let tarball = "https://github.com/gatewaybuddy/forgekeeper/archive/refs/heads";
    assert_eq!(
        serde_json::to_value(&plan[0]).unwrap(),
        json!({
            "priority": 1,
            "strategy": "alternative_command",
            "variant": "curl_tar",
            "confidence": 0.9,
            "estimatedIterations": 3,
            "steps": [
                {
                    "action": "Download the repository as a tarball from github.com",
                    "tool": "run_bash",
                    "args": { "script": format!(
                        "curl -L --fail {tarball}/main.tar.gz -o forgekeeper.tar.gz || \
                         curl -L --fail {tarball}/master.tar.gz -o forgekeeper.tar.gz"
                    ) },
                    "expectedOutcome": "forgekeeper.tar.gz exists",
                },
                {
                    "action": "Extract the tarball",
                    "tool": "run_bash",
                    "args": { "script": "mkdir -p -- forgekeeper && tar -xzf forgekeeper.tar.gz --strip-components=1 -C forgekeeper" },
                    "expectedOutcome": "The files of the repository are in forgekeeper",
                },
                {
                    "action": "Check the result",
                    "tool": "read_dir",
                    "args": { "dir": "forgekeeper" },
                    "expectedOutcome": "The listing shows the files of the repository",
                },
            ],
            "fallbackChain": ["manual_installation", "ask_user"],
        })
    );
}

#[test]
fn a_clone_keeps_its_directory_its_branch_and_what_follows() {
    let case = clone("-b dev https://gitlab.com/g/r.git 'my dir' && cd 'my dir' && make");
    let plan = case.plan_with(|request| request.programs = Some(words(&["wget", "tar"])));
    assert_eq!(
        scripts(&plan, "alternative_command"),
        [
            "wget -O r.tar.gz https://gitlab.com/g/r/-/archive/dev/r-dev.tar.gz",
            "mkdir -p -- 'my dir' && tar -xzf r.tar.gz --strip-components=1 -C 'my dir'",
            "cd 'my dir' && make",
        ]
    );
    let moved = Case::shell(
        Kind::CommandNotFound,
        "cd /srv && git clone https://codeberg.org/u/r",
        "git: command not found",
    );
    assert!(
        scripts(&moved.plan(), "alternative_command")
            .iter()
            .all(|one| one.starts_with("cd /srv && "))
    );
}

/// S2-03: other missing commands have alternatives too, put in their place in the command.
#[test]
fn missing_commands_are_replaced_in_their_place() {
    for (command, program, replaced) in [
        ("rg -i todo", "rg", "grep -rnIE -i -e todo -- ."),
        (
            "cd app && rg -t rust 'a b' src | wc -l",
            "rg",
            "cd app && grep -rnIE -e 'a b' -- src | wc -l",
        ),
        (
            "fd main src",
            "fd",
            "find src -not -path '*/.git/*' -name '*main*'",
        ),
        (
            "tree",
            "tree",
            "find . -maxdepth 3 -not -path '*/.git/*' | sort",
        ),
        (
            "cat a.json | jq .",
            "jq",
            "cat a.json | python3 -m json.tool",
        ),
        (
            "wget -O x.zip https://h.org/x.zip",
            "wget",
            "curl -L --fail -o x.zip https://h.org/x.zip",
        ),
        (
            "curl -O https://h.org/x.zip",
            "curl",
            "wget --no-verbose https://h.org/x.zip",
        ),
        (
            "python app.py --port 80",
            "python",
            "python3 app.py --port 80",
        ),
        (
            "pip install -r requirements.txt",
            "pip",
            "python3 -m pip install -r requirements.txt",
        ),
        ("pytest -q tests", "pytest", "python3 -m pytest -q tests"),
        ("docker run --rm alpine", "docker", "podman run --rm alpine"),
        (
            "docker-compose up -d",
            "docker-compose",
            "docker compose up -d",
        ),
        (
            "unzip a.zip -d out",
            "unzip",
            "python3 -m zipfile -e a.zip out",
        ),
        ("yarn test", "yarn", "npm test"),
        ("pnpm add left-pad", "pnpm", "npm install left-pad"),
        ("bun lint", "bun", "npm run lint"),
        ("npx tsc", "npx", "npm exec -- tsc"),
        ("tsc -p .", "tsc", "npx --no-install tsc -p ."),
        (
            "gh api repos/a/b",
            "gh",
            "curl -sSL -H 'Accept: application/vnd.github+json' https://api.github.com/repos/a/b",
        ),
        (
            "http GET https://h.org",
            "http",
            "curl -sSL -X GET https://h.org",
        ),
        ("which node", "which", "command -v node"),
        ("bat *.md", "bat", "cat -- *.md"),
        ("xxd a.bin", "xxd", "od -A x -t x1z a.bin"),
        ("netstat -tlnp", "netstat", "ss -ltnp"),
        ("rsync -a a b", "rsync", "cp -a -- a b"),
    ] {
        let case = Case::shell(
            Kind::CommandNotFound,
            command,
            &format!("sh: 1: {program}: not found"),
        );
        assert_eq!(
            scripts(&case.plan(), "alternative_command"),
            [replaced],
            "{command}"
        );
    }
}

#[test]
fn an_alternative_that_is_missing_too_is_not_proposed() {
    let case = Case::shell(
        Kind::CommandNotFound,
        "jq .name a.json",
        "jq: command not found",
    );
    let plan = case.plan_with(|request| request.programs = Some(words(&["node"])));
    assert!(scripts(&plan, "alternative_command")[0].starts_with("node -e "));
    let plan = case.plan_with(|request| request.programs = Some(words(&["apk"])));
    assert_eq!(ids(&plan), ["manual_installation", "ask_user"]);
    assert_eq!(
        scripts(&plan, "manual_installation")[0],
        "apk add --no-cache jq"
    );
}

/// S2-03: the package manager that is there installs the package that holds the command.
#[test]
fn missing_commands_are_installed_by_the_manager_that_exists() {
    let case = Case::shell(Kind::CommandNotFound, "rg x", "rg: command not found");
    let installs = |programs: &[&str], allow: &[&str]| {
        let plan = case.plan_with(|request| {
            request.programs = Some(words(programs));
            request.allow = words(allow);
        });
        scripts(&plan, "manual_installation")[0].to_owned()
    };
    assert_eq!(
        installs(&["apt-get"], &[]),
        "apt-get update && apt-get install -y ripgrep"
    );
    assert_eq!(installs(&["dnf"], &["sudo"]), "sudo dnf install -y ripgrep");
    assert_eq!(installs(&["brew"], &[]), "brew install ripgrep");
    let unknown = case.plan();
    assert!(scripts(&unknown, "manual_installation")[0].contains("elif command -v apk"));
}

/// S2-04: a similar tool, the same role, or basic tools take the place of one that does not exist.
#[test]
fn a_missing_tool_is_replaced_by_what_is_there() {
    let line = "Error: No such tool available: repo_browser";
    let case = Case::tool(
        Kind::ToolNotFound,
        "repo_browser",
        json!({"path": "src"}),
        line,
    );
    let plan = case
        .plan_with(|request| request.tools = Some(words(&["read_dir", "read_file", "run_bash"])));
    assert_eq!(
        ids(&plan),
        [
            "use_available_alternative",
            "decompose_into_basic_tools",
            "ask_user_to_enable_tool"
        ]
    );
    let step = &plan[0].steps[0];
    assert_eq!(
        (step.tool.as_str(), &step.args),
        ("read_dir", &json!({"dir": "src"}))
    );
    let odd = Case::tool(Kind::ToolNotFound, "codebase_overview", json!({}), line);
    let plan = odd.plan_with(|request| request.tools = Some(words(&["LS", "Read"])));
    let tools: Vec<_> = plan[0]
        .steps
        .iter()
        .map(|step| step.tool.as_str())
        .collect();
    assert_eq!(tools, ["LS", "Read"]);
    let typo = Case::tool(Kind::ToolNotFound, "raed_file", json!({"path": "a"}), line);
    let plan = typo.plan_with(|request| request.tools = Some(words(&["read_file"])));
    assert_eq!(plan[0].steps[0].tool, "read_file");
}

/// S2-05: a path outside the allowed root is rewritten under the sandbox directory.
#[test]
fn a_forbidden_path_moves_into_the_sandbox() {
    let line = "EACCES: permission denied, open '/etc/app/conf.yaml'";
    let args = json!({"path": "/etc/app/conf.yaml", "content": "a: 1"});
    let plan = Case::tool(Kind::PermissionDenied, "write_file", args, line).plan();
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
        Kind::PermissionDenied,
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
    let plan = Case::shell(Kind::PermissionDenied, "./run.sh --all", line).plan();
    assert_eq!(
        scripts(&plan, "check_permissions")[1],
        "chmod u+x -- ./run.sh"
    );
    let plan = Case::shell(
        Kind::PermissionDenied,
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

/// S2-06: less, longer, piece by piece, in the background, and then a person (S2-19).
#[test]
fn a_slow_command_gets_less_to_do_or_more_time() {
    let case = Case::shell(Kind::Timeout, "grep -rn TODO .", "timed out after 15000 ms");
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
        Kind::Timeout,
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
        Kind::Timeout,
        "read_many",
        json!({"files": files}),
        "timeout",
    );
    let plan = case.plan();
    assert_eq!(plan[0].steps[0].args["files"].as_array().unwrap().len(), 10);
}

#[test]
fn a_time_limit_in_the_command_doubles_too() {
    let plan = Case::shell(Kind::Timeout, "timeout 60 make all", "exit 124").plan();
    assert_eq!(
        strategy(&plan, "increase_timeout").steps[0].args["script"],
        "timeout 120 make all"
    );
}

/// S2-07: the folder is listed, the nearest name is tried, the base name is searched.
#[test]
fn a_missing_file_is_looked_for_under_a_similar_name() {
    let line = "ENOENT: no such file or directory, open 'conf/confg.yaml'";
    let case = Case::tool(
        Kind::FileNotFound,
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
        Kind::FileNotFound,
        "cat Readme.md",
        "cat: Readme.md: No such file or directory",
    );
    let plan = shell.plan_with(|request| request.listing = words(&["README.md"]));
    assert_eq!(plan[0].steps[1].args["script"], "cat README.md");
}

#[test]
fn nothing_is_created_outside_the_root() {
    let line = "cat: /etc/nope: No such file or directory";
    let plan = Case::shell(Kind::FileNotFound, "cat /etc/nope", line).plan();
    assert_eq!(ids(&plan), ["verify_path", "ask_user_for_path"]);
}

/// S2-08: types as the message asks, then the schema, then only what is needed.
#[test]
fn invalid_arguments_are_corrected() {
    let args = json!({"path": "a.rs", "limit": "20", "colour": "red"});
    let line = "Invalid arguments: limit: Expected number, received string";
    let plan = Case::tool(Kind::InvalidArguments, "read_file", args, line).plan();
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
        Kind::InvalidArguments,
        "ls --colr -l src",
        "ls: unrecognized option '--colr'",
    );
    let plan = shell.plan();
    assert_eq!(scripts(&plan, "fix_parameter_types"), ["ls -l src"]);
    assert_eq!(
        scripts(&plan, "check_schema"),
        ["ls src --help 2>&1 | head -n 60"]
    );
}

/// S2-09: quotes closed, split at operators, portable syntax.
#[test]
fn syntax_is_corrected_split_or_made_portable() {
    let line = "sh: 1: Syntax error: Unterminated quoted string";
    let plan = Case::shell(Kind::SyntaxError, "echo 'a && ls", line).plan();
    assert_eq!(scripts(&plan, "fix_syntax"), ["echo 'a && ls'"]);
    let plan = Case::shell(Kind::SyntaxError, "[[ -f a ]] && cat a; make |", line).plan();
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
        ["[[ -f a ]]", "cat a", "make"]
    );
    assert_eq!(
        scripts(&plan, "try_alternative_syntax"),
        ["[ -f a ] && cat a; make"]
    );
}

/// S2-10: wait and retry, a mirror, what is cached, and then the question about the network.
#[test]
fn a_network_error_is_waited_out_or_gone_round() {
    let url = "https://raw.githubusercontent.com/u/r/main/install.sh";
    let case = Case::shell(
        Kind::NetworkError,
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
        Kind::NetworkError,
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

/// S2-11: the stated time is waited, 60 seconds where none is stated.
#[test]
fn a_rate_limit_is_waited_for() {
    let case = Case::shell(
        Kind::RateLimit,
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
    let fetch = Case::tool(
        Kind::RateLimit,
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

/// S2-12: a full disk is looked at; removing anything is only proposed.
#[test]
fn a_full_disk_is_never_cleaned_without_asking() {
    let plan = Case::shell(Kind::DiskFull, "make", "No space left on device").plan();
    assert_eq!(
        ids(&plan),
        [
            "clean_up_temp_files",
            "write_smaller_file",
            "ask_user_to_free_space"
        ]
    );
    let text = serde_json::to_string(&plan).unwrap();
    assert!(!text.contains("rm ") && !text.contains("-delete"), "{text}");
    assert_eq!(plan[0].steps.last().unwrap().tool, "ask_user");
}

/// S2-01: failures of agents and APIs are planned as changed attempts; S2-19: a person is always last.
#[test]
fn a_changed_attempt_is_a_plan_too() {
    let plan = Case::new(Kind::Timeout, Failure::agent("claude"), "").plan();
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
    let plan = Case::new(Kind::LockfileDrift, Failure::infra("npm"), "").plan();
    assert_eq!(plan[0].steps[0].tool, "repair");
    assert!(
        Case::new(Kind::TestFailure, Failure::infra("npm"), "")
            .plan()
            .is_empty()
    );
}

#[test]
fn a_taken_port_is_changed_in_the_command() {
    let line = "Error: listen EADDRINUSE: address already in use :::3000";
    let plan = Case::shell(Kind::PortInUse, "vite --port 3000", line).plan();
    assert_eq!(scripts(&plan, "use_other_port"), ["vite --port 3001"]);
    let plan = Case::shell(Kind::PortInUse, "node server.js", line).plan();
    assert_eq!(
        scripts(&plan, "use_other_port"),
        ["env PORT=3001 node server.js"]
    );
}

/// S2-15 to S2-18, S2-21: simple and sure ways come first; the given order is kept for the ten tool kinds.
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
    // S2-24, S2-28: learnt odds change the order.
    let plan = case.plan_with(|request| {
        request.odds.insert("alternative_command".into(), 0.1);
    });
    assert_eq!(
        ids(&plan),
        ["manual_installation", "alternative_command", "ask_user"]
    );
    assert_eq!(plan[1].confidence, 0.1);
}

/// S2-23: without a shell, what needs one is left out.
#[test]
fn strategies_without_their_tools_are_skipped() {
    let case = clone("https://github.com/u/r");
    let plan = case.plan_with(|request| request.tools = Some(words(&["read_file"])));
    assert_eq!(ids(&plan), ["ask_user"]);
    let plan = case.plan_with(|request| request.tools = Some(words(&["Bash"])));
    assert_eq!(plan[0].steps[2].args, json!({"command": "ls -la -- r"}));
}

/// S2-25: who only looks round gets the ways first that change nothing.
#[test]
fn exploring_prefers_ways_that_change_nothing() {
    let line = "EACCES: permission denied, open '/etc/x'";
    let case = Case::tool(
        Kind::PermissionDenied,
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

/// S2-26: what a person forbids is not proposed, by id, by risk or by a word of the command.
#[test]
fn forbidden_ways_are_left_out() {
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
        Kind::CommandNotFound,
        "sudo python x.py",
        "sudo: python: command not found",
    );
    assert!(!ids(&case.plan()).contains(&"alternative_command"));
    let plan = case.plan_with(|request| request.allow = words(&["sudo"]));
    assert_eq!(scripts(&plan, "alternative_command"), ["sudo python3 x.py"]);
}

#[test]
fn values_of_a_call_cannot_leave_their_quotes() {
    let args = json!({"path": "a'; rm -rf ~; '", "pattern": "$(id)"});
    let case = Case::tool(Kind::ToolNotFound, "find_code", args, "unknown tool");
    let plan = case.plan_with(|request| request.tools = Some(words(&["run_bash"])));
    assert_eq!(
        scripts(&plan, "decompose_into_basic_tools"),
        [r"grep -rnI -e '$(id)' -- 'a'\''; rm -rf ~; '\''' | head -n 100"]
    );
}
