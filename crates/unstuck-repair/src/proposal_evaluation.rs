//! Evaluates a proposal end to end: bytes, document, directory, verdict. There is no other path to a verdict on a
//! document.

use unstuck_core::command_policy::{
    CommandEvaluation, CommandVerdictRestrictions, Proposal, RepairPolicy, evaluate,
};

use crate::project_dir::{ProjectRoot, RepairWorkingDir};

/// The result of evaluating a proposal.
#[derive(Debug)]
pub enum ProposalEvaluation {
    /// The proposal is rejected as a whole; the reason is safe to display.
    Rejected(CommandEvaluation),
    /// The proposal was evaluated.
    Evaluated(Box<EvaluatedProposal>),
}

/// A well-formed proposal with its directory and the verdicts on its commands.
#[derive(Debug)]
pub struct EvaluatedProposal {
    /// Proposal.
    pub proposal: Proposal,
    /// Handle of the directory to run it in.
    pub folder: RepairWorkingDir,
    /// Verdict on its command.
    pub command_evaluation: CommandEvaluation,
    /// Verdict on its fallback, evaluated separately.
    pub fallback_evaluation: Option<CommandEvaluation>,
}

/// Evaluates the bytes of a proposal by the owner's rules.
pub fn evaluate_proposal(
    bytes: &[u8],
    root: &ProjectRoot,
    rules: &RepairPolicy,
    standing: &CommandVerdictRestrictions,
) -> ProposalEvaluation {
    let proposal = match Proposal::parse(bytes) {
        Ok(proposal) => proposal,
        Err(error) => {
            return ProposalEvaluation::Rejected(CommandEvaluation::rejected(
                error.rule(),
                error.to_string(),
            ));
        }
    };
    let folder = match root.open_working_dir(proposal.recovery.working_dir.as_deref()) {
        Ok(folder) => folder,
        Err(error) => {
            return ProposalEvaluation::Rejected(CommandEvaluation::rejected(
                "R6",
                error.to_string(),
            ));
        }
    };
    let judged = |command: &str| evaluate(rules, command, folder.directory_kind(), standing);
    let judgement = judged(&proposal.recovery.command);
    let fallback = proposal.fallback.as_ref();
    let fallback = fallback.map(|fallback| judged(&fallback.command));
    ProposalEvaluation::Evaluated(Box::new(EvaluatedProposal {
        proposal,
        folder,
        command_evaluation: judgement,
        fallback_evaluation: fallback,
    }))
}

impl ProposalEvaluation {
    /// Returns the verdict on the proposal's command.
    pub fn command_evaluation(&self) -> &CommandEvaluation {
        match self {
            Self::Rejected(judgement) => judgement,
            Self::Evaluated(judged) => &judged.command_evaluation,
        }
    }

    /// Returns the verdict on its fallback, if it has one and is not rejected as a whole.
    pub fn fallback_evaluation(&self) -> Option<&CommandEvaluation> {
        match self {
            Self::Rejected(_) => None,
            Self::Evaluated(judged) => judged.fallback_evaluation.as_ref(),
        }
    }
}
