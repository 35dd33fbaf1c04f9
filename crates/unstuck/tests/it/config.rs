//! Configuration that adds to the knowledge.

use crate::Place;

const RULE: &str = "[[kinds.server_overloaded.rule]]\nid = \"ours\"\nany = [\"the cluster is catching its breath\"]\n";

#[test]
fn a_project_adds_rules_of_its_own() {
    let place = Place::new();
    let text = "The cluster is catching its breath";
    let kind = |place: &Place| {
        place.json(&["classify", "--exit-code", "1", "--json"], text)["kind"].clone()
    };
    assert_eq!(kind(&place), "unknown");
    place.write("unstuck.toml", RULE);
    assert_eq!(kind(&place), "server_overloaded");
}

#[test]
fn a_named_file_wins_over_the_project() {
    let place = Place::new();
    place.write("unstuck.toml", "[policy]\nmaxRetries = 1\n");
    let more = place.write("more.toml", "[policies.night]\ntemplate = \"patient\"\nmaxRetries = 9\n[policy]\ntemplate = \"night\"\nmaxRetries = 7\n");
    let policy = |args: &[&str]| place.json(&[&["policy", "show", "--json"], args].concat(), "");
    assert_eq!(policy(&[])["maxRetries"], 1);
    let layered = place.write(
        "layered.toml",
        "[policies.a]\ntemplate = \"z\"\n[policies.z]\nmaxRetries = 8\n",
    );
    let built_on = place.json(
        &[
            "policy",
            "show",
            "a",
            "--json",
            "--config",
            layered.to_str().unwrap(),
        ],
        "",
    );
    assert_eq!(built_on["maxRetries"], 8);
    let named = policy(&["--config", more.to_str().unwrap()]);
    assert_eq!(
        (&named["maxRetries"], &named["backoffBase"]),
        (&7.into(), &5.0.into())
    );
}

#[test]
fn mistakes_in_a_configuration_are_shown_where_they_are() {
    let place = Place::new();
    for (text, told) in [
        (
            "[kinds.rate_limt]\nhint = \"x\"\n",
            "did you mean `rate_limit`?",
        ),
        (
            "[kinds.rate_limit]\nhnit = \"x\"\n",
            "there is no key `hnit` in `kinds.rate_limit`, did you mean `hint`?",
        ),
        (
            "[[kinds.rate_limit.rule]]\nid = \"x\"\nany = ['/a(/']\n",
            "rule `x`",
        ),
        (
            "[[kinds.rate_limit.rule]]\nid = \"x\"\nany = ['/abc(/']\n",
            "regular expression",
        ),
        ("[policy]\nmaxRetries = -3\n", "maxRetries"),
        (
            "[[kinds.rate_limit.chain]]\nstrategy = \"nope\"\nconfidence = 0.5\n",
            "there is no strategy `nope`",
        ),
        (
            "[[kinds.rate_limit.rule]]\nany = [\"x y\"]\n",
            "it needs an `id`",
        ),
        (
            "[[kinds.rate_limit.rule]]\nid = \"x\"\n",
            "would match everything",
        ),
        (
            "[[kinds.rate_limit.rule]]\nid = \"x\"\nany = [\"x y\"]\nconfidence = 7\n",
            "between 0 and 1",
        ),
        (
            "[policy]\ntemplate = \"patiant\"\n",
            "there is no template `patiant`",
        ),
        ("oops", "unstuck.toml"),
    ] {
        place.write("unstuck.toml", text);
        let ended = place.run(&["plan", "--exit-code", "1"], "x");
        assert_eq!(ended.code, 2, "{text}");
        assert!(ended.stderr.contains(told), "{text}: {}", ended.stderr);
    }
    let ended = place.run(&["kinds", "--config", "gone.toml"], "");
    assert_eq!(ended.code, 2);
}
