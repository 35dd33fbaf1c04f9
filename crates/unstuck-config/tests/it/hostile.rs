//! A project's configuration is a regular file of the project: anything else is an error, and is neither followed nor read.

use std::fs::{self, File};
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;
use std::path::Path;

use rustix::fs::{CWD, FileType, Mode, mknodat};
use unstuck_config::{Config, ConfigError, ConfigLayers, PROJECT_FILES};

use crate::Place;

const PRIVATE: &str = "hunter2-Very-Secret-9981";

/// Something that an agent puts in place of a file, and how the error names it.
type Plant = (&'static str, fn(&Path, &Path));

const PLANTS: &[Plant] = &[
    ("symbolic link", |at, private| {
        symlink(private, at).unwrap();
    }),
    ("symbolic link", |at, _| {
        symlink("/nonexistent/file", at).unwrap();
    }),
    // Also within the project.
    ("symbolic link", |at, _| {
        fs::write(at.with_file_name("inside"), "{}").unwrap();
        symlink("inside", at).unwrap();
    }),
    ("FIFO", |at, _| {
        mknodat(CWD, at, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    }),
    ("socket", |at, _| {
        UnixListener::bind(at).unwrap();
    }),
    ("directory", |at, _| {
        fs::create_dir(at).unwrap();
    }),
    ("larger than 8 MiB", |at, _| {
        File::create(at).unwrap().set_len(1 << 42).unwrap();
    }),
];

#[track_caller]
fn expect_refused(loaded: Result<Config, ConfigError>, name: &str, kind: &str) {
    let error = loaded.unwrap_err();
    let is_unsafe = matches!(error, ConfigError::UnsafeFile { .. });
    let told = format!("{error}");
    assert!(is_unsafe && told.contains(name), "{kind}: {told}");
    assert!(told.contains(kind), "{kind}: {told}");
    assert!(!format!("{error:?}").contains(PRIVATE), "{error:?}");
}

#[test]
fn anything_but_a_regular_file_is_an_error() {
    for name in PROJECT_FILES {
        for (kind, plant) in PLANTS {
            let place = Place::new();
            let private = place.path().join("private.json");
            fs::write(&private, format!("{{\"auth\": \"{PRIVATE}\"}}")).unwrap();
            let accepted = place.config().project_settings().clone();
            plant(&place.path().join("project").join(name), &private);
            expect_refused(place.load(), name, kind);
            let during_a_run = ConfigLayers {
                accepted: Some(accepted),
                ..place.layers()
            };
            expect_refused(Config::load(&during_a_run), name, kind);
        }
    }
}

/// A file in the project that the command line names is as untrusted as the project's own.
#[test]
fn link_in_the_project_is_not_followed_if_it_is_named() {
    let place = Place::new();
    let outside = place.path().join("mine.toml");
    fs::write(&outside, "[run]\ntask = \"mine\"\n").unwrap();
    let inside = place.path().join("project/other.toml");
    symlink(&outside, &inside).unwrap();
    let named = |path: &Path| {
        Config::load(&ConfigLayers {
            explicit_file: Some(path.to_owned()),
            ..place.layers()
        })
    };
    expect_refused(named(&inside), "other.toml", "symbolic link");
    let beside = place.path().join("linked.toml");
    symlink(&outside, &beside).unwrap();
    let config = named(&beside).unwrap();
    assert_eq!(config.run().task.as_deref(), Some("mine"));
}

/// A human may keep the own configuration elsewhere.
#[test]
fn own_configuration_may_be_a_link() {
    let place = Place::new();
    let elsewhere = place.path().join("dotfiles.toml");
    fs::write(&elsewhere, "[run]\ntask = \"mine\"\n").unwrap();
    symlink(&elsewhere, place.path().join("user/config.toml")).unwrap();
    assert_eq!(place.config().run().task.as_deref(), Some("mine"));
}

#[test]
fn directory_replaced_by_a_link_is_not_followed() {
    let place = Place::new();
    let outside = place.path().join("outside");
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("unstuck.toml"), "[run]\ntask = \"outside\"\n").unwrap();
    symlink(&outside, place.path().join("project/sub")).unwrap();
    let layers = ConfigLayers {
        work_dir: Some(place.path().join("project/sub")),
        ..place.layers()
    };
    expect_refused(Config::load(&layers), "unstuck.toml", "symbolic link");
}

/// The settings that a run has accepted apply whatever is in the project now.
#[test]
fn accepted_settings_apply_without_the_projects_files() {
    let place = Place::new();
    place.user("config.toml", "[run]\ntask = \"mine\"\n");
    let text = "[escalations.answerers]\nskip = [\"ann\"]\n[webhooks]\non_resolved = \"https://a.example\"\n\
                [[role]]\nid = \"a\"\nagent = \"claude\"\nprompt_file = \"p.md\"\n";
    place.project("p.md", "Do it").project("unstuck.toml", text);
    let begun = place.config();
    let file = place.path().join("project/unstuck.toml");
    for replace in [
        |file: &Path| {
            fs::write(file, "[webhooks]\non_resolved = \"https://evil.example\"\n").unwrap()
        },
        |file: &Path| fs::write(file, "not = [valid").unwrap(),
        |file: &Path| fs::remove_file(file).unwrap(),
        |file: &Path| symlink("/etc/passwd", file).unwrap(),
        // What it refers to is gone as well.
        |file: &Path| {
            let prompt = file.with_file_name("p.md");
            fs::remove_file(&prompt).unwrap();
            symlink("/etc/passwd", &prompt).unwrap();
        },
    ] {
        replace(&file);
        let accepted = begun.project_settings();
        let config = Config::load_with_accepted_settings(&place.layers(), accepted).unwrap();
        assert_eq!(config.webhooks(), begun.webhooks());
        assert_eq!(config.escalations(), begun.escalations());
        assert_eq!(config.run().task.as_deref(), Some("mine"));
    }
}

/// An invalid file can be left out; what the owner wrote still applies, with the same trust.
#[test]
fn projects_files_can_be_left_out() {
    let place = Place::with("unstuck.toml", "not = [valid");
    place.user("config.toml", "[run]\ntask = \"mine\"\n");
    place.project("other.toml", "also not [valid");
    let layers = ConfigLayers {
        without_project: true,
        explicit_file: Some(place.path().join("project/other.toml")),
        ..place.layers()
    };
    let config = Config::load(&layers).unwrap();
    assert_eq!(config.run().task.as_deref(), Some("mine"));
    assert_eq!(config.files().len(), 1);
}
