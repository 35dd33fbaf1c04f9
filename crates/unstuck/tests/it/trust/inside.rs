//! An agent cannot trust for its owner, however it detaches itself and whatever it clears.

use std::fs;
use std::time::Duration;

use super::SECTION;
use crate::Place;

/// What `unstuck trust` says to an agent that calls it with this line for a shell, which finds it as `$TRUST`.
fn said_to_agent(line: &str) -> String {
    let place = Place::new();
    place.write("unstuck.toml", SECTION);
    let unstuck = env!("CARGO_BIN_EXE_unstuck");
    let home = place.folder.path().display().to_string();
    let trust = format!("TRUST=\"{unstuck} trust\"; HOME={home}; {line}");
    // Nothing of the agent is left when it ends, so it waits for the answer.
    let line = format!(
        "{trust}\nfor i in $(seq 600); do test -e said && break; sleep 0.05; done; cat said"
    );
    let ended = place.run(
        &[
            "exec", "--quiet", "--policy", "off", "--", "sh", "-c", &line,
        ],
        "",
    );
    assert_eq!(ended.code, 0, "{}{}", ended.stdout, ended.stderr);
    assert!(!place.records().exists(), "something was trusted");
    assert_eq!(place.standing(), "unknown");
    ended.stdout
}

const TOLD: &str = "runs inside a supervised agent";

#[test]
fn an_agent_cannot_trust() {
    let said = said_to_agent("$TRUST >new 2>&1; echo code $? >>new; mv new said");
    assert!(
        said.contains(TOLD) && said.contains("UNSTUCK_RUN is set"),
        "{said}"
    );
    assert!(said.contains("code 1"), "{said}");
}

#[test]
fn clearing_the_variables_does_not_help() {
    let said = said_to_agent("env -i HOME=$HOME $TRUST >new 2>&1; mv new said");
    assert!(said.contains(TOLD) && said.contains("in process"), "{said}");
}

/// Its parent is gone and its session another one, but the reaper is above it.
#[test]
fn detaching_does_not_help() {
    let line = "export HOME TRUST; env -i HOME=$HOME TRUST=\"$TRUST\" setsid sh -c 'p=$$; (while kill -0 $p; do sleep 0.05; done; $TRUST >new 2>&1; mv new said) &' &";
    let said = said_to_agent(line);
    assert!(
        said.contains(TOLD) && said.contains("is a reaper of unstuck"),
        "{said}"
    );
}

/// Looking is no decision.
#[test]
fn an_agent_may_look() {
    let said = said_to_agent("$TRUST --show >new 2>&1; mv new said");
    assert!(said.contains("not trusted"), "{said}");
}

/// The variable alone is enough, wherever it comes from.
#[test]
fn a_variable_of_unstuck_is_enough() {
    let place = Place::allowing();
    for name in ["UNSTUCK_RUN", "UNSTUCK_SESSION", "UNSTUCK_REAPER"] {
        let mut command = place.command(&["trust"]);
        let ended = command.env(name, "x").output().unwrap();
        assert_eq!(ended.status.code(), Some(1), "{name}");
        let said = String::from_utf8(ended.stderr).unwrap();
        assert!(said.contains(&format!("{name} is set")), "{said}");
    }
    assert!(!place.records().exists());
}

/// What runs beside an agent, and not inside of it, is free to trust.
#[test]
fn a_person_trusts_while_an_agent_works() {
    let place = Place::allowing();
    let begun = place.project().join("begun");
    let line =
        "touch begun; for i in $(seq 600); do test -e end && exit 0; sleep 0.05; done; exit 1";
    let mut agent = place
        .command(&["exec", "--quiet", "--policy", "off", "--", "sh", "-c", line])
        .spawn()
        .unwrap();
    while !begun.exists() {
        std::thread::park_timeout(Duration::from_millis(10));
    }
    assert_eq!(place.run(&["trust"], "").code, 0);
    fs::write(place.project().join("end"), "").unwrap();
    assert!(agent.wait().unwrap().success());
    assert_eq!(place.standing(), "trusted");
}
