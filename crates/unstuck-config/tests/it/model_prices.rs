//! Prices in a project's `[models]` never make calls cheaper than the owner or unstuck itself says.

use unstuck_config::{Config, ConfigLayers};
use unstuck_core::decision::TokenUsage;

use crate::Place;

/// Returns the costs of requests with every priced item; the second one has a long prompt.
fn costs(config: &Config, model: &str) -> Vec<Option<f64>> {
    let tokens = |input| TokenUsage {
        input,
        cached: 1_000,
        output: 1_000,
        requests: 1,
    };
    let found = config.catalog().find(model);
    let requests = [tokens(1_000), tokens(900_000)];
    requests
        .iter()
        .map(|tokens| found.and_then(|model| model.cost(*tokens)))
        .collect()
}

const NAMES: [&str; 8] = [
    "claude-opus-5-5",
    "opus",
    "claude-opus-5.5",
    "anthropic/claude-opus-5-5-20251101",
    "claude-haiku-5-5",
    "haiku",
    "ours",
    "ours-latest",
];

const OWNERS: &str = "[[models.model]]\nid = \"ours\"\nprovider = \"us\"\nprice = { input = 7, output = 9, cached = 1 }\n";

/// Each of these would let a project exceed the owner's budget.
#[test]
fn project_cannot_lower_prices() {
    for (text, told) in [
        (
            "id = \"claude-opus-5-5\"\nprice = { input = 0, output = 0, cached = 0 }",
            "price",
        ),
        (
            "id = \"claude-opus-5-5\"\nprice = { input = 4, output = 19.9, cached = 0.2 }",
            "price",
        ),
        // Without a cache price such calls have no price at all.
        (
            "id = \"claude-opus-5-5\"\nprice = { input = 4, output = 20 }",
            "price",
        ),
        // A configured price also applies to long prompts, which cost more here.
        (
            "id = \"claude-haiku-5-5\"\nprice = { input = 0.1, output = 0.5, cached = 0.01 }",
            "price",
        ),
        (
            "id = \"ours\"\nprice = { input = 6.9, output = 9, cached = 1 }",
            "price",
        ),
        // An alias shadows the known model.
        (
            "id = \"claude-opus-5.5\"\nprice = { input = 0, output = 0, cached = 0 }",
            "claude-opus-5-5",
        ),
        ("id = \"claude-opus-5.5\"", "claude-opus-5-5"),
        ("id = \"opus\"", "claude-opus-5-5"),
        (
            "id = \"anthropic/claude-opus-5-5-20251101\"",
            "claude-opus-5-5",
        ),
        (
            "id = \"ours-latest\"\nprice = { input = 0, output = 0, cached = 0 }",
            "`ours`",
        ),
        // So does another model with its name.
        (
            "id = \"free\"\nprice = { input = 0, output = 0 }\naliases = [\"claude-opus-5-5\"]",
            "aliases",
        ),
        (
            "id = \"free\"\nprice = { input = 0, output = 0 }\naliases = [\"Opus\"]",
            "aliases",
        ),
        (
            "id = \"claude-haiku-5-5\"\naliases = [\"haiku\", \"opus\"]",
            "aliases",
        ),
        ("id = \"claude-opus-5-5\"\naliases = []", "aliases"),
    ] {
        let place = Place::new();
        place.user("config.toml", OWNERS);
        let before = place.config();
        place.project("unstuck.toml", &format!("[[models.model]]\n{text}\n"));
        let problems = place.problems();
        assert_eq!(problems.len(), 1, "{text}: {problems:?}");
        for part in [told, "only in your own configuration"] {
            assert!(problems[0].contains(part), "{text}: {problems:?}");
        }
        let now = unstuck_config::ConfigLoadResult::read(&place.layers())
            .unwrap()
            .config;
        for name in NAMES {
            assert_eq!(costs(&now, name), costs(&before, name), "{name} by {text}");
        }
    }
}

#[test]
fn project_may_add_models_and_raise_prices() {
    let place = Place::new();
    place.user("config.toml", OWNERS);
    place.project(
        "unstuck.toml",
        "[[models.model]]\nid = \"theirs\"\nprice = { input = 0.1, output = 0.5 }\naliases = [\"small\"]\n\
         [[models.model]]\nid = \"ours\"\ncontext = 5\nprice = { input = 8, output = 9, cached = 1 }\n\
         [[models.model]]\nid = \"claude-opus-5-5\"\ncontext = 5\naliases = [\"opus\", \"big\"]\n",
    );
    let config = place.config();
    assert_eq!(config.catalog().find("small").unwrap().id, "theirs");
    assert_eq!(config.catalog().find("big").unwrap().context, Some(5));
    let ours = config.catalog().find("ours").unwrap().price.clone();
    assert_eq!(ours.unwrap().input.to_string(), "8");
}

/// The owner's own file, and a file they name explicitly, may set any price.
#[test]
fn owner_may_lower_prices() {
    let text = "[[models.model]]\nid = \"claude-opus-5-5\"\nprice = { input = 1, output = 2 }\n";
    let place = Place::new();
    place.user("config.toml", text);
    let price = |config: &Config| {
        let model = config.catalog().find("opus").unwrap();
        model.price.as_ref().unwrap().output.to_string()
    };
    assert_eq!(price(&place.config()), "2");
    let place = Place::new();
    let named = place.path().join("named.toml");
    std::fs::write(&named, text).unwrap();
    let layers = ConfigLayers {
        explicit_file: Some(named),
        ..place.layers()
    };
    assert_eq!(price(&Config::load(&layers).unwrap()), "2");
}
