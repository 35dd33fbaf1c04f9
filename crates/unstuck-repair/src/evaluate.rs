//! The whole way of a proposal: bytes, document, folder, verdict. There is no other way to a verdict on a document.

use unstuck_core::command_policy::{Evaluation, PolicyContext, Proposal, RepairPolicy, evaluate};

use crate::project_dir::{ProjectDir, ProjectRoot};

/// What came of a proposal.
#[derive(Debug)]
pub enum ProposalEvaluation {
    /// It is refused as a whole; the reason may be shown.
    Rejected(Evaluation),
    /// It is judged.
    Evaluated(Box<EvaluatedProposal>),
}

/// A proposal that is well-formed, the folder it is meant for, and what is said of its commands.
#[derive(Debug)]
pub struct EvaluatedProposal {
    /// What was proposed.
    pub proposal: Proposal,
    /// Where it would run: the handle to run it in.
    pub folder: ProjectDir,
    /// What is said of its command.
    pub command_evaluation: Evaluation,
    /// What is said of its fallback, judged alone.
    pub fallback_evaluation: Option<Evaluation>,
}

/// Weighs the bytes of a proposal by the owner's rules.
pub fn evaluate_proposal(
    bytes: &[u8],
    root: &ProjectRoot,
    rules: &RepairPolicy,
    standing: &PolicyContext,
) -> ProposalEvaluation {
    let proposal = match Proposal::parse(bytes) {
        Ok(proposal) => proposal,
        Err(error) => {
            return ProposalEvaluation::Rejected(Evaluation::rejected(
                error.rule(),
                error.to_string(),
            ));
        }
    };
    let folder = match root.open_working_dir(proposal.recovery.working_dir.as_deref()) {
        Ok(folder) => folder,
        Err(error) => {
            return ProposalEvaluation::Rejected(Evaluation::rejected("R6", error.to_string()));
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
    /// What is said of the proposal's command.
    pub fn command_evaluation(&self) -> &Evaluation {
        match self {
            Self::Rejected(judgement) => judgement,
            Self::Evaluated(judged) => &judged.command_evaluation,
        }
    }

    /// What is said of its fallback, where it has one and is not refused as a whole.
    pub fn fallback_evaluation(&self) -> Option<&Evaluation> {
        match self {
            Self::Rejected(_) => None,
            Self::Evaluated(judged) => judged.fallback_evaluation.as_ref(),
        }
    }
}
