//! The verdict on a command, and its reasons.

use std::time::Duration;

use serde::Serialize;

use super::approved_command::ApprovedCommand;

/// The protection of the directory in which a command would run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WorkingDirProtection {
    /// An ordinary directory.
    Ordinary,
    /// A directory in which no approval is valid, and its reason, such as `.git`.
    Protected(String),
}

/// Further conditions that can make a verdict stricter. The default makes nothing stricter.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CommandVerdictRestrictions {
    /// Number of automatic repairs in this run.
    pub auto_repairs_this_run: u32,
    /// Time until the next automatic repair is permitted.
    pub cooldown_left: Option<Duration>,
    /// The configuration file that was ignored because it is not trusted, such as `unstuck.toml`.
    pub untrusted_config: Option<String>,
    /// Watched files that affect the command and differ from what was last accepted.
    pub changed_watched_files: Vec<String>,
    /// The missing parts of the sandbox, unless an incomplete one was accepted.
    pub incomplete_sandbox: Option<String>,
}

/// The verdict on a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CommandVerdict {
    /// It runs automatically.
    Run(ApprovedCommand),
    /// It needs approval, for all of these reasons.
    RequireApproval(Vec<ApprovalReason>),
    /// It does not run, and no approval is requested.
    Deny,
    /// The proposal is rejected as a whole.
    RejectProposal,
}

impl CommandVerdict {
    /// The name of the verdict: `run`, `ask`, `deny` or `reject_proposal`.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Run(_) => "run",
            Self::RequireApproval(_) => "ask",
            Self::Deny => "deny",
            Self::RejectProposal => "reject_proposal",
        }
    }
}

/// A reason why a command needs approval.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ApprovalReason {
    /// It is in no list.
    Unknown,
    /// It matches an entry of `require_human`.
    RequireHuman(String),
    /// It matches both `auto_approve` and `require_human`.
    BothLists,
    /// Unknown commands may run, but only simple ones; the reason why it is not.
    #[serde(rename = "not_simple", alias = "not_plain")]
    NotSimple(String),
    /// It would run inside `.git`, `node_modules` or a similar directory.
    #[serde(rename = "protected_directory", alias = "protected_folder")]
    ProtectedDirectory(String),
    /// The limit of automatic repairs per run is reached.
    LimitReached,
    /// The cooldown after the last repair has not elapsed; the time left.
    #[serde(rename = "cooldown", alias = "cooling")]
    Cooldown(Duration),
    /// These watched files affect it and have changed.
    #[serde(rename = "watched_files", alias = "guard_files")]
    WatchedFiles(Vec<String>),
    /// The sandbox is incomplete; the missing parts.
    Sandbox(String),
}

/// The evaluation of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandEvaluation {
    /// The verdict.
    pub verdict: CommandVerdict,
    /// The reason in one sentence, from the deciding step.
    pub reason: String,
    /// All steps in order.
    pub steps: Vec<EvaluationStep>,
}

impl CommandEvaluation {
    /// Returns the evaluation of a proposal that is rejected as a whole: the violated rule, and how.
    pub fn rejected(rule: &'static str, says: impl Into<String>) -> Self {
        Self::from_steps(vec![EvaluationStep {
            rule,
            subject: "proposal",
            effect: EvaluationStepEffect::Rejects,
            finding: says.into(),
        }])
    }

    /// Combines the steps: the strictest one decides, and a command that no step approves needs approval.
    pub(super) fn from_steps(steps: Vec<EvaluationStep>) -> Self {
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

fn verdict(steps: &[EvaluationStep], strictest: u8) -> CommandVerdict {
    match strictest {
        REJECT_STRICTNESS => return CommandVerdict::RejectProposal,
        DENY_STRICTNESS => return CommandVerdict::Deny,
        _ => {}
    }
    let mut whys = Vec::new();
    let mut approved = None;
    for step in steps {
        match &step.effect {
            EvaluationStepEffect::Asks(why) => whys.push(why.clone()),
            EvaluationStepEffect::Approves(text) => approved = Some(text.clone()),
            _ => {}
        }
    }
    match approved {
        Some(approved) if whys.is_empty() => CommandVerdict::Run(approved),
        None if whys.is_empty() => CommandVerdict::RequireApproval(vec![ApprovalReason::Unknown]),
        _ => CommandVerdict::RequireApproval(whys),
    }
}

/// A step of the evaluation of a command: one rule and its finding.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EvaluationStep {
    /// The rule it applies, such as `R4`; see the guide.
    pub rule: &'static str,
    /// The subject of the check.
    pub subject: &'static str,
    /// The effect on the verdict.
    pub effect: EvaluationStepEffect,
    /// The finding, as a sentence.
    pub finding: String,
}

/// The effect of a step on the verdict.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EvaluationStepEffect {
    /// None.
    Passes,
    /// Approves, unless another step objects.
    Approves(ApprovedCommand),
    /// Requires approval.
    Asks(ApprovalReason),
    /// Denies.
    Denies,
    /// Rejects the proposal.
    Rejects,
}

const DENY_STRICTNESS: u8 = 3;
const REJECT_STRICTNESS: u8 = 4;

impl EvaluationStepEffect {
    /// The wire name of the effect.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Passes => "passes",
            Self::Approves(_) => "approves",
            Self::Asks(_) => "needs_approval",
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
