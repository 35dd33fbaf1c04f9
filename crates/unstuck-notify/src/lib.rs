//! Notifications: webhooks, a command, desktop messages.
//!
//! The messages are a pure function of a run's events ([`NotificationSubscriptions::build_messages`]) and are written to the
//! store's outbox together with them. A [`DeliveryWorker`] takes them from there and retries until they are delivered.
//! A message keeps its id across attempts, so that receivers can detect duplicates.

mod delivery;
mod event;
mod format;
mod message;
mod message_builder;
mod retry_schedule;
mod sanitize_text;
mod send;
mod signature;
mod target;

pub use delivery::{DeliveryAttemptReport, DeliveryWorker};
pub use event::NotificationEvent;
pub use format::{RenderedMessage, TemplateError, check_template, render};
pub use message::{DigestItem, NotificationMessage};
pub use message_builder::{NotificationSubscription, NotificationSubscriptions};
pub use retry_schedule::{GIVE_UP_AFTER, next_attempt};
pub use send::{
    DeliveryRetryAdvice, DeliveryTargetReply, EnvironmentReader, MessageSender,
    NotificationSendError, is_private,
};
pub use signature::{InvalidSecret, sign};
pub use target::{NotificationFormat, NotificationTarget, WebhookTarget};
