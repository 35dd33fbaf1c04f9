//! Tells people what happened: webhooks, a command, a message on the desktop.
//!
//! What is to be told is a pure function of a run's events ([`Hooks::announce`]), and is written to the store's outbox
//! together with them. A [`Courier`] takes it from there and sends it, again and again until it has arrived.
//! A message has one id at every try, so that whoever gets it twice can tell.

mod announce;
mod courier;
mod format;
mod message;
mod occasion;
mod patience;
mod send;
mod sign;
mod target;
mod text;

pub use announce::{Hook, Hooks};
pub use courier::{Courier, Delivery};
pub use format::{Rendered, TemplateFault, check_template, render};
pub use message::{Message, Told};
pub use occasion::Occasion;
pub use patience::{GIVE_UP_AFTER, next_try};
pub use send::{Again, Answer, Environment, SendError, Sender, is_private};
pub use sign::{BadSecret, sign};
pub use target::{Address, Format, Target};
