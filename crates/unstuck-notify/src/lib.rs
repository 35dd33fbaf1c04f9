//! Tells people what happened: webhooks, a command, a message on the desktop.
//!
//! What is to be told is a pure function of a run's events ([`Subscriptions::build_messages`]), and is written to the store's outbox
//! together with them. A [`DeliveryWorker`] takes it from there and sends it, again and again until it has arrived.
//! A message has one id at every try, so that whoever gets it twice can tell.

mod delivery;
mod event;
mod format;
mod message;
mod message_builder;
mod retry_schedule;
mod send;
mod signature;
mod target;
mod text;

pub use delivery::{DeliveryReport, DeliveryWorker};
pub use event::NotificationEvent;
pub use format::{RenderedMessage, TemplateError, check_template, render};
pub use message::{DigestItem, NotificationMessage};
pub use message_builder::{Subscription, Subscriptions};
pub use retry_schedule::{GIVE_UP_AFTER, next_attempt};
pub use send::{
    EnvironmentReader, MessageSender, ReceiverResponse, Retryable, SendError, is_private,
};
pub use signature::{InvalidSecret, sign};
pub use target::{MessageFormat, NotificationTarget, WebhookAddress};
