//! Attacks that once escaped the sandbox: each is performed for real, and its target is checked afterwards.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use unstuck_repair::sandbox::{ConfinementLevel, SandboxMode, add_only_dirs};
use unstuck_repair::watched_files::WatchedFile;
use unstuck_run::process::ChildExitStatus;

use super::support::Place;

/// Returns a `printf` format of git settings that make git execute a command outside.
fn fsmonitor(place: &Place) -> String {
    let pwned = place.path("outside/pwned");
    format!(
        "[core]\\n\\tfsmonitor = \"touch {}; false #\"\\n",
        pwned.display()
    )
}

/// Returns true if the owner's own git executes a command of the attacker.
fn is_executed(place: &Place) -> bool {
    for folder in [".", "a", "a/b", "bare"] {
        if !place.path("project").join(folder).exists() {
            continue;
        }
        place.git(&["-C", folder, "status"]);
        place.git(&["-C", folder, "log", "-1"]);
        place.git(&["-C", folder, "commit", "-q", "--allow-empty", "-m", "x"]);
    }
    place.path("outside/pwned").exists()
}

/// H6: git reads settings and hooks from the directory that `.git/commondir` names.
#[tokio::test]
async fn commondir_never_redirects_git() {
    let place = Place::new();
    place.repository();
    let line = format!(
        "mkdir evil && cp -r .git/refs .git/objects .git/HEAD .git/config evil/ && printf '{}' >> evil/config && echo ../evil > .git/commondir",
        fsmonitor(&place)
    );
    let ran = place.run(&line).await;
    assert_eq!(ran.status, ChildExitStatus::Exited(0), "{ran:#?}");
    assert_eq!(Place::planted(&ran), [".git/commondir", "evil"], "{ran:#?}");
    assert!(!is_executed(&place));
    assert!(!place.path("project/.git/commondir").exists());
}

/// Not even for a moment: an editor or a prompt runs git while a repair runs.
#[tokio::test]
async fn injected_settings_never_take_effect_while_the_repair_runs() {
    for has_repository in [true, false] {
        // Not below the repository of these tests: with a repository above, no placeholder is created for another one.
        let place = Place::below(Path::new("/var/tmp"));
        if has_repository {
            place.repository();
        }
        let line = format!(
            "(git init -q; printf '{}' >> .git/config; echo ../evil > .git/commondir; mkdir -p .git/hooks; echo evil > .git/hooks/pre-commit) 2>/dev/null; touch ready; until test -e go; do sleep 0.05; done",
            fsmonitor(&place)
        );
        let look = async {
            let is_ready = || place.path("project/ready").exists();
            crate::support::eventually("the repair has planted it", is_ready).await;
            assert!(!place.path("project/.git/commondir").exists());
            assert!(!place.path("project/.git/hooks/pre-commit").exists());
            place.git(&["status"]);
            let is_executed = place.path("outside/pwned").exists();
            place.write("project/go", "");
            is_executed
        };
        let (ran, is_executed_meanwhile) = tokio::join!(place.run(&line), look);
        assert!(!is_executed_meanwhile);
        assert!(!ran.removed_injections.is_empty(), "{ran:#?}");
        assert_eq!(place.path("project/.git").exists(), has_repository);
        assert!(!is_executed(&place));
    }
}

#[tokio::test]
async fn injected_git_settings_never_survive() {
    let attacks = [
        (".git/config", "printf 'EVIL' >> .git/config"),
        (
            ".git/config.worktree",
            "printf 'EVIL' > .git/config.worktree",
        ),
        (
            ".git/hooks/post-commit",
            "mkdir -p .git/hooks; printf '#!/bin/sh\\ntouch PWNED\\n' > .git/hooks/post-commit; chmod +x .git/hooks/post-commit",
        ),
        (
            ".git/info/attributes",
            "mkdir -p .git/info; echo '* filter=x' > .git/info/attributes",
        ),
        (
            ".git/worktrees",
            "mkdir -p .git/worktrees/x; echo x > .git/worktrees/x/gitdir",
        ),
        (
            ".git/modules",
            "mkdir -p .git/modules/x/objects .git/modules/x/refs; echo ref: refs/heads/main > .git/modules/x/HEAD; printf 'EVIL' > .git/modules/x/config",
        ),
        (
            ".git/rebase-merge",
            "mkdir .git/rebase-merge; echo exec touch PWNED > .git/rebase-merge/git-rebase-todo",
        ),
        (
            ".git/COMMIT_EDITMSG",
            "rm -f .git/COMMIT_EDITMSG; ln -s PWNED .git/COMMIT_EDITMSG",
        ),
        (
            ".git/logs/HEAD",
            "rm -f .git/logs/HEAD; mkdir -p .git/logs; ln -s PWNED .git/logs/HEAD",
        ),
        (
            "a/.git",
            "mkdir a; git init -q a; printf 'EVIL' >> a/.git/config",
        ),
        (
            "a/b/.git",
            "mkdir -p a/b; echo 'gitdir: ../../evil' > a/b/.git",
        ),
        (
            "bare",
            "git init -q --bare bare; printf 'EVIL' >> bare/config",
        ),
        ("unstuck.json", "echo '{}' > unstuck.json"),
    ];
    for (planted, line) in attacks {
        let place = Place::new();
        place.repository();
        let pwned = place.path("outside/pwned").display().to_string();
        let before = place.read("project/.git/config");
        let line = line
            .replace("EVIL", &fsmonitor(&place))
            .replace("PWNED", &pwned);
        let ran = place.run(&format!("({line}) 2>/dev/null; true")).await;
        assert_eq!(ran.confinement.summary(), "full");
        let told = Place::planted(&ran);
        let is_told = told.iter().any(|path| Path::new(path).starts_with(planted));
        assert!(is_told, "{planted}: {ran:#?}");
        assert_eq!(place.read("project/.git/config"), before, "{planted}");
        assert!(!is_executed(&place), "{planted}");
    }
}

/// Returns a place with a repository whose configuration has a setting, and programs that it may name.
fn place_with_setting(name: &str, value: &str) -> Place {
    let place = Place::new();
    place.repository();
    place.write("project/tools/watch", "#!/bin/sh\nexit 1\n");
    place.write("project/tools/hooks/commit-msg", "#!/bin/sh\nexit 0\n");
    for file in ["watch", "hooks/commit-msg"] {
        place.make_executable(&format!("project/tools/{file}"));
    }
    place.git(&["config", name, value]);
    place
}

/// Returns a line that writes a hook for commits.
fn plant(place: &Place, hook: &str) -> String {
    let pwned = place.path("outside/pwned");
    let folder = Path::new(hook).parent().unwrap().display();
    format!(
        "mkdir -p ./{folder}; printf '#!/bin/sh\\ntouch {}\\n' > {hook}; chmod +x {hook}",
        pwned.display()
    )
}

/// Git executes what its configuration names in the work tree, too: included settings, hooks, programs. What exists is
/// read-only; what appears is removed.
#[tokio::test]
async fn files_that_git_settings_name_keep_their_contents() {
    let attacks = [
        (
            "include.path",
            "../.gitconfig",
            "printf 'EVIL' > .gitconfig",
            Some(".gitconfig"),
        ),
        (
            "core.hooksPath",
            ".githooks",
            "PLANT .githooks/post-commit",
            Some(".githooks"),
        ),
        (
            "core.hooksPath",
            "tools/hooks",
            "PLANT tools/hooks/post-commit",
            None,
        ),
        (
            "core.hooksPath",
            "tools/hooks",
            "rm -rf tools; PLANT tools/hooks/post-commit",
            None,
        ),
        (
            "core.fsmonitor",
            "tools/watch",
            "printf '#!/bin/sh\ntouch PWNED\n' > tools/watch; mv evil tools/watch; cp file tools/watch",
            None,
        ),
        (
            "core.fsmonitor",
            "sh tools/watch",
            "printf 'touch PWNED\n' > tools/watch",
            None,
        ),
        (
            "core.fsmonitor",
            "tools/later",
            "printf '#!/bin/sh\ntouch PWNED\n' > tools/later; chmod +x tools/later",
            Some("tools/later"),
        ),
        (
            "core.hooksPath",
            ".",
            "PLANT post-commit",
            Some("post-commit"),
        ),
    ];
    for (name, value, line, planted) in attacks {
        let place = place_with_setting(name, value);
        let pwned = place.path("outside/pwned").display().to_string();
        let line = match line.split_once("PLANT ") {
            Some((before, hook)) => format!("{before}{}", plant(&place, hook)),
            None => line.to_owned(),
        };
        let line = line
            .replace("EVIL", &fsmonitor(&place))
            .replace("PWNED", &pwned);
        let ran = place.run(&format!("{line}; echo built > built")).await;
        assert_eq!(ran.status, ChildExitStatus::Exited(0), "{ran:#?}");
        let expected: Vec<_> = planted.into_iter().collect();
        assert_eq!(Place::planted(&ran), expected, "{line}: {ran:#?}");
        assert!(place.path("project/built").exists());
        assert!(!is_executed(&place), "{line}");
        let hook = place.read("project/tools/hooks/commit-msg");
        assert_eq!(hook.as_deref(), Some("#!/bin/sh\nexit 0\n"));
    }
}

/// A link that takes the place of a directory above a hook redirects git without touching the hook.
#[tokio::test]
async fn link_above_a_hook_never_redirects_git() {
    // Only what did not exist can be replaced at all where mounts are available.
    for (hooks, mode, planted) in [
        ("tools/hooks", SandboxMode::Required, None),
        ("tools/hooks", SandboxMode::Off, Some("tools")),
        ("later/hooks", SandboxMode::Required, Some("later")),
        ("later/a/hooks", SandboxMode::Off, Some("later")),
    ] {
        let place = place_with_setting("core.hooksPath", hooks);
        let (top, below) = hooks.split_once('/').unwrap();
        let line = format!(
            "mv {top} moved; {}; ln -s evil {top}",
            plant(&place, &format!("evil/{below}/post-commit"))
        );
        let ran = place.run_as(&line, |profile| profile.mode = mode).await;
        let ran = ran.unwrap();
        let expected: Vec<_> = planted.into_iter().collect();
        assert_eq!(Place::planted(&ran), expected, "{hooks}: {ran:#?}");
        assert!(!is_executed(&place), "{hooks}");
        let hook = place.read("project/tools/hooks/commit-msg");
        assert_eq!(hook.as_deref(), Some("#!/bin/sh\nexit 0\n"));
    }
}

/// Not even for a moment, and of any size: the owner commits while a repair runs.
#[tokio::test]
async fn existing_hooks_do_not_change_while_a_repair_runs() {
    let place = place_with_setting("core.hooksPath", "tools/hooks");
    let large = format!("#!/bin/sh\nexit 0\n{}\n", "#".repeat(2 << 20));
    place.write("project/tools/hooks/post-commit", &large);
    place.make_executable("project/tools/hooks/post-commit");
    let line = format!(
        "mv tools moved; {}; {}; mv evil/hooks/post-commit tools/hooks/post-commit; touch ready; until test -e go; do sleep 0.05; done",
        plant(&place, "tools/hooks/post-commit"),
        plant(&place, "evil/hooks/post-commit"),
    );
    let look = async {
        let is_ready = || place.path("project/ready").exists();
        crate::support::eventually("the repair has tried", is_ready).await;
        let is_executed_meanwhile = is_executed(&place);
        place.write("project/go", "");
        is_executed_meanwhile
    };
    let (ran, is_executed_meanwhile) = tokio::join!(place.run(&line), look);
    assert!(!is_executed_meanwhile, "{ran:#?}");
    assert_eq!(Place::planted(&ran), Vec::<String>::new(), "{ran:#?}");
    let now = place.read("project/tools/hooks/post-commit");
    assert!(now == Some(large) && !is_executed(&place));
}

/// The stubs in `.husky/_` start the hooks in `.husky`.
#[tokio::test]
async fn hooks_of_husky_are_protected_and_its_stubs_can_be_generated() {
    const STUB: &str = "#!/usr/bin/env sh\n. \"$(dirname \"$0\")/h\"";
    let generate = format!(
        "git config core.hooksPath .husky/_ && rm -f .husky/_/husky.sh && mkdir -p .husky/_ && \
         printf '*' > .husky/_/.gitignore && : > .husky/_/husky.sh && printf '%s' '{STUB}' > .husky/_/pre-commit && \
         chmod +x .husky/_/pre-commit"
    );
    for mode in [SandboxMode::Required, SandboxMode::Off] {
        for exists in [true, false] {
            let place = place_with_setting("core.hooksPath", ".husky/_");
            place.write("project/.husky/pre-commit", "exit 0\n");
            if exists {
                place.write("project/.husky/_/h", "sh -e .husky/pre-commit\n");
                place.write("project/.husky/_/husky.sh", "");
                place.write("project/.husky/_/pre-commit", STUB);
            }
            let ran = place.run_as(&generate, |profile| profile.mode = mode);
            let ran = ran.await.unwrap();
            assert_eq!(ran.status, ChildExitStatus::Exited(0), "{ran:#?}");
            assert_eq!(Place::planted(&ran), Vec::<String>::new(), "{ran:#?}");
            let stub = place.read("project/.husky/_/pre-commit");
            assert_eq!(stub.as_deref(), Some(STUB), "{mode:?} {exists}");

            for hook in [".husky/pre-commit", ".husky/_/post-commit", ".husky/_/h"] {
                let line = format!("{}; true", plant(&place, hook));
                let ran = place.run_as(&line, |profile| profile.mode = mode);
                let ran = ran.await.unwrap();
                assert_eq!(ran.status, ChildExitStatus::Exited(0), "{ran:#?}");
                assert!(!is_executed(&place), "{mode:?} {exists} {hook}");
            }
            let hook = place.read("project/.husky/pre-commit");
            assert_eq!(hook.as_deref(), Some("exit 0\n"));
        }
    }
}

/// Repairs that change what git's configuration mentions, but does not execute, or what they install themselves.
#[tokio::test]
async fn repairs_of_lockfiles_and_packages_are_kept() {
    let place = place_with_setting("alias.lock", "!git add package-lock.json");
    place.git(&["config", "merge.x.driver", "node_modules/.bin/x %A"]);
    place.git(&["config", "diff.x.textconv", "node tools/x.js"]);
    place.write("project/package-lock.json", "old");
    place.write("project/tools/x.js", "mine");
    place.write("project/node_modules/.bin/x", "old");
    place.write("project/store/.bin/x", "new");
    let line =
        "rm -rf node_modules && cp -r store node_modules && cp store/.bin/x package-lock.json";
    let ran = place.run(line).await;
    assert_eq!(ran.status, ChildExitStatus::Exited(0), "{ran:#?}");
    assert_eq!(Place::planted(&ran), Vec::<String>::new(), "{ran:#?}");
    for name in ["package-lock.json", "node_modules/.bin/x"] {
        let now = place.read(&format!("project/{name}"));
        assert_eq!(now.as_deref(), Some("new"), "{name}");
    }
    // A command that installs nothing changes no program of git.
    let ran = place
        .run("echo evil > node_modules/.bin/x; mv node_modules moved; echo evil > tools/x.js; true")
        .await;
    assert_eq!(ran.status, ChildExitStatus::Exited(0), "{ran:#?}");
    let now = place.read("project/node_modules/.bin/x");
    assert_eq!(now.as_deref(), Some("new"));
    assert_eq!(place.read("project/tools/x.js").as_deref(), Some("mine"));
}

/// Hooks of a linked work tree and of a submodule, and conditional settings.
#[tokio::test]
async fn hooks_of_work_trees_submodules_and_conditional_settings_are_protected() {
    let place = place_with_setting("includeIf.onbranch:main.path", "../tools/settings");
    place.write("project/tools/settings", "[core]\n\thooksPath = .hooks\n");
    place.git(&["worktree", "add", "-q", "linked", "-b", "linked"]);
    let library = place.path("project/origin").display().to_string();
    place.git(&["init", "-q", "-b", "main", &library]);
    place.git(&[
        "-C",
        &library,
        "commit",
        "-q",
        "--allow-empty",
        "-m",
        "first",
    ]);
    place.git(&["submodule", "-q", "add", &library, "library"]);
    place.git(&["-C", "library", "config", "core.hooksPath", ".hooks"]);
    place.git(&["-C", "linked", "config", "core.hooksPath", ".hooks"]);
    let hooks = [".hooks", "library/.hooks", "linked/.hooks"];
    let lines = hooks.map(|folder| plant(&place, &format!("{folder}/post-commit")));
    let ran = place.run(&lines.join("; ")).await;
    assert_eq!(ran.status, ChildExitStatus::Exited(0), "{ran:#?}");
    assert_eq!(Place::planted(&ran), hooks, "{ran:#?}");
    for folder in [".", "library", "linked"] {
        place.git(&["-C", folder, "commit", "-q", "--allow-empty", "-m", "x"]);
    }
    assert!(!place.path("outside/pwned").exists());
}

/// More than can be protected: nothing runs, and the reason is stated.
#[tokio::test]
async fn too_many_references_are_refused_with_the_reason() {
    let place = place_with_setting("include.path", "../tools/settings");
    let lines = (0..100_000).map(|n| format!("\tpath = {n}\n"));
    let text = format!("[include]\n{}", lines.collect::<String>());
    place.write("project/tools/settings", &text);
    let refused = place.run_as("touch made", |_| {}).await.unwrap_err();
    let refused = refused.to_string();
    assert!(refused.contains("cannot be protected"), "{refused}");
    assert!(!place.path("project/made").exists());
}

#[tokio::test]
async fn nested_repository_is_restored() {
    let place = Place::new();
    place.repository();
    place.git(&["init", "-q", "a"]);
    let line = format!(
        "printf '{}' >> a/.git/config; echo ../x > a/.git/commondir; echo data > a/.git/index",
        fsmonitor(&place)
    );
    let ran = place.run(&line).await;
    assert_eq!(
        Place::planted(&ran),
        ["a/.git/commondir", "a/.git/config"],
        "{ran:#?}"
    );
    assert_eq!(
        place.read("project/a/.git/index").as_deref(),
        Some("data\n")
    );
    assert!(!is_executed(&place));
    let ran = place.run("rm -rf a").await;
    assert_eq!(ran.status, ChildExitStatus::Exited(0), "{ran:#?}");
    assert!(
        !place.path("project/a").exists() && ran.removed_injections.is_empty(),
        "{ran:#?}"
    );
}

#[tokio::test]
async fn git_works_in_the_sandbox_and_its_changes_are_kept() {
    let place = Place::new();
    place.repository();
    let line = "echo more >> file && git add -A && git commit -q -m second && git tag v1 && git branch other && git stash list";
    let ran = place.run(line).await;
    assert_eq!(ran.status, ChildExitStatus::Exited(0), "{ran:#?}");
    assert_eq!(Place::planted(&ran), Vec::<String>::new());
    assert_eq!(place.git(&["log", "--format=%s"]), "second\nfirst\n");
    assert_eq!(place.git(&["tag"]), "v1\n");
    assert_eq!(place.git(&["status", "--porcelain"]), "");
    assert!(place.git(&["branch"]).contains("other"));
    let line = "git branch -D other && git tag -d v1 && git pack-refs --all && git gc -q";
    let ran = place.run(line).await;
    assert_eq!(ran.status, ChildExitStatus::Exited(0), "{ran:#?}");
    assert!(!place.git(&["branch"]).contains("other"));
    assert_eq!(place.git(&["fsck"]), "");
    assert_eq!(place.git(&["log", "--format=%s"]), "second\nfirst\n");
}

/// Concurrent changes of the repository by others are not undone.
#[tokio::test]
async fn concurrent_commit_of_the_owner_is_kept() {
    let place = Place::new();
    place.repository();
    let line =
        "touch ready; until test -e go; do sleep 0.05; done; git commit -q --allow-empty -m inside";
    let outside = async {
        let is_ready = || place.path("project/ready").exists();
        crate::support::eventually("the repair runs", is_ready).await;
        place.git(&["commit", "-q", "--allow-empty", "-m", "outside"]);
        place.write("project/go", "");
    };
    let (ran, ()) = tokio::join!(place.run(line), outside);
    assert!(!ran.conflicting_git_changes.is_empty(), "{ran:#?}");
    assert_eq!(place.git(&["log", "--format=%s", "-1"]), "outside\n");
}

#[tokio::test]
async fn harmless_declared_effects_are_kept() {
    let place = Place::new();
    let ran = place.run("git init -q").await;
    assert_eq!(ran.status, ChildExitStatus::Exited(0), "{ran:#?}");
    assert_eq!(Place::planted(&ran), Vec::<String>::new());
    assert!(place.path("project/.git/HEAD").exists());
    assert!(place.path("project/.git/config").exists());

    let place = Place::new();
    let library = place.path("project/origin").display().to_string();
    place.repository();
    place.git(&["init", "-q", "-b", "main", &library]);
    place.git(&[
        "-C",
        &library,
        "commit",
        "-q",
        "--allow-empty",
        "-m",
        "library",
    ]);
    place.git(&["submodule", "-q", "add", &library, "library"]);
    place.git(&["commit", "-q", "-m", "with a submodule"]);
    place.git(&["submodule", "-q", "deinit", "-f", "library"]);
    std::fs::remove_dir_all(place.path("project/.git/modules")).unwrap();
    let ran = place.run("git submodule update --init").await;
    assert_eq!(ran.status, ChildExitStatus::Exited(0), "{ran:#?}");
    assert_eq!(Place::planted(&ran), Vec::<String>::new(), "{ran:#?}");
    let config = place.read("project/.git/config").unwrap();
    assert!(config.contains("[submodule \"library\"]"), "{config}");
    let log = place.git(&["-C", "library", "log", "--format=%s"]);
    assert_eq!(log, "library\n");
}

/// H7: a program of the project ran without a sandbox next to a command that inspects processes.
#[tokio::test]
async fn project_programs_do_not_run_next_to_process_inspection() {
    let place = Place::new();
    let key = place.write("home/.ssh/id_ed25519", "hunter2");
    let bashrc = place.path("home/.bashrc");
    let script = format!(
        "BEGIN {{ system(\"cat {}; echo evil >> {}\") }}",
        key.display(),
        bashrc.display()
    );
    place.write("project/tools/port.awk", &script);
    for line in [
        "ss -ltn | awk -f tools/port.awk",
        "fuser 1/tcp; awk -f tools/port.awk",
    ] {
        for demand in [SandboxMode::Required, SandboxMode::BestEffort] {
            let ran = place.run_as(line, |profile| profile.mode = demand).await;
            let ran = ran.unwrap();
            assert_eq!(ran.confinement.level, ConfinementLevel::Full, "{line}");
            let wrote = format!("{}{}", ran.stdout, ran.stderr);
            assert!(!wrote.contains("hunter2"), "{ran:#?}");
            assert!(!bashrc.exists());
        }
    }
}

/// M1: programs and environments of tools in caches.
#[tokio::test]
async fn executable_cache_contents_are_never_changed() {
    let known = [
        ".gradle/wrapper/dists/gradle-8/abc/bin/gradle",
        ".m2/wrapper/dists/maven/x/bin/mvn",
        ".m2/repository/org/x/1/x-1.jar",
        ".gradle/caches/modules-2/files-2.1/x.jar",
        ".cache/pypoetry/virtualenvs/app/bin/python",
        ".local/share/virtualenvs/app/bin/python",
        ".conda/envs/app/bin/python",
        ".conda/pkgs/x/bin/x",
        ".cache/pre-commit/repo1/bin/hook",
        ".cache/prisma/engine",
        ".cache/ms-playwright/chromium-1/chrome",
        ".cache/Cypress/13/Cypress",
        ".cache/puppeteer/chrome/linux-1/chrome",
        ".cache/electron/x/electron",
        ".cache/node-gyp/20/include/node.h",
        "go/pkg/mod/golang.org/toolchain@v1/bin/go",
        "go/pkg/mod/example.com/x@v1/x.go",
        ".cache/go-build/00/x",
        ".cargo/registry/src/index/serde-1/src/lib.rs",
        ".local/share/pnpm/store/v3/files/00/x",
        ".cache/uv/archive-v0/x/x.py",
        ".local/share/uv/tools/ruff/bin/ruff",
        ".cache/pip/wheels/x.whl",
        ".nuget/packages/x/1/x.dll",
        ".bun/install/cache/x@1/x.js",
        ".cache/yarn/v6/x/x.js",
    ];
    let mut programs: Vec<String> = known.map(str::to_owned).to_vec();
    // Every directory of the data file, so that a new entry is tested as well.
    let listed = add_only_dirs(Path::new(""));
    assert!(listed.len() > 40, "{listed:?}");
    for folder in listed {
        for inside in ["mine", "a/b@1/c/d/e/.git/config"] {
            let path = folder.join(inside);
            programs.push(path.to_str().unwrap().to_owned());
        }
    }
    let place = Place::new();
    for program in &programs {
        place.write(&format!("home/{program}"), "mine");
    }
    let pnpm = place.path("home/.local/share/pnpm/store/v3/files/00/x");
    let other = place.path("outside/node_modules-x");
    std::fs::hard_link(&pnpm, &other).unwrap();
    let lines = programs.iter().map(|program| {
        format!(
            "echo evil > ~/{program}; chmod 777 ~/{program}; rm -f ~/{program}; echo evil > ~/{program}; \
             echo evil > \"$(dirname ~/{program})/sitecustomize.py\""
        )
    });
    let lines: Vec<_> = lines.collect();
    place.write("project/attack.sh", &lines.join("\n"));
    let ran = place.run("sh attack.sh 2>/dev/null; true").await;
    assert_eq!(ran.confinement.summary(), "full");
    for program in &programs {
        let now = place.read(&format!("home/{program}"));
        assert_eq!(now.as_deref(), Some("mine"), "{program}");
    }
    assert_eq!(std::fs::read_to_string(&other).unwrap(), "mine");
    // Nothing is added to an existing environment or package.
    for folder in [
        ".cache/pypoetry/virtualenvs/app/bin",
        ".conda/envs/app/bin",
        ".gradle/wrapper/dists/gradle-8/abc/bin",
        "go/pkg/mod/example.com/x@v1",
        ".cargo/registry/src/index/serde-1/src",
        ".cache/uv/archive-v0/x",
    ] {
        let added = place.path(&format!("home/{folder}/sitecustomize.py"));
        assert!(!added.exists(), "{folder}");
    }
}

#[tokio::test]
async fn new_cache_entries_are_kept() {
    let place = Place::new();
    for folder in [
        ".cache/pypoetry/virtualenvs/old",
        ".gradle/wrapper/dists/gradle-8/abc",
        "go/pkg/mod/example.com/x@v1",
        ".local/share/pnpm/store/v3/files/00",
        ".cargo/registry/src/index/serde-1",
        ".cargo/registry/cache/index",
    ] {
        std::fs::create_dir_all(place.path(&format!("home/{folder}"))).unwrap();
    }
    let new = [
        ".cache/pypoetry/virtualenvs/new/bin/python",
        ".gradle/wrapper/dists/gradle-8/def/bin/gradle",
        ".gradle/wrapper/dists/gradle-9/abc/bin/gradle",
        "go/pkg/mod/example.com/x@v2/x.go",
        "go/pkg/mod/other.com/y@v1/y.go",
        ".local/share/pnpm/store/v3/files/00/new",
        ".cargo/registry/src/index/serde-2/src/lib.rs",
        ".cargo/registry/cache/index/serde-2.crate",
    ];
    let lines = new.map(|name| {
        format!("mkdir -p \"$(dirname ~/{name})\" && echo new > ~/{name} && chmod 755 ~/{name}")
    });
    let line = format!(
        "{} && ln -s python ~/.cache/pypoetry/virtualenvs/new/bin/python3 && chmod 555 ~/go/pkg/mod/example.com/x@v2",
        lines.join(" && ")
    );
    let ran = place.run(&line).await;
    assert_eq!(ran.status, ChildExitStatus::Exited(0), "{ran:#?}");
    for name in new {
        let now = place.read(&format!("home/{name}"));
        assert_eq!(now.as_deref(), Some("new\n"), "{name}");
    }
    let folder = place.path("home/go/pkg/mod/example.com/x@v2");
    assert_eq!(folder.metadata().unwrap().mode() & 0o777, 0o555);
    let link = place.path("home/.cache/pypoetry/virtualenvs/new/bin/python3");
    assert!(link.is_symlink());
    assert_eq!(ran.discarded_writes, Vec::<PathBuf>::new(), "{ran:#?}");
}

/// M4: the command sees the files that were checked.
#[tokio::test]
async fn file_replaced_after_the_check_has_no_effect() {
    let checked = |is_written| WatchedFile {
        path: "fix.sh".to_owned(),
        bytes: b"echo mine".to_vec(),
        is_program: true,
        is_written,
    };
    let place = Place::new();
    place.write("project/fix.sh", "echo evil");
    let ran = place
        .run_checked("sh fix.sh", vec![checked(false)], |_| {})
        .await;
    assert_eq!(ran.unwrap().stdout, "mine\n");
    // Nor while it runs.
    let line = "touch ready; until test -e go; do sleep 0.05; done; sh fix.sh";
    let exchange = async {
        let is_ready = || place.path("project/ready").exists();
        crate::support::eventually("the repair runs", is_ready).await;
        std::fs::write(place.path("project/fix.sh"), "echo evil again").unwrap();
        place.write("project/go", "");
    };
    let run = place.run_checked(line, vec![checked(false)], |_| {});
    let (ran, ()) = tokio::join!(run, exchange);
    assert_eq!(ran.unwrap().stdout, "mine\n");
    // Files that the command has to write cannot be pinned, but are checked once more before it starts.
    let refused = place
        .run_checked("sh fix.sh", vec![checked(true)], |_| {})
        .await;
    let refused = refused.unwrap_err().to_string();
    assert!(
        refused.contains("changed after it was checked"),
        "{refused}"
    );
}

/// L5: modes that make a program run as another user, by any system call.
#[tokio::test]
async fn no_system_call_sets_privileged_modes() {
    const SCRIPT: &str = r#"
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
for bits in (0o4755, 0o2755, 0o6755):
    for n, attempt in enumerate([
        lambda: os.chmod("file", bits),
        lambda: os.fchmod(os.open("file", os.O_RDONLY), bits),
        lambda: os.chmod("file", bits, dir_fd=os.open(".", os.O_RDONLY)),
        lambda: os.close(os.open(f"made{bits}", os.O_CREAT | os.O_WRONLY, bits)),
        lambda: os.close(os.open(".", os.O_TMPFILE | os.O_WRONLY, bits)),
        lambda: os.mknod(f"node{bits}", 0o100000 | bits),
    ]):
        try:
            attempt()
            print("set", oct(bits), n)
        except OSError as error:
            assert error.errno == 1, (n, error)
class How(ctypes.Structure):
    _fields_ = [("flags", ctypes.c_uint64), ("mode", ctypes.c_uint64), ("resolve", ctypes.c_uint64)]
how = How(os.O_CREAT | os.O_WRONLY, 0o4755, 0)
print("openat2", libc.syscall(437, -100, b"by-openat2", ctypes.byref(how), 24), ctypes.get_errno())
print("open_tree_attr", libc.syscall(467, -100, b".", 1, 0, 0), ctypes.get_errno())
print("newest", libc.syscall(600, 0), ctypes.get_errno())
os.chmod("file", 0o755)
print("done")
"#;
    let place = Place::new();
    place.write("project/file", "");
    place.write("project/modes.py", SCRIPT);
    let ran = place.run("python3 modes.py").await;
    let expected = "openat2 -1 38\nopen_tree_attr -1 38\nnewest -1 38\ndone\n";
    assert_eq!(ran.stdout, expected, "{ran:#?}");
    for entry in std::fs::read_dir(place.path("project")).unwrap() {
        let entry = entry.unwrap();
        assert_eq!(entry.metadata().unwrap().mode() & 0o6000, 0, "{entry:?}");
    }
}

/// Secrets in home directories that must not be readable, including ones of future tools.
const SECRETS: [&str; 64] = [
    ".env",
    ".env.local",
    "work/other/.env",
    "work/other/.env.production",
    "Documents/taxes.txt",
    ".npmrc",
    ".yarnrc.yml",
    ".pypirc",
    ".netrc",
    "_netrc",
    ".config/op/config",
    ".1password/agent",
    ".config/1Password/settings/settings.json",
    ".config/Code/User/settings.json",
    ".vscode/argv.json",
    ".vscode-server/data/settings.json",
    ".zsh_history",
    ".bash_history",
    ".local/share/atuin/history.db",
    ".config/atuin/config.toml",
    ".local/share/fish/fish_history",
    ".config/ngrok/ngrok.yml",
    ".ngrok2/ngrok.yml",
    ".supabase/access-token",
    ".railway/config.json",
    ".sentryclirc",
    ".config/gh/hosts.yml",
    ".config/gcloud/credentials.db",
    ".aws/credentials",
    ".azure/accessTokens.json",
    ".kube/config",
    ".docker/config.json",
    ".cargo/credentials.toml",
    ".gem/credentials",
    ".m2/settings.xml",
    ".gradle/gradle.properties",
    ".config/pip/pip.conf",
    ".condarc",
    ".ssh/id_ed25519",
    ".gnupg/x",
    ".password-store/x",
    ".config/heroku/x",
    ".netlify/config.json",
    ".config/configstore/firebase-tools.json",
    ".local/share/keyrings/login.keyring",
    ".mozilla/firefox/x/logins.json",
    ".config/google-chrome/Default/Cookies",
    ".thunderbird/x",
    ".profile",
    ".bashrc",
    ".zshrc",
    ".config/fish/config.fish",
    ".android/adbkey",
    ".terraformrc",
    ".vault-token",
    ".s3cfg",
    ".config/rclone/rclone.conf",
    ".snowsql/config",
    ".dbt/profiles.yml",
    ".config/doctl/config.yaml",
    ".ollama/id_ed25519",
    ".claude.json",
    ".config/some-tool-of-next-year/token",
    ".some-tool-of-next-year",
];

/// L7: the locations of secrets need not be known; everything that a repair does not need is hidden.
#[tokio::test]
async fn repair_sees_only_needed_files_of_the_home_directory() {
    let place = Place::new();
    for secret in SECRETS {
        let text = match secret {
            ".npmrc" => "//registry.npmjs.org/:_authToken=hunter2\n",
            ".config/pip/pip.conf" => {
                "[global]\nindex-url = https://me:hunter2@pypi.example.com/simple\n"
            }
            ".m2/settings.xml" => "<settings><password>hunter2</password></settings>\n",
            ".gradle/gradle.properties" => "mavenPassword=hunter2\n",
            ".yarnrc.yml" => "npmAuthToken: hunter2\n",
            ".condarc" => "channels:\n  - https://token:hunter2@conda.example.com\n",
            _ => "key=hunter2\n",
        };
        place.write(&format!("home/{secret}"), text);
    }
    // Files without secrets, and programs, are visible.
    place.write("home/.gitconfig", "[user]\n\tname = me\n");
    place.write("home/.nvm/versions/node/bin/x", "#!/bin/sh\necho tool\n");
    place.write("home/.local/bin/x", "tool");
    place.write("home/.cargo/config.toml", "[net]\nretry = 3\n");
    let line = "grep -rs hunter2 ~; cat ~/.gitconfig ~/.cargo/config.toml ~/.local/bin/x; sh ~/.nvm/versions/node/bin/x; echo private > ~/.env && cat ~/.env";
    let ran = place.run(line).await;
    assert_eq!(ran.confinement.summary(), "full");
    let expected = "[user]\n\tname = me\n[net]\nretry = 3\ntooltool\nprivate\n";
    assert_eq!(ran.stdout, expected, "{ran:#?}");
    for secret in SECRETS {
        let now = place.read(&format!("home/{secret}")).unwrap();
        assert!(now.contains("hunter2"), "{secret}");
    }
}

/// A project in the home directory is visible, its siblings are not.
#[tokio::test]
async fn other_projects_are_hidden() {
    let place = Place::new();
    let home = place.path("home");
    std::fs::create_dir_all(home.join("work")).unwrap();
    std::fs::rename(place.path("project"), home.join("work/project")).unwrap();
    place.write("home/work/project/own", "own");
    place.write("home/work/other/.env", "hunter2");
    let root = unstuck_repair::project_dir::ProjectRoot::open(&home.join("work/project")).unwrap();
    let folder = root.open_working_dir(None).unwrap();
    let line = "cat own; ls -A ..; cat ../other/.env; echo made > made";
    let ran = place.run_in(line, &root, &folder, |_| {}).await.unwrap();
    assert_eq!(ran.stdout, "ownproject\n", "{ran:#?}");
    let made = place.read("home/work/project/made");
    assert_eq!(made.as_deref(), Some("made\n"));
    assert_eq!(ran.discarded_writes, Vec::<PathBuf>::new());
}
