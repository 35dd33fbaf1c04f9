//! Puts the rules together and picks the one that explains a failure best.

use std::borrow::Cow;
use std::cmp::Reverse;
use std::sync::LazyLock;

use super::automaton::{Automaton, Builder, PatternId, Place, Sightings};
use super::rule::{Rule, StatedStatus, is_same_name};
use super::view::View;
use super::wait;
use super::weigh::{self, Candidate};
use super::{Diagnosis, Evidence, evidence, fingerprint};
use crate::failure::{Failure, Kind};
use crate::knowledge::{Admission, Aside, Knowledge, KnowledgeError, Stream};
use crate::moment::Now;

/// Tells what kind of failure it is.
///
/// ```
/// use unstuck_core::{Classifier, Failure, Kind, Now, Timestamp};
///
/// let now = Now::utc(Timestamp::from_seconds(1_700_000_000));
/// let failure = Failure::api("openai").with_status(429).with_body(r#"{"error":{"code":"insufficient_quota"}}"#);
/// let diagnosis = Classifier::built_in().diagnose(&failure, &now);
/// assert_eq!(diagnosis.kind, Kind::QuotaExhausted);
/// ```
#[derive(Debug)]
pub struct Classifier {
    knowledge: Cow<'static, Knowledge>,
    automaton: Automaton,
    rules: Vec<Rule>,
    /// Rules that need no text: they are tried on every failure.
    plain: Vec<usize>,
    /// For each pattern that triggers rules, those rules; sorted by pattern.
    triggered: Vec<(PatternId, usize)>,
    admissions: Vec<Admissions>,
    asides: Vec<Asides>,
    pointers: Vec<PatternId>,
    noise: Vec<PatternId>,
    status: Vec<PatternId>,
    waits: Vec<PatternId>,
}

/// Lines with which a run admits that it failed.
#[derive(Debug)]
struct Admissions {
    spec: Admission,
    any: Vec<PatternId>,
    none: Vec<PatternId>,
}

/// Lines that talk of failures without reporting one.
#[derive(Debug)]
struct Asides {
    spec: Aside,
    any: Vec<PatternId>,
    none: Vec<PatternId>,
}

impl Classifier {
    /// The classifier of the embedded knowledge.
    pub fn built_in() -> &'static Self {
        static BUILT_IN: LazyLock<Classifier> =
            LazyLock::new(|| match Classifier::new(Knowledge::built_in()) {
                Ok(classifier) => classifier,
                // The embedded rules are tested; this can only be reached by a build that skipped its tests.
                Err(error) => unreachable!("embedded rules: {error}"),
            });
        &BUILT_IN
    }

    /// Compiles the rules of some knowledge.
    pub fn new(knowledge: impl Into<Cow<'static, Knowledge>>) -> Result<Self, KnowledgeError> {
        let knowledge = knowledge.into();
        let mut builder = Builder::default();
        let mut rules = Vec::new();
        for (kind, file) in &knowledge.kinds {
            for spec in file.rule.iter().filter(|spec| !spec.disabled) {
                let place = || format!("kind `{kind}`, rule `{}`", spec.id);
                if let Some(problem) = spec.problem() {
                    return Err(KnowledgeError {
                        place: place(),
                        problem: problem.to_owned(),
                    });
                }
                rules.push(Rule::new(*kind, spec, &mut builder).map_err(|error| {
                    KnowledgeError {
                        place: place(),
                        problem: error.to_string(),
                    }
                })?);
            }
        }
        let in_reading = |error: super::PatternError| KnowledgeError {
            place: "reading.toml".into(),
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
            .reading
            .admission
            .iter()
            .map(|admission| {
                Ok(Admissions {
                    spec: admission.clone(),
                    any: add(&admission.any)?,
                    none: add(&admission.none)?,
                })
            })
            .collect::<Result<Vec<_>, _>>()?;
        let mut asides = Vec::new();
        for spec in &knowledge.reading.aside {
            asides.push(Asides {
                spec: spec.clone(),
                any: add(&spec.any)?,
                none: add(&spec.none)?,
            });
        }
        let pointers = add(&knowledge.reading.pointer)?;
        let noise = add(&knowledge.reading.noise)?;
        let status = add(&knowledge.reading.status)?;
        let waits = add(&knowledge.reading.wait)?;
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
            automaton,
            rules,
            plain,
            triggered,
            admissions,
            asides,
            pointers,
            noise,
            status,
            waits,
        })
    }

    /// Compiles every pattern, which otherwise happens when it is first needed, and tells what is wrong.
    pub fn check(&self) -> Result<(), KnowledgeError> {
        self.automaton.check().map_err(|error| KnowledgeError {
            place: "rules".into(),
            problem: error.to_string(),
        })
    }

    /// What the classifier knows.
    pub fn knowledge(&self) -> &Knowledge {
        &self.knowledge
    }

    /// Tells what kind of failure it is, why, and when it may pass.
    pub fn diagnose(&self, failure: &Failure, now: &Now) -> Diagnosis {
        let mut view = View::new(failure, &self.knowledge.reading);
        if view.succeeded() && self.admits_failure(&view) {
            view.admit_failure();
        }
        let seen = self.without_asides(self.automaton.scan(&view), &view);
        let stated = self.stated_statuses(&seen);
        let mut candidates = self.candidates(&view, &seen, &stated);
        let noisy = places(&self.noise, &seen);
        weigh::weigh(&mut candidates, &view, &noisy);
        candidates.sort_by_key(|candidate| {
            Reverse((
                candidate.score,
                candidate.place.as_ref().map(|place| place.range.start),
            ))
        });
        self.conclude(&candidates, &view, &seen, now)
    }

    /// Leaves out the lines that talk of failures without reporting one.
    fn without_asides<'a>(&self, seen: Sightings<'a>, view: &View<'_>) -> Sightings<'a> {
        let mut left_out: Vec<Place> = Vec::new();
        for aside in &self.asides {
            let (layers, streams) = (&aside.spec.layer, &aside.spec.stream);
            if !layers.is_empty() && !layers.contains(&view.failure.layer) {
                continue;
            }
            let mut found = lines(&aside.any, &seen, view);
            found.retain(|line| streams.is_empty() || streams.contains(&line.stream));
            if !found.is_empty() {
                let counts = lines(&aside.none, &seen, view);
                found.retain(|line| !counts.contains(line));
            }
            left_out.append(&mut found);
        }
        if left_out.is_empty() {
            seen
        } else {
            seen.without(&left_out)
        }
    }

    fn admits_failure(&self, view: &View<'_>) -> bool {
        let seen = self.automaton.scan(view);
        let counts = |admission: &&Admissions| {
            let tools = &admission.spec.tool;
            admission.spec.layer.contains(&view.failure.layer)
                && (tools.is_empty()
                    || view
                        .failure
                        .tool
                        .as_ref()
                        .is_some_and(|name| tools.iter().any(|tool| is_same_name(tool, name))))
        };
        let finds = |patterns: &[PatternId], streams: &[Stream]| {
            let mut patterns = patterns.iter();
            patterns.any(|pattern| seen.find(*pattern, streams).is_some())
        };
        self.admissions.iter().filter(counts).any(|admission| {
            finds(&admission.any, &admission.spec.stream) && !finds(&admission.none, &[])
        })
    }

    fn stated_statuses(&self, seen: &Sightings<'_>) -> Vec<StatedStatus> {
        let captured = self
            .status
            .iter()
            .flat_map(|pattern| seen.captures(*pattern, &["status"]));
        let mut stated: Vec<_> = captured
            .filter_map(|(place, groups)| {
                Some(StatedStatus {
                    status: groups.first()?.1.parse().ok()?,
                    place,
                })
            })
            .collect();
        stated.sort_by_key(|stated| stated.place.range.start);
        stated
    }

    fn candidates<'c>(
        &'c self,
        view: &View<'_>,
        seen: &Sightings<'_>,
        stated: &[StatedStatus],
    ) -> Vec<Candidate<'c>> {
        let mut worth_trying = self.plain.clone();
        for pattern in seen.seen() {
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
                rule.holds(view, seen, stated)
                    .map(|finding| weigh::candidate(rule, finding, view))
            })
            .collect()
    }

    fn conclude(
        &self,
        candidates: &[Candidate<'_>],
        view: &View<'_>,
        seen: &Sightings<'_>,
        now: &Now,
    ) -> Diagnosis {
        let best = candidates.first();
        let mut kind = best.map_or_else(
            || {
                if view.ended_well() {
                    Kind::None
                } else {
                    Kind::Unknown
                }
            },
            |best| best.rule.kind,
        );
        let stated = wait::stated(
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
        let pointers = lines(&self.pointers, seen, view);
        let (line, at) = match best {
            Some(best) => {
                let alike = candidates
                    .iter()
                    .filter(|other| other.rule.kind == best.rule.kind);
                let others = alike.flat_map(|other| other.rule.places(seen));
                evidence::line_at(best.place.as_ref(), others, &pointers, view)
            }
            None if kind == Kind::None => None,
            None => evidence::last_line(view, &pointers),
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
            confidence: weigh::confidence(candidates, view),
            retry_after: stated.map(|(wait, _)| wait),
            retry_after_source: stated.map(|(_, source)| source),
            fingerprint: fingerprint::fingerprint(
                kind,
                reporter,
                if line.is_empty() { &rule } else { &line },
                at,
            ),
            message: evidence::message(&file.title, reporter, &evidence::around(&line, at)),
            hint: file.hint_for(view.failure),
            evidence: Evidence {
                rule,
                line: evidence::around(&line, at),
            },
            truncated: candidates
                .iter()
                .any(|candidate| candidate.rule.spec.truncated),
        }
    }
}

/// Every place at which one of the patterns matches.
fn places(patterns: &[PatternId], seen: &Sightings<'_>) -> Vec<Place> {
    let found = patterns.iter();
    let found = found.flat_map(|pattern| seen.captures(*pattern, &[]));
    found.map(|(place, _)| place).collect()
}

/// The lines on which one of the patterns matches.
fn lines(patterns: &[PatternId], seen: &Sightings<'_>, view: &View<'_>) -> Vec<Place> {
    let line = |place: Place| {
        let range = view.screen(place.stream)?.lines_of(&place.range);
        let stream = place.stream;
        Some(Place { stream, range })
    };
    places(patterns, seen)
        .into_iter()
        .filter_map(line)
        .collect()
}

#[cfg(test)]
mod tests;
