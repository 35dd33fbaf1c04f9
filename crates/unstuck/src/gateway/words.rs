//! One line for each thing that a gateway tells.

use unstuck_core::RunId;
use unstuck_gateway::Noticed;

use crate::output::{BOLD, GREEN, RED, YELLOW};
use crate::show_text::one_line;

/// How much of a line of evidence is shown.
const EVIDENCE: usize = 100;

/// What is told about a thing that happened.
pub(crate) fn said(what: &Noticed) -> String {
    match what {
        Noticed::Retrying {
            diagnosis, reason, ..
        } => {
            let seen = one_line(&diagnosis.evidence.line, EVIDENCE);
            let seen = match seen.is_empty() {
                true => String::new(),
                false => format!(": {seen}"),
            };
            format!(
                "{YELLOW}API call failed{YELLOW:#}: {BOLD}{}{BOLD:#}{seen}; {reason}",
                diagnosis.kind
            )
        }
        Noticed::Recovered { attempts } => {
            format!("{GREEN}API call recovered{GREEN:#} ({attempts} tries)")
        }
        Noticed::GaveUp { diagnosis, reason } => format!(
            "{RED}API call failed for good{RED:#}: {BOLD}{}{BOLD:#}: {reason}",
            diagnosis.kind
        ),
        Noticed::Moved { from, to } => format!("{BOLD}model {from} → {to}{BOLD:#}"),
        Noticed::PassedOver(passed) => format!("{YELLOW}passed over{YELLOW:#}: {passed}"),
        Noticed::Circling(sign) => format!(
            "{YELLOW}the agent goes in circles{YELLOW:#}: {}",
            sign.sentence
        ),
        Noticed::Held { question, answer } => format!(
            "{YELLOW}its calls are held{YELLOW:#}: {BOLD}unstuck {answer} {question}{BOLD:#} lets them through, \
             `unstuck inbox` says more"
        ),
        Noticed::SpentUp { sentence } => {
            format!("{RED}{sentence}{RED:#}; further calls are refused")
        }
        Noticed::Uncounted { sentence } => {
            format!("{YELLOW}no budget counts these calls{YELLOW:#}: {sentence}")
        }
    }
}

/// What a session is called for people: that of a run by the run's short id.
pub(crate) fn name_of(session: &str) -> String {
    match session.rsplit_once('-') {
        Some((run, number)) if !session.starts_with("client-") => {
            format!("{}-{number}", RunId::new(run).short())
        }
        _ => session.to_owned(),
    }
}
