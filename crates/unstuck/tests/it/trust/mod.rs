//! Trust in repair permissions: `unstuck trust`, the terminal prompt, and their protection from agents.

mod asking;
mod inside;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use crate::Place;
use crate::output_snapshot::assert_output;

const SECTION: &str =
    "[recovery]\nauto_approve = [\"npm ci\", \"rm -rf /tmp/x\"]\nrequire_human = [\"git *\"]\n";

impl Place {
    /// A project that allows something.
    fn allowing() -> Self {
        let place = Self::new();
        place.write("unstuck.toml", SECTION);
        place.write("package.json", "{\"scripts\":{\"prepare\":\"true\"}}");
        place
    }

    fn trust_status(&self) -> serde_json::Value {
        self.json(&["trust", "--show", "--json"], "")["status"].clone()
    }

    fn records(&self) -> PathBuf {
        self.folder.path().join(".local/state/unstuck/trust")
    }
}

/// S3-54: the owner sees at a glance what would be allowed, and confirms once.
#[test]
fn trust_shows_what_is_allowed_and_remembers_it() {
    let place = Place::allowing();
    assert_eq!(place.trust_status(), "unknown");
    let ended = place.run(&["trust"], "");
    assert_eq!((ended.code, ended.stderr.as_str()), (0, ""));
    let shown = ended.stdout.replace(&place.hash(), "HASH");
    insta::assert_snapshot!(shown, @r#"
    ~/project: [recovery] of unstuck.toml (sha256 HASH…)
      These commands run without approval (exact match only):
        npm ci
        rm -rf /tmp/x
      These always need approval: git *
      All other commands need approval
      At most 3 automatic repairs per run, at least 60 s apart
      Repairs run in a sandbox if available, with network access
      Files that determine what they execute: package.json
        package.json: not accepted yet
            +{
            +  "scripts": {
            +    "prepare": "true"
            +  }
            +}
    note: `rm -rf /tmp/x` deletes outside the project
    trusted until it changes; accepted 1 file in its current state
    "#);
    assert_eq!(place.trust_status(), "trusted");
    let again = place.run(&["trust", "--show"], "").stdout;
    assert_output!(place, again.replace(&place.hash(), "HASH"));
    assert!(!again.contains("not accepted yet"), "{again}");
}

impl Place {
    /// Returns the content hash.
    fn hash(&self) -> String {
        let shown = self.json(&["trust", "--show", "--json"], "");
        shown["hash"].as_str().unwrap()[..12].to_owned()
    }
}

/// S3-43: changes apply once they are trusted again; comments and order do not matter.
#[test]
fn changed_content_needs_trust_again_and_shows_the_difference() {
    let place = Place::allowing();
    place.run(&["trust"], "");
    place.write(
        "unstuck.toml",
        "# more\n[recovery]\nrequire_human = ['git *']\nauto_approve = ['rm -rf /tmp/x', 'npm ci ']\n",
    );
    assert_eq!(place.trust_status(), "trusted");
    place.write("unstuck.toml", &SECTION.replace("rm -rf /tmp/x", "make"));
    assert_eq!(place.trust_status(), "changed");
    let shown = place.run(&["trust", "--show"], "").stdout;
    assert_output!(place, shown.replace(&place.hash(), "HASH"));
    place.run(&["trust"], "");
    assert_eq!(place.trust_status(), "trusted");
}

#[test]
fn trust_can_be_revoked() {
    let place = Place::allowing();
    place.run(&["trust"], "");
    assert_eq!(fs::read_dir(place.records()).unwrap().count(), 1);
    let ended = place.run(&["trust", "--forget"], "");
    assert_eq!(ended.code, 0);
    assert_output!(place, ended.stdout);
    assert_eq!(fs::read_dir(place.records()).unwrap().count(), 0);
    assert_eq!(place.trust_status(), "unknown");
    let ended = place.run(&["trust", "--forget"], "");
    assert_output!(place, ended.stdout);
}

/// S3-51: a project without the section has nothing to trust, and the output says so.
#[test]
fn nothing_to_trust_is_reported() {
    let place = Place::new();
    place.write("unstuck.toml", "[run]\nparallel = 2\n");
    let ended = place.run(&["trust"], "");
    assert_eq!(ended.code, 2);
    assert_output!(place, ended.stderr);
    assert!(!place.records().exists());
}

#[test]
fn project_is_trusted_from_any_of_its_directories() {
    let place = Place::allowing();
    place.write("deep/down/file", "");
    let mut command = place.command(&["trust"]);
    let ended = command
        .current_dir(place.project().join("deep/down"))
        .output()
        .unwrap();
    assert!(ended.status.success());
    assert_eq!(place.trust_status(), "trusted");
}

/// The owner's own approvals need no trust, but the files that they execute can be accepted.
#[test]
fn files_are_accepted_for_the_users_own_approvals() {
    let place = Place::new();
    place.write("Makefile", "all:\n\ttrue\n");
    let user = place.folder.path().join(".config/unstuck");
    fs::create_dir_all(&user).unwrap();
    fs::write(
        user.join("config.toml"),
        "[recovery]\nauto_approve = ['make']\n",
    )
    .unwrap();
    for path in [".config", ".config/unstuck", ".config/unstuck/config.toml"] {
        let path = place.folder.path().join(path);
        fs::set_permissions(path, fs::Permissions::from_mode(0o700)).unwrap();
    }
    let ended = place.run(&["trust"], "");
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    assert_output!(place, ended.stdout);
    let shown = place.json(&["trust", "--show", "--json"], "");
    assert_eq!(shown["changed"], serde_json::json!([]));
    place.write("Makefile", "all:\n\tfalse\n");
    let shown = place.json(&["trust", "--show", "--json"], "");
    assert_eq!(shown["changed"][0]["path"], "Makefile");
    assert_eq!(
        shown["changed"][0]["reason"],
        "differs from the accepted version"
    );
}

#[test]
fn shown_content_is_sanitized_for_the_terminal() {
    let place = Place::new();
    place.write(
        "unstuck.toml",
        "[recovery]\nauto_approve = [\"echo \\u001b[2J\\u202e x\"]\nrequire_human = [\"\\u0007\"]\n",
    );
    let shown = place.run(&["trust"], "").stdout;
    assert!(shown.contains("\\u{1b}"), "{shown}");
    assert!(!shown.contains(['\u{1b}', '\u{202e}', '\u{7}']), "{shown}");
}

/// Risky entries are reported by the configuration check too.
#[test]
fn risky_entries_are_reported_with_their_location() {
    let place = Place::allowing();
    let checked = place.run(&["config", "check"], "");
    assert_eq!(checked.code, 0);
    assert_output!(place, checked.stdout);
}
