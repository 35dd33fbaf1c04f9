//! Prompts for the next attempt: the old prompt with one marked addition.
//!
//! The addition is a block between two tags. A later retry replaces it, so that prompts do not grow. Texts that
//! come from agents and tools cannot close the block, and are cut so that it never exceeds its limit.

use std::collections::BTreeMap;

use minijinja::{Environment, ErrorKind, UndefinedBehavior};
use serde::{Deserialize, Serialize};

use super::excerpt::{cut_middle, tokens};
use crate::nearest::nearest;

const OPEN: &str = "<unstuck-note>";
const CLOSE: &str = "</unstuck-note>";
/// How much work a template may make.
const FUEL: u64 = 20_000;
/// Texts are not cut below this length in the hope that the addition fits.
const SHORTEST: usize = 60;

/// A prompt cannot be changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PromptError {
    /// There is no template of this name.
    #[error("there is no prompt template `{name}`{}", suggestion.as_ref().map(|known| format!(", did you mean `{known}`?")).unwrap_or_default())]
    Unknown {
        /// What was asked for.
        name: String,
        /// The template with the nearest name.
        suggestion: Option<String>,
    },
    /// The template has a placeholder for which there is no value.
    #[error("the prompt template `{template}` needs `{placeholder}`, which has no value")]
    MissingPlaceholder {
        /// The template.
        template: String,
        /// The placeholder.
        placeholder: String,
    },
    /// The template is not one.
    #[error("the prompt template `{template}` is broken: {reason}")]
    Broken {
        /// The template.
        template: String,
        /// What is wrong with it.
        reason: String,
    },
}

/// Where an addition goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Place {
    /// In front of the prompt.
    #[default]
    Front,
    /// Before the context marker if there is exactly one, else in front.
    Context,
}

/// One prompt template.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PromptTemplate {
    /// Where the addition goes.
    #[serde(default)]
    pub place: Place,
    /// The text, with placeholders.
    pub text: String,
}

/// What a prompt template is filled with; what is not known is empty.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct PromptContext {
    /// What went wrong.
    pub error: String,
    /// The kind of failure.
    pub kind: String,
    /// What the failed attempt wrote.
    pub output: String,
    /// The stack trace.
    pub trace: String,
    /// What to do about it.
    pub suggestion: String,
    /// The sections that are missing.
    pub sections: Vec<String>,
    /// What was done in the conversation before.
    pub summary: String,
    /// What a person says.
    pub words: String,
    /// What is required.
    pub expected: String,
    /// The number of the attempt.
    pub attempt: u32,
    /// Values for placeholders of a user's own templates.
    #[serde(flatten)]
    pub more: BTreeMap<String, String>,
}

/// How long additions may be and where they go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PromptLimits {
    /// The most tokens of the addition; 2000 by default.
    pub addition: usize,
    /// The most tokens of the whole prompt; none means that only the addition is limited.
    pub prompt: Option<usize>,
    /// Texts that mark where the context of a prompt begins; `CONTEXT:` and `KONTEXT:` by default.
    pub markers: Vec<String>,
}

impl Default for PromptLimits {
    fn default() -> Self {
        Self {
            addition: 2000,
            prompt: None,
            markers: vec!["CONTEXT:".to_owned(), "KONTEXT:".to_owned()],
        }
    }
}

/// The prompt templates by name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prompts(BTreeMap<String, PromptTemplate>);

impl Prompts {
    /// Reads the embedded templates.
    pub fn builtin() -> Result<Self, PromptError> {
        let read = toml::from_str(include_str!("../../data/prompts.toml"));
        read.map(Self).map_err(|error| PromptError::Broken {
            template: "prompts.toml".to_owned(),
            reason: error.message().to_owned(),
        })
    }

    /// Adds a template, or replaces the one of this name.
    #[must_use]
    pub fn with(mut self, name: impl Into<String>, template: PromptTemplate) -> Self {
        self.0.insert(name.into(), template);
        self
    }

    /// The names of all templates.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    /// Changes a prompt by a template; an addition that was made before is replaced.
    ///
    /// ```
    /// use unstuck_core::action::{PromptContext, PromptLimits, Prompts};
    ///
    /// let prompts = Prompts::builtin()?;
    /// let changed = prompts.apply("Task: X", "focus", &PromptContext::default(), &PromptLimits::default())?;
    /// assert!(changed.contains("timed out") && changed.ends_with("Task: X"));
    /// # Ok::<(), unstuck_core::action::PromptError>(())
    /// ```
    pub fn apply(
        &self,
        prompt: &str,
        name: &str,
        context: &PromptContext,
        limits: &PromptLimits,
    ) -> Result<String, PromptError> {
        let template = self.0.get(name).ok_or_else(|| PromptError::Unknown {
            name: name.to_owned(),
            suggestion: nearest(
                name,
                self.0.keys().map(|known| (known.as_str(), known.clone())),
            ),
        })?;
        let original = without_note(prompt, &limits.markers);
        let left = limits
            .prompt
            .map(|most| most.saturating_sub(tokens(&original)));
        let most = left.map_or(limits.addition, |left| left.min(limits.addition));
        let note = note(name, template, context, most)?;
        Ok(inserted(&original, &note, template.place, &limits.markers))
    }
}

/// The prompt as it was before an addition was made.
pub fn without_note(prompt: &str, markers: &[String]) -> String {
    let ends_before_marker = |at: usize| {
        let after = prompt[at..].trim_start_matches('\n');
        markers
            .iter()
            .any(|marker| after.starts_with(marker.as_str()))
    };
    let open = prompt.match_indices(OPEN).find_map(|(start, _)| {
        let end = start + prompt[start..].find(CLOSE)? + CLOSE.len();
        // A block anywhere else is part of somebody's text, perhaps a forged one.
        (start == 0 || ends_before_marker(end)).then_some((start, end))
    });
    let Some((start, end)) = open else {
        return prompt.to_owned();
    };
    let after = &prompt[end..];
    format!(
        "{}{}",
        &prompt[..start],
        after.strip_prefix("\n\n").unwrap_or(after)
    )
}

fn inserted(prompt: &str, note: &str, place: Place, markers: &[String]) -> String {
    if note.is_empty() {
        return prompt.to_owned();
    }
    let at = match place {
        Place::Front => None,
        Place::Context => marker(prompt, markers),
    };
    let (before, after) = prompt.split_at(at.unwrap_or(0));
    format!("{before}{note}\n\n{after}")
}

/// Where the context begins, if one of the markers occurs exactly once.
fn marker(prompt: &str, markers: &[String]) -> Option<usize> {
    let places = |marker: &String| {
        let mut found = word_places(prompt, marker);
        found.next().filter(|_| found.next().is_none())
    };
    markers.iter().find_map(places)
}

/// Where a marker stands that is not the end of a longer word.
fn word_places<'a>(prompt: &'a str, marker: &'a str) -> impl Iterator<Item = usize> + 'a {
    let all = prompt
        .match_indices(marker)
        .filter(move |_| !marker.is_empty());
    all.map(|(at, _)| at)
        .filter(|at| !prompt[..*at].ends_with(char::is_alphanumeric))
}

/// The block, of at most so many tokens; empty if not even its tags fit.
fn note(
    name: &str,
    template: &PromptTemplate,
    context: &PromptContext,
    most: usize,
) -> Result<String, PromptError> {
    let tags = OPEN.len() + CLOSE.len() + 2;
    let room = most.saturating_mul(4).saturating_sub(tags);
    if room < SHORTEST {
        return Ok(String::new());
    }
    let mut longest = room;
    let mut body = rendered(name, template, &shortened(context, longest))?;
    while body.chars().count() > room && longest > SHORTEST {
        longest /= 2;
        body = rendered(name, template, &shortened(context, longest))?;
    }
    Ok(format!("{OPEN}\n{}\n{CLOSE}", cut_middle(&body, room)))
}

/// The context with every text cut, and without anything that looks like our tags.
fn shortened(context: &PromptContext, longest: usize) -> PromptContext {
    let cut = |text: &String| harmless(&cut_middle(text.trim(), longest));
    let mut sections: Vec<String> = context.sections.iter().map(cut).collect();
    sections.truncate(50);
    PromptContext {
        error: cut(&context.error),
        kind: cut(&context.kind),
        output: cut(&context.output),
        trace: cut(&context.trace),
        suggestion: cut(&context.suggestion),
        sections,
        summary: cut(&context.summary),
        words: cut(&context.words),
        expected: cut(&context.expected),
        attempt: context.attempt,
        more: context
            .more
            .iter()
            .map(|(name, text)| (name.clone(), cut(text)))
            .collect(),
    }
}

/// The text with the name of our tags broken, whatever its letter case.
fn harmless(text: &str) -> String {
    let lower = text.to_ascii_lowercase();
    let mut safe = String::with_capacity(text.len());
    let mut at = 0;
    for (found, name) in lower.match_indices("unstuck-note") {
        safe.push_str(&text[at..found]);
        safe.push_str("unstuck_note");
        at = found + name.len();
    }
    safe + &text[at..]
}

fn rendered(
    name: &str,
    template: &PromptTemplate,
    context: &PromptContext,
) -> Result<String, PromptError> {
    let mut environment = Environment::new();
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    environment.set_fuel(Some(FUEL));
    let broken = |error: minijinja::Error| PromptError::Broken {
        template: name.to_owned(),
        reason: error.to_string(),
    };
    let compiled = environment
        .template_from_str(&template.text)
        .map_err(broken)?;
    let values = minijinja::Value::from(minijinja::value::Serde(context));
    let text = compiled
        .render(values.clone())
        .map_err(|error| match error.kind() {
            ErrorKind::UndefinedError => PromptError::MissingPlaceholder {
                template: name.to_owned(),
                placeholder: missing(compiled.undeclared_variables(false), &values),
            },
            _ => broken(error),
        })?;
    Ok(text.trim().to_owned())
}

fn missing(names: impl IntoIterator<Item = String>, values: &minijinja::Value) -> String {
    let known = |name: &String| {
        values
            .get_attr(name)
            .is_ok_and(|value| !value.is_undefined())
    };
    let mut names: Vec<String> = names.into_iter().filter(|name| !known(name)).collect();
    names.sort();
    names.into_iter().next().unwrap_or_default()
}
