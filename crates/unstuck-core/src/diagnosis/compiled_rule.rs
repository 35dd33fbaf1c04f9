//! Compiled rules: their patterns are in the pattern index, their conditions can be evaluated.

use std::sync::Arc;

use regex::bytes::Regex;
use serde_json::Value;

use super::pattern::{PatternError, TextPattern};
use super::pattern_index::{PatternId, PatternIndexBuilder, PatternMatches, TextSpan};
use super::prepared_failure::PreparedFailure;
use crate::failure::{FailureKind, FailureLayer};
use crate::knowledge::{
    DiagnosisRuleSpec, DiagnosisRunCondition, DiagnosisValuePattern, FailureTextSource,
};

/// A compiled rule.
#[derive(Debug)]
pub(crate) struct CompiledRule {
    pub(crate) kind: FailureKind,
    pub(crate) spec: Arc<DiagnosisRuleSpec>,
    pub(crate) rank: i32,
    streams: Vec<FailureTextSource>,
    any: Vec<PatternId>,
    all: Vec<PatternId>,
    none: Vec<PatternId>,
    /// For each field the patterns of its values, of which one must match.
    fields: Vec<Vec<PatternId>>,
    /// The patterns that capture the time to wait.
    pub(crate) waits: Vec<PatternId>,
    /// Patterns of which one must be found before the rule is tried; empty means always.
    triggers: Vec<PatternId>,
}

/// An HTTP status stated in a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct HttpStatusInText {
    pub(crate) status: u16,
    pub(crate) span: TextSpan,
}

/// The match of a rule.
pub(crate) struct RuleMatch {
    pub(crate) span: Option<TextSpan>,
    /// True if the status was only stated in a text.
    pub(crate) by_stated_status: bool,
}

impl CompiledRule {
    pub(crate) fn new(
        kind: FailureKind,
        spec: &Arc<DiagnosisRuleSpec>,
        builder: &mut PatternIndexBuilder,
    ) -> Result<Self, PatternError> {
        let any = add_all(&spec.any, builder)?;
        let all = add_all(&spec.all, builder)?;
        let none = add_all(&spec.none, builder)?;
        let fields = spec
            .field
            .iter()
            .map(|(name, wanted)| field_patterns(name, wanted, builder))
            .collect::<Result<Vec<_>, _>>()?;
        let triggers = match (any.is_empty(), fields.first(), all.first()) {
            (false, _, _) => any.clone(),
            (_, Some(first), _) => first.clone(),
            (_, _, Some(first)) => vec![*first],
            _ => json_triggers(spec, builder)?,
        };
        let captures = |source: &&String| source.contains("(?P<");
        let waits = add_all(spec.any.iter().chain(&spec.all).filter(captures), builder)?;
        // The finding of an output check is not the program's own text: only rules that ask for it read it.
        let streams = match spec.stream.as_slice() {
            [] => vec![
                FailureTextSource::Body,
                FailureTextSource::Stdout,
                FailureTextSource::Stderr,
            ],
            named => named.to_vec(),
        };
        Ok(Self {
            kind,
            spec: Arc::clone(spec),
            rank: spec.rank(),
            streams,
            waits,
            any,
            all,
            none,
            fields,
            triggers,
        })
    }

    /// Patterns of which one must be found before the rule is tried; empty means always.
    pub(crate) fn triggers(&self) -> &[PatternId] {
        &self.triggers
    }

    /// Matches a failure if all conditions hold.
    pub(crate) fn match_failure(
        &self,
        view: &PreparedFailure<'_>,
        seen: &PatternMatches<'_>,
        stated: &[HttpStatusInText],
    ) -> Option<RuleMatch> {
        if !self.is_applicable(view) || !self.conditions_hold(view) || !self.headers_hold(view) {
            return None;
        }
        let status = self.status_holds(view, stated)?;
        let streams = &self.streams;
        let find = |pattern: &PatternId| seen.find(*pattern, streams);
        let last = |patterns: &[PatternId]| {
            patterns
                .iter()
                .filter_map(find)
                .max_by_key(|place| (place.stream, place.range.start))
        };
        let mut place = None;
        if !self.any.is_empty() {
            place = Some(last(&self.any)?);
        }
        for alternatives in &self.fields {
            let found = last(alternatives)?;
            place = place.or(Some(found));
        }
        for pattern in &self.all {
            let found = find(pattern)?;
            place = place.or(Some(found));
        }
        if self.none.iter().any(|pattern| find(pattern).is_some()) || !self.documents_hold(view) {
            return None;
        }
        let by_stated_status = status.is_some();
        Some(RuleMatch {
            span: place.or(status),
            by_stated_status,
        })
    }

    /// Returns every match of the rule's patterns.
    pub(crate) fn match_spans<'s>(
        &'s self,
        seen: &'s PatternMatches<'_>,
    ) -> impl Iterator<Item = TextSpan> + 's {
        let patterns = self.any.iter().chain(&self.all);
        let patterns = patterns.chain(self.fields.iter().flatten());
        patterns.flat_map(move |pattern| seen.match_spans(*pattern, &self.streams))
    }

    fn is_applicable(&self, view: &PreparedFailure<'_>) -> bool {
        let (spec, failure) = (&self.spec, view.failure);
        let named = |list: &[String], name: Option<&String>| {
            list.is_empty()
                || name.is_some_and(|name| list.iter().any(|known| is_same_name(known, name)))
        };
        let of_layer =
            |layers: &[FailureLayer]| layers.is_empty() || layers.contains(&failure.layer);
        let on_success = spec.on_success && of_layer(&spec.success_layer);
        (on_success || !view.reports_success())
            && of_layer(&spec.layer)
            && named(&spec.provider, failure.provider.as_ref())
            && named(&spec.tool, failure.tool.as_ref())
            && (spec.exit_code.is_empty()
                || failure
                    .exit_code
                    .is_some_and(|code| spec.exit_code.contains(&code)))
            && (spec.signal.is_empty()
                || view
                    .signal()
                    .is_some_and(|signal| spec.signal.contains(&signal)))
    }

    fn conditions_hold(&self, view: &PreparedFailure<'_>) -> bool {
        let holds = |circumstance: &DiagnosisRunCondition| match circumstance {
            DiagnosisRunCondition::TimedOut => view.failure.timed_out,
            DiagnosisRunCondition::Invalid => !view.failure.validation_errors.is_empty(),
            DiagnosisRunCondition::DiffMissing => {
                view.failure.expects_diff
                    && view
                        .failure
                        .stdout
                        .as_ref()
                        .is_some_and(|text| !text.to_str().contains("diff --git"))
            }
            DiagnosisRunCondition::Succeeded => view.reports_success(),
        };
        self.spec.when.iter().all(holds)
            && self.spec.blank.iter().all(|stream| view.is_blank(*stream))
            && self.spec.empty.iter().all(|stream| view.is_empty(*stream))
    }

    fn headers_hold(&self, view: &PreparedFailure<'_>) -> bool {
        self.spec.header.iter().all(|(name, wanted)| {
            view.failure
                .headers
                .get(&name.to_ascii_lowercase())
                .is_some_and(|value| text_matches(wanted, value))
        })
    }

    /// Returns `Some(None)` if there is no such condition or the response's own status matches, else the place where a
    /// text states it.
    fn status_holds(
        &self,
        view: &PreparedFailure<'_>,
        stated: &[HttpStatusInText],
    ) -> Option<Option<TextSpan>> {
        let wanted = &self.spec.status;
        if wanted.is_empty()
            || view
                .failure
                .status
                .is_some_and(|status| wanted.contains(&status))
        {
            return Some(None);
        }
        stated
            .iter()
            .rev()
            .find(|stated| wanted.contains(&stated.status))
            .map(|stated| Some(stated.span.clone()))
    }

    fn documents_hold(&self, view: &PreparedFailure<'_>) -> bool {
        let wanted = &self.spec.json;
        wanted.is_empty()
            || view.documents().iter().any(|doc| {
                wanted
                    .iter()
                    .all(|(pointer, wanted)| pointer_matches(doc, pointer, wanted))
            })
    }
}

fn add_all<'s>(
    sources: impl IntoIterator<Item = &'s String>,
    builder: &mut PatternIndexBuilder,
) -> Result<Vec<PatternId>, PatternError> {
    let sources = sources.into_iter();
    sources.map(|source| builder.add(source)).collect()
}

/// Compares names, ignoring case; a known name also covers its variants (`gemini` covers `gemini-cli`).
pub(crate) fn is_same_name(known: &str, name: &str) -> bool {
    let (known, name) = (known.to_ascii_lowercase(), name.to_ascii_lowercase());
    let base = name.rsplit(['/', '\\']).next().unwrap_or(&name);
    base == known
        || base.strip_prefix(known.as_str()).is_some_and(|rest| {
            rest.starts_with(['-', '_', '.', '@'])
                || rest.bytes().all(|b| b.is_ascii_digit() || b == b'.')
        })
}

/// Returns triggers from required document values: these must appear in the text.
fn json_triggers(
    spec: &DiagnosisRuleSpec,
    builder: &mut PatternIndexBuilder,
) -> Result<Vec<PatternId>, PatternError> {
    let is_plain = |value: &Value| {
        value
            .as_str()
            .is_some_and(|text| text.len() >= 2 && !text.starts_with('/'))
    };
    match spec
        .json
        .values()
        .find(|wanted| wanted.alternatives().iter().all(is_plain))
    {
        Some(wanted) => wanted
            .alternatives()
            .iter()
            .filter_map(Value::as_str)
            .map(|text| builder.add(text))
            .collect(),
        None => Ok(Vec::new()),
    }
}

fn field_patterns(
    name: &str,
    wanted: &DiagnosisValuePattern,
    builder: &mut PatternIndexBuilder,
) -> Result<Vec<PatternId>, PatternError> {
    wanted
        .alternatives()
        .iter()
        .map(|value| field_pattern(name, value, builder))
        .collect()
}

fn field_pattern(
    name: &str,
    value: &Value,
    builder: &mut PatternIndexBuilder,
) -> Result<PatternId, PatternError> {
    let text = value
        .as_str()
        .map_or_else(|| value.to_string(), str::to_owned);
    let inner = text
        .strip_prefix('/')
        .and_then(|rest| rest.strip_suffix('/'));
    let (regex, literal) = match inner {
        Some(regex) => (
            regex.to_owned(),
            crate::regex_literals::required_literals(regex),
        ),
        None => (regex::escape(&text), Some(vec![text.to_ascii_lowercase()])),
    };
    let source = format!(
        r#"(?:^|[^a-z0-9])(?:{name})[\\"']*\s?(?::|=>?)\s?[\\"':]*(?:{regex})(?:$|[^a-z0-9_])"#
    );
    Ok(builder.add_pattern(TextPattern::regex(&source, literal)?))
}

fn pointer_matches(document: &Value, pointer: &str, wanted: &DiagnosisValuePattern) -> bool {
    let (head, rest) = match pointer.strip_prefix('/') {
        None => {
            return wanted
                .alternatives()
                .iter()
                .any(|wanted| value_matches(document, wanted));
        }
        Some(path) => path
            .split_once('/')
            .map_or((path, ""), |(head, _)| (head, &path[head.len()..])),
    };
    let next = |value: &Value| pointer_matches(value, rest, wanted);
    match document {
        Value::Object(object) if head == "*" => object.values().any(next),
        Value::Object(object) => object.get(head).is_some_and(next),
        Value::Array(items) if head == "*" => items.iter().any(next),
        Value::Array(items) => head
            .parse::<usize>()
            .ok()
            .and_then(|at| items.get(at))
            .is_some_and(next),
        _ => false,
    }
}

fn value_matches(value: &Value, wanted: &Value) -> bool {
    match (value, wanted) {
        (Value::Null, Value::String(any)) if any == "*" => false,
        (Value::Array(items), Value::String(any)) if any == "*" => !items.is_empty(),
        (_, Value::String(any)) if any == "*" => true,
        (Value::String(text), Value::String(wanted)) => text_matches(wanted, text),
        (Value::Number(number), Value::Number(wanted)) => number.as_f64() == wanted.as_f64(),
        (Value::String(text), Value::Number(wanted)) => *text == wanted.to_string(),
        (value, wanted) => value == wanted,
    }
}

/// Compares the whole text, ignoring case, or matches a regular expression between slashes.
fn text_matches(wanted: &str, text: &str) -> bool {
    match wanted
        .strip_prefix('/')
        .and_then(|rest| rest.strip_suffix('/'))
    {
        Some(regex) => {
            Regex::new(&format!("(?i){regex}")).is_ok_and(|regex| regex.is_match(text.as_bytes()))
        }
        None => text.eq_ignore_ascii_case(wanted),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn pointers_traverse_arrays_and_keys() {
        let doc = json!({"error":{"details":[{"a":1},{"reason":"QUOTA"}],"code":"429"}});
        let one = |value: Value| DiagnosisValuePattern::One(value);
        assert!(pointer_matches(
            &doc,
            "/error/details/*/reason",
            &one(json!("quota"))
        ));
        assert!(pointer_matches(
            &doc,
            "/error/details/1/reason",
            &one(json!("/^quo/"))
        ));
        assert!(pointer_matches(&doc, "/error/code", &one(json!(429))));
        assert!(pointer_matches(&doc, "/error", &one(json!("*"))));
        assert!(!pointer_matches(&doc, "/error/nope", &one(json!("*"))));
    }

    #[test]
    fn name_covers_its_variants() {
        assert!(
            is_same_name("python", "python3.11")
                && is_same_name("gemini", "gemini-cli")
                && is_same_name("bash", "/bin/bash")
        );
        assert!(!is_same_name("go", "goose"));
    }
}
