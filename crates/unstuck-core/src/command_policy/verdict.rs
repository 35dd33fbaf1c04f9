//! What the guard says of a command, and why.

use std::time::Duration;

use serde::Serialize;

use super::approved_command::ApprovedCommand;

/// Where a command would run, as far as that matters here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DirectoryKind {
    /// A folder like any other.
    Ordinary,
    /// A folder in which no approval counts, and what makes it one, such as `.git`.
    Protected(String),
}

/// All else that can make a verdict stricter. Its default makes nothing stricter.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PolicyContext {
    /// How many repairs ran by themselves in this run.
    pub auto_repairs_this_run: u32,
    /// How long it is until the next one may run by itself.
    pub cooldown_left: Option<Duration>,
    /// The configuration that was left out of the rules because nobody has trusted it, such as `unstuck.toml`.
    pub untrusted_config: Option<String>,
    /// Files that decide what the command does, and that differ from what was last accepted.
    pub changed_watched_files: Vec<String>,
    /// What is missing for a complete sandbox, where nobody has said that less is enough.
    pub incomplete_sandbox: Option<String>,
}

/// What happens to a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// It runs by itself.
    Run(ApprovedCommand),
    /// A person is asked, for all of these reasons.
    RequireApproval(Vec<ApprovalReason>),
    /// It does not run, and nobody is asked.
    Deny,
    /// The proposal is refused as a whole.
    RejectProposal,
}

impl Verdict {
    /// The name of the verdict: `run`, `escalation`, `deny` or `reject_proposal`.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Run(_) => "run",
            Self::RequireApproval(_) => "ask",
            Self::Deny => "deny",
            Self::RejectProposal => "reject_proposal",
        }
    }
}

/// Why a person is asked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ApprovalReason {
    /// It is in no list.
    Unknown,
    /// An entry of `require_human` covers it.
    RequireHuman(String),
    /// It stands in `auto_approve` and in `require_human`.
    BothLists,
    /// Unknown commands may run, but only plain ones; what is not plain about it.
    #[serde(rename = "not_plain")]
    NotSimple(String),
    /// It would run inside `.git`, `node_modules` or the like.
    #[serde(rename = "protected_folder")]
    ProtectedDirectory(String),
    /// As many repairs ran by themselves as may in one run.
    LimitReached,
    /// The last one was too short a time ago; how long to wait.
    #[serde(rename = "cooling")]
    Cooldown(Duration),
    /// These files decide what it does, and they have changed.
    #[serde(rename = "guard_files")]
    WatchedFiles(Vec<String>),
    /// The sandbox is not complete here; what is missing.
    Sandbox(String),
}

/// What the guard says of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Evaluation {
    /// What happens to it.
    pub verdict: Verdict,
    /// Why, in one sentence: the step that decided.
    pub reason: String,
    /// Every step in order.
    pub steps: Vec<PolicyStep>,
}

impl Evaluation {
    /// The judgement on a proposal that is refused as a whole: the rule that it breaks, and how.
    pub fn rejected(rule: &'static str, says: impl Into<String>) -> Self {
        Self::from_steps(vec![PolicyStep {
            rule,
            subject: "proposal",
            effect: StepEffect::Rejects,
            finding: says.into(),
        }])
    }

    /// What all steps together come to: the strictest of them decides, and what no step approves asks.
    pub(super) fn from_steps(steps: Vec<PolicyStep>) -> Self {
        let strictest = steps.iter().max_by_key(|step| step.effect.strictness());
        let strictest = strictest.map_or(0, |step| step.effect.strictness());
        let reason = steps
            .iter()
            .find(|step| step.effect.strictness() == strictest)
            .map(|step| step.finding.clone())
            .unwrap_or_default();
        Self {
            verdict: verdict(&steps, strictest),
            reason,
            steps,
        }
    }
}

fn verdict(steps: &[PolicyStep], strictest: u8) -> Verdict {
    match strictest {
        REJECT_STRICTNESS => return Verdict::RejectProposal,
        DENY_STRICTNESS => return Verdict::Deny,
        _ => {}
    }
    let mut whys = Vec::new();
    let mut approved = None;
    for step in steps {
        match &step.effect {
            StepEffect::Asks(why) => whys.push(why.clone()),
            StepEffect::Approves(text) => approved = Some(text.clone()),
            _ => {}
        }
    }
    match approved {
        Some(approved) if whys.is_empty() => Verdict::Run(approved),
        None if whys.is_empty() => Verdict::RequireApproval(vec![ApprovalReason::Unknown]),
        _ => Verdict::RequireApproval(whys),
    }
}

/// One step of the way to a verdict.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PolicyStep {
    /// The rule that it follows, such as `R4`; see the guide.
    pub rule: &'static str,
    /// What it looks at.
    pub subject: &'static str,
    /// What it does to the verdict.
    pub effect: StepEffect,
    /// What was found, in a sentence.
    pub finding: String,
}

/// What a step does to the verdict.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StepEffect {
    /// Nothing.
    Passes,
    /// It may run, if no other step minds.
    Approves(ApprovedCommand),
    /// A person is asked.
    Asks(ApprovalReason),
    /// It does not run.
    Denies,
    /// The proposal is refused.
    Rejects,
}

const DENY_STRICTNESS: u8 = 3;
const REJECT_STRICTNESS: u8 = 4;

impl StepEffect {
    /// The name of the effect, for machines.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Passes => "passes",
            Self::Approves(_) => "approves",
            Self::Asks(_) => "asks",
            Self::Denies => "denies",
            Self::Rejects => "rejects",
        }
    }

    fn strictness(&self) -> u8 {
        match self {
            Self::Passes => 0,
            Self::Approves(_) => 1,
            Self::Asks(_) => 2,
            Self::Denies => DENY_STRICTNESS,
            Self::Rejects => REJECT_STRICTNESS,
        }
    }
}
