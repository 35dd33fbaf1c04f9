//! The plan: from a diagnosis to the strategies worth trying, each with concrete tool calls.
//!
//! A plan is a proposal. Nothing in it has been run or approved.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::{Value as Json, json};

use super::arguments::contains_word;
use super::call::Call;
use super::order::Rank;
use super::steps::Filler;
use crate::diagnosis::Diagnosis;
use crate::failure::{Category, Failure, Layer};
use crate::knowledge::{Change, Link, Playbook, Strategy, Variant};

/// The most strategies that a plan holds before it asks a person.
pub const MOST_STRATEGIES: usize = 4;

/// Where the agent may always write, unless the request names another directory.
pub const DEFAULT_SANDBOX: &str = ".unstuck/sandbox";

/// What the task is like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TaskType {
    /// Looking round: strategies that change nothing come first.
    Exploratory,
    /// Building something.
    Implementation,
}

/// What a plan is made from.
#[derive(Debug, Clone)]
pub struct PlanRequest<'a> {
    /// What is known about recovering.
    pub playbook: &'a Playbook,
    /// What was observed.
    pub failure: &'a Failure,
    /// What it was found to be.
    pub diagnosis: &'a Diagnosis,
    /// The arguments of the failed tool call.
    pub args: Option<&'a Json>,
    /// The names of the tools that the agent has; none means that they are not known.
    pub tools: Option<Vec<String>>,
    /// The programs that exist; none means that they are not known.
    pub programs: Option<Vec<String>>,
    /// What must not be: ids of strategies, risks, or words of a command.
    pub forbid: Vec<String>,
    /// What is allowed though it is not by default: `sudo`.
    pub allow: Vec<String>,
    /// The directory that the agent may work in.
    pub root: Option<String>,
    /// Where the agent may always write.
    pub sandbox: String,
    /// The names in the directory of the missing file.
    pub listing: Vec<String>,
    /// Confidences learnt from what happened before, by strategy.
    pub odds: BTreeMap<String, f64>,
    /// What the task is like.
    pub task: Option<TaskType>,
}

impl<'a> PlanRequest<'a> {
    /// A request about which nothing but the failure is known.
    pub fn new(playbook: &'a Playbook, failure: &'a Failure, diagnosis: &'a Diagnosis) -> Self {
        Self {
            playbook,
            failure,
            diagnosis,
            args: None,
            tools: None,
            programs: None,
            forbid: Vec::new(),
            allow: Vec::new(),
            root: None,
            sandbox: DEFAULT_SANDBOX.to_owned(),
            listing: Vec::new(),
            odds: BTreeMap::new(),
            task: None,
        }
    }
}

/// One strategy of a plan.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PlannedStrategy {
    /// Its place in the plan, from 1.
    pub priority: u32,
    /// The id of the strategy.
    pub strategy: String,
    /// Which way of doing it was chosen.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub variant: Option<String>,
    /// The chance that it helps, from 0 to 1.
    pub confidence: f64,
    /// How many turns of the agent it takes.
    pub estimated_iterations: u32,
    /// What to do, in order.
    pub steps: Vec<Step>,
    /// The strategies to try if this one fails, in order.
    pub fallback_chain: Vec<String>,
}

/// One tool call of a strategy.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Step {
    /// What it does, in the imperative.
    pub action: String,
    /// The tool to call; `ask_user`, `wait`, `retry` and `repair` are the supervisor's own.
    pub tool: String,
    /// The arguments of the call.
    pub args: Json,
    /// What shows that it worked.
    pub expected_outcome: String,
}

struct Candidate<'a> {
    link: &'a Link,
    rank: Rank,
    variant: Option<String>,
    steps: Vec<Step>,
}

/// Plans how to recover: at most four strategies, the most promising first, and then a person.
///
/// The plan is empty only when there is nothing to recover: code of the agent's own, or no failure.
///
/// ```
/// use unstuck_core::action::{PlanRequest, plan};
/// use unstuck_core::knowledge::Playbook;
/// # use unstuck_core::{Diagnosis, Evidence, Layer, Level};
/// use unstuck_core::{Failure, Kind};
///
/// # let diagnosis = Diagnosis {
/// #     kind: Kind::CommandNotFound, layer: Layer::Tool, level: Some(Level::Alternative), confidence: 1.0,
/// #     retry_after: None, fingerprint: String::new(), message: String::new(), hint: String::new(), truncated: false,
/// #     evidence: Evidence { rule: String::new(), line: "bash: rg: command not found".into() },
/// # };
/// let playbook = Playbook::builtin()?;
/// let failure = Failure::tool("Bash").with_command("rg 'fn main' src").with_exit_code(127);
/// let plan = plan(&PlanRequest::new(&playbook, &failure, &diagnosis));
/// assert_eq!(plan[0].steps[0].args["command"], "grep -rnIE -e 'fn main' -- src");
/// assert_eq!(plan[0].fallback_chain, ["manual_installation", "ask_user"]);
/// # Ok::<(), unstuck_core::knowledge::PlaybookError>(())
/// ```
pub fn plan(request: &PlanRequest<'_>) -> Vec<PlannedStrategy> {
    let diagnosis = request.diagnosis;
    if matches!(diagnosis.category(), Category::Code | Category::None) {
        return Vec::new();
    }
    let call = Call::read(request.playbook, request.failure, request.args);
    let planner = Planner {
        request,
        filler: Filler::new(request, &call),
    };
    let links = request.playbook.chain(diagnosis.kind, diagnosis.layer);
    let mut chosen: Vec<Candidate<'_>> = Vec::new();
    for (given, link) in links.enumerate() {
        if chosen
            .iter()
            .all(|known| known.link.strategy != link.strategy)
        {
            chosen.extend(planner.candidate(given, link));
        }
    }
    chosen.sort_by(|a, b| a.rank.cmp(&b.rank));
    chosen.truncate(MOST_STRATEGIES);
    let mut plan: Vec<PlannedStrategy> = chosen.into_iter().map(planned).collect();
    plan.push(planner.asking());
    numbered(plan)
}

struct Planner<'a> {
    request: &'a PlanRequest<'a>,
    filler: Filler<'a>,
}

impl<'a> Planner<'a> {
    fn candidate(&self, given: usize, link: &'a Link) -> Option<Candidate<'a>> {
        let strategy = self.request.playbook.strategy(&link.strategy)?;
        if strategy.asks
            || self.forbids(&link.strategy)
            || strategy.risks.iter().any(|risk| self.forbids(risk))
        {
            return None;
        }
        let (variant, steps) = self.steps(&link.strategy, strategy)?;
        let odds = self.request.odds.get(&link.strategy).copied();
        let writes = strategy
            .risks
            .iter()
            .chain(variant.map(|one| &one.risks).into_iter().flatten());
        let writes = writes
            .into_iter()
            .any(|risk| ["write", "install", "delete"].contains(&risk.as_str()));
        let explores = self.request.task == Some(TaskType::Exploratory);
        Some(Candidate {
            link,
            rank: Rank {
                confidence: odds
                    .filter(|odds| odds.is_finite())
                    .unwrap_or(link.confidence)
                    .clamp(0.0, 1.0),
                iterations: link.iterations,
                given,
                fitness: if explores && writes { 0.5 } else { 1.0 },
            },
            variant: variant.map(|variant| variant.id.clone()),
            steps,
        })
    }

    fn forbids(&self, word: &str) -> bool {
        self.request
            .forbid
            .iter()
            .any(|forbidden| forbidden.eq_ignore_ascii_case(word))
    }

    /// The steps of the first variant that fits, or the changed attempt of a strategy that is no tool call.
    fn steps(&self, id: &'a str, strategy: &Strategy) -> Option<(Option<&'a Variant>, Vec<Step>)> {
        let calls = matches!(self.request.diagnosis.layer, Layer::Tool | Layer::Infra);
        let mut variants = self
            .request
            .playbook
            .variants(id)
            .filter(|_| calls)
            .peekable();
        if variants.peek().is_none() {
            return Some((None, vec![changed_attempt(strategy)]));
        }
        let allowed =
            variants.filter(|variant| !variant.risks.iter().any(|risk| self.forbids(risk)));
        allowed
            .filter_map(|variant| Some((Some(variant), self.filler.fill(variant)?)))
            .find(|(_, steps)| !steps.iter().any(|step| self.is_forbidden(step)))
    }

    fn is_forbidden(&self, step: &Step) -> bool {
        let without_leave =
            (!self.request.allow.iter().any(|word| word == "sudo")).then_some("sudo");
        let forbidden = self.request.forbid.iter().map(String::as_str);
        let text = texts(&step.args).to_lowercase();
        forbidden
            .chain(without_leave)
            .any(|word| contains_word(&text, word.trim().to_lowercase().as_str()))
    }

    /// The kind's own way of asking, or the general one.
    fn asking(&self) -> PlannedStrategy {
        let (playbook, diagnosis) = (self.request.playbook, self.request.diagnosis);
        let asks = |link: &&Link| {
            playbook
                .strategy(&link.strategy)
                .is_some_and(|one| one.asks)
        };
        let own = playbook.chain(diagnosis.kind, diagnosis.layer).find(asks);
        let (id, confidence) = own.map_or(("ask_user", 0.9), |link| {
            (link.strategy.as_str(), link.confidence)
        });
        let steps = playbook
            .variants(id)
            .find_map(|variant| self.filler.fill(variant));
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

/// All texts of a value, one after the other.
fn texts(value: &Json) -> String {
    match value {
        Json::String(text) => format!("{text}\n"),
        Json::Array(items) => items.iter().map(texts).collect(),
        Json::Object(fields) => fields
            .iter()
            .map(|(name, value)| format!("{name}\n{}", texts(value)))
            .collect(),
        other => format!("{other}\n"),
    }
}

fn changed_attempt(strategy: &Strategy) -> Step {
    let repairs = strategy.changes.contains(&Change::Repair);
    Step {
        action: strategy.title.clone(),
        tool: if repairs { "repair" } else { "retry" }.to_owned(),
        args: json!({ "changes": strategy.changes }),
        expected_outcome: "The next attempt succeeds".to_owned(),
    }
}

fn planned(candidate: Candidate<'_>) -> PlannedStrategy {
    PlannedStrategy {
        priority: 0,
        strategy: candidate.link.strategy.clone(),
        variant: candidate.variant,
        confidence: candidate.rank.confidence,
        estimated_iterations: candidate.link.iterations,
        steps: candidate.steps,
        fallback_chain: Vec::new(),
    }
}

fn numbered(mut plan: Vec<PlannedStrategy>) -> Vec<PlannedStrategy> {
    let ids: Vec<String> = plan.iter().map(|one| one.strategy.clone()).collect();
    for ((priority, at), one) in (1..).zip(1..).zip(&mut plan) {
        one.priority = priority;
        one.fallback_chain = ids[at..].to_vec();
    }
    plan
}
