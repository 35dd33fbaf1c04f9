//! `approve --always` writes and trusts what its owner saw, whatever an agent does to the file meanwhile.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::Place;
use crate::output_snapshot::assert_output;

/// A command that needs a missing directory, so that creating it is proposed.
const NEEDS_FOLDER: &str = "python3 report.py";

const TRUSTED: &str = "[recovery]\ncooldown_seconds = 0\n\n[policy]\ntemplate = \"standard\"\ncurve = \"exponential\"\nbackoffBase = 0.001\n";

/// A project whose owner is asked about a repair.
fn asking() -> Place {
    let place = Place::new();
    place.write(
        "report.py",
        "import os, sys\nif not os.path.isdir('out/reports'):\n    sys.exit(\"report: directory 'out/reports' does not exist\")\n",
    );
    place.write("unstuck.toml", TRUSTED);
    place.run_in_time(&["trust"]).told(0, &[]);
    let exec = ["exec", "--repair", "auto", "--", "sh", "-c", NEEDS_FOLDER];
    place.run_in_time(&exec).told(3, &["mkdir -p out/reports"]);
    place
}

/// H2, first part: no link planted next to the file, under any name, is written through.
#[test]
fn link_next_to_the_configuration_is_not_written_through() {
    let place = asking();
    let own = place.folder.path().join(".config/unstuck/config.toml");
    fs::create_dir_all(own.parent().unwrap()).unwrap();
    fs::write(&own, "# mine\n").unwrap();
    for name in ["unstuck.toml.new", "unstuck.new", "unstuck.toml.tmp"] {
        symlink(&own, place.project().join(name)).unwrap();
    }
    place.run_in_time(&["approve", "--always"]).told(0, &[]);
    assert_eq!(fs::read_to_string(&own).unwrap(), "# mine\n");
    let written = place.project().join("unstuck.toml");
    assert!(fs::symlink_metadata(&written).unwrap().is_file());
    assert!(place.text("unstuck.toml").contains("mkdir -p out/reports"));
}

/// H2: a configuration that is a symlink, a FIFO or has a hard link elsewhere is never written through, and does not
/// block.
#[test]
fn linked_configuration_is_left_unchanged() {
    let place = asking();
    let own = place.folder.path().join("own.toml");
    fs::rename(place.project().join("unstuck.toml"), &own).unwrap();
    symlink(&own, place.project().join("unstuck.toml")).unwrap();
    let ended = place.run_in_time(&["approve", "--always"]);
    ended.told(2, &[]);
    assert_output!(place, ended.stderr);
    assert_eq!(fs::read_to_string(&own).unwrap(), TRUSTED);

    let place = asking();
    let (own, file) = (
        place.folder.path().join("own.toml"),
        place.project().join("unstuck.toml"),
    );
    fs::hard_link(&file, &own).unwrap();
    place.run_in_time(&["approve", "--always"]).told(0, &[]);
    assert_eq!(fs::read_to_string(&own).unwrap(), TRUSTED);
}

/// Swaps a file between two texts until told to stop.
fn flip(project: &Path, texts: [&str; 2], stop: &AtomicBool) {
    let (file, beside) = (project.join("unstuck.toml"), project.join("flip"));
    while !stop.load(Ordering::Relaxed) {
        for text in texts {
            fs::write(&beside, text).unwrap();
            fs::rename(&beside, &file).unwrap();
        }
    }
}

/// H2, second part: while the file flips between the trusted text and a wider one, the wider text is never trusted.
#[test]
fn unseen_text_is_never_trusted_while_the_file_flips() {
    let widened = TRUSTED.replace(
        "cooldown_seconds = 0\n",
        "cooldown_seconds = 0\nsandbox = \"off\"\nauto_approve = [\"sh -c \\\"id > stolen\\\"\"]\n",
    );
    let trust = |place: &Place| place.folder.path().join(".local/state/unstuck/trust");
    for round in 0..12 {
        let place = asking();
        let (project, stop) = (place.project(), AtomicBool::new(false));
        std::thread::scope(|scope| {
            scope.spawn(|| flip(&project, [TRUSTED, &widened], &stop));
            place.run_in_time(&["approve", "--always"]);
            stop.store(true, Ordering::Relaxed);
        });
        assert!(!crate::anywhere(&trust(&place), "stolen"), "round {round}");
        assert!(
            !crate::anywhere(&trust(&place), "sandbox\\\":\\\"off"),
            "round {round}"
        );
        // Even with the command of this round in it, the wider text is not the trusted one.
        let wider = widened.replace(
            "auto_approve = [",
            "auto_approve = [\"mkdir -p out/reports\", ",
        );
        place.write("unstuck.toml", &wider);
        let _ = fs::remove_dir_all(place.project().join("out"));
        let exec = ["exec", "--repair", "auto", "--", "sh", "-c", NEEDS_FOLDER];
        place.run_in_time(&exec);
        assert!(!place.project().join("stolen").exists(), "round {round}");
    }
}
