//! The marked block that is added to a prompt: its tags, its position, and its text within a limit.

use minijinja::{Environment, ErrorKind, UndefinedBehavior};
use serde::Serialize;

use super::prompt_note_template::{PromptNoteError, PromptNotePlacement, PromptNoteTemplate};
use super::prompt_note_vars::PromptNoteVars;
use super::text_truncation::cut_middle;

const OPEN: &str = "<unstuck-note>";
const CLOSE: &str = "</unstuck-note>";
/// The execution limit of a template.
const TEMPLATE_FUEL: u64 = 20_000;
/// The length below which texts are not truncated to make the block fit.
const MIN_TEXT_LEN: usize = 60;

/// Returns the prompt without the added block.
pub fn without_note(prompt: &str, markers: &[String]) -> String {
    let ends_before_marker = |at: usize| {
        let after = prompt[at..].trim_start_matches('\n');
        markers
            .iter()
            .any(|marker| after.starts_with(marker.as_str()))
    };
    let open = prompt.match_indices(OPEN).find_map(|(start, _)| {
        let end = start + prompt[start..].find(CLOSE)? + CLOSE.len();
        // A block anywhere else is part of other text, perhaps a forged one.
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

/// Returns the prompt with the block inserted at its position.
pub(super) fn insert_note(
    prompt: &str,
    note: &str,
    place: PromptNotePlacement,
    markers: &[String],
) -> String {
    if note.is_empty() {
        return prompt.to_owned();
    }
    let at = match place {
        PromptNotePlacement::Front => None,
        PromptNotePlacement::Context => find_marker(prompt, markers),
    };
    let (before, after) = prompt.split_at(at.unwrap_or(0));
    format!("{before}{note}\n\n{after}")
}

/// Returns the start of the context, if one of the markers occurs exactly once.
fn find_marker(prompt: &str, markers: &[String]) -> Option<usize> {
    let places = |marker: &String| {
        let mut found = whole_word_matches(prompt, marker);
        found.next().filter(|_| found.next().is_none())
    };
    markers.iter().find_map(places)
}

/// Returns the positions of a marker that is not the end of a longer word.
fn whole_word_matches<'a>(prompt: &'a str, marker: &'a str) -> impl Iterator<Item = usize> + 'a {
    let all = prompt
        .match_indices(marker)
        .filter(move |_| !marker.is_empty());
    all.map(|(at, _)| at)
        .filter(|at| !prompt[..*at].ends_with(char::is_alphanumeric))
}

/// Renders a standalone message of at most the given number of tokens.
pub(super) fn render_message(
    name: &str,
    template: &PromptNoteTemplate,
    context: &PromptNoteVars,
    most: usize,
) -> Result<String, PromptNoteError> {
    let room = most.saturating_mul(4);
    let body = render_template(name, template, &shorten_context(context, room / 2))?;
    Ok(cut_middle(&body, room))
}

/// Renders the block with at most the given number of tokens; empty if not even its tags fit.
pub(super) fn render_note(
    name: &str,
    template: &PromptNoteTemplate,
    context: &PromptNoteVars,
    most: usize,
) -> Result<String, PromptNoteError> {
    let tags = OPEN.len() + CLOSE.len() + 2;
    let room = most.saturating_mul(4).saturating_sub(tags);
    if room < MIN_TEXT_LEN {
        return Ok(String::new());
    }
    let mut longest = room;
    let mut body = render_template(name, template, &shorten_context(context, longest))?;
    while body.chars().count() > room && longest > MIN_TEXT_LEN {
        longest /= 2;
        body = render_template(name, template, &shorten_context(context, longest))?;
    }
    Ok(format!("{OPEN}\n{}\n{CLOSE}", cut_middle(&body, room)))
}

/// Returns the context with every text truncated, and without anything that looks like the block's tags.
fn shorten_context(context: &PromptNoteVars, longest: usize) -> PromptNoteVars {
    let cut = |text: &String| neutralize_tags(&cut_middle(text.trim(), longest));
    let mut sections: Vec<String> = context.sections.iter().map(cut).collect();
    sections.truncate(50);
    PromptNoteVars {
        error: cut(&context.error),
        kind: cut(&context.kind),
        output: cut(&context.output),
        trace: cut(&context.trace),
        suggestion: cut(&context.suggestion),
        sections,
        summary: cut(&context.summary),
        user_message: cut(&context.user_message),
        expected: cut(&context.expected),
        task: cut(&context.task),
        step: cut(&context.step),
        concurrent_changes: cut(&context.concurrent_changes),
        attempt: context.attempt,
        extra: context
            .extra
            .iter()
            .map(|(name, text)| (name.clone(), cut(text)))
            .collect(),
    }
}

/// Breaks the names of the block's tags in a text, case-insensitively.
fn neutralize_tags(text: &str) -> String {
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

/// The variables of a template, with the deprecated names of two of them.
#[derive(Serialize)]
struct TemplateVars<'a> {
    #[serde(flatten)]
    vars: &'a PromptNoteVars,
    words: &'a str,
    meanwhile: &'a str,
}

fn render_template(
    name: &str,
    template: &PromptNoteTemplate,
    context: &PromptNoteVars,
) -> Result<String, PromptNoteError> {
    let mut environment = Environment::new();
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    environment.set_fuel(Some(TEMPLATE_FUEL));
    let broken = |error: minijinja::Error| PromptNoteError::Broken {
        template: name.to_owned(),
        reason: error.to_string(),
    };
    let compiled = environment
        .template_from_str(&template.text)
        .map_err(broken)?;
    let values = minijinja::Value::from(minijinja::value::Serde(TemplateVars {
        vars: context,
        words: &context.user_message,
        meanwhile: &context.concurrent_changes,
    }));
    let text = compiled
        .render(values.clone())
        .map_err(|error| match error.kind() {
            ErrorKind::UndefinedError => PromptNoteError::MissingPlaceholder {
                template: name.to_owned(),
                placeholder: first_missing_placeholder(
                    compiled.undeclared_variables(false),
                    &values,
                ),
            },
            _ => broken(error),
        })?;
    Ok(text.trim().to_owned())
}

fn first_missing_placeholder(
    names: impl IntoIterator<Item = String>,
    values: &minijinja::Value,
) -> String {
    let known = |name: &String| {
        values
            .get_attr(name)
            .is_ok_and(|value| !value.is_undefined())
    };
    let mut names: Vec<String> = names.into_iter().filter(|name| !known(name)).collect();
    names.sort();
    names.into_iter().next().unwrap_or_default()
}
