//! The views of pipelines: the output of `unstuck run`, and of `runs`, `show`, `logs`, `explain`.

use crate::output_snapshot::assert_output;
use crate::{Ended, Place};

/// The tester omits a section at first, in the first of two iterations.
const SHOP: &str = r##"
[policy]
template = "patient"
jitter = "none"
backoffBase = 0.02

[loop]
max_iterations = 4
until = { promise = "DONE" }

[[role]]
id = "architect"
agent = "command"
command = ["sh", "-c", "cat > /dev/null; echo '# Plan'; echo build it"]
prompt = "Plan {{ task }}"

[[role]]
id = "tester"
agent = "command"
command = ["sh", "-c", "cat > /dev/null; echo x >> count; n=$(wc -l < count); [ $n = 1 ] || echo '# Tests'; echo number $n; echo aside >&2; [ $n -lt 3 ] || echo '<promise>DONE</promise>'"]
prompt = "Test {{ outputs.architect }}"
needs = ["architect"]
expect.sections = ["# Tests"]
"##;

fn shop() -> Place {
    let place = Place::new();
    place.write("unstuck.toml", SHOP);
    place
}

fn seen(place: &Place, args: &[&str]) -> Ended {
    let ended = place.run(&[&["run", "--task", "the\nshop"], args].concat(), "");
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    ended
}

/// Returns the id of the only run.
fn id(place: &Place) -> String {
    let runs = place.json(&["runs", "--json"], "");
    runs[0]["id"].as_str().unwrap().to_owned()
}

/// S1-30, S1-37: each retry is reported with the role, the kind, its number and the changes.
#[test]
fn run_is_reported_line_by_line() {
    let place = shop();
    let ended = seen(&place, &[]);
    assert_output!(place, ended.stderr);
}

#[test]
fn agent_output_is_shown_only_on_request() {
    let place = shop();
    let told = seen(&place, &["--verbose"]).stderr;
    let lines = [
        "tester| # Tests\n",
        "tester| aside\n",
        "architect| build it\n",
    ];
    assert!(lines.iter().all(|line| told.contains(line)), "{told}");
    let place = shop();
    let quiet = seen(&place, &["--quiet"]);
    assert_eq!((quiet.stderr.as_str(), quiet.stdout.as_str()), ("", ""));
}

#[test]
fn pipeline_is_listed_by_its_task() {
    let place = shop();
    seen(&place, &["--quiet"]);
    let listed = place.run(&["runs"], "").stdout;
    assert_output!(place, listed);
    let run = &place.json(&["runs", "--json"], "")[0];
    assert_eq!((&run["roles"], &run["iteration"]), (&2.into(), &2.into()));
}

#[test]
fn pipeline_is_shown_role_by_role() {
    let place = shop();
    seen(&place, &["--quiet"]);
    let show = |what: &str| place.run(&["show", what], "").stdout;
    let all = place.run(&["show"], "").stdout;
    let places: Vec<_> = [
        "recovered  run: the shop\n",
        "~/project/unstuck.toml · policy patient",
        "── iteration 1 of 4 ──",
        "architect  succeeded  command · 1 attempt",
        "tester  recovered  command · 2 attempts",
        "/roles/tester/iteration-1/output.md",
        "kind     missing_sections",
        "── iteration 2 of 4 ──",
        "tester  succeeded  command · 1 attempt",
    ]
    .iter()
    .map(|part| {
        all.find(part)
            .ok_or_else(|| format!("{part}: {all}"))
            .unwrap()
    })
    .collect();
    assert!(places.is_sorted(), "{all}");
    let tester = show("/tester");
    assert_eq!(
        tester.matches("attempt ").count() - tester.matches("1 attempt ").count(),
        3
    );
    assert!(!tester.contains("architect"), "{tester}");
    // The second attempt of the run is the first of the tester.
    let second = show("/2");
    assert!(second.contains("tester  iteration 1\n"), "{second}");
    assert!(second.contains("attempt 1  failed"), "{second}");
    let newest = show("/tester/1");
    assert!(newest.contains("tester  iteration 2\n"), "{newest}");
    assert!(newest.contains("attempt 1  succeeded"), "{newest}");
}

#[test]
fn unknown_role_is_rejected_with_the_known_ones() {
    let place = shop();
    seen(&place, &["--quiet"]);
    let refused = |what: &str| {
        let ended = place.run(&["show", what], "");
        assert_eq!(ended.code, 1);
        ended.stderr
    };
    assert_output!(place, refused("/testr"));
    assert_output!(place, refused("/tester/2"));
    assert_eq!(place.run(&["exec", "--", "true"], "").code, 0);
    assert_output!(place, refused("/tester"));
}

#[test]
fn pipeline_json_has_sessions_and_the_role_of_each_attempt() {
    let place = shop();
    seen(&place, &["--quiet"]);
    let run = place.json(&["show", "--json"], "");
    assert_eq!(run["sessions"].as_array().unwrap().len(), 4);
    let tester = &run["sessions"][1];
    assert_eq!(
        (&tester["role"], &tester["attempts"]),
        (&"tester".into(), &2.into())
    );
    let file = tester["output_file"].as_str().unwrap();
    assert_eq!(
        std::fs::read_to_string(file).unwrap(),
        "# Tests\nnumber 2\n"
    );
    let attempt = &run["attempts"][2];
    assert_eq!(
        (&attempt["index"], &attempt["number"]),
        (&3.into(), &2.into())
    );
    assert_eq!(
        (&attempt["role"], &attempt["iteration"]),
        (&"tester".into(), &1.into())
    );
    let only = place.json(&["show", "/tester", "--json"], "");
    assert_eq!(only["sessions"].as_array().unwrap().len(), 2);
}

#[test]
fn pipeline_logs_name_the_role_on_every_line() {
    let place = shop();
    seen(&place, &["--quiet"]);
    let all = place.run(&["logs", "-f"], "");
    assert!(
        all.stdout
            .starts_with("architect| # Plan\narchitect| build it\ntester| number 1\n")
    );
    assert!(
        all.stderr
            .contains("── tester, iteration 1, attempt 2 ──\ntester| aside\n")
    );
    let one = place.run(&["logs", "--role", "tester"], "");
    assert!(
        one.stdout.starts_with("number 1\n# Tests\nnumber 2\n"),
        "{}",
        one.stdout
    );
    let attempt = place.run(&["logs", "/tester/1"], "");
    assert_eq!(
        attempt.stdout,
        "# Tests\nnumber 3\n<promise>DONE</promise>\n"
    );
    let files = place.json(&["logs", "--json"], "");
    assert_eq!(
        (&files[2]["role"], &files[2]["attempt"]),
        (&"tester".into(), &2.into())
    );
}

#[test]
fn decision_is_explained_with_its_role() {
    let place = shop();
    seen(&place, &["--quiet"]);
    let told = place.run(&["explain", "/tester"], "").stdout;
    assert_output!(place, told);
    assert_eq!(place.json(&["explain", "--json"], "")[1]["role"], "tester");
    let nothing = place.run(&["explain", "/architect"], "").stdout;
    assert_output!(place, nothing);
}

#[test]
fn shell_completes_the_roles_of_a_run() {
    let place = shop();
    seen(&place, &["--quiet"]);
    let run = &id(&place)[..6];
    let completed = |typed: &str| {
        let mut command = place.command(&["--", "unstuck", "show", typed]);
        command
            .env("COMPLETE", "bash")
            .env("_CLAP_COMPLETE_INDEX", "2")
            .env("_CLAP_IFS", ",");
        String::from_utf8(command.output().unwrap().stdout).unwrap()
    };
    assert_eq!(completed(&run[..3]), run);
    assert_eq!(
        completed(&format!("{run}/")),
        format!("{run}/architect,{run}/tester")
    );
    assert_eq!(completed("/te"), "/tester");
}
