//! Hostile files an agent can plant in its project: links, FIFOs, devices, another git. None of them leads unstuck out
//! of the project, and none makes unstuck hang.

mod always;
mod git;
mod prompts;

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::time::Duration;

use assert_cmd::Command;
use rustix::fs::{CWD, FileType, Mode, mknodat};

use crate::output_snapshot::assert_output;
use crate::{Ended, Place};

/// The time limit for unstuck under attack.
const LIMIT: Duration = Duration::from_secs(40);

/// Delays that are short enough for a test.
const QUICK: &str =
    "[policy]\ntemplate = \"pipeline\"\ncurve = \"exponential\"\nbackoffBase = 0.001\n";

impl Place {
    /// Runs a command that must finish within the limit.
    #[track_caller]
    fn run_in_time(&self, args: &[&str]) -> Ended {
        end_in_time(self.command(args))
    }

    /// A directory of the owner outside of the project, with a file in it.
    fn outside(&self) -> PathBuf {
        let folder = self.folder.path().join("outside");
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("private.txt"), "PRIVATE\n").unwrap();
        folder
    }

    /// Asserts that the outside directory is unchanged.
    #[track_caller]
    fn assert_outside_is_untouched(&self, after: &str) {
        let folder = self.folder.path().join("outside");
        let entries = fs::read_dir(&folder).unwrap();
        let names: Vec<_> = entries.map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(names, ["private.txt"], "{after}");
        let text = fs::read_to_string(folder.join("private.txt")).unwrap();
        assert_eq!(text, "PRIVATE\n", "{after}");
    }
}

#[track_caller]
fn end_in_time(command: std::process::Command) -> Ended {
    let output = Command::from_std(command).timeout(LIMIT).output().unwrap();
    let ended = Ended {
        code: output.status.code().unwrap_or(-1),
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    };
    assert_ne!(ended.code, -1, "it did not end: {}", ended.stderr);
    ended
}

fn fifo(path: &Path) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    mknodat(CWD, path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
}

/// An agent that plants something in its first attempt, fails with a transient failure, and prints `OWNED` in its
/// second.
fn planting(plant: &str) -> String {
    format!(
        "if [ ! -e planted ]; then touch planted; run=.unstuck/runs/$UNSTUCK_RUN; mkdir -p $run; {plant}; \
         echo 'API Error: 529 Overloaded' >&2; exit 1; fi; echo OWNED"
    )
}

/// H1: whatever is planted under the name of a file that unstuck writes next, nothing outside is written, and the run
/// is unaffected.
#[test]
fn links_in_place_of_run_files_are_never_written_through() {
    for plant in [
        // The output of the next attempt.
        "mkdir -p $run/attempt-2; ln -s $HOME/outside/private.txt $run/attempt-2/stdout.log",
        "mkdir -p $run/attempt-2; ln -s $HOME/outside/new.txt $run/attempt-2/stderr.log",
        "mkdir -p $run/attempt-2; ln $HOME/outside/private.txt $run/attempt-2/stdout.log",
        "ln -s $HOME/outside $run/attempt-2",
        // Files that are replaced or appended to.
        "for name in state.new checkpoint.new state.json checkpoint.json; do ln -sf $HOME/outside/private.txt $run/$name; done",
        "for name in usage.jsonl events.jsonl episodes.jsonl; do ln -sf $HOME/outside/private.txt $run/$name; done",
        "for name in usage.jsonl episodes.jsonl; do ln -f $HOME/outside/private.txt $run/$name; done",
        "rm -rf $run/escalations; ln -s $HOME/outside $run/escalations",
        // Their parent directories.
        "rm -rf $run; ln -s $HOME/outside $run",
        "rm -rf .unstuck; ln -s $HOME/outside .unstuck",
        "rm -rf .unstuck; mkdir .unstuck; ln -s $HOME/outside .unstuck/runs",
    ] {
        let place = Place::new();
        place.outside();
        place.write("unstuck.toml", QUICK);
        let script = planting(plant);
        let ended = place.run_in_time(&["exec", "--", "sh", "-c", &script]);
        assert_eq!(ended.code, 0, "{plant}: {}", ended.stderr);
        place.assert_outside_is_untouched(plant);
        let own = fs::read_to_string(place.run_folder().join("attempt-2/stdout.log"));
        assert_eq!(own.unwrap(), "OWNED\n", "{plant}");
        let logs = place.run_in_time(&["logs", "--attempt", "2"]);
        assert_eq!(logs.stdout, "OWNED\n", "{plant}");
    }
}

/// H1: a confined agent cannot reach the owner's configuration through its output.
#[test]
fn agent_cannot_write_the_owners_configuration_through_its_output() {
    let place = Place::new();
    let config = place.folder.path().join(".config/unstuck/config.toml");
    fs::create_dir_all(config.parent().unwrap()).unwrap();
    fs::write(&config, "# mine\n").unwrap();
    place.write("unstuck.toml", QUICK);
    let plant = "mkdir -p $run/attempt-2; ln -s $HOME/.config/unstuck/config.toml $run/attempt-2/stdout.log";
    let script = planting(plant).replace("OWNED", "'[recovery]'");
    let ended = place.run_in_time(&["exec", "--", "sh", "-c", &script]);
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    assert_eq!(fs::read_to_string(&config).unwrap(), "# mine\n");
}

/// H1: a FIFO, a socket or a directory in place of a file does not block, and the timeout of an attempt applies.
#[test]
fn fifo_in_place_of_a_run_file_does_not_block() {
    for plant in [
        "mkdir -p $run/attempt-2; mkfifo $run/attempt-2/stdout.log",
        "mkdir -p $run/attempt-2; mkfifo $run/attempt-2/stderr.log",
        "mkfifo $run/state.new; rm -f $run/state.json; mkfifo $run/state.json",
        "for name in usage.jsonl events.jsonl episodes.jsonl checkpoint.json; do rm -f $run/$name; mkfifo $run/$name; done",
        "mkdir -p $run/attempt-2/stdout.log $run/attempt-2/stderr.log; rm -f $run/state.json; mkdir $run/state.json",
        "mkdir -p $run/attempt-2; mkfifo $run/attempt-2/recovery.json",
        "rm -rf .unstuck; mkfifo .unstuck",
    ] {
        let place = Place::new();
        place.write("unstuck.toml", QUICK);
        let script = planting(plant);
        let ended = place.run_in_time(&["exec", "--timeout", "5s", "--", "sh", "-c", &script]);
        assert_eq!(ended.code, 0, "{plant}: {}", ended.stderr);
        assert_eq!(ended.stdout, "OWNED\n", "{plant}");
    }
}

/// H1: a copy in the project is never taken for the output of a role.
#[test]
fn outputs_are_never_read_back_from_the_project() {
    let place = Place::new();
    place.outside();
    let script = |id: &str, script: &str| {
        format!(
            "\n[[role]]\nid = \"{id}\"\nagent = \"command\"\nprompt = \"x\"\ncommand = [\"sh\", \"-c\", '''{script}''']\n"
        )
    };
    let swap = "r=.unstuck/runs/$UNSTUCK_RUN/roles/a; \
        for f in $r/output.md $r/iteration-1/output.md; do rm -f $f; ln -s $HOME/outside/private.txt $f; done; exit 78";
    let roles = [
        script("a", "echo the plan"),
        script("b", swap).replace(
            "prompt = \"x\"",
            "prompt = \"{{ outputs.a }}\"\nneeds = [\"a\"]",
        ),
    ];
    place.write("unstuck.toml", &format!("{}\n{QUICK}", roles.concat()));
    let ended = place.run_in_time(&["run"]);
    assert_ne!(ended.code, 0, "{}", ended.stderr);
    for folder in [
        place.run_folder(),
        place
            .project()
            .join(".unstuck/runs")
            .join(place.run_folder().file_name().unwrap()),
    ] {
        let saved = fs::read_to_string(folder.join("checkpoint.json")).unwrap();
        assert!(
            saved.contains("the plan") && !saved.contains("PRIVATE"),
            "{saved}"
        );
    }
    place.assert_outside_is_untouched("a role");
}

/// H1: copies that cannot be written are reported once, with the location of the files.
#[test]
fn unwritable_copies_are_reported_once() {
    let place = Place::new();
    place.outside();
    place.write("unstuck.toml", QUICK);
    symlink(
        place.folder.path().join("outside"),
        place.project().join(".unstuck"),
    )
    .unwrap();
    let ended = place.run_in_time(&[
        "exec",
        "--",
        "sh",
        "-c",
        &planting("true").replace("mkdir -p $run;", ""),
    ]);
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    let told = ended.stderr.matches("cannot write copies").count();
    assert_eq!(told, 1, "{}", ended.stderr);
    assert!(ended.stderr.contains("unstuck.d/runs/"), "{}", ended.stderr);
    place.assert_outside_is_untouched("a link in place of .unstuck");
}

/// H1: `--output` and `--json` write to the file that was named when the run started.
#[test]
fn output_files_do_not_follow_links_made_by_an_agent() {
    for (flag, name) in [("--output", "answer.md"), ("--json=", "end.json")] {
        let place = Place::new();
        place.outside();
        let flag = match flag.strip_suffix('=') {
            Some(flag) => vec![format!("{flag}={name}")],
            None => vec![flag.to_owned(), name.to_owned()],
        };
        let script = format!("ln -s $HOME/outside/private.txt {name}; echo OWNED");
        let mut args = vec!["exec"];
        args.extend(flag.iter().map(String::as_str));
        args.extend(["--", "sh", "-c", &script]);
        let ended = place.run_in_time(&args);
        assert_eq!(ended.code, 0, "{}", ended.stderr);
        place.assert_outside_is_untouched(name);
        let data = fs::symlink_metadata(place.project().join(name)).unwrap();
        assert!(data.is_file(), "{name}");
    }
}

/// Runs of earlier versions have their files only in the project: they can be shown and resumed, and the files are not
/// read.
#[test]
fn run_without_files_in_the_state_directory_can_be_shown_and_resumed() {
    let place = Place::new();
    place.write("unstuck.toml", QUICK);
    let script = "[ -e fixed ] && echo fine && exit 0; echo 'Invalid API key · Please run /login' >&2; exit 1";
    let ended = place.run_in_time(&["exec", "--", "sh", "-c", script]);
    assert_eq!(ended.code, 3, "{}", ended.stderr);
    fs::remove_dir_all(place.state().join("runs")).unwrap();
    let logs = place.run_in_time(&["logs"]);
    assert_eq!(logs.code, 1, "{}", logs.stderr);
    assert_output!(place, logs.stderr);
    place.run_in_time(&["show"]).told(0, &[]);
    place.write("fixed", "");
    let resumed = place.run_in_time(&["resume"]);
    assert_eq!(resumed.code, 0, "{}", resumed.stderr);
    assert!(place.run_folder().join("events.jsonl").exists());
}

/// An agent cannot keep its owner from seeing and answering requests by an invalid configuration.
#[test]
fn invalid_project_configuration_does_not_block_reading_and_answering() {
    for plant in [
        "printf 'not = [valid' > unstuck.toml",
        "ln -sf $HOME/outside/private.txt unstuck.toml",
        "ln -sf $HOME/outside/private.txt unstuck.yaml",
        "rm -f unstuck.toml; mkfifo unstuck.toml",
        "rm -f unstuck.toml; truncate -s 4T unstuck.toml",
        "touch unstuck.json",
    ] {
        let place = Place::new();
        place.outside();
        place.write("unstuck.toml", QUICK);
        let script = "echo 'Not logged in · Please run /login'; exit 1";
        place
            .run_in_time(&["exec", "--", "sh", "-c", script])
            .told(3, &[]);
        assert!(place.shell(plant).status().unwrap().success());
        for args in [
            &["inbox"][..],
            &["runs"],
            &["show"],
            &["status"],
            &["logs"],
            &["webhook", "list"],
            &["abort", "--last"],
        ] {
            let ended = place.run_in_time(args);
            assert_ne!(ended.code, 2, "{plant}: {args:?}: {}", ended.stderr);
            let told = ended.stderr.matches("configuration is ignored").count();
            assert_eq!(told, 1, "{plant}: {args:?}: {}", ended.stderr);
            assert!(!ended.stderr.contains("PRIVATE"), "{}", ended.stderr);
        }
        assert_eq!(place.run_in_time(&["inbox", "--json"]).stdout.trim(), "[]");
        // What runs something does not ignore it.
        for args in [&["run"][..], &["exec", "--", "touch", "ran"]] {
            let ended = place.run_in_time(args);
            assert_eq!(ended.code, 2, "{plant}: {args:?}: {}", ended.stderr);
        }
        assert!(!place.project().join("ran").exists());
    }
}

/// The message says what is wrong with which file, and what to do.
#[test]
fn configuration_that_is_no_regular_file_is_explained() {
    for plant in [
        "ln -s $HOME/outside/private.txt unstuck.toml",
        "mkfifo unstuck.json",
        "truncate -s 4T unstuck.yaml",
    ] {
        let place = Place::new();
        place.outside();
        assert!(place.shell(plant).status().unwrap().success());
        let ended = place.run_in_time(&["exec", "--", "true"]);
        ended.told(2, &[]);
        assert_output!(place, ended.stderr);
    }
}

/// A person names a file in the project, and finds a FIFO without a writer.
#[test]
fn fifo_in_place_of_a_named_input_file_is_refused() {
    let place = Place::new();
    fifo(&place.project().join("pipe"));
    for args in [
        &["classify", "pipe"][..],
        &["classify", "--jsonl", "pipe"],
        &["plan", "--stdout", "pipe"],
        &["policy", "check", "pipe"],
        &["exec", "--expect-json=pipe", "--", "true"],
    ] {
        let ended = place.run_in_time(args);
        assert!(ended.code != 0, "{args:?}: {}", ended.stderr);
        assert!(
            ended
                .stderr
                .contains("cannot read pipe: not a regular file"),
            "{args:?}: {}",
            ended.stderr
        );
    }
}

#[test]
fn stream_handed_over_by_the_shell_is_read() {
    let place = Place::new();
    let mut command = place.shell("\"$UNSTUCK\" classify --exit-code 1 /dev/stdin < text");
    place.write("text", "529 Overloaded\n");
    let output = command.output().unwrap();
    let told = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(told.contains("overloaded"), "{output:?}");
}
