//! The gateway between agents and their LLM APIs, as the commands use it: a private one for the agents of a run, and a
//! shared one.

mod attendance;
mod counting;
mod knowledge;
mod private;
mod settings;
mod upstreams;
mod words;

pub(crate) use counting::Counting;
pub(crate) use knowledge::Configured;
pub(crate) use private::{Private, Wish};
pub(crate) use settings::settings;
pub(crate) use upstreams::{of_config, of_flag};
pub(crate) use words::{name_of, said};

use std::sync::Arc;

use unstuck_gateway::{Forgetful, Ledger};

/// Where a gateway writes down what it does.
pub(crate) fn ledger() -> Arc<dyn Ledger> {
    Arc::new(Forgetful)
}
