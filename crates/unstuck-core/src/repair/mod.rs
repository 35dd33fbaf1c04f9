//! Which repair fits a failure.
//!
//! A failure *needs* something: packages, a folder, a free port. A command *does* something. Both are read by the
//! knowledge in `data/repairs/`, and the [facts](Facts) of the project tell whether they go together. The owner's
//! entries come first, and only those that the evidence supports; nothing is ever tried just because it is allowed.
//!
//! Offering is not allowing: whether a command may run is decided by [`guard`](crate::guard), whatever is offered here.

mod book;
mod call;
mod candidates;
mod data;
mod deed;
mod desk;
mod facts;
mod feasible;
mod fit;
mod instructions;
mod message;
mod need;
mod never;
mod offer;
mod paths;
mod pattern;
mod questions;
mod sample;
mod usual_check;

pub use book::Book;
pub use data::RepairFile;
pub use facts::{Facts, PathFact, PidFile, PortFact, Thing};
pub use instructions::instructions;
pub use offer::{Offer, Offers, PassedOver, Refusal, Source};
pub use questions::{Questions, questions};
pub use sample::Sample;
pub use usual_check::usual_check;

use desk::Desk;
use fit::Judge;
use message::Message;
use need::{clues, needs};

use crate::diagnosis::Diagnosis;
use crate::failure::Failure;

/// The repairs that fit a failure of a project, the best first: the owner's entries that the evidence supports, then
/// what is built in.
pub fn offers(
    book: &Book,
    failure: &Failure,
    diagnosis: &Diagnosis,
    facts: &Facts,
    owner_entries: &[String],
) -> Offers {
    let message = Message::read(failure);
    if let Some(refused) = never::refusal(book, failure, diagnosis, &message) {
        return Offers {
            refused: Some(refused),
            ..Offers::default()
        };
    }
    let clues = clues(book, diagnosis.kind, &message);
    let desk = Desk {
        judge: Judge {
            book,
            facts,
            message: &message,
        },
        kind: diagnosis.kind,
        line: &diagnosis.evidence.line,
        needs: needs(book, facts, &message, &clues),
    };
    let (mut found, passed_over) = desk.owners(owner_entries);
    found.sort_by_key(|one| one.rank);
    let mut offers: Vec<Offer> = found.into_iter().map(|one| one.offer).collect();
    let mut built_in = desk.built_in();
    built_in.sort_by_key(|one| one.rank);
    for one in built_in {
        if offers
            .iter()
            .all(|known| known.command != one.offer.command)
        {
            offers.push(one.offer);
        }
    }
    Offers {
        offers,
        refused: None,
        passed_over,
    }
}
