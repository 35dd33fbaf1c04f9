//! Trust in repair permissions: `unstuck trust`, the terminal prompt, and their protection from agents.

mod asking;
mod inside;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use crate::Place;

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

    fn standing(&self) -> serde_json::Value {
        self.json(&["trust", "--show", "--json"], "")["standing"].clone()
    }

    fn records(&self) -> PathBuf {
        self.folder.path().join(".local/state/unstuck/trust")
    }
}

/// S3-54: the owner sees at a glance what would be allowed, and confirms once.
#[test]
fn trust_shows_what_is_allowed_and_remembers_it() {
    let place = Place::allowing();
    assert_eq!(place.standing(), "unknown");
    let ended = place.run(&["trust"], "");
    assert_eq!((ended.code, ended.stderr.as_str()), (0, ""));
    let shown = ended.stdout.replace(&place.hash(), "HASH");
    insta::assert_snapshot!(shown, @r#"
    ~/project: [recovery] of unstuck.toml (sha256 HASH…)
      These run without asking, exactly as they stand here:
        npm ci
        rm -rf /tmp/x
      These ask: git *
      Everything else asks
      At most 3 run by themselves in one run, 60 s apart
      They run in a sandbox where the machine has one, with the network
      What they execute is decided by package.json
        package.json: nobody has accepted it yet
            +{
            +  "scripts": {
            +    "prepare": "true"
            +  }
            +}
    note: `rm -rf /tmp/x` deletes outside the project
    trusted: it counts here until it changes, and 1 file is accepted as it is
    "#);
    assert_eq!(place.standing(), "trusted");
    let again = place.run(&["trust", "--show"], "").stdout;
    assert!(again.ends_with("trusted\n"), "{again}");
    assert!(!again.contains("accepted it yet"), "{again}");
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
    assert_eq!(place.standing(), "trusted");
    place.write("unstuck.toml", &SECTION.replace("rm -rf /tmp/x", "make"));
    assert_eq!(place.standing(), "changed");
    let shown = place.run(&["trust", "--show"], "").stdout;
    for line in [
        "not trusted: it has changed since",
        "+ `make` may run without asking",
        "- `rm -rf /tmp/x` may no longer run without asking",
    ] {
        assert!(shown.contains(line), "{shown}");
    }
    place.run(&["trust"], "");
    assert_eq!(place.standing(), "trusted");
}

#[test]
fn trust_can_be_revoked() {
    let place = Place::allowing();
    place.run(&["trust"], "");
    assert_eq!(fs::read_dir(place.records()).unwrap().count(), 1);
    let ended = place.run(&["trust", "--forget"], "");
    assert_eq!(ended.code, 0);
    assert!(
        ended
            .stdout
            .contains("nothing of ~/project is trusted any more")
    );
    assert_eq!(fs::read_dir(place.records()).unwrap().count(), 0);
    assert_eq!(place.standing(), "unknown");
    let ended = place.run(&["trust", "--forget"], "");
    assert!(ended.stdout.contains("was trusted"), "{}", ended.stdout);
}

/// S3-51: a project without the section has nothing to trust, and the output says so.
#[test]
fn nothing_to_trust_is_reported() {
    let place = Place::new();
    place.write("unstuck.toml", "[run]\nparallel = 2\n");
    let ended = place.run(&["trust"], "");
    assert_eq!(ended.code, 2);
    assert!(
        ended.stderr.contains("nothing to trust in ~/project"),
        "{}",
        ended.stderr
    );
    assert!(ended.stderr.contains("hint: "));
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
    assert_eq!(place.standing(), "trusted");
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
    assert!(
        ended
            .stdout
            .contains("your own configuration counts anyway, and 1 file is accepted")
    );
    let shown = place.json(&["trust", "--show", "--json"], "");
    assert_eq!(shown["changed"], serde_json::json!([]));
    place.write("Makefile", "all:\n\tfalse\n");
    let shown = place.json(&["trust", "--show", "--json"], "");
    assert_eq!(shown["changed"][0]["path"], "Makefile");
    assert_eq!(
        shown["changed"][0]["why"],
        "it differs from what was accepted"
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
    let note = "note: unstuck.toml:2:27: `recovery.auto_approve.2`: `rm -rf /tmp/x` deletes outside the project";
    assert!(checked.stdout.contains(note), "{}", checked.stdout);
}
