//! Puts the rules together and picks the one that explains a failure best.

use std::borrow::Cow;
use std::cmp::Reverse;
use std::sync::LazyLock;

use super::automaton::{Automaton, Builder, PatternId, Place, Sightings};
use super::rule::{Finding, Rule, StatedStatus, is_same_name};
use super::view::View;
use super::wait::{self, Waits};
use super::{Diagnosis, Evidence, fingerprint, loose};
use crate::failure::{Failure, Kind};
use crate::knowledge::{Admission, Knowledge, KnowledgeError, Stream};
use crate::moment::Now;

/// What a rule loses for a match on a line that only warns.
const NOISE: i32 = 30;
/// What a rule loses for a match inside a path or an address: a file called `timeout.rs` is no timeout.
const IN_A_PATH: i32 = 25;
/// What a rule loses at most for a match that was followed by others much later.
const EARLY: usize = 20;
/// What a rule loses if only the text states the status.
const STATED: i32 = 3;
/// A line of evidence is cut to this many characters.
const MAX_LINE: usize = 300;

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
    admissions: Vec<(Admission, Vec<PatternId>)>,
    noise: Vec<PatternId>,
    status: Vec<PatternId>,
    waits: Waits,
}

struct Candidate<'c> {
    rule: &'c Rule,
    place: Option<Place>,
    line_number: usize,
    score: i32,
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
            .map(|admission| Ok((admission.clone(), add(&admission.any)?)))
            .collect::<Result<Vec<_>, _>>()?;
        let noise = add(&knowledge.reading.noise)?;
        let status = add(&knowledge.reading.status)?;
        let waits = Waits::new(add(&knowledge.reading.wait)?);
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
        let seen = self.automaton.scan(&view);
        let stated = self.stated_statuses(&seen);
        let mut candidates = self.candidates(&view, &seen, &stated);
        self.weigh(&mut candidates, &view, &seen);
        candidates.sort_by_key(|candidate| {
            Reverse((
                candidate.score,
                candidate.place.as_ref().map(|place| place.range.start),
            ))
        });
        self.conclude(&candidates, &view, &seen, now)
    }

    fn admits_failure(&self, view: &View<'_>) -> bool {
        let seen = self.automaton.scan(view);
        let counts = |admission: &&(Admission, Vec<PatternId>)| {
            let tools = &admission.0.tool;
            admission.0.layer.contains(&view.failure.layer)
                && (tools.is_empty()
                    || view
                        .failure
                        .tool
                        .as_ref()
                        .is_some_and(|name| tools.iter().any(|tool| is_same_name(tool, name))))
        };
        self.admissions
            .iter()
            .filter(counts)
            .any(|(admission, patterns)| {
                patterns
                    .iter()
                    .any(|pattern| seen.find(*pattern, &admission.stream).is_some())
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
                    .map(|finding| candidate(rule, finding, view))
            })
            .collect()
    }

    /// The last error in a log wins over early noise, unless the earlier one explains more.
    fn weigh(&self, candidates: &mut [Candidate<'_>], view: &View<'_>, seen: &Sightings<'_>) {
        let noisy: Vec<Place> = self
            .noise
            .iter()
            .flat_map(|pattern| seen.captures(*pattern, &[]).map(|(place, _)| place))
            .collect();
        let mut last_line = [0_usize; Stream::ALL.len()];
        for candidate in candidates.iter() {
            if let Some(place) = &candidate.place {
                let last = &mut last_line[place.stream as usize];
                *last = (*last).max(candidate.line_number);
            }
        }
        for candidate in candidates {
            let (Some(place), Some(screen)) = (
                &candidate.place,
                candidate
                    .place
                    .as_ref()
                    .and_then(|place| view.screen(place.stream)),
            ) else {
                continue;
            };
            let early = (last_line[place.stream as usize] - candidate.line_number) / 2;
            candidate.score -= i32::try_from(early.min(EARLY)).unwrap_or(0);
            let line = screen.lines_of(&place.range);
            if !candidate.rule.spec.on_warning
                && noisy
                    .iter()
                    .any(|noise| noise.stream == place.stream && line.contains(&noise.range.start))
            {
                candidate.score -= NOISE;
            }
            if screen.is_inside_a_path(&place.range) {
                candidate.score -= IN_A_PATH;
            }
        }
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
            best.map(|best| &*best.rule.spec),
            kind,
            view,
            seen,
            now,
        );
        if let Some(long) = &self.knowledge.kind(kind).long_wait
            && stated.is_some_and(|wait| wait.as_secs() > long.over_seconds)
        {
            kind = long.becomes;
        }
        let file = self.knowledge.kind(kind);
        let (line, at) = match best {
            Some(best) => evidence_line(best, view),
            None if kind == Kind::None => None,
            None => last_line(view),
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
            level: file.level(kind, view.failure.layer),
            confidence: confidence(candidates, view),
            retry_after: stated,
            fingerprint: fingerprint::fingerprint(
                kind,
                reporter,
                if line.is_empty() { &rule } else { &line },
                at,
            ),
            message: message(&file.title, reporter, &around(&line, at)),
            hint: file.hint.clone(),
            evidence: Evidence {
                rule,
                line: around(&line, at),
            },
            truncated: candidates
                .iter()
                .any(|candidate| candidate.rule.spec.truncated),
        }
    }
}

fn candidate<'c>(rule: &'c Rule, finding: Finding, view: &View<'_>) -> Candidate<'c> {
    let line_number = finding.place.as_ref().and_then(|place| {
        view.screen(place.stream)
            .map(|screen| screen.line_number(place.range.start))
    });
    let score = rule.rank - if finding.by_stated_status { STATED } else { 0 };
    Candidate {
        rule,
        place: finding.place,
        line_number: line_number.unwrap_or(0),
        score,
    }
}

/// By the weight of the rule, less if another kind explains it nearly as well.
fn confidence(candidates: &[Candidate<'_>], view: &View<'_>) -> f32 {
    let Some(best) = candidates.first() else {
        return if view.ended_well() { 0.9 } else { 0.2 };
    };
    let own = best.rule.spec.confidence.unwrap_or(match best.score {
        75.. => 0.95,
        50.. => 0.85,
        30.. => 0.7,
        20.. => 0.6,
        _ => 0.4,
    });
    let rival = candidates
        .iter()
        .find(|candidate| candidate.rule.kind != best.rule.kind);
    if rival.is_some_and(|rival| best.score - rival.score < 5) {
        own - 0.15
    } else {
        own
    }
}

/// The line that matched and the byte at which it did, or else the last line that says anything.
fn evidence_line(best: &Candidate<'_>, view: &View<'_>) -> Option<(String, usize)> {
    let matched = best.place.as_ref().and_then(|place| {
        let screen = view.screen(place.stream)?;
        let lines = screen.lines_of(&place.range);
        let at = place.range.start.saturating_sub(lines.start);
        let line = screen.lines()[lines].replace('\n', " ");
        Some(said_in(&line).map_or((line, at), |message| (message, 0)))
    });
    matched.or_else(|| last_line(view))
}

/// What a line says, if it is a JSON document: people should not have to read that.
fn said_in(line: &str) -> Option<String> {
    const MESSAGES: [&str; 6] = [
        "/error/message",
        "/response/error/message",
        "/message",
        "/result",
        "/error",
        "/detail",
    ];
    let payload = line.strip_prefix("data: ").unwrap_or(line);
    let document = loose::documents(payload)
        .pop()
        .filter(|_| payload.starts_with('{'))?;
    let texts = MESSAGES
        .iter()
        .filter_map(|pointer| document.pointer(pointer)?.as_str());
    texts
        .map(|text| text.split_whitespace().collect::<Vec<_>>().join(" "))
        .find(|text| !text.is_empty())
}

fn last_line(view: &View<'_>) -> Option<(String, usize)> {
    let line = |stream| {
        view.screen(stream)?
            .lines()
            .lines()
            .rev()
            .find(|line| !line.is_empty())
            .map(|line| (line.to_owned(), 0))
    };
    line(Stream::Validation)
        .or_else(|| line(Stream::Stderr))
        .or_else(|| line(Stream::Body))
        .or_else(|| line(Stream::Stdout))
}

/// The part of a very long line around the byte that matters.
fn around(line: &str, at: usize) -> String {
    if line.chars().count() <= MAX_LINE {
        return line.to_owned();
    }
    let before = line
        .char_indices()
        .map(|(index, _)| index)
        .take_while(|index| *index <= at)
        .count();
    let skip = before.saturating_sub(MAX_LINE / 3);
    let part: String = line.chars().skip(skip).take(MAX_LINE).collect();
    format!("{}{part}…", if skip > 0 { "…" } else { "" })
}

fn message(title: &str, reporter: &str, line: &str) -> String {
    let who = if reporter.is_empty() {
        String::new()
    } else {
        format!(" ({reporter})")
    };
    if line.is_empty() {
        format!("{title}{who}")
    } else {
        format!("{title}{who}: {line}")
    }
}

#[cfg(test)]
mod tests;
