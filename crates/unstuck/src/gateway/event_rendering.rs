//! Renders gateway events, one line each.

use unstuck_core::RunId;
use unstuck_gateway::GatewaySessionEventKind;

use crate::output::{BOLD, GREEN, RED, YELLOW};
use crate::sanitized_text::one_line;

/// Maximum length of evidence in a line.
const MAX_EVIDENCE: usize = 100;

/// Renders the line for an event.
pub(crate) fn notice_line(what: &GatewaySessionEventKind) -> String {
    match what {
        GatewaySessionEventKind::RetryRequested => "retrying now, as requested".to_owned(),
        GatewaySessionEventKind::Retrying {
            diagnosis, reason, ..
        } => {
            let seen = one_line(&diagnosis.evidence.line, MAX_EVIDENCE);
            let seen = if seen.is_empty() {
                String::new()
            } else {
                format!(": {seen}")
            };
            format!(
                "{YELLOW}API call failed{YELLOW:#}: {BOLD}{}{BOLD:#}{seen}; {reason}",
                diagnosis.kind
            )
        }
        GatewaySessionEventKind::Recovered { attempts } => {
            format!("{GREEN}API call recovered{GREEN:#} ({attempts} attempts)")
        }
        GatewaySessionEventKind::GaveUp { diagnosis, reason } => format!(
            "{RED}API call failed permanently{RED:#}: {BOLD}{}{BOLD:#}: {reason}",
            diagnosis.kind
        ),
        GatewaySessionEventKind::ModelSwitched { from, to } => {
            format!("{BOLD}model {from} → {to}{BOLD:#}")
        }
        GatewaySessionEventKind::UpstreamSkipped(passed) => {
            format!("{YELLOW}fallback{YELLOW:#} {passed}")
        }
        GatewaySessionEventKind::LoopDetected(sign) => {
            format!("{YELLOW}loop detected{YELLOW:#}: {}", sign.sentence)
        }
        GatewaySessionEventKind::Held {
            escalation: question,
            answer,
        } => format!(
            "{YELLOW}requests are blocked{YELLOW:#}: {BOLD}unstuck {answer} {question}{BOLD:#} unblocks them \
             (details: `unstuck inbox`)"
        ),
        GatewaySessionEventKind::BudgetExhausted { sentence } => {
            format!("{RED}{sentence}{RED:#}; further calls are refused")
        }
        GatewaySessionEventKind::CostUnknown { sentence } => {
            format!("{YELLOW}calls not counted in any budget{YELLOW:#}: {sentence}")
        }
    }
}

/// Returns the display name of a session: the short run id for a session of a run.
pub(crate) fn session_label(session: &str) -> String {
    match session.rsplit_once('-') {
        Some((run, number)) if !session.starts_with("client-") => {
            format!("{}-{number}", RunId::new(run).short())
        }
        _ => session.to_owned(),
    }
}
