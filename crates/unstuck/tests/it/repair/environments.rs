//! Working environments are kept: missing packages are installed, and their own interpreter checks the project.

use std::os::unix::fs::{PermissionsExt, symlink};

use crate::Place;
use crate::output_snapshot::assert_output;

/// A project with a virtual environment that has pip but no packages. Its interpreter is a fake: the system's `python3`
/// would behave the same.
fn with_environment(folder: &str) -> Place {
    let place = Place::new();
    place.write("requirements.txt", "six==1.16.0\n");
    let python = "#!/bin/sh\necho \"ModuleNotFoundError: No module named 'six'\" >&2; exit 1\n";
    for name in ["python", "pip"] {
        let path = place.write(&format!("{folder}/bin/{name}"), python);
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
    }
    place
}

#[test]
fn missing_package_is_installed_into_the_existing_environment() {
    for folder in [".venv", "venv"] {
        let place = with_environment(folder);
        let python = format!("{folder}/bin/python");
        assert_output!(
            place,
            place
                .go(&["repair", "--", &python, "t.py"])
                .told(3, &[])
                .stderr
        );
        let proposed = &place.events("recovery_proposed")[0];
        let expected = format!("{folder}/bin/pip install -r requirements.txt");
        assert_eq!(proposed["command"], expected.as_str());
    }
}

#[test]
fn environment_with_a_missing_interpreter_is_recreated() {
    let place = with_environment(".venv");
    let python = place.project().join(".venv/bin/python");
    std::fs::remove_file(&python).unwrap();
    symlink("/no/such/python3", &python).unwrap();
    let check = "echo \"ModuleNotFoundError: No module named 'six'\" >&2; exit 1";
    place.go(&["repair", "--", "sh", "-c", check]).told(3, &[]);
    let proposed = &place.events("recovery_proposed")[0];
    let command = proposed["command"].as_str().unwrap();
    assert!(command.starts_with("rm -rf .venv && "), "{command}");
}

#[test]
fn environments_own_interpreter_checks_the_project() {
    for folder in [".venv", "venv"] {
        let place = with_environment(folder);
        assert_output!(place, place.go(&["repair"]).told(3, &[]).stderr);
    }
}
