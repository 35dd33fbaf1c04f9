//! Plans for missing commands and tools.

use serde_json::json;

use super::*;

/// S2-03, S2-13, S2-14: without git a clone becomes a tarball download, its extraction and a check of the result.
#[test]
fn a_clone_without_git_becomes_a_tarball() {
    let plan = clone("https://github.com/user/repo").plan();
    let tarball = "https://github.com/user/repo/archive/refs/heads";
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
                        "curl -L --fail {tarball}/main.tar.gz -o repo.tar.gz || \
                         curl -L --fail {tarball}/master.tar.gz -o repo.tar.gz"
                    ) },
                    "expectedOutcome": "repo.tar.gz exists",
                },
                {
                    "action": "Extract the tarball",
                    "tool": "run_bash",
                    "args": { "script": "mkdir -p -- repo && tar -xzf repo.tar.gz --strip-components=1 -C repo" },
                    "expectedOutcome": "The files of the repository are in repo",
                },
                {
                    "action": "Check the result",
                    "tool": "read_dir",
                    "args": { "dir": "repo" },
                    "expectedOutcome": "The listing shows the files of the repository",
                },
            ],
            "fallbackChain": ["manual_installation", "ask_user"],
        })
    );
}

#[test]
fn a_clone_keeps_its_directory_its_branch_and_the_rest_of_the_command() {
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
        FailureKind::CommandNotFound,
        "cd /srv && git clone https://codeberg.org/u/r",
        "git: command not found",
    );
    assert!(
        scripts(&moved.plan(), "alternative_command")
            .iter()
            .all(|one| one.starts_with("cd /srv && "))
    );
}

/// S2-03: other missing commands have alternatives too, inserted at their position in the command.
#[test]
fn missing_commands_are_replaced_in_place() {
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
        ("http GET https://h.org", "http", "curl -sSL https://h.org"),
        ("which node", "which", "command -v node"),
        ("bat *.md", "bat", "cat -- *.md"),
        ("xxd a.bin", "xxd", "od -A x -t x1z a.bin"),
        ("netstat -tlnp", "netstat", "ss -ltnp"),
        ("rsync -a a b", "rsync", "cp -a -- a b"),
    ] {
        let case = Case::shell(
            FailureKind::CommandNotFound,
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
fn an_alternative_that_is_also_missing_is_not_proposed() {
    let case = Case::shell(
        FailureKind::CommandNotFound,
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

/// S2-03: the available package manager installs the package that contains the command.
#[test]
fn missing_commands_are_installed_by_the_available_package_manager() {
    let case = Case::shell(
        FailureKind::CommandNotFound,
        "rg x",
        "rg: command not found",
    );
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

/// S2-04: a similar tool, the same role, or basic tools replace one that does not exist.
#[test]
fn a_missing_tool_is_replaced_by_an_available_one() {
    let line = "Error: No such tool available: repo_browser";
    let case = Case::tool(
        FailureKind::ToolNotFound,
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
    let odd = Case::tool(
        FailureKind::ToolNotFound,
        "codebase_overview",
        json!({}),
        line,
    );
    let plan = odd.plan_with(|request| request.tools = Some(words(&["LS", "Read"])));
    let tools: Vec<_> = plan[0]
        .steps
        .iter()
        .map(|step| step.tool.as_str())
        .collect();
    assert_eq!(tools, ["LS", "Read"]);
    let typo = Case::tool(
        FailureKind::ToolNotFound,
        "raed_file",
        json!({"path": "a"}),
        line,
    );
    let plan = typo.plan_with(|request| request.tools = Some(words(&["read_file"])));
    assert_eq!(plan[0].steps[0].tool, "read_file");
}
