//! An agent cannot trust a project for its owner, however it detaches and whatever variables it clears.

use std::fs;
use std::time::Duration;

use super::SECTION;
use crate::Place;
use crate::output_snapshot::assert_output;

/// Returns the output of `unstuck trust` called by an agent with this shell line (as `$TRUST`), and its place.
fn said_to_agent(line: &str) -> (Place, String) {
    let place = Place::new();
    place.write("unstuck.toml", SECTION);
    let unstuck = env!("CARGO_BIN_EXE_unstuck");
    let home = place.folder.path().display().to_string();
    let trust = format!("TRUST=\"{unstuck} trust\"; HOME={home}; {line}");
    // The agent's processes are killed when it ends, so it waits for the output.
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
    assert_eq!(place.trust_status(), "unknown");
    (place, ended.stdout)
}

const TOLD: &str = "runs inside a supervised agent";

#[test]
fn agent_cannot_trust_a_project() {
    let (place, said) = said_to_agent("$TRUST >new 2>&1; echo code $? >>new; mv new said");
    assert_output!(place, said);
}

#[test]
fn clearing_variables_does_not_help() {
    let (place, said) = said_to_agent("env -i HOME=$HOME $TRUST >new 2>&1; mv new said");
    assert_output!(place, said);
}

/// Its parent is gone and its session differs, but the reaper is still its ancestor.
#[test]
fn detaching_does_not_help() {
    let line = "export HOME TRUST; env -i HOME=$HOME TRUST=\"$TRUST\" setsid sh -c 'p=$$; (while kill -0 $p; do sleep 0.05; done; $TRUST >new 2>&1; mv new said) &' &";
    let (place, said) = said_to_agent(line);
    assert_output!(place, said);
}

/// Reading is allowed.
#[test]
fn agent_may_read_the_trust_status() {
    let (place, said) = said_to_agent("$TRUST --show >new 2>&1; mv new said");
    assert_output!(place, said);
}

/// The variable is sufficient, wherever it comes from.
#[test]
fn unstuck_variable_is_sufficient() {
    let place = Place::allowing();
    let mut said = String::new();
    for name in ["UNSTUCK_RUN", "UNSTUCK_SESSION", "UNSTUCK_REAPER"] {
        let mut command = place.command(&["trust"]);
        let ended = command.env(name, "x").output().unwrap();
        assert_eq!(ended.status.code(), Some(1), "{name}");
        said += &String::from_utf8(ended.stderr).unwrap();
    }
    assert_output!(place, said);
    assert!(!place.records().exists());
}

/// Processes next to an agent, not inside of it, may trust.
#[test]
fn person_can_trust_while_an_agent_works() {
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
    assert_eq!(place.trust_status(), "trusted");
}

/// Runs unstuck commands inside a supervised agent, both plainly and as hidden as possible.
fn given_by_agent(place: &Place, args: &str) -> String {
    let own = env!("CARGO_BIN_EXE_unstuck");
    let home = place.folder.path().display();
    let plain = format!("{own} {args}");
    let hidden = format!("env -i HOME={home} PATH=$PATH setsid -w {own} {args}");
    let line = format!("{plain} 2>&1; echo code $?; {hidden} 2>&1; echo code $?");
    let nested = [
        "exec", "--quiet", "--policy", "off", "--", "sh", "-c", &line,
    ];
    let ended = place.run(&nested, "");
    assert_eq!(ended.code, 0, "{}{}", ended.stdout, ended.stderr);
    ended.stdout
}

/// M3: `resume` is an answer, so an agent that resumed confirmed spending.
#[test]
fn agent_cannot_confirm_spending() {
    let place = Place::new();
    let role = |id: &str, needs: &str| {
        format!(
            "[[role]]\nid = \"{id}\"\nagent = \"claude\"\nprompt = \"Do it.\"\nneeds = [{needs}]\n"
        )
    };
    let roles = [role("a", ""), role("b", "\"a\""), role("c", "\"b\"")];
    place.write(
        "unstuck.toml",
        &format!("[budget]\nper_run.usd = 0.5\n{}", roles.concat()),
    );
    place.tool(
        "claude",
        "#!/bin/sh\ncat >/dev/null; echo ran >> ran\necho '{\"type\":\"result\",\"subtype\":\"success\",\"is_error\":false,\"num_turns\":1,\"result\":\"All is done.\",\"session_id\":\"11-22\",\"total_cost_usd\":0.3,\"usage\":{\"input_tokens\":100,\"output_tokens\":50}}'\n",
    );
    let ended = place.run(&["run"], "");
    ended.told(3, &[]);
    assert_output!(place, ended.stderr);
    let asked = place.json(&["inbox", "--json"], "")[0].clone();
    let (id, run) = (
        asked["id"].as_str().unwrap(),
        asked["run"].as_str().unwrap(),
    );
    for args in [
        format!("resume {run}"),
        format!("resume {run} --accept-changes"),
        "run --resume-from-failure".to_owned(),
        format!("retry {id} --say cheaper"),
        format!("approve {id}"),
        format!("skip {id}"),
        format!("abort {id}"),
        format!("escalate {run} --yes"),
        format!("stop {run}"),
        "store prune --older-than 0s".to_owned(),
        "store vacuum".to_owned(),
        "token create".to_owned(),
        "webhook test".to_owned(),
        "webhook flush".to_owned(),
    ] {
        let said = given_by_agent(&place, &args);
        assert_eq!(
            said.matches("only a human can").count(),
            2,
            "{args}: {said}"
        );
        assert_eq!(said.matches(TOLD).count(), 2, "{args}: {said}");
        assert_eq!(said.matches("code 1").count(), 2, "{args}: {said}");
    }
    assert_eq!(place.lines("ran").len(), 2, "nothing was spent");
    let open = place.json(&["inbox", "--json"], "");
    assert_eq!(open[0]["id"], id, "and nothing was answered");
}

/// M3: an agent could make the request about a repair disappear.
#[test]
fn agent_cannot_remove_a_request() {
    let place = Place::new();
    place.write(".env.example", "SHOP_PORT=3000\n");
    let check = "test -f .env || { echo 'SHOP_PORT is not set' >&2; exit 1; }";
    place
        .run(&["repair", "--", "sh", "-c", check], "")
        .told(3, &[]);
    let asked = place.json(&["inbox", "--json"], "");
    let run = asked[0]["run"].as_str().unwrap();
    let said = given_by_agent(&place, &format!("resume {run}"));
    assert_eq!(
        said.matches("only a human can resume a run").count(),
        2,
        "{said}"
    );
    assert_eq!(
        place.json(&["inbox", "--json"], "")[0]["id"],
        asked[0]["id"]
    );
}

/// Agents may run commands and read.
#[test]
fn agent_may_run_and_read() {
    let place = Place::new();
    for args in [
        "exec -- true",
        "runs",
        "inbox",
        "store check",
        "token list",
        "config show",
    ] {
        let said = given_by_agent(&place, args);
        assert_eq!(said.matches("code 0").count(), 2, "{args}: {said}");
    }
}
