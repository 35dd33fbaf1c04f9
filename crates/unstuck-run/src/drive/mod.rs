//! Drives one command until it did what it should, a person is needed, or it is stopped.
//!
//! The state is a fold over events ([`Recovery`](unstuck_core::Recovery)). The drive asks it what is to be done, does
//! it, and notes what happened. What decides is on disk before it is acted on.

mod abort;
mod announce;
mod answer;
mod answer_file;
mod around;
mod asking;
mod attempt;
mod better_evidence;
mod budget;
mod checked;
mod command;
mod conversation;
mod engine;
mod error;
mod escape;
mod finished;
mod foresight;
mod go_between;
mod input;
mod interruption;
mod journal;
mod judge;
mod knowledge;
mod lease;
mod log;
mod passage;
mod person;
pub mod pipeline;
mod print_times;
mod repair;
mod repairing;
mod report;
mod request;
mod resume;
mod role;
mod role_work;
mod steps;
mod supervisors;
mod tail;
mod wait;

pub use abort::{Ending, why_not_resumable};
pub use announce::{Announcer, Scribe};
pub use answer::{Said, WantedAgain, answer, answer_with, lapse, want_again};
pub use answer_file::{resolve_target, write_whole};
pub use engine::Engine;
pub use error::RunError;
pub use escape::{escape, unescape};
pub use finished::{ChildEnd, Finished};
pub use foresight::{Foresight, WouldSend};
pub use go_between::{Attendance, Errand, GoBetween};
pub use interruption::{forget_stop_request, request_stop};
pub use knowledge::{Knowledge, Known};
pub use lease::{is_alive, is_ours, ourselves};
pub use repair::{KnowsRepairs, RepairMode, RepairTerms, Repairer, Workshop, label_before};
pub use report::{Channel, Reporter, RunReporter};
pub use request::{Options, RepairWish, Request};
pub use role_work::{RoleCall, RoleWork};
pub use supervisors::Supervisors;
