//! `unstuck agents`: known agents, installed ones, and their commands.

use std::os::unix::fs::PermissionsExt;

use crate::Place;

fn agent<'j>(all: &'j serde_json::Value, id: &str) -> &'j serde_json::Value {
    let mut all = all.as_array().unwrap().iter();
    all.find(|agent| agent["id"] == id).unwrap()
}

fn line<'t>(text: &'t str, id: &str) -> &'t str {
    text.lines().find(|line| line.starts_with(id)).unwrap()
}

#[test]
fn every_agent_is_listed_with_version_or_as_not_installed() {
    let place = Place::new();
    place.tool("claude", "#!/bin/sh\necho '2.1.325 (Claude Code)'\n");
    place.tool(
        "codex",
        "#!/bin/sh\necho 'WARNING: 1.0 is old' >&2; echo 'codex-cli 0.166.0'\n",
    );
    let ended = place.run(&["agents"], "");
    assert_eq!((ended.code, ended.stderr.as_str()), (0, ""));
    insta::assert_snapshot!(ended.stdout, @r"
    aider     not installed    prompt in a file · resumes · model
    claude    2.1.325          prompt on stdin · resumes · model · tools  ~/bin/claude
    codex     0.166.0          prompt on stdin · resumes · model          ~/bin/codex
    command   any program      prompt on stdin · variables
    copilot   not installed    prompt on stdin · resumes · model · tools
    gemini    not installed    prompt on stdin · resumes · model · tools
    goose     not installed    prompt on stdin · resumes · model
    opencode  not installed    prompt on stdin · resumes · model
    qwen      not installed    prompt on stdin · resumes · model · tools
    ");
    let all = place.json(&["agents", "--json"], "");
    let (claude, aider) = (agent(&all, "claude"), agent(&all, "aider"));
    assert_eq!(
        (&claude["installed"], &claude["version"]),
        (&true.into(), &"2.1.325".into())
    );
    assert_eq!(
        (&claude["on_path"], &claude["prompt"]),
        (&true.into(), &"stdin".into())
    );
    assert!(claude["path"].as_str().unwrap().ends_with("/bin/claude"));
    assert_eq!(
        (&aider["installed"], &aider["prompt"]),
        (&false.into(), &"file".into())
    );
    assert!(agent(&all, "command")["installed"].is_null());
}

/// Agents are probed in parallel, so that a hanging one costs five seconds and not the results of the others.
#[test]
fn hanging_or_failing_program_does_not_block_the_list() {
    let place = Place::new();
    for hanging in ["claude", "gemini", "goose", "opencode"] {
        place.tool(hanging, "#!/bin/sh\nsleep 987 & wait\n");
    }
    place.tool("codex", "#!/bin/sh\necho 'no such library' >&2; exit 3\n");
    place.tool("aider", "#!/nowhere/interpreter\n");
    let started = std::fs::metadata(place.project())
        .unwrap()
        .modified()
        .unwrap();
    let ended = place.run(&["agents"], "");
    assert_eq!((ended.code, ended.stderr.as_str()), (0, ""));
    let stamp = place.write("stamp", "");
    let elapsed = std::fs::metadata(stamp)
        .unwrap()
        .modified()
        .unwrap()
        .duration_since(started)
        .unwrap();
    assert!(elapsed.as_secs() < 15, "not side by side: {elapsed:?}");
    for (id, problem) in [
        ("claude", "~/bin/claude (version check timed out after 5 s)"),
        (
            "codex",
            "~/bin/codex (version check failed: no such library)",
        ),
        ("aider", "~/bin/aider (cannot start: interpreter not found)"),
    ] {
        let line = line(&ended.stdout, id);
        assert!(
            line.contains("version unknown") && line.contains(problem),
            "{line}"
        );
    }
}

#[test]
fn program_outside_the_search_path_is_found_and_reported() {
    let place = Place::new();
    let folder = place.folder.path().join(".claude/local");
    std::fs::create_dir_all(&folder).unwrap();
    let program = folder.join("claude");
    std::fs::write(&program, "#!/bin/sh\necho 1.2.3\n").unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    let listed = place.run(&["agents"], "").stdout;
    let claude = line(&listed, "claude");
    assert!(
        claude.contains("1.2.3") && claude.ends_with("~/.claude/local/claude (not on PATH)"),
        "{claude}"
    );
    let all = place.json(&["agents", "--json"], "");
    assert_eq!(agent(&all, "claude")["on_path"], false);
}

#[test]
fn planned_command_is_shown() {
    let place = Place::new();
    insta::assert_snapshot!(place.run(&["agents", "show", "codex"], "").stdout, @r#"
    codex  Codex, not installed

    Command for a new conversation
      echo 'Fix the failing tests' | codex exec --json -m MODEL -

    Command to continue a conversation
      echo Continue | codex exec --json -m MODEL resume SESSION -

    UPPERCASE words are settings of a role; unset ones are omitted.
    It has no option for allowed tools: omit `allowed_tools`, and choose its sandbox with args = ["--sandbox", "workspace-write"].
    "#);
    insta::assert_snapshot!(place.run(&["agents", "show", "aider"], "").stdout, @r"
    aider  aider, not installed

    Command for a new conversation
      aider --yes-always --no-check-update --no-show-release-notes --no-pretty --model MODEL --message-file PROMPT.md

    Command to continue a conversation
      aider --yes-always --no-check-update --no-show-release-notes --no-pretty --model MODEL --restore-chat-history --message-file PROMPT.md

    UPPERCASE words are settings of a role; unset ones are omitted.
    PROMPT.md contains the prompt.
    It has no option for allowed tools: omit `allowed_tools`, since aider has no tools other than file edits.
    ");
    insta::assert_snapshot!(place.run(&["agents", "show", "command"], "").stdout, @r"
    command  Any program, set by the role's `command`

    Command for a new conversation
      echo 'Fix the failing tests' | my-agent --model MODEL --session SESSION

    Command to continue a conversation
      echo Continue | my-agent --model MODEL --session SESSION

    UPPERCASE words are settings of a role; unset ones are omitted.
    ");
    let claude = place.json(&["agents", "show", "claude", "--json"], "");
    assert_eq!(claude["called"]["stdin"], "Fix the failing tests");
    assert_eq!(
        claude["resumed"]["command"]
            .as_array()
            .unwrap()
            .last()
            .unwrap(),
        "SESSION"
    );
    let unknown = place.run(&["agents", "show", "clod"], "");
    assert_eq!(
        (unknown.code, unknown.stderr.lines().next()),
        (2, Some("error: unknown agent `clod`"))
    );
}
