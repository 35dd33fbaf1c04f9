//! A proxy in front of LLM APIs in which every call recovers, for any agent, without changing it.

mod answer;
mod books;
mod call;
mod clock;
mod error;
mod gateway;
mod identity;
mod lanes;
mod ledger;
pub mod protocol;
mod server;
mod session;
mod settings;
mod spending;
mod upstream;
pub mod watch;

pub use books::{BooksOptions, StoreLedger};
pub use error::GatewayError;
pub use gateway::{BuiltIn, Gateway, Knows};
pub use ledger::{Forgetful, Ledger, Notice, Noticed};
pub use session::{Session, SessionSetup};
pub use settings::{Budgets, Lacks, OnCircles, Secret, Settings, TimeLimits, Upstream, WatchRules};
