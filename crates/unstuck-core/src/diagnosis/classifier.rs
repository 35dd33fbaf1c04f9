//! Combines the rules and selects the one that explains a failure best.

use std::borrow::Cow;
use std::cmp::Reverse;
use std::sync::LazyLock;

use super::compiled_rule::{CompiledRule, HttpStatusInText, is_same_name};
use super::pattern_index::{
    PatternId, PatternIndex, PatternIndexBuilder, PatternMatches, TextSpan,
};
use super::prepared_failure::PreparedFailure;
use super::retry_after;
use super::scoring::{self, ScoredRule};
use super::{Diagnosis, Evidence, evidence_line, fingerprint};
use crate::failure::{Failure, FailureKind};
use crate::knowledge::{
    DiagnosisKnowledge, FailureTextSource, HiddenFailureLineRule, IgnoredLineRule, KnowledgeError,
};
use crate::time::ClockReading;

/// Classifies failures.
///
/// ```
/// use unstuck_core::{Classifier, Failure, FailureKind, ClockReading, Timestamp};
///
/// let now = ClockReading::utc(Timestamp::from_seconds(1_700_000_000));
/// let failure = Failure::api("openai").with_status(429).with_body(r#"{"error":{"code":"insufficient_quota"}}"#);
/// let diagnosis = Classifier::built_in().diagnose(&failure, &now);
/// assert_eq!(diagnosis.kind, FailureKind::QuotaExhausted);
/// ```
#[derive(Debug)]
pub struct Classifier {
    knowledge: Cow<'static, DiagnosisKnowledge>,
    pattern_index: PatternIndex,
    rules: Vec<CompiledRule>,
    /// Rules without text triggers, tried on every failure.
    untriggered_rules: Vec<usize>,
    /// Pairs of a trigger pattern and its rule, sorted by pattern.
    triggered: Vec<(PatternId, usize)>,
    admissions: Vec<CompiledAdmissions>,
    asides: Vec<CompiledAsides>,
    pointers: Vec<PatternId>,
    noise: Vec<PatternId>,
    status: Vec<PatternId>,
    waits: Vec<PatternId>,
}

/// Lines with which a run admits its failure.
#[derive(Debug)]
struct CompiledAdmissions {
    spec: HiddenFailureLineRule,
    any: Vec<PatternId>,
    none: Vec<PatternId>,
}

/// Lines that mention failures without reporting one.
#[derive(Debug)]
struct CompiledAsides {
    spec: IgnoredLineRule,
    any: Vec<PatternId>,
    none: Vec<PatternId>,
}

impl Classifier {
    /// Returns the classifier of the embedded knowledge.
    pub fn built_in() -> &'static Self {
        static BUILT_IN: LazyLock<Classifier> =
            LazyLock::new(|| match Classifier::new(DiagnosisKnowledge::built_in()) {
                Ok(classifier) => classifier,
                // The embedded rules are tested; only a build that skipped its tests can get here.
                Err(error) => unreachable!("embedded rules: {error}"),
            });
        &BUILT_IN
    }

    /// Compiles the rules of the knowledge.
    pub fn new(
        knowledge: impl Into<Cow<'static, DiagnosisKnowledge>>,
    ) -> Result<Self, KnowledgeError> {
        let knowledge = knowledge.into();
        let mut builder = PatternIndexBuilder::default();
        let mut rules = Vec::new();
        for (kind, file) in &knowledge.kinds {
            for spec in file.rule.iter().filter(|spec| !spec.disabled) {
                let place = || format!("kind `{kind}`, rule `{}`", spec.id);
                if let Some(problem) = spec.problem() {
                    return Err(KnowledgeError {
                        location: place(),
                        problem: problem.to_owned(),
                    });
                }
                rules.push(
                    CompiledRule::new(*kind, spec, &mut builder).map_err(|error| {
                        KnowledgeError {
                            location: place(),
                            problem: error.to_string(),
                        }
                    })?,
                );
            }
        }
        let in_reading = |error: super::PatternError| KnowledgeError {
            location: "text_rules.toml".into(),
            problem: error.to_string(),
        };
        let mut add = |sources: &[String]| {
            sources
                .iter()
                .map(|source| builder.add(source))
                .collect::<Result<Vec<_>, _>>()
                .map_err(in_reading)
        };
        let admissions = knowledge
            .text_rules
            .admission
            .iter()
            .map(|admission| {
                Ok(CompiledAdmissions {
                    spec: admission.clone(),
                    any: add(&admission.any)?,
                    none: add(&admission.none)?,
                })
            })
            .collect::<Result<Vec<_>, _>>()?;
        let mut asides = Vec::new();
        for spec in &knowledge.text_rules.ignored_lines {
            asides.push(CompiledAsides {
                spec: spec.clone(),
                any: add(&spec.any)?,
                none: add(&spec.none)?,
            });
        }
        let pointers = add(&knowledge.text_rules.pointer)?;
        let noise = add(&knowledge.text_rules.noise)?;
        let status = add(&knowledge.text_rules.status)?;
        let waits = add(&knowledge.text_rules.wait)?;
        let automaton = builder.build();
        let plain = (0..rules.len())
            .filter(|at| rules[*at].triggers().is_empty())
            .collect();
        let mut triggered: Vec<_> = rules
            .iter()
            .enumerate()
            .flat_map(|(at, rule)| rule.triggers().iter().map(move |id| (*id, at)))
            .collect();
        triggered.sort_unstable();
        Ok(Self {
            knowledge,
            pattern_index: automaton,
            rules,
            untriggered_rules: plain,
            triggered,
            admissions,
            asides,
            pointers,
            noise,
            status,
            waits,
        })
    }

    /// Compiles every pattern, which otherwise happens on first use, and returns the first error.
    pub fn check(&self) -> Result<(), KnowledgeError> {
        self.pattern_index.check().map_err(|error| KnowledgeError {
            location: "rules".into(),
            problem: error.to_string(),
        })
    }

    /// The knowledge of the classifier.
    pub fn knowledge(&self) -> &DiagnosisKnowledge {
        &self.knowledge
    }

    /// Returns the kind of a failure, the evidence, and when it may pass.
    pub fn diagnose(&self, failure: &Failure, now: &ClockReading) -> Diagnosis {
        let mut view = PreparedFailure::new(failure, &self.knowledge.text_rules);
        if view.reports_success() && self.admits_failure(&view) {
            view.admit_failure();
        }
        let seen = self.without_ignored_lines(self.pattern_index.scan(&view), &view);
        let stated = self.stated_statuses(&seen);
        let mut candidates = self.scored_rules(&view, &seen, &stated);
        let noisy = match_spans(&self.noise, &seen);
        scoring::rank_rules(&mut candidates, &view, &noisy);
        candidates.sort_by_key(|candidate| {
            Reverse((
                candidate.score,
                candidate.span.as_ref().map(|place| place.range.start),
            ))
        });
        self.conclude(&candidates, &view, &seen, now)
    }

    /// Removes the lines that mention failures without reporting one.
    fn without_ignored_lines<'a>(
        &self,
        seen: PatternMatches<'a>,
        view: &PreparedFailure<'_>,
    ) -> PatternMatches<'a> {
        let mut left_out: Vec<TextSpan> = Vec::new();
        for aside in &self.asides {
            let (layers, streams) = (&aside.spec.layer, &aside.spec.stream);
            if !layers.is_empty() && !layers.contains(&view.failure.layer) {
                continue;
            }
            let mut found = match_lines(&aside.any, &seen, view);
            found.retain(|line| streams.is_empty() || streams.contains(&line.stream));
            if !found.is_empty() {
                let counts = match_lines(&aside.none, &seen, view);
                found.retain(|line| !counts.contains(line));
            }
            left_out.append(&mut found);
        }
        if left_out.is_empty() {
            seen
        } else {
            seen.excluding_lines(&left_out)
        }
    }

    fn admits_failure(&self, view: &PreparedFailure<'_>) -> bool {
        let seen = self.pattern_index.scan(view);
        let counts = |admission: &&CompiledAdmissions| {
            let tools = &admission.spec.tool;
            admission.spec.layer.contains(&view.failure.layer)
                && (tools.is_empty()
                    || view
                        .failure
                        .tool
                        .as_ref()
                        .is_some_and(|name| tools.iter().any(|tool| is_same_name(tool, name))))
        };
        let finds = |patterns: &[PatternId], streams: &[FailureTextSource]| {
            let mut patterns = patterns.iter();
            patterns.any(|pattern| seen.find(*pattern, streams).is_some())
        };
        self.admissions.iter().filter(counts).any(|admission| {
            finds(&admission.any, &admission.spec.stream) && !finds(&admission.none, &[])
        })
    }

    fn stated_statuses(&self, seen: &PatternMatches<'_>) -> Vec<HttpStatusInText> {
        let captured = self
            .status
            .iter()
            .flat_map(|pattern| seen.captures(*pattern, &["status"]));
        let mut stated: Vec<_> = captured
            .filter_map(|(place, groups)| {
                Some(HttpStatusInText {
                    status: groups.first()?.1.parse().ok()?,
                    span: place,
                })
            })
            .collect();
        stated.sort_by_key(|stated| stated.span.range.start);
        stated
    }

    fn scored_rules<'c>(
        &'c self,
        view: &PreparedFailure<'_>,
        seen: &PatternMatches<'_>,
        stated: &[HttpStatusInText],
    ) -> Vec<ScoredRule<'c>> {
        let mut worth_trying = self.untriggered_rules.clone();
        for pattern in seen.hit_patterns() {
            let start = self.triggered.partition_point(|(id, _)| *id < pattern);
            worth_trying.extend(
                self.triggered[start..]
                    .iter()
                    .take_while(|(id, _)| *id == pattern)
                    .map(|(_, rule)| *rule),
            );
        }
        worth_trying.sort_unstable();
        worth_trying.dedup();
        let tried = worth_trying.into_iter().map(|at| &self.rules[at]);
        tried
            .filter_map(|rule| {
                rule.match_failure(view, seen, stated)
                    .map(|finding| scoring::score_rule(rule, finding, view))
            })
            .collect()
    }

    fn conclude(
        &self,
        candidates: &[ScoredRule<'_>],
        view: &PreparedFailure<'_>,
        seen: &PatternMatches<'_>,
        now: &ClockReading,
    ) -> Diagnosis {
        let best = candidates.first();
        let mut kind = best.map_or_else(
            || {
                if view.is_presumed_success() {
                    FailureKind::None
                } else {
                    FailureKind::Unknown
                }
            },
            |best| best.rule.kind,
        );
        let stated = retry_after::stated_wait(
            &self.waits,
            best.map(|best| best.rule),
            kind,
            view,
            seen,
            now,
        );
        if let Some(long) = &self.knowledge.kind(kind).long_wait
            && stated.is_some_and(|(wait, _)| wait.as_secs() > long.over_seconds)
        {
            kind = long.becomes;
        }
        let file = self.knowledge.kind(kind);
        let pointers = match_lines(&self.pointers, seen, view);
        let (line, at) = match best {
            Some(best) => {
                let alike = candidates
                    .iter()
                    .filter(|other| other.rule.kind == best.rule.kind);
                let others = alike.flat_map(|other| other.rule.match_spans(seen));
                evidence_line::evidence_line(best.span.as_ref(), others, &pointers, view)
            }
            None if kind == FailureKind::None => None,
            None => evidence_line::last_failure_line(view, &pointers),
        }
        .unwrap_or_default();
        let rule = best.map_or_else(
            || kind.name().to_owned(),
            |best| format!("{}/{}", best.rule.kind, best.rule.spec.id),
        );
        let reporter = view
            .failure
            .tool
            .as_deref()
            .or(view.failure.provider.as_deref())
            .unwrap_or_default();
        Diagnosis {
            kind,
            layer: view.failure.layer,
            level: best
                .and_then(|best| best.rule.spec.level)
                .or_else(|| file.level(kind, view.failure.layer)),
            confidence: scoring::confidence(candidates, view),
            retry_after: stated.map(|(wait, _)| wait),
            retry_after_source: stated.map(|(_, source)| source),
            fingerprint: fingerprint::fingerprint(
                kind,
                reporter,
                if line.is_empty() { &rule } else { &line },
                at,
            ),
            message: evidence_line::summary_sentence(
                &file.title,
                reporter,
                &evidence_line::excerpt_around(&line, at),
            ),
            hint: file.hint_for(view.failure),
            evidence: Evidence {
                rule,
                line: evidence_line::excerpt_around(&line, at),
            },
            truncated: candidates
                .iter()
                .any(|candidate| candidate.rule.spec.truncated),
        }
    }
}

/// Returns every match of the patterns.
fn match_spans(patterns: &[PatternId], seen: &PatternMatches<'_>) -> Vec<TextSpan> {
    let found = patterns.iter();
    let found = found.flat_map(|pattern| seen.captures(*pattern, &[]));
    found.map(|(place, _)| place).collect()
}

/// Returns the lines on which one of the patterns matches.
fn match_lines(
    patterns: &[PatternId],
    seen: &PatternMatches<'_>,
    view: &PreparedFailure<'_>,
) -> Vec<TextSpan> {
    let line = |place: TextSpan| {
        let range = view.text(place.stream)?.line_range(&place.range);
        let stream = place.stream;
        Some(TextSpan { stream, range })
    };
    match_spans(patterns, seen)
        .into_iter()
        .filter_map(line)
        .collect()
}

#[cfg(test)]
mod tests;
