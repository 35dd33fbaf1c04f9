//! Level 2 by a repair: before any other way where it may run, after all of them where a person must allow it.

use std::time::Duration;

use crate::duration::Human;
use crate::failure::Level;

use super::Deciding;
use super::made::{AskWhy, Changed, Chosen, Decision, Proposed};
use super::situation::{RepairLeave, RepairOffer, Repeat};

/// The strategy's name.
const REPAIR: &str = "repair";

impl Deciding<'_, '_> {
    /// Takes the repair that fits, or asks about it where somebody waits for the answer.
    pub(super) fn repair(&mut self) -> Option<Decision> {
        let offer = self.s.repair?;
        match offer.leave {
            // What may have had an effect is not done again, however well the environment is.
            _ if self.s.repeat == Repeat::Unsafe => None,
            RepairLeave::Granted { after } => Some(self.run_repair(offer, after)),
            RepairLeave::AskedNow => Some(self.ask_to_repair(offer)),
            RepairLeave::AskedLast => None,
        }
    }

    fn run_repair(&mut self, offer: RepairOffer<'_>, after: Duration) -> Decision {
        let when = match after.is_zero() {
            true => String::new(),
            false => format!(" in {}", Human(after)),
        };
        let reason = format!(
            "{}: repairing it{when} with `{}` (repair {} of at most {}).",
            self.s.knowledge.title, offer.command, offer.number, offer.of
        );
        let action = Chosen::Change {
            changes: vec![changed(offer)],
            delay: after,
            until: self.s.now.after(after),
        };
        Decision {
            strategy: Some(REPAIR.to_owned()),
            attempt: offer.number,
            of: offer.of,
            ..self.made(Some(Level::Alternative), action, reason)
        }
    }

    pub(super) fn ask_to_repair(&mut self, offer: RepairOffer<'_>) -> Decision {
        let reason = format!(
            "{}: `{}` may repair it, and needs your word.",
            self.s.knowledge.title, offer.command
        );
        let proposed = Proposed {
            strategy: REPAIR.to_owned(),
            changes: vec![changed(offer)],
        };
        self.ask_for(AskWhy::Repair, Some(proposed), None, reason)
    }
}

/// Whether a repair that a person must allow is what is left, instead of what would be asked.
pub(super) fn is_last_resort(offer: &RepairOffer<'_>, why: AskWhy) -> bool {
    offer.leave == RepairLeave::AskedLast
        && matches!(why, AskWhy::Exhausted | AskWhy::Chain | AskWhy::Fatal)
}

fn changed(offer: RepairOffer<'_>) -> Changed {
    Changed::Repair {
        id: offer.id.to_owned(),
        command: offer.command.to_owned(),
    }
}
