//! Conditions of an approval: the files at the start of the run, and the conditions that were shown.

use super::project;
use super::proposals::document;
use crate::output_snapshot::assert_output;
use crate::{Ended, Place};

/// An agent that proposes the content of a file.
const PROPOSES: &str = "test -e healed && exit 0; cp recovery.json \"$UNSTUCK_RECOVERY_FILE\"; echo 'zork: boom' >&2; exit 9";

fn git(place: &Place, line: &str) {
    let line = format!("git -c user.name=me -c user.email=me@example.com {line}");
    assert!(place.shell(&line).status().unwrap().success(), "{line}");
}

/// Commits all files.
fn committed(place: &Place) {
    git(place, "init -q");
    git(place, "add -A");
    git(place, "commit -q -m first");
}

#[test]
fn approval_request_states_sandbox_network_and_variables() {
    let place = project("");
    place.write(
        "recovery.json",
        &document("git submodule update --init", None),
    );
    let exec = ["exec", "--repair", "auto", "--", "sh", "-c", PROPOSES];
    assert_output!(place, place.go(&exec).told(3, &[]).stderr);
    let asked = &place.events("recovery_escalated")[0];
    let conditions = &asked["conditions"];
    assert_eq!(conditions["sandbox"], "full", "{asked}");
    assert_eq!(conditions["network"], true);
    let variables = conditions["variables"].as_array().unwrap();
    assert!(variables.contains(&"PATH".into()), "{asked}");
    let id = asked["id"].as_str().unwrap();
    let shown = place.go(&["inbox", id]);
    assert_output!(place, shown.stdout);
}

/// Runs unstuck without user namespaces, as in many containers.
fn without_namespaces(place: &Place, line: &str) -> Ended {
    let line = format!(
        "unshare -Ur sh -c 'echo 0 > /proc/sys/user/max_user_namespaces && exec \"$UNSTUCK\" {line}'"
    );
    let output = place.shell(&line).output().unwrap();
    Ended {
        code: output.status.code().unwrap_or(-1),
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

/// A project with an agent that proposes a command its owner has listed.
fn proposing(recovery: &str) -> Place {
    let place = project(&format!("auto_approve = ['touch healed']\n{recovery}"));
    place.write("agent.sh", PROPOSES);
    place.write("recovery.json", &document("touch healed", None));
    place
}

/// M2: an advance approval assumes a complete sandbox, unless the owner's own file says otherwise.
#[test]
fn approved_repair_needs_approval_with_an_incomplete_sandbox() {
    let exec = "exec --repair auto -- sh agent.sh";
    for projects_word in ["", "sandbox = 'best-effort'"] {
        let place = proposing(projects_word);
        let ended = without_namespaces(&place, exec);
        ended.told(3, &["sandbox: partial"]);
        assert!(!place.project().join("healed").exists());
        let conditions = &place.events("recovery_escalated")[0]["conditions"];
        assert_eq!(conditions["sandbox"], "partial");
    }
    let place = proposing("");
    place.write(
        "../.config/unstuck/config.toml",
        "[recovery]\nsandbox = \"best-effort\"\n",
    );
    let ended = without_namespaces(&place, exec);
    ended.told(0, &["in a partial sandbox", "user namespaces"]);
    let executed = &place.events("recovery_executed")[0];
    assert_eq!(executed["sandbox"], "partial");
    let missing = executed["side_effects"]["missing"].as_array().unwrap();
    assert!(!missing.is_empty(), "{executed}");
}

/// Returns a program that runs another one as if the kernel had no Landlock.
fn without_landlock(place: &Place) -> String {
    let source = place.write(
        "../deny.c",
        "#include <errno.h>\n#include <stddef.h>\n#include <unistd.h>\n#include <sys/prctl.h>\n#include <linux/filter.h>\n#include <linux/seccomp.h>\n\
         int main(int n, char **words) {\n struct sock_filter code[] = {\n\
         BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),\n\
         BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, 444, 0, 2),\n\
         BPF_JUMP(BPF_JMP | BPF_JGT | BPF_K, 446, 1, 0),\n\
         BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),\n\
         BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW) };\n\
         struct sock_fprog program = { 5, code };\n\
         if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program)) return 99;\n\
         execvp(words[1], words + 1);\n return 98; }\n",
    );
    let program = place.folder.path().join("deny");
    let line = format!("cc -o {} {}", program.display(), source.display());
    assert!(place.shell(&line).status().unwrap().success(), "{line}");
    program.display().to_string()
}

/// M2: if a command cannot be confined, the sandbox is reported as none, and advance approvals need confirmation; the
/// owner's `required` runs nothing, and only the owner's `best-effort` runs it, which is reported and recorded.
#[test]
fn approved_repair_without_any_sandbox_needs_approval() {
    let exec = "exec --repair auto -- sh agent.sh";
    let attacked = |place: &Place| {
        let deny = without_landlock(place);
        let line = format!(
            "unshare -Ur sh -c 'echo 0 > /proc/sys/user/max_user_namespaces && exec {deny} \"$UNSTUCK\" {exec}'"
        );
        let output = place.shell(&line).output().unwrap();
        Ended {
            code: output.status.code().unwrap_or(-1),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    };
    for projects_word in ["", "sandbox = 'best-effort'"] {
        let place = proposing(projects_word);
        let ended = attacked(&place);
        ended.told(3, &["sandbox: none"]);
        assert!(!place.project().join("healed").exists());
        let asked = &place.events("recovery_escalated")[0];
        assert_eq!(asked["conditions"]["sandbox"], "none");
        let missing = asked["conditions"]["missing"].to_string();
        assert!(missing.contains("Landlock"), "{missing}");
        let inbox = place.go(&["inbox", asked["id"].as_str().unwrap()]);
        assert!(inbox.stdout.contains("none"), "{}", inbox.stdout);
    }
    let place = proposing("");
    place.write(
        "../.config/unstuck/config.toml",
        "[recovery]\nsandbox = \"required\"\n",
    );
    let ended = attacked(&place);
    assert_ne!(ended.code, 0, "{}", ended.stderr);
    assert!(!place.project().join("healed").exists());
    let place = proposing("");
    place.write(
        "../.config/unstuck/config.toml",
        "[recovery]\nsandbox = \"best-effort\"\n",
    );
    let ended = attacked(&place);
    ended.told(0, &["without a sandbox", "Landlock"]);
    assert!(place.project().join("healed").exists());
    let executed = &place.events("recovery_executed")[0];
    assert_eq!(executed["sandbox"], "none");
    let shown = place.go(&["show"]);
    assert!(
        shown.stdout.contains("without a sandbox"),
        "{}",
        shown.stdout
    );
}

/// M4: the commit at the start of the run is the reference, also after `resume`: nobody has accepted what an agent
/// committed.
#[test]
fn agent_commits_are_not_accepted_on_resume() {
    let place = project("auto_approve = ['make fix']");
    place.write("Makefile", "fix:\n\ttouch healed\n");
    place.write("recovery.json", &document("make fix", None));
    committed(&place);
    let agent = "if test -e second; then cp recovery.json \"$UNSTUCK_RECOVERY_FILE\"; echo 'zork: boom' >&2; exit 9; fi; \
                 printf 'fix:\\n\\ttouch evil\\n' > Makefile; touch second; \
                 git -c user.name=a -c user.email=a@example.com commit -q -a -m evil; \
                 echo '401 Unauthorized: invalid x-api-key' >&2; exit 1";
    let exec = ["exec", "--repair", "auto", "--", "sh", "-c", agent];
    place.go(&exec).told(3, &[]);
    assert!(place.events("recovery_proposed").is_empty());
    let resumed = place.go(&["resume"]);
    resumed.told(3, &[]);
    assert_output!(place, resumed.stderr);
    assert!(!place.project().join("evil").exists());
    assert!(!place.project().join("healed").exists());
}

/// M4: a lockfile decides where packages come from, and what they contain.
#[test]
fn lockfile_with_another_source_or_hash_needs_approval() {
    const USUAL: &str = "https://registry.npmjs.org/a/-/a-1.0.0.tgz";
    let lock = |version: &str, resolved: &str, integrity: &str| {
        format!(
            "{{\n  \"lockfileVersion\": 3,\n  \"packages\": {{\n    \"node_modules/a\": {{\n      \"version\": \"{version}\",\n      \"resolved\": \"{resolved}\",\n      \"integrity\": \"{integrity}\"\n    }}\n  }}\n}}\n"
        )
    };
    for (version, resolved, integrity, asks) in [
        (
            "2.0.0",
            "https://registry.npmjs.org/a/-/a-2.0.0.tgz",
            "sha512-y==",
            false,
        ),
        (
            "1.0.0",
            "https://registry.npmjs.org/b/-/b-2.0.0.tgz",
            "sha512-x==",
            true,
        ),
        ("1.0.0", USUAL, "sha512-y==", true),
        ("1.0.0", "file:vendor.tgz", "sha512-x==", true),
        ("1.0.0", "\\u0066ile:vendor.tgz", "sha512-x==", true),
        (
            "1.0.0",
            "git+ssh://git@github.com/x/y.git#1",
            "sha512-x==",
            true,
        ),
        (
            "1.0.0",
            "http://registry.npmjs.org/a/-/a-1.0.0.tgz",
            "sha512-x==",
            true,
        ),
        ("1.0.0", "https://evil.example/a.tgz", "sha512-x==", true),
    ] {
        let place = project("auto_approve = ['npm ci']");
        place.tool("npm", "#!/bin/sh\ntouch healed\n");
        place.write("package.json", "{ \"name\": \"x\" }");
        place.write("package-lock.json", &lock("1.0.0", USUAL, "sha512-x=="));
        committed(&place);
        place.write("package-lock.json", &lock(version, resolved, integrity));
        place.write("recovery.json", &document("npm ci", None));
        let exec = ["exec", "--repair", "auto", "--", "sh", "-c", PROPOSES];
        let ended = place.go(&exec);
        ended.told(if asks { 3 } else { 0 }, &[]);
        assert_output!(place, ended.stderr);
    }
}

#[test]
fn unlisted_command_is_not_reported_as_listed() {
    let place = project("require_human = []\non_unknown = 'allow'");
    place.write("recovery.json", &document("touch healed", None));
    let exec = ["exec", "--repair", "auto", "--", "sh", "-c", PROPOSES];
    let ended = place.go(&exec);
    ended.told(0, &[]);
    assert_output!(place, ended.stderr);
    assert!(!ended.stderr.contains("auto_approve"), "{}", ended.stderr);
    for runner in ["make fix", "git grep -O./evil.sh needle", "npm run build"] {
        let place = project("require_human = []\non_unknown = 'allow'");
        place.write("recovery.json", &document(runner, None));
        place.go(&exec).told(3, &[runner]);
    }
}

/// Planted files are removed, recorded and shown.
#[test]
fn files_planted_by_a_repair_are_reported_everywhere() {
    let place = project("auto_approve = ['sh plant.sh']");
    place.write(
        "plant.sh",
        "echo ../evil > .git/commondir; echo x > ~/.profile; touch healed\n",
    );
    place.write("recovery.json", &document("sh plant.sh", None));
    committed(&place);
    let exec = ["exec", "--repair", "auto", "--", "sh", "-c", PROPOSES];
    place.go(&exec).told(0, &[".git/commondir", ".profile"]);
    assert!(!place.project().join(".git/commondir").exists());
    let executed = &place.events("recovery_executed")[0];
    assert_eq!(
        executed["side_effects"]["injected_files"][0],
        ".git/commondir"
    );
    let shown = place.go(&["show"]);
    assert!(shown.stdout.contains(".git/commondir"), "{}", shown.stdout);
}
