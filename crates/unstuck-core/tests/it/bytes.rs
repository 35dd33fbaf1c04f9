//! Invariants for any input: bytes, numbers, headers, and damaged texts of real failures.
//!
//! `UNSTUCK_CASES` is the number of cases per invariant; 2000 by default.

use std::sync::LazyLock;
use std::time::Duration;

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::{Index, select};
use unstuck_core::knowledge::DiagnosisKnowledge;
use unstuck_core::{
    Category, Classifier, ClockReading, Diagnosis, Failure, FailureKind, FailureLayer, Headers,
    LossyText, Timestamp,
};

use crate::damage::{damaged, each_text};
use crate::texts;

/// Maximum plausible wait; longer ones are misreadings.
const LONGEST: Duration = Duration::from_secs(400 * 24 * 3600);

#[expect(
    clippy::disallowed_methods,
    reason = "a test has no configuration to take the number from"
)]
pub(crate) fn laws() -> ProptestConfig {
    let cases = std::env::var("UNSTUCK_CASES")
        .ok()
        .and_then(|cases| cases.parse().ok())
        .unwrap_or(2000);
    ProptestConfig {
        cases,
        failure_persistence: None,
        ..ProptestConfig::default()
    }
}

/// Pieces that are relevant to the rules: their own patterns, and numbers and dates at the limits.
static PIECES: LazyLock<Vec<String>> = LazyLock::new(|| {
    let knowledge = DiagnosisKnowledge::built_in();
    let rules = knowledge.kinds.values().flat_map(|file| &file.rule);
    let patterns = rules.flat_map(|rule| rule.any.iter().chain(&rule.all).chain(&rule.none));
    let reading = &knowledge.text_rules;
    patterns
        .chain(&reading.wait)
        .chain(&reading.status)
        .chain(&reading.noise)
        .map(|pattern| pattern.trim_matches('/').replace(['\\', '?', '^'], ""))
        .chain(EDGES.iter().map(|edge| (*edge).to_owned()))
        .collect()
});

const EDGES: &[&str] = &[
    "try again in 99999999999999999999999999 hours",
    "try again in 0s",
    "Please retry after 0.0000000001 seconds",
    "\"retryDelay\": \"340282366920938463463374607431768211455s\"",
    "resets_at: 1999999999999.999",
    "\"resets_at\": 1000000000",
    "limit reached|1999999999",
    "resets 99:99",
    "resets 0am (Nowhere/Land)",
    "resets 2:30am (Europe/Berlin)",
    "resets at 2026-02-31 24:61",
    "resets at 0000-00-00T00:00:00Z",
    "resets Feb 29 at 13pm",
    "try again at tomorrow",
    "regain access on 9999-12-31 at 23:59 UTC",
    "HTTP/1.1 599",
    "status code: 999",
    "{\"type\":\"result\",\"is_error\":true,\"result\":",
    "{\"error\":{\"code\":429,\"message\":\"{\\\"error\\\":{\\\"x\\\":1}}\"}}",
    "data: {\"type\":\"error\"}\n",
    "{\"a\":[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[{}",
    "\\u",
    "\\ud800\"",
    "\u{1b}[",
    "\u{1b}]0;",
    "\u{feff}",
    "\u{2500}\u{2502}",
    "İſK",
    "\n",
    "\r",
    " ",
    "\"",
    "{",
    "}",
];

fn piece() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        4 => any::<Index>().prop_map(|at| at.get(PIECES.as_slice()).clone().into_bytes()),
        2 => vec(any::<u8>(), 0..40),
        1 => ".{0,20}".prop_map(String::into_bytes),
        1 => any::<f64>().prop_map(|number| number.to_string().into_bytes()),
    ]
}

fn text() -> impl Strategy<Value = Option<LossyText>> {
    let bytes = prop_oneof![
        vec(any::<u8>(), 0..300),
        vec(piece(), 0..8).prop_map(|pieces| pieces.concat()),
    ];
    option::weighted(0.6, bytes.prop_map(LossyText::from))
}

fn layer() -> impl Strategy<Value = FailureLayer> {
    select(vec![
        FailureLayer::Api,
        FailureLayer::Tool,
        FailureLayer::Agent,
        FailureLayer::Infra,
    ])
}

fn name() -> impl Strategy<Value = Option<String>> {
    let known = select(vec![
        "anthropic",
        "openai",
        "gemini",
        "claude",
        "codex",
        "grep",
        "git",
        "curl",
        "npm",
        "timeout",
        "cat",
    ]);
    option::of(prop_oneof![3 => known.prop_map(str::to_owned), 1 => ".{0,8}"])
}

fn headers() -> impl Strategy<Value = Headers> {
    let names = select(vec![
        "retry-after",
        "Retry-After-Ms",
        "x-ms-retry-after-ms",
        "x-amz-retry-after",
        "x-ratelimit-reset-tokens",
        "x-ratelimit-remaining-tokens",
        "anthropic-ratelimit-unified-reset",
        "anthropic-ratelimit-unified-status",
        "anthropic-ratelimit-tokens-reset",
        "x-codex-primary-reset-at",
        "x-codex-primary-used-percent",
        "x-amzn-errortype",
    ]);
    let values = prop_oneof![
        select(vec![
            "0", "-1", "NaN", "inf", "1e400", "6m0s", "rejected", "100"
        ])
        .prop_map(str::to_owned),
        any::<f64>().prop_map(|number| number.to_string()),
        any::<i64>().prop_map(|number| number.to_string()),
        (1_700_000_000_i64..1_900_000_000).prop_map(|epoch| epoch.to_string()),
        ".{0,12}",
    ];
    let names = prop_oneof![6 => names.prop_map(str::to_owned), 1 => ".{0,8}"];
    vec((names, values), 0..4).prop_map(|pairs| pairs.into_iter().collect())
}

fn number() -> impl Strategy<Value = Option<i32>> {
    option::of(prop_oneof![any::<i32>(), 0..260_i32])
}

prop_compose! {
    fn anything()(
        layer in layer(),
        names in (name(), name(), name()),
        status in option::of(prop_oneof![any::<u16>(), 100..600_u16]),
        headers in headers(),
        (exit_code, signal) in (number(), number()),
        (timed_out, expects_diff) in any::<(bool, bool)>(),
        (body, stdout, stderr) in (text(), text(), text()),
        checks in vec(piece(), 0..3),
    ) -> Failure {
        Failure {
            provider: names.0,
            tool: names.1,
            command: names.2,
            status,
            headers,
            body,
            exit_code,
            signal,
            timed_out,
            stdout,
            stderr,
            validation_errors: checks.iter().map(|check| String::from_utf8_lossy(check).into_owned()).collect(),
            expects_diff,
            ..Failure::new(layer)
        }
    }
}

fn any_moment() -> impl Strategy<Value = ClockReading> {
    let sensible = 1_700_000_000_000..1_900_000_000_000_i64;
    let moment = prop_oneof![4 => sensible, 1 => any::<i64>()].prop_map(Timestamp::from_millis);
    (moment, -90_000..90_000_i32).prop_map(|(at, east)| {
        ClockReading::at_offset(at, east).unwrap_or_else(|| ClockReading::utc(at))
    })
}

/// A second classifier, so that no cached state of the first can make two results equal.
static OTHER: LazyLock<Classifier> =
    LazyLock::new(|| Classifier::new(DiagnosisKnowledge::built_in().clone()).unwrap());

fn sound(failure: &Failure, now: &ClockReading) -> Result<(), TestCaseError> {
    let diagnosis = Classifier::built_in().diagnose(failure, now);
    let Diagnosis {
        kind, retry_after, ..
    } = diagnosis;
    prop_assert!((0.0..=1.0).contains(&diagnosis.confidence), "{diagnosis:?}");
    let has_no_level = matches!(kind.category(), Category::Code | Category::None);
    prop_assert_eq!(diagnosis.level.is_none(), has_no_level);
    if let Some(wait) = retry_after {
        prop_assert!(!wait.is_zero() && wait < LONGEST, "{diagnosis:?}");
        let passes = kind.category() == Category::Transient || kind == FailureKind::QuotaExhausted;
        prop_assert!(passes, "{diagnosis:?}");
    }
    prop_assert!(!diagnosis.message.is_empty() && !diagnosis.message.contains('\n'));
    prop_assert!(diagnosis.evidence.line.chars().count() <= 302);
    let named = diagnosis.fingerprint.split_once(':');
    prop_assert_eq!(named.map(|(name, _)| name), Some(kind.name()));
    prop_assert_eq!(diagnosis.layer, failure.layer);
    prop_assert_eq!(OTHER.diagnose(failure, now), diagnosis);
    Ok(())
}

proptest! {
    #![proptest_config(laws())]

    #[test]
    fn any_input_has_one_sound_diagnosis(failure in anything(), now in any_moment()) {
        sound(&failure, &now)?;
    }

    #[test]
    fn damaged_failure_has_one_sound_diagnosis(failure in damaged(), now in any_moment()) {
        sound(&failure, &now)?;
    }

    #[test]
    fn colors_do_not_change_the_kind(
        failure in select(texts::failures()),
        places in vec(any::<(Index, u8)>(), 1..6),
    ) {
        let mut coloured = failure.clone();
        each_text(&mut coloured, |text| {
            let mut shown = String::from_utf8(text.clone()).unwrap();
            for (at, colour) in &places {
                let mut at = at.index(shown.len() + 1);
                // Not within a character, and not within a color inserted before.
                while !shown.is_char_boundary(at) || unfinished_escape(&shown[..at]) {
                    at += 1;
                }
                shown.insert_str(at, &format!("\u{1b}[{colour}m"));
            }
            *text = shown.into_bytes();
        });
        prop_assert_eq!(super::kind(&coloured), super::kind(&failure), "{:?}", coloured);
    }

    #[test]
    fn line_ends_and_trailing_blanks_do_not_change_the_kind(
        failure in select(texts::failures()),
        blanks in "[ \t]{0,9}",
        windows in any::<bool>(),
        more in "[ \t\r\n]{0,9}",
    ) {
        let mut other = failure.clone();
        each_text(&mut other, |text| {
            let plain = String::from_utf8(text.clone()).unwrap().replace("\r\n", "\n");
            let end = format!("{blanks}{}", if windows { "\r\n" } else { "\n" });
            *text = format!("{}{more}", plain.replace('\n', &end)).into_bytes();
        });
        prop_assert_eq!(super::kind(&other), super::kind(&failure), "{:?}", other);
    }
}

fn unfinished_escape(text: &str) -> bool {
    text.rfind('\u{1b}')
        .is_some_and(|at| !text[at..].contains('m'))
}
