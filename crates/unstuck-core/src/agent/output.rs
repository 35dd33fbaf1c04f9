//! Reads the output of an agent's run.

use std::borrow::Cow;
use std::collections::BTreeMap;

use regex::Regex;
use serde::Serialize;
use serde_json::Value;

use super::Agent;
use super::agent_file::{OutputValueSource, ValueSelection};
use super::conversation_id::is_conversation_id;
use super::json_path::{find_in_broken_json, json_records, values_at};
use super::stream_events::AgentEvent;
use crate::decision::TokenUsage;

/// The values found in an agent's output; missing ones are none.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct ParsedAgentOutput {
    /// The final answer; all of the output if it is not JSON. None if JSON contains no answer.
    pub text: Option<String>,
    /// The conversation id, for resuming; none if it is [not usable as one](is_conversation_id).
    pub session: Option<String>,
    /// The model that answered.
    pub model: Option<String>,
    /// The cost in USD.
    pub cost_usd: Option<f64>,
    /// The tokens used.
    pub tokens: Option<TokenUsage>,
    /// The number of model calls.
    pub turns: Option<u32>,
    /// The length of the conversation in tokens, after its latest request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context_tokens: Option<u64>,
    /// True if the output is JSON that ends before the run was finished.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_unfinished: bool,
}

impl Agent {
    /// Reads JSON, JSON lines or plain text, even if parts are missing.
    ///
    /// ```
    /// use unstuck_core::agent::Agents;
    ///
    /// let claude = Agents::built_in().get("claude").ok_or("unknown")?;
    /// let report = claude.read_output(r#"{"type":"result","result":"Done.","session_id":"11-22"}"#, "");
    /// assert_eq!(report.text.as_deref(), Some("Done."));
    /// assert_eq!(report.session.as_deref(), Some("11-22"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn read_output(&self, stdout: &str, stderr: &str) -> ParsedAgentOutput {
        let seen = RawOutput::new(stdout, stderr);
        let sources = &self.file.output;
        let mut report = ParsedAgentOutput {
            text: seen.find_answer(&sources.text),
            session: seen.find_text(&sources.session),
            model: seen.find_text(&sources.model),
            cost_usd: seen.find_number(&sources.cost_usd),
            tokens: None,
            turns: seen.find_number(&sources.turns).map(|turns| turns as u32),
            context_tokens: seen
                .find_number(&sources.context_tokens)
                .map(|count| count.max(0.0) as u64),
            is_unfinished: false,
        };
        let [input, output, cached] = [
            &sources.input_tokens,
            &sources.output_tokens,
            &sources.cached_tokens,
        ]
        .map(|sources| seen.find_number(sources).map(|count| count.max(0.0) as u64));
        if input.or(output).is_some() {
            report.tokens = Some(TokenUsage {
                input: input.unwrap_or(0),
                cached: cached.unwrap_or(0),
                output: output.unwrap_or(0),
                requests: u64::from(report.turns.unwrap_or(0)),
            });
        }
        let told_by_json =
            report.session.is_some() || report.cost_usd.is_some() || report.tokens.is_some();
        let is_its_json = seen.looks_like_json() && told_by_json;
        // Everything that the agent runs may print one.
        report.session = report.session.filter(|id| is_conversation_id(id));
        if report.text.is_none() && !is_its_json {
            report.text = Some(stdout.to_owned());
        }
        report.is_unfinished = is_its_json && !seen.has_end(&sources.end);
        report
    }
}

impl Agent {
    /// Returns true if the output says that the conversation to continue does not exist.
    pub fn reports_missing_conversation(&self, stdout: &str, stderr: &str) -> bool {
        let missing = self.file.session.missing.iter();
        let mut missing = missing.filter(|words| !words.is_empty());
        missing.any(|words| stderr.contains(words.as_str()) || stdout.contains(words.as_str()))
    }

    /// Returns the step at which an unfinished output ends, as far as it shows: the last call, and whether its result
    /// had arrived.
    pub fn unfinished_step(&self, stdout: &str) -> Option<String> {
        let mut open: Vec<(String, String)> = Vec::new();
        let mut last = None;
        let doings = json_records(stdout)
            .iter()
            .flat_map(|record| self.events_in(record))
            .collect::<Vec<_>>();
        for doing in doings {
            match doing {
                AgentEvent::CallStarted { id, call } => open.push((id, call.summary())),
                AgentEvent::CallFinished { id, .. } => {
                    let at = open.iter().position(|(called, _)| *called == id);
                    last = at.map(|at| open.remove(at).1).or(last);
                }
                AgentEvent::CompletedCall(call, _) => last = Some(call.summary()),
                AgentEvent::Message { .. } => {}
            }
        }
        match (open.pop(), last) {
            (Some((_, call)), _) => Some(format!("{call}, which returned no result")),
            (None, Some(call)) => Some(format!("the step after {call}, whose result was received")),
            (None, None) => None,
        }
    }
}

/// The raw output.
struct RawOutput<'t> {
    stdout: &'t str,
    stderr: &'t str,
    /// JSON objects of stdout, then of stderr.
    records: Vec<Value>,
    /// Number of objects from stdout.
    stdout_records: usize,
}

impl<'t> RawOutput<'t> {
    fn new(stdout: &'t str, stderr: &'t str) -> Self {
        let mut records_seen = json_records(stdout);
        let stdout_records = records_seen.len();
        records_seen.extend(json_records(stderr));
        Self {
            stdout,
            stderr,
            records: records_seen,
            stdout_records,
        }
    }

    /// Returns true if stdout is JSON, possibly broken.
    fn looks_like_json(&self) -> bool {
        self.stdout_records > 0 || self.stdout.trim_start().starts_with('{')
    }

    /// Returns true if one of the objects ends a run; if none is defined, every output is complete.
    fn has_end(&self, ends: &[BTreeMap<String, String>]) -> bool {
        let is_end = |record: &Value| ends.iter().any(|when| matches_conditions(record, when));
        ends.is_empty() || self.records.iter().any(is_end)
    }

    /// Finds the answer, which is never on stderr.
    fn find_answer(&self, sources: &[OutputValueSource]) -> Option<String> {
        let records = &self.records[..self.stdout_records];
        sources.iter().find_map(|source| {
            let found: Vec<String> = matching_records(records, source)
                .map(|record| record_texts(record, source).concat())
                .filter(|text| !text.is_empty() || source.selection != ValueSelection::All)
                .collect();
            let found: Vec<String> = match found.iter().rposition(|text| !text.is_empty()) {
                Some(last) if source.selection == ValueSelection::Last => vec![found[last].clone()],
                _ => found,
            };
            select_values(found, source.selection).map(|texts| texts.concat())
        })
    }

    fn find_text(&self, sources: &[OutputValueSource]) -> Option<String> {
        let values = sources.iter().find_map(|source| {
            let found = matching_records(&self.records, source)
                .flat_map(|record| record_texts(record, source));
            select_values(found.collect(), source.selection)
                .or_else(|| self.match_plain_text(source))
        });
        let found = values.map(|texts| texts.concat());
        found.or_else(|| {
            self.find_in_broken_json(sources)?
                .as_str()
                .map(str::to_owned)
        })
    }

    fn find_number(&self, sources: &[OutputValueSource]) -> Option<f64> {
        let values = sources.iter().find_map(|source| {
            let found: Vec<f64> = matching_records(&self.records, source)
                .filter_map(|record| record_number(record, source))
                .collect();
            select_values(found, source.selection).or_else(|| {
                let texts = self.match_plain_text(source)?;
                texts.iter().map(|text| parse_human_number(text)).collect()
            })
        });
        let sum = values.map(|numbers| numbers.iter().sum());
        sum.or_else(|| self.find_in_broken_json(sources)?.as_f64())
    }

    /// Returns the matches of a regex in plain text.
    fn match_plain_text(&self, source: &OutputValueSource) -> Option<Vec<String>> {
        let regex = Regex::new(source.matches.as_deref()?).ok()?;
        let found = [self.stdout, self.stderr].into_iter().flat_map(|text| {
            let groups = regex.captures_iter(text).filter_map(|found| found.get(1));
            groups
                .map(|group| group.as_str().to_owned())
                .collect::<Vec<_>>()
        });
        select_values(found.collect(), source.selection)
    }

    /// Finds a value by its key alone in JSON that is too broken to be parsed.
    fn find_in_broken_json(&self, sources: &[OutputValueSource]) -> Option<Value> {
        let is_broken = self.stdout_records == 0 && self.stdout.trim_start().starts_with('{');
        let paths = sources
            .iter()
            .filter(|source| source.at.len() == 1 && source.subtract.is_empty());
        let mut keys = paths.filter_map(|source| source.at[0].rsplit('/').next());
        is_broken.then(|| keys.find_map(|key| find_in_broken_json(self.stdout, key)))?
    }
}

fn matching_records<'r>(
    records: &'r [Value],
    source: &'r OutputValueSource,
) -> impl Iterator<Item = &'r Value> {
    let fits = |record: &Value| matches_conditions(record, &source.when);
    let last = records.iter().rev().find(|record| fits(record));
    let same = source.same_as_last.as_deref().zip(last);
    let same = same.map(|(path, last)| (path, values_at(last, path)));
    records.iter().filter(move |record| {
        let is_same =
            |(path, wanted): &(&str, Vec<Cow<'r, Value>>)| values_at(record, path) == *wanted;
        !source.at.is_empty() && fits(record) && same.as_ref().is_none_or(is_same)
    })
}

/// Returns true if an object has these values at these paths.
fn matches_conditions(record: &Value, when: &BTreeMap<String, String>) -> bool {
    when.iter().all(|(path, wanted)| {
        let found = values_at(record, path);
        found
            .iter()
            .any(|value| wanted == "*" || value.as_str() == Some(wanted))
    })
}

fn record_texts(record: &Value, source: &OutputValueSource) -> Vec<String> {
    let values = source.at.iter().flat_map(|path| values_at(record, path));
    values
        .filter_map(|value| value.as_str().map(str::to_owned))
        .collect()
}

fn record_number(record: &Value, source: &OutputValueSource) -> Option<f64> {
    let all = |paths: &[String]| -> Vec<f64> {
        let values = paths.iter().flat_map(|path| values_at(record, path));
        values.filter_map(|value| value.as_f64()).collect()
    };
    let found = all(&source.at);
    (!found.is_empty())
        .then(|| found.iter().sum::<f64>() - all(&source.subtract).iter().sum::<f64>())
}

fn select_values<T>(mut found: Vec<T>, take: ValueSelection) -> Option<Vec<T>> {
    match take {
        ValueSelection::First => found.truncate(1),
        ValueSelection::Last => drop(found.drain(..found.len().saturating_sub(1))),
        ValueSelection::All => {}
    }
    (!found.is_empty()).then_some(found)
}

/// Parses a human-readable number: `1,234`, `2.4k`.
fn parse_human_number(text: &str) -> Option<f64> {
    let (digits, times) = match text.strip_suffix('k') {
        Some(digits) => (digits, 1e3),
        None => text
            .strip_suffix('M')
            .map_or((text, 1.0), |digits| (digits, 1e6)),
    };
    let number: f64 = digits.replace(',', "").trim_end_matches('.').parse().ok()?;
    Some((number * times * 1e6).round() / 1e6)
}
