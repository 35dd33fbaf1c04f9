//! Failures that no command may repair, and commands that are never suggested.

use super::command_effects::CommandAnalysis;
use super::failure_message::FailureMessage;
use super::project_facts::ProjectFacts;
use super::repair_catalog::RepairCatalog;
use super::repair_knowledge_file::{DenylistedCommand, DenylistedFailure};
use super::suggestion::RepairSuggestionRefusal;
use crate::diagnosis::Diagnosis;
use crate::failure::{Category, Failure, FailureKind, FailureLayer};

/// Returns why no command may repair a failure.
pub(super) fn refuse_failure(
    book: &RepairCatalog,
    failure: &Failure,
    diagnosis: &Diagnosis,
    message: &FailureMessage,
) -> Option<RepairSuggestionRefusal> {
    refuse_by_rule(book, diagnosis, message).or_else(|| refuse_by_category(failure, diagnosis))
}

fn refuse_by_rule(
    book: &RepairCatalog,
    diagnosis: &Diagnosis,
    message: &FailureMessage,
) -> Option<RepairSuggestionRefusal> {
    let text = message.text.as_str();
    let shown = |rule: &DenylistedFailure| {
        let of_kind = rule.kinds.is_empty() || rule.kinds.contains(&diagnosis.kind);
        let excepted = rule.none.iter().any(|pattern| pattern.is_match(text));
        let by_kind = rule.any.is_empty().then(|| diagnosis.evidence.line.clone());
        let by_text = || {
            let place = rule.any.iter().find_map(|pattern| pattern.find(text))?;
            Some(message.line_at(&place).to_owned())
        };
        let line = by_kind.or_else(by_text).filter(|_| of_kind && !excepted)?;
        Some(RepairSuggestionRefusal {
            rule: rule.id.clone(),
            reason: rule.reason.clone(),
            line,
        })
    };
    book.denylisted_failures().find_map(shown)
}

fn refuse_by_category(failure: &Failure, diagnosis: &Diagnosis) -> Option<RepairSuggestionRefusal> {
    let (rule, reason) = match (failure.layer, diagnosis.category()) {
        (_, Category::Code) => (
            "code",
            "the project's code must be fixed; no command can repair it",
        ),
        // The project may have created the certificate itself, for its tests.
        (_, Category::Fatal) if diagnosis.kind != FailureKind::CertificateError => {
            ("person", "only a human can provide what is missing")
        }
        (_, Category::None) => ("no_failure", "nothing failed"),
        (FailureLayer::Api | FailureLayer::Agent, _) => {
            ("not_the_project", "the failure is not in the project")
        }
        _ => return None,
    };
    Some(RepairSuggestionRefusal {
        rule: rule.to_owned(),
        reason: reason.to_owned(),
        line: diagnosis.evidence.line.clone(),
    })
}

/// Returns why a command is never suggested; the scripts it runs are checked too.
pub(super) fn refuse_command(
    book: &RepairCatalog,
    facts: &ProjectFacts,
    entry: &CommandAnalysis,
) -> Option<String> {
    let bodies = entry
        .effects
        .iter()
        .filter_map(|deed| match (&deed.script, &deed.file) {
            (Some((runner, name)), _) => facts.script(runner, name),
            (None, Some(file)) => facts.path_fact(file)?.text.as_deref(),
            (None, None) => None,
        });
    let texts = std::iter::once(entry.text.as_str()).chain(bodies);
    let is_forbidden = |rule: &&DenylistedCommand, text: &str| {
        let hit = rule.any.iter().any(|pattern| pattern.is_match(text));
        hit && !rule.none.iter().any(|pattern| pattern.is_match(text))
    };
    let mut rules = texts.filter_map(|text| {
        book.denylisted_commands()
            .find(|rule| is_forbidden(rule, text))
    });
    rules.next().map(|rule| rule.reason.clone())
}
