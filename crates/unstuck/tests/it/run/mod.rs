//! `unstuck run`: roles that build on each other, kept going.

mod kinds;
mod recovery;

use serde_json::Value;

use crate::{Ended, Place};

/// Waits that a test can wait for.
const QUICK: &str =
    "[policy]\ntemplate = \"pipeline\"\ncurve = \"exponential\"\nbackoffBase = 0.001\n";

/// A role that a shell script plays; `more` are further lines of its table.
fn role(id: &str, more: &str, script: &str) -> String {
    format!(
        "\n[[role]]\nid = \"{id}\"\nagent = \"command\"\ncommand = [\"sh\", \"-c\", '''{script}''']\n{more}\n"
    )
}

/// A project with these roles, in which nothing takes long.
fn project(config: &str) -> Place {
    let place = Place::new();
    configure(&place, config);
    place
}

fn configure(place: &Place, config: &str) {
    place.write("unstuck.toml", &format!("{config}\n{QUICK}"));
}

impl Place {
    /// The events of the only run that have this name.
    fn events(&self, name: &str) -> Vec<Value> {
        let all = self.of_run("events.jsonl");
        let all = all.lines().map(|line| serde_json::from_str(line).unwrap());
        all.filter(|event: &Value| event["event"] == name).collect()
    }

    /// What the scripts wrote to a file of the project, line by line; nothing where it is not there.
    fn lines(&self, name: &str) -> Vec<String> {
        let text = std::fs::read_to_string(self.project().join(name)).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    /// A file of the project.
    fn text(&self, name: &str) -> String {
        std::fs::read_to_string(self.project().join(name)).unwrap()
    }
}

impl Ended {
    /// That it ended like this, and told all of these.
    #[track_caller]
    fn told(&self, code: i32, parts: &[&str]) -> &Self {
        assert_eq!(self.code, code, "{}{}", self.stdout, self.stderr);
        for part in parts {
            assert!(self.stderr.contains(part), "{part} in {}", self.stderr);
        }
        self
    }
}

/// A task is asked for only where a role that is to run has a place for it.
#[test]
fn a_role_that_does_not_run_needs_no_task() {
    let planner = role(
        "planner",
        "prompt = \"Plan {{ task }}\"",
        "cat; echo; echo planned",
    );
    let builder = role(
        "builder",
        "prompt = \"Your task: {{ outputs.planner }}\"\nneeds = [\"planner\"]",
        "cat",
    );
    let place = project(&format!("{planner}{builder}"));
    place
        .run(&["run"], "")
        .told(2, &["the prompt of `planner` has {{ task }}", "--task"]);
    place.run(&["run", "--task", "a poem"], "").told(0, &[]);
    place.run(&["run", "--only", "builder"], "").told(0, &[]);
    place.run(&["run", "--from", "builder"], "").told(0, &[]);
    place
        .run(&["run", "--only", "planner"], "")
        .told(2, &["--task"]);
}
