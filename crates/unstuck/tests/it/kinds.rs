//! `unstuck kinds`

use crate::Place;
use crate::output_snapshot::assert_output;

#[test]
fn all_kinds_are_listed_with_their_category() {
    let kinds = Place::new().json(&["kinds", "--json"], "");
    let kinds = kinds.as_array().unwrap();
    assert_eq!(kinds.len(), 49);
    let timed = kinds
        .iter()
        .find(|kind| kind["id"] == "rate_limit_timed")
        .unwrap();
    assert_eq!(
        (&timed["category"], &timed["levels"]["api"]),
        (&"transient".into(), &"same".into())
    );
    let listed = Place::new().run(&["kinds"], "").stdout;
    assert!(
        kinds
            .iter()
            .all(|kind| listed.contains(&format!("  {} ", kind["id"].as_str().unwrap())))
    );
}

#[test]
fn kind_is_shown_with_its_chain_and_rules() {
    let place = Place::new();
    let shown = place.run(&["kinds", "port-in-use"], "").stdout;
    assert_output!(place, shown);
    let whole = place.json(&["kinds", "timeout", "--json"], "");
    assert_eq!(whole["levels"]["agent"], "alternative");
    assert_eq!(whole["chain"]["tool"][0]["strategy"], "reduce_scope");
}

#[test]
fn misspelled_kind_gets_a_suggestion() {
    let place = Place::new();
    let ended = place.run(&["kinds", "rate_limt"], "");
    assert_eq!((ended.code, ended.stdout.as_str()), (2, ""));
    assert_output!(place, ended.stderr);
}

#[test]
fn every_sample_is_checked_including_configured_ones() {
    let place = Place::new();
    let ended = place.run(&["kinds", "--check"], "");
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    assert!(ended.stdout.starts_with("ok: "), "{}", ended.stdout);
    place.write(
        "unstuck.toml",
        "[[kinds.disk_full.sample]]\nexit_code = 1\nstderr = \"the barn is full\"\n",
    );
    let ended = place.run(&["kinds", "--check"], "");
    assert_eq!(ended.code, 2);
    assert_output!(place, ended.stderr);
}
