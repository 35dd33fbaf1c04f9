//! Tests of killing an apply operation.

use unstuck_repair::preview::PreviewCrashRecoveryOutcome;

use super::*;

/// Number of files changed by the preview.
const FILES: usize = 60;
/// Environment variable with the child's project directory.
const PLACE: &str = "UNSTUCK_TEST_PLACE";

/// Not a test: the child process of the test below.
#[test]
#[ignore = "it is started by another test"]
fn applies_in_a_child() {
    let Some(folder) = std::env::var_os(PLACE) else {
        return;
    };
    let previews = PreviewStore::in_state_dir(&PathBuf::from(folder).join("state"));
    let id = previews.list().remove(0).id;
    previews.find(&id).unwrap().apply().unwrap();
}

/// Returns a project whose files all change, and the preview id.
fn place() -> (Place, String) {
    let place = Place::new(&format!(
        "for n in $(seq {FILES}); do echo old > f$n; done; mkdir d; echo old > d/x; echo old > gone"
    ));
    let preview = place.preview(&format!(
        "for n in $(seq {FILES}); do echo new > f$n; done; echo new > added; rm -rf d gone; mkdir d; echo new > d/y"
    ));
    let id = preview.report().id.clone();
    (place, id)
}

/// True if all files are old or all are new.
fn is_all(place: &Place, word: &str) -> bool {
    let files = (1..=FILES).map(|n| place.project().join(format!("f{n}")));
    let are = files.map(|file| fs::read_to_string(file).unwrap() == format!("{word}\n"));
    are.into_iter().all(|is| is)
        && place.project().join("added").exists() == (word == "new")
        && place.project().join("gone").exists() == (word == "old")
        && place.project().join("d/y").exists() == (word == "new")
        && place.project().join("d/x").exists() == (word == "old")
}

/// Kills the child as soon as a condition holds.
fn killed_when(place: &Place, seen: impl Fn(&Place) -> bool) {
    let own = std::env::current_exe().unwrap();
    let mut child = command(own.to_str().unwrap())
        .args([
            "--exact",
            "preview::crashes::applies_in_a_child",
            "--ignored",
        ])
        .env(PLACE, place.folder.path())
        .stdout(std::process::Stdio::null())
        .spawn()
        .unwrap();
    while !seen(place) && child.try_wait().unwrap().is_none() {}
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn a_kill_at_any_moment_applies_all_or_nothing() {
    let mut ends = BTreeMap::new();
    for round in 0..rounds() {
        let (place, id) = place();
        let journal = place
            .folder
            .path()
            .join("state/previews")
            .join(&id)
            .join("journal.json");
        let beside = |place: &Place, number: usize| {
            place
                .project()
                .join(format!(".unstuck-{id}-{number}"))
                .exists()
        };
        let is_new = |place: &Place, number: usize| {
            let text = fs::read(place.project().join(format!("f{number}")));
            text.is_ok_and(|text| text == b"new\n")
        };
        let number = 1 + round * 7 % FILES;
        match round % 4 {
            0 => killed_when(&place, |_| journal.exists()),
            1 => killed_when(&place, |place| beside(place, number)),
            2 => killed_when(&place, |place| is_new(place, number)),
            _ => killed_when(&place, |place| {
                place.project().join("added").exists() && !beside(place, 0)
            }),
        }
        let settled = place.previews().recover();
        let end = match settled.first().map(|settled| &settled.outcome) {
            Some(PreviewCrashRecoveryOutcome::Finished) => "finished",
            Some(PreviewCrashRecoveryOutcome::RolledBack) => "undone",
            Some(other) => panic!("{other:?}"),
            None => "nothing to do",
        };
        *ends.entry(end).or_insert(0) += 1;
        let word = if is_all(&place, "new") { "new" } else { "old" };
        assert!(
            is_all(&place, word),
            "round {round}: half is old, half is new"
        );
        if end != "nothing to do" {
            assert_eq!(word == "new", end == "finished", "round {round}");
        }
        let names = fs::read_dir(place.project()).unwrap();
        let left = names.filter(|name| {
            let name = name.as_ref().unwrap().file_name();
            name.to_str().unwrap().starts_with(".unstuck")
        });
        assert_eq!(left.count(), 0, "round {round}: copies are left");
    }
    println!("{ends:?}");
}

#[expect(
    clippy::disallowed_methods,
    reason = "how long to test is asked for by the environment"
)]
fn rounds() -> usize {
    let asked = std::env::var("UNSTUCK_KILLS");
    asked.ok().and_then(|asked| asked.parse().ok()).unwrap_or(8)
}
