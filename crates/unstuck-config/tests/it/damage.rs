//! Damaged files are reported and never crash the program.

use proptest::prelude::*;
use unstuck_config::ConfigLoadResult;

use crate::{Place, role};

/// A text that resembles a configuration.
fn nearly() -> impl Strategy<Value = String> {
    let pieces = prop::sample::select(vec![
        "[run]\n",
        "[[role]]\n",
        "id = \"a\"\n",
        "agent = \"claude\"\n",
        "needs = [\"a\"]\n",
        "parallel = -9\n",
        "{\"role\": [",
        "{\"id\": 3}",
        "]}",
        "run:\n",
        "  task: &a x\n",
        "  - *a\n",
        "\t",
        "\u{feff}",
        "é\u{1F600}",
        "\"",
        "[policy]\n",
        "max_retries = nan\n",
        "until = \"x\"\n",
        "[loop]\n",
        "[prompts]\n",
        "a = \"{{ x\"\n",
        ",",
        "\r\n",
    ]);
    prop::collection::vec(
        prop_oneof![3 => pieces.prop_map(str::to_owned), 1 => ".{0,6}"],
        0..14,
    )
    .prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn any_file_is_read_or_reported_with_its_location(text in nearly(), format in 0..3_usize) {
        let name = ["unstuck.toml", "unstuck.json", "unstuck.yaml"][format];
        let place = Place::with(name, &text);
        let ConfigLoadResult { config, problems } = ConfigLoadResult::read(&place.layers()).unwrap();
        let lines = text.lines().count().max(1);
        for problem in problems.iter().chain(&config.check()) {
            let shown = problem.location.as_ref();
            prop_assert!(shown.is_none_or(|at| at.line <= lines + 1 && at.column >= 1), "{problem}");
            prop_assert!(!problem.message.is_empty());
        }
        let _ = config.resolved().to_toml_with_origins();
    }

    /// The displayed configuration is equivalent to the original.
    #[test]
    fn any_text_survives_display(prompt in "\\PC{0,40}[\\n\\t\"'\\\\]{0,4}\\PC{0,10}") {
        let quoted = serde_json::to_string(&prompt).unwrap().replace('\u{7f}', "\\u007f");
        let text = role("a", "").replace("\"Do {{ task }}\"", &quoted);
        let place = Place::with("unstuck.toml", &text);
        if place.load().is_err() {
            return Ok(());
        }
        let config = place.config();
        let again = Place::with("unstuck.toml", &config.resolved().to_toml()).config();
        prop_assert_eq!(again.roles(), config.roles());
    }
}

#[test]
fn deep_nesting_is_rejected() {
    for (name, text) in [
        (
            "unstuck.toml",
            format!("a = {}1{}", "[".repeat(5000), "]".repeat(5000)),
        ),
        (
            "unstuck.json",
            format!("{{\"a\": {}1{}}}", "[".repeat(5000), "]".repeat(5000)),
        ),
        (
            "unstuck.yaml",
            format!("a: {}1{}", "[".repeat(5000), "]".repeat(5000)),
        ),
    ] {
        assert!(!Place::with(name, &text).problems().is_empty(), "{name}");
    }
}
