//! The whole way of a proposal: bytes, document, folder, verdict. There is no other way to a verdict on a document.

use unstuck_core::guard::{Judgement, Proposal, Rules, Standing, judge};

use crate::place::{Folder, Root};

/// What came of a proposal.
#[derive(Debug)]
pub enum Weighed {
    /// It is refused as a whole; the reason may be shown.
    Rejected(Judgement),
    /// It is judged.
    Judged(Box<Judged>),
}

/// A proposal that is well-formed, the folder it is meant for, and what is said of its commands.
#[derive(Debug)]
pub struct Judged {
    /// What was proposed.
    pub proposal: Proposal,
    /// Where it would run: the handle to run it in.
    pub folder: Folder,
    /// What is said of its command.
    pub judgement: Judgement,
    /// What is said of its fallback, judged alone.
    pub fallback: Option<Judgement>,
}

/// Weighs the bytes of a proposal by the owner's rules.
pub fn weigh(bytes: &[u8], root: &Root, rules: &Rules, standing: &Standing) -> Weighed {
    let proposal = match Proposal::parse(bytes) {
        Ok(proposal) => proposal,
        Err(error) => {
            return Weighed::Rejected(Judgement::rejected(error.rule(), error.to_string()));
        }
    };
    let folder = match root.folder(proposal.recovery.working_dir.as_deref()) {
        Ok(folder) => folder,
        Err(error) => return Weighed::Rejected(Judgement::rejected("R6", error.to_string())),
    };
    let judged = |command: &str| judge(rules, command, folder.place(), standing);
    let judgement = judged(&proposal.recovery.command);
    let fallback = proposal.fallback.as_ref();
    let fallback = fallback.map(|fallback| judged(&fallback.command));
    Weighed::Judged(Box::new(Judged {
        proposal,
        folder,
        judgement,
        fallback,
    }))
}

impl Weighed {
    /// What is said of the proposal's command.
    pub fn judgement(&self) -> &Judgement {
        match self {
            Self::Rejected(judgement) => judgement,
            Self::Judged(judged) => &judged.judgement,
        }
    }

    /// What is said of its fallback, where it has one and is not refused as a whole.
    pub fn fallback(&self) -> Option<&Judgement> {
        match self {
            Self::Rejected(_) => None,
            Self::Judged(judged) => judged.fallback.as_ref(),
        }
    }
}
