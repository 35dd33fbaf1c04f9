//! `unstuck kinds`

use crate::Place;

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
    let shown = Place::new().run(&["kinds", "port-in-use"], "").stdout;
    for part in [
        "port_in_use  Port already in use (systematic)",
        "What is done",
        "How it is recognised",
        "EADDRINUSE",
        "samples and",
    ] {
        assert!(shown.contains(part), "{part} in {shown}");
    }
    let whole = Place::new().json(&["kinds", "timeout", "--json"], "");
    assert_eq!(whole["levels"]["agent"], "alternative");
    assert_eq!(whole["chain"]["tool"][0]["strategy"], "reduce_scope");
}

#[test]
fn misspelled_kind_gets_a_suggestion() {
    let ended = Place::new().run(&["kinds", "rate_limt"], "");
    assert_eq!((ended.code, ended.stdout.as_str()), (2, ""));
    assert_eq!(
        ended.stderr,
        "error: there is no kind `rate_limt`, did you mean `rate_limit`?\nhint: `unstuck kinds` lists them all\n"
    );
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
    assert!(
        ended
            .stderr
            .contains("should be disk_full, is unknown by unknown: the barn is full"),
        "{}",
        ended.stderr
    );
}
