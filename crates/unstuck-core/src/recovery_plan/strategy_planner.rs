//! The planner: turns a diagnosis into strategies, each with concrete tool calls.
//!
//! A plan is a proposal: nothing in it has been executed or approved.

use serde_json::{Value as Json, json};

use super::failed_tool_call::FailedToolCall;
use super::failed_tool_call_vars;
use super::plan_request::{
    MAX_STRATEGIES, PlannedStrategy, PlannedToolCall, RecoveryPlanRequest, TaskType,
};
use super::tool_argument_fixes::contains_word;
use super::tool_call_builder::StepBuilder;
use crate::decision::{RankedStrategy, rank_chain};
use crate::failure::{Category, FailureLayer};
use crate::knowledge::{AttemptChange, Strategy, StrategyChainEntry, ToolCallStrategyVariant};

struct PlanCandidate<'a> {
    ranked: RankedStrategy<'a>,
    /// The factor of its score for the current task.
    fitness: f64,
    variant: Option<String>,
    steps: Vec<PlannedToolCall>,
}

/// Plans the recovery: at most four strategies, the most promising first, and then an escalation.
///
/// The plan is empty only if there is nothing to recover: code of the agent's own, or no failure.
///
/// ```
/// use unstuck_core::recovery_plan::{RecoveryPlanRequest, plan};
/// use unstuck_core::knowledge::RecoveryKnowledge;
/// # use unstuck_core::{Diagnosis, Evidence, FailureLayer, RecoveryLevel};
/// use unstuck_core::{Failure, FailureKind};
///
/// # let diagnosis = Diagnosis {
/// #     kind: FailureKind::CommandNotFound, layer: FailureLayer::Tool, level: Some(RecoveryLevel::Alternative), confidence: 1.0,
/// #     retry_after: None, retry_after_source: None, fingerprint: String::new(), message: String::new(), hint: String::new(), truncated: false,
/// #     evidence: Evidence { rule: String::new(), line: "bash: rg: command not found".into() },
/// # };
/// let recovery_knowledge = RecoveryKnowledge::built_in();
/// let failure = Failure::tool("Bash").with_command("rg 'fn main' src").with_exit_code(127);
/// let plan = plan(&RecoveryPlanRequest::new(&recovery_knowledge, &failure, &diagnosis));
/// assert_eq!(plan[0].steps[0].args["command"], "grep -rnIE -e 'fn main' -- src");
/// assert_eq!(plan[0].fallback_chain, ["manual_installation", "ask_user"]);
/// ```
pub fn plan(request: &RecoveryPlanRequest<'_>) -> Vec<PlannedStrategy> {
    let diagnosis = request.diagnosis;
    if matches!(diagnosis.category(), Category::Code | Category::None) {
        return Vec::new();
    }
    let call =
        FailedToolCall::from_failure(request.recovery_knowledge, request.failure, request.args);
    let planner = Planner {
        request,
        filler: StepBuilder::new(request, &call),
    };
    let asks = |id: &str| {
        request
            .recovery_knowledge
            .strategy(id)
            .is_some_and(|one| one.requires_human)
    };
    let chain = request
        .recovery_knowledge
        .kind(diagnosis.kind)
        .map_or(&[][..], |file| &file.chain);
    let ranked = rank_chain(diagnosis.kind, diagnosis.layer, chain, &request.odds, asks);
    let mut chosen: Vec<PlanCandidate<'_>> = ranked
        .into_iter()
        .filter_map(|one| planner.candidate(one))
        .collect();
    // A stable sort keeps the order of the chain where the task makes no difference.
    chosen.sort_by(|a, b| b.score().total_cmp(&a.score()));
    chosen.truncate(MAX_STRATEGIES);
    let mut plan: Vec<PlannedStrategy> = chosen.into_iter().map(to_planned_strategy).collect();
    plan.push(planner.ask_user_strategy());
    with_priorities(plan)
}

impl PlanCandidate<'_> {
    fn score(&self) -> f64 {
        self.ranked.score * self.fitness
    }
}

fn has_write_risk(strategy: &Strategy, variant: Option<&ToolCallStrategyVariant>) -> bool {
    let risks = strategy
        .risks
        .iter()
        .chain(variant.into_iter().flat_map(|one| &one.risks));
    risks
        .into_iter()
        .any(|risk| ["write", "install", "delete"].contains(&risk.as_str()))
}

/// Returns the directory that a failure is about, if it is about a path: the request's listing should contain its
/// names.
pub fn failure_directory(request: &RecoveryPlanRequest<'_>) -> Option<String> {
    failed_tool_call_vars::failure_directory(request)
}

struct Planner<'a> {
    request: &'a RecoveryPlanRequest<'a>,
    filler: StepBuilder<'a>,
}

impl<'a> Planner<'a> {
    fn candidate(&self, ranked: RankedStrategy<'a>) -> Option<PlanCandidate<'a>> {
        let id = &ranked.entry.strategy;
        let strategy = self.request.recovery_knowledge.strategy(id)?;
        let mut risks = strategy.risks.iter();
        if strategy.requires_human || self.forbids(id) || risks.any(|risk| self.forbids(risk)) {
            return None;
        }
        let (variant, steps) = self.steps(id, strategy)?;
        let explores = self.request.task == Some(TaskType::Exploratory);
        let fitness = if explores && has_write_risk(strategy, variant) {
            0.5
        } else {
            1.0
        };
        let variant = variant.map(|variant| variant.id.clone());
        Some(PlanCandidate {
            ranked,
            fitness,
            variant,
            steps,
        })
    }

    fn forbids(&self, word: &str) -> bool {
        self.request
            .forbid
            .iter()
            .any(|forbidden| forbidden.eq_ignore_ascii_case(word))
    }

    /// Returns the steps of the first matching variant, or the changed attempt of a strategy without tool calls.
    fn steps(
        &self,
        id: &'a str,
        strategy: &Strategy,
    ) -> Option<(Option<&'a ToolCallStrategyVariant>, Vec<PlannedToolCall>)> {
        let calls = matches!(
            self.request.diagnosis.layer,
            FailureLayer::Tool | FailureLayer::Infra
        );
        let mut variants = self
            .request
            .recovery_knowledge
            .variants(id)
            .filter(|_| calls)
            .peekable();
        if variants.peek().is_none() {
            return Some((None, vec![changed_attempt_step(strategy)]));
        }
        let allowed =
            variants.filter(|variant| !variant.risks.iter().any(|risk| self.forbids(risk)));
        allowed
            .filter_map(|variant| Some((Some(variant), self.filler.build_steps(variant)?)))
            .find(|(_, steps)| !steps.iter().any(|step| self.is_forbidden(step)))
    }

    fn is_forbidden(&self, step: &PlannedToolCall) -> bool {
        let without_leave =
            (!self.request.allow.iter().any(|word| word == "sudo")).then_some("sudo");
        let forbidden = self.request.forbid.iter().map(String::as_str);
        let text = all_strings(&step.args).to_lowercase();
        forbidden
            .chain(without_leave)
            .any(|word| contains_word(&text, word.trim().to_lowercase().as_str()))
    }

    /// Returns the kind's own escalation strategy, or the general one.
    fn ask_user_strategy(&self) -> PlannedStrategy {
        let (recovery_knowledge, diagnosis) =
            (self.request.recovery_knowledge, self.request.diagnosis);
        let asks = |link: &&StrategyChainEntry| {
            recovery_knowledge
                .strategy(&link.strategy)
                .is_some_and(|one| one.requires_human)
        };
        let own = recovery_knowledge
            .chain(diagnosis.kind, diagnosis.layer)
            .find(asks);
        let (id, confidence) = own.map_or(("ask_user", 0.9), |link| {
            (link.strategy.as_str(), link.confidence)
        });
        let steps = recovery_knowledge
            .variants(id)
            .find_map(|variant| self.filler.build_steps(variant));
        PlannedStrategy {
            priority: 0,
            strategy: id.to_owned(),
            variant: None,
            confidence,
            estimated_iterations: 1,
            steps: steps.unwrap_or_default(),
            fallback_chain: Vec::new(),
        }
    }
}

/// Concatenates all strings of a value.
fn all_strings(value: &Json) -> String {
    match value {
        Json::String(text) => format!("{text}\n"),
        Json::Array(items) => items.iter().map(all_strings).collect(),
        Json::Object(fields) => fields
            .iter()
            .map(|(name, value)| format!("{name}\n{}", all_strings(value)))
            .collect(),
        other => format!("{other}\n"),
    }
}

fn changed_attempt_step(strategy: &Strategy) -> PlannedToolCall {
    let repairs = strategy.changes.contains(&AttemptChange::Repair);
    PlannedToolCall {
        action: strategy.title.clone(),
        tool: if repairs { "repair" } else { "retry" }.to_owned(),
        args: json!({ "changes": strategy.changes }),
        expected_outcome: "The next attempt succeeds".to_owned(),
    }
}

fn to_planned_strategy(candidate: PlanCandidate<'_>) -> PlannedStrategy {
    PlannedStrategy {
        priority: 0,
        strategy: candidate.ranked.entry.strategy.clone(),
        variant: candidate.variant,
        confidence: (candidate.ranked.confidence * 100.0).round() / 100.0,
        estimated_iterations: candidate.ranked.entry.iterations,
        steps: candidate.steps,
        fallback_chain: Vec::new(),
    }
}

fn with_priorities(mut plan: Vec<PlannedStrategy>) -> Vec<PlannedStrategy> {
    let ids: Vec<String> = plan.iter().map(|one| one.strategy.clone()).collect();
    for ((priority, at), one) in (1..).zip(1..).zip(&mut plan) {
        one.priority = priority;
        one.fallback_chain = ids[at..].to_vec();
    }
    plan
}
