//! `unstuck kinds`: lists the kinds of failures and their rules.

use std::io::Write;

use anyhow::Result;
use clap::Args;
use serde_json::{Value, json};
use unstuck_core::knowledge::{
    DiagnosisKnowledge, DiagnosisRuleSpec, DiagnosisValuePattern, FailureTextSource, KindKnowledge,
    RecoveryKnowledge,
};
use unstuck_core::{Category, Classifier, FailureKind, FailureLayer, UnknownFailureKind};

use super::failure_input;
use crate::config::Config;
use crate::error_report::error_with_hint;
use crate::output::{BOLD, DIM, GREEN, Output};

/// Maximum number of alternatives shown for a condition.
const MAX_ALTERNATIVES: usize = 8;

const LAYERS: [FailureLayer; 4] = [
    FailureLayer::Api,
    FailureLayer::Tool,
    FailureLayer::Agent,
    FailureLayer::Infra,
];

/// List the kinds of failures, or show the details of one
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  unstuck kinds
  unstuck kinds rate_limit_timed
  unstuck kinds --check
  unstuck kinds --json")]
pub(crate) struct KindsArgs {
    /// Kind to show: its levels, recovery chain and rules
    kind: Option<String>,

    /// Show every pattern of every rule in full
    #[arg(long)]
    all: bool,

    /// Classify every sample and decoy, including those in your configuration, and report mismatches
    #[arg(long, conflicts_with_all = ["kind", "json", "all"])]
    check: bool,

    /// Print as JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &KindsArgs, config: &Config, out: &mut Output) -> Result<()> {
    config.classifier()?;
    let knowledge = &config.with_user_knowledge(DiagnosisKnowledge::with_samples());
    if args.check {
        return check_samples(knowledge, config.classifier()?, out);
    }
    match (&args.kind, args.json) {
        (None, false) => list(knowledge, out),
        (None, true) => out.write_json(
            &FailureKind::ALL
                .iter()
                .map(|kind| summary(*kind, knowledge.kind(*kind)))
                .collect::<Vec<_>>(),
        ),
        (Some(name), json) => {
            let kind = name.parse().map_err(|error: UnknownFailureKind| {
                error_with_hint(error.to_string(), "`unstuck kinds` lists all kinds")
            })?;
            let playbook = RecoveryKnowledge::new(knowledge)?;
            if json {
                out.write_json(&kind_json(kind, &playbook, knowledge))
            } else {
                show(kind, &playbook, knowledge, args.all, out)
            }
        }
    }
}

fn list(knowledge: &DiagnosisKnowledge, out: &mut Output) -> Result<()> {
    let headings = [
        (
            Category::Transient,
            "usually temporary: retried after a delay",
        ),
        (
            Category::Systematic,
            "needs a change: retried with another strategy",
        ),
        (Category::Fatal, "retrying will not help: needs your input"),
        (
            Category::Code,
            "failure in the code that the agent works on: passed through",
        ),
        (
            Category::Unknown,
            "1 unchanged retry (3 for API calls), then needs your input",
        ),
        (Category::None, "success, or a normal end"),
    ];
    for (category, meaning) in headings {
        writeln!(out, "{BOLD}{category}{BOLD:#} {DIM}({meaning}){DIM:#}")?;
        for kind in FailureKind::ALL
            .iter()
            .filter(|kind| kind.category() == category)
        {
            writeln!(out, "  {kind:<20} {}", knowledge.kind(*kind).title)?;
        }
    }
    writeln!(
        out,
        "\n`unstuck kinds <kind>` shows the rules and recovery strategies of a kind."
    )?;
    Ok(())
}

fn summary(kind: FailureKind, file: &KindKnowledge) -> Value {
    let levels: serde_json::Map<String, Value> = LAYERS
        .iter()
        .map(|layer| (layer.name().to_owned(), json!(file.level(kind, *layer))))
        .collect();
    json!({
        "id": kind,
        "title": file.title,
        "category": kind.category(),
        "levels": levels,
        "hint": file.hint,
        "rules": file.rule.len(),
        "samples": file.sample.len(),
    })
}

fn kind_json(
    kind: FailureKind,
    playbook: &RecoveryKnowledge,
    knowledge: &DiagnosisKnowledge,
) -> Value {
    let file = knowledge.kind(kind);
    let mut value = summary(kind, file);
    value["chain"] = LAYERS
        .iter()
        .map(|layer| {
            let links = playbook.chain(kind, *layer).map(|link| json!({ "strategy": link.strategy, "confidence": link.confidence, "estimatedIterations": link.iterations }));
            (layer.name().to_owned(), links.collect::<Value>())
        })
        .collect();
    value["rules"] = file.rule.iter().map(|rule| json!({ "id": rule.id, "priority": rule.rank(), "conditions": conditions(rule, usize::MAX) })).collect();
    value
}

fn show(
    kind: FailureKind,
    playbook: &RecoveryKnowledge,
    knowledge: &DiagnosisKnowledge,
    whole: bool,
    out: &mut Output,
) -> Result<()> {
    let file = knowledge.kind(kind);
    writeln!(
        out,
        "{BOLD}{kind}{BOLD:#}  {} ({})",
        file.title,
        kind.category()
    )?;
    if !file.hint.is_empty() {
        writeln!(out, "  {}", file.hint)?;
    }
    writeln!(out, "\n{BOLD}Recovery{BOLD:#}")?;
    for (layers, lines) in actions_by_layer(kind, file, playbook) {
        writeln!(out, "  {layers}")?;
        for line in lines {
            writeln!(out, "    {line}")?;
        }
    }
    writeln!(
        out,
        "\n{BOLD}Rules{BOLD:#} {DIM}(the highest weight wins; later matches weigh more){DIM:#}"
    )?;
    for rule in &file.rule {
        writeln!(out, "  {:>3}  {}", rule.rank(), rule.id)?;
        for condition in conditions(rule, if whole { usize::MAX } else { MAX_ALTERNATIVES }) {
            writeln!(out, "       {DIM}{condition}{DIM:#}")?;
        }
    }
    writeln!(
        out,
        "\nTested with {} samples and {} decoys.",
        file.sample.len(),
        file.decoy.len()
    )?;
    Ok(())
}

/// Renders the action for each layer; layers with the same action are grouped.
fn actions_by_layer(
    kind: FailureKind,
    file: &KindKnowledge,
    playbook: &RecoveryKnowledge,
) -> Vec<(String, Vec<String>)> {
    let mut groups: Vec<(String, Vec<String>)> = Vec::new();
    for layer in LAYERS {
        let lines = actions_in_layer(kind, layer, file, playbook);
        match groups.iter_mut().find(|(_, known)| *known == lines) {
            Some((names, _)) => *names = format!("{names}, {}", layer.name()),
            None => groups.push((layer.name().to_owned(), lines)),
        }
    }
    groups
}

fn actions_in_layer(
    kind: FailureKind,
    layer: FailureLayer,
    file: &KindKnowledge,
    playbook: &RecoveryKnowledge,
) -> Vec<String> {
    let Some(level) = file.level(kind, layer) else {
        return vec!["none: passed through".to_owned()];
    };
    let retries = file
        .layer_defaults(layer)
        .retries
        .map(|retries| match retries {
            1 => ", at most 1 retry".to_owned(),
            retries => format!(", at most {retries} retries"),
        })
        .unwrap_or_default();
    let mut lines = vec![format!("starts at level {level}{retries}")];
    lines.extend(
        (1..)
            .zip(playbook.chain(kind, layer))
            .map(|(number, link)| {
                let title = playbook
                    .strategy(&link.strategy)
                    .map_or("", |strategy| strategy.title.as_str());
                format!(
                    "{number}. {} ({}, confidence {:.0}%)",
                    title,
                    link.strategy,
                    link.confidence * 100.0
                )
            }),
    );
    lines
}

/// Renders the conditions of a rule, one sentence each, with at most `most` alternatives.
fn conditions(rule: &DiagnosisRuleSpec, most: usize) -> Vec<String> {
    let mut all = Vec::new();
    let mut say = |label: &str, values: Vec<String>| {
        if !values.is_empty() {
            let more = values.len().saturating_sub(most);
            let rest = if more > 0 {
                format!(" … and {more} more (--all)")
            } else {
                String::new()
            };
            let shown: Vec<_> = values.into_iter().take(most).collect();
            all.push(format!("{label} {}{rest}", shown.join(" | ")));
        }
    };
    let numbers = |list: &[i32]| list.iter().map(ToString::to_string).collect::<Vec<_>>();
    let names = |list: &[FailureTextSource]| {
        list.iter()
            .map(|stream| format!("{stream:?}").to_lowercase())
            .collect::<Vec<_>>()
    };
    say(
        "layer is",
        rule.layer
            .iter()
            .map(|layer| layer.name().to_owned())
            .collect(),
    );
    say("provider is", rule.provider.clone());
    say("tool is", rule.tool.clone());
    say(
        "HTTP status is",
        rule.status.iter().map(ToString::to_string).collect(),
    );
    say("exit code is", numbers(&rule.exit_code));
    say("signal is", numbers(&rule.signal));
    for (name, pattern) in &rule.header {
        say(&format!("header {name} is"), vec![pattern.clone()]);
    }
    for (pointer, wanted) in &rule.json {
        say(&format!("JSON {pointer} is"), alternatives(wanted));
    }
    for (name, wanted) in &rule.field {
        say(&format!("field {name} is"), alternatives(wanted));
    }
    say("any of:", quoted_literals(&rule.any));
    say("all of:", quoted_literals(&rule.all));
    say("none of:", quoted_literals(&rule.none));
    say("searched in", names(&rule.stream));
    say("empty or unknown:", names(&rule.blank));
    say("known to be empty:", names(&rule.empty));
    say(
        "when",
        rule.when
            .iter()
            .map(|when| format!("{when:?}").to_lowercase())
            .collect(),
    );
    say(
        "also",
        rule.on_success
            .then(|| on_success(rule))
            .into_iter()
            .collect(),
    );
    say(
        "also",
        rule.on_warning
            .then(|| "on warning lines".to_owned())
            .into_iter()
            .collect(),
    );
    all
}

/// Returns patterns with quotes around literals; regular expressions have slashes.
fn quoted_literals(patterns: &[String]) -> Vec<String> {
    let quoted = |pattern: &String| {
        if pattern.len() > 1 && pattern.starts_with('/') && pattern.ends_with('/') {
            pattern.clone()
        } else {
            format!("\"{pattern}\"")
        }
    };
    patterns.iter().map(quoted).collect()
}

fn on_success(rule: &DiagnosisRuleSpec) -> String {
    let layers: Vec<_> = rule.success_layer.iter().map(|one| one.name()).collect();
    let said = "when the exit code reports success";
    if layers.is_empty() {
        said.to_owned()
    } else {
        format!("{said} ({})", layers.join(", "))
    }
}

/// Classifies every sample and decoy.
fn check_samples(
    knowledge: &DiagnosisKnowledge,
    classifier: &Classifier,
    out: &mut Output,
) -> Result<()> {
    let mut wrong = Vec::new();
    let mut tried = 0_usize;
    for (kind, file) in &knowledge.kinds {
        let cases = file
            .sample
            .iter()
            .map(|case| (true, case))
            .chain(file.decoy.iter().map(|case| (false, case)));
        for (must, case) in cases {
            let now = failure_input::parse_now(case.now.as_deref())?;
            let diagnosis = classifier.diagnose(&case.clone().into_failure(), &now);
            tried += 1;
            if (diagnosis.kind == *kind) != must {
                let should = if must { "expected" } else { "must not be" };
                wrong.push(format!(
                    "{should} {kind}, got {} (rule {}): {}",
                    diagnosis.kind, diagnosis.evidence.rule, diagnosis.evidence.line
                ));
            }
        }
    }
    if wrong.is_empty() {
        writeln!(
            out,
            "{GREEN}ok{GREEN:#}: all {tried} samples and decoys are diagnosed correctly"
        )?;
        return Ok(());
    }
    let count = wrong.len();
    Err(error_with_hint(
        format!(
            "{count} of {tried} samples are misdiagnosed:\n  {}",
            wrong.join("\n  ")
        ),
        "make the rule more specific, or raise its priority",
    ))
}

fn alternatives(wanted: &DiagnosisValuePattern) -> Vec<String> {
    wanted
        .alternatives()
        .iter()
        .map(|value| {
            value
                .as_str()
                .map_or_else(|| value.to_string(), str::to_owned)
        })
        .collect()
}
