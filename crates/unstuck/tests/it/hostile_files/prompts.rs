//! Files named by a project's configuration.

use std::fs;
use std::os::unix::fs::symlink;

use super::fifo;
use crate::Place;
use crate::output_snapshot::assert_output;

fn role(more: &str) -> String {
    format!(
        "[[role]]\nid = \"a\"\nagent = \"command\"\ncommand = [\"sh\", \"-c\", \"cat > got\"]\n{more}\n{}",
        super::QUICK
    )
}

/// M9: a prompt file that is endless or a FIFO is rejected with an error.
#[test]
fn prompt_file_that_is_not_a_regular_file_is_rejected() {
    for what in ["fifo", "zero", "socket", "folder", "huge"] {
        let place = Place::new();
        place.write("unstuck.toml", &role("prompt_file = \"prompt.md\""));
        let path = place.project().join("prompt.md");
        let mut listening = None;
        match what {
            "fifo" => fifo(&path),
            "zero" => symlink("/dev/zero", &path).unwrap(),
            "socket" => listening = Some(std::os::unix::net::UnixListener::bind(&path).unwrap()),
            "folder" => fs::create_dir(&path).unwrap(),
            _ => fs::File::create(&path).unwrap().set_len(1 << 42).unwrap(),
        }
        for args in [&["run"][..], &["config", "check"]] {
            let ended = place.run_in_time(args);
            assert_ne!(ended.code, 0, "{what}: {}{}", ended.stdout, ended.stderr);
            let told = ended.stdout + &ended.stderr;
            assert!(told.contains("prompt.md"), "{what}: {told}");
        }
        assert!(!place.project().join("got").exists());
        drop(listening);
    }
}

/// H1, M9: a file outside of the project is not read into a prompt, which is sent to the agent and copied into the
/// project.
#[test]
fn prompt_file_outside_the_project_is_rejected() {
    for (file, is_link) in [("prompt.md", true), ("../outside/private.txt", false)] {
        let place = Place::new();
        let outside = place.outside();
        place.write("unstuck.toml", &role(&format!("prompt_file = \"{file}\"")));
        if is_link {
            symlink(outside.join("private.txt"), place.project().join(file)).unwrap();
        }
        let ended = place.run_in_time(&["run"]);
        assert_eq!(ended.code, 2, "{}", ended.stderr);
        assert_output!(place, ended.stderr);
        assert!(!place.project().join("got").exists());
    }
}

/// M9: the same applies to includes of a prompt, and to the configuration itself.
#[test]
fn included_files_and_the_configuration_do_not_block() {
    let place = Place::new();
    place.write(
        "unstuck.toml",
        &role("prompt = \"{% include 'notes.md' %}\""),
    );
    fifo(&place.project().join("notes.md"));
    let ended = place.run_in_time(&["run"]);
    assert_ne!(ended.code, 0, "{}", ended.stderr);

    let place = Place::new();
    fifo(&place.project().join("unstuck.toml"));
    let ended = place.run_in_time(&["exec", "--", "echo", "fine"]);
    ended.told(2, &["not a regular file"]);

    let place = Place::new();
    symlink("/dev/zero", place.project().join("unstuck.toml")).unwrap();
    let ended = place.run_in_time(&["exec", "--", "echo", "fine"]);
    ended.told(2, &["symbolic link"]);
}
