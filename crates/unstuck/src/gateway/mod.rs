//! The gateway between agents and their LLM APIs, as the commands use it: a private one for the agents of a run, and a
//! shared one.

mod attendance;
mod counting;
mod following;
mod knowledge;
mod private;
mod settings;
mod upstreams;
mod words;

pub(crate) use counting::Counting;
pub(crate) use following::{count_spent, follow};
pub(crate) use knowledge::Configured;
pub(crate) use private::{Private, Wish};
pub(crate) use settings::settings;
pub(crate) use upstreams::{of_config, of_flag};
pub(crate) use words::{name_of, said};

use std::io::Write;
use std::sync::Arc;

use unstuck_gateway::{Announce, BooksOptions, StoreLedger};
use unstuck_run::drive::{Announcer, ourselves};
use unstuck_store::Store;

use crate::messages::Messages;
use crate::notifying::Notifying;

/// Where a gateway writes down what it does, and who is told of the questions that it asks; on the runtime of the caller.
pub(crate) fn books(
    store: Store,
    project: String,
    notifying: Option<Notifying>,
) -> Arc<StoreLedger> {
    let announce = |hooks: Notifying| -> Box<Announce> {
        Box::new(move |run, events, at| hooks.announce(run, events, at))
    };
    let options = BooksOptions {
        announce: notifying.map(announce),
        project,
        knowledge: env!("CARGO_PKG_VERSION").to_owned(),
        owner: Some(ourselves()),
        tell: Box::new(|why| {
            // Nothing can be done if nobody reads it.
            let _ = writeln!(Messages::auto(), "unstuck: warning: {why}");
        }),
    };
    Arc::new(StoreLedger::start(store, options))
}
