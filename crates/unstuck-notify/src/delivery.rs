//! Message delivery: claims messages from the outbox and sends them until they are delivered.

use std::time::Duration;

use futures_util::future::join_all;
use tokio::sync::watch;
use unstuck_core::Timestamp;
use unstuck_store::{DeliveryResult, OutboxMessage, Store, StoreError};

use crate::message::NotificationMessage;
use crate::retry_schedule::next_attempt;
use crate::send::{DeliveryRetryAdvice, MessageSender, NotificationSendError};
use crate::target::NotificationTarget;

/// The maximum number of concurrent deliveries.
const MAX_CONCURRENT: usize = 8;
/// The interval at which the outbox is polled.
const POLL_INTERVAL: Duration = Duration::from_millis(500);

/// Delivers the messages in the outbox of a store.
#[derive(Debug, Clone)]
pub struct DeliveryWorker {
    store: Store,
    sender: MessageSender,
}

/// The report of a delivery attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeliveryAttemptReport {
    /// The message id; the newest if several were sent as one.
    pub id: String,
    /// The number of messages sent as one.
    pub count: usize,
    /// The target.
    pub target: String,
    /// The result.
    pub result: DeliveryResult,
}

impl DeliveryWorker {
    /// Returns a worker for the outbox of this store.
    pub fn new(store: Store, sender: MessageSender) -> Self {
        Self { store, sender }
    }

    /// Sends due messages once, and returns the reports; empty if none are due.
    pub async fn deliver(&self, now: Timestamp) -> Result<Vec<DeliveryAttemptReport>, StoreError> {
        let letters = self.store.claim_due_messages(now, MAX_CONCURRENT).await?;
        self.send_all(&letters, now).await
    }

    /// Sends all pending messages once, even those not yet due, except those claimed by other processes.
    pub async fn deliver_all(
        &self,
        now: Timestamp,
    ) -> Result<Vec<DeliveryAttemptReport>, StoreError> {
        let letters = self.store.claim_waiting_messages(now).await?;
        self.send_all(&letters, now).await
    }

    async fn send_all(
        &self,
        letters: &[OutboxMessage],
        now: Timestamp,
    ) -> Result<Vec<DeliveryAttemptReport>, StoreError> {
        let same = |one: &OutboxMessage, other: &OutboxMessage| {
            one.group == other.group && one.target == other.target
        };
        let sent = letters
            .chunk_by(same)
            .map(|group| self.send_group(group, now));
        join_all(sent).await.into_iter().collect()
    }

    /// Sends due messages until told to stop, then once more.
    pub async fn run(&self, now: impl Fn() -> Timestamp, mut stop: watch::Receiver<bool>) {
        while !*stop.borrow() {
            // The store is polled again; the process that writes to it reports its errors.
            let _ = self.deliver(now()).await;
            tokio::select! {
                () = tokio::time::sleep(POLL_INTERVAL) => {}
                gone = stop.changed() => if gone.is_err() { break },
            }
        }
        // A message that fails now is not due again soon.
        while matches!(self.deliver(now()).await, Ok(sent) if !sent.is_empty()) {}
    }

    /// Sends the messages of one group to one target.
    async fn send_group(
        &self,
        letters: &[OutboxMessage],
        now: Timestamp,
    ) -> Result<DeliveryAttemptReport, StoreError> {
        let (target, tried) = self.attempt_send(letters, now).await;
        let sent = match tried {
            Ok(()) => DeliveryResult::Delivered,
            Err(error) => failure_result(letters, error, now),
        };
        let ids: Vec<_> = letters.iter().map(|letter| letter.id.clone()).collect();
        let delivery = DeliveryAttemptReport {
            id: ids.last().cloned().unwrap_or_default(),
            count: ids.len(),
            target,
            result: sent.clone(),
        };
        self.store.record_delivery(ids, sent, now).await?;
        Ok(delivery)
    }

    async fn attempt_send(
        &self,
        letters: &[OutboxMessage],
        now: Timestamp,
    ) -> (String, Result<(), NotificationSendError>) {
        let target = letters.first().map(|letter| letter.target.clone());
        let target = serde_json::from_value::<NotificationTarget>(target.unwrap_or_default());
        let Ok(target) = target else {
            let why = "unknown target; update unstuck";
            return ("?".to_owned(), Err(NotificationSendError::unreadable(why)));
        };
        let messages: Result<Vec<_>, _> = letters.iter().map(parse_message).collect();
        let message = messages.ok().and_then(NotificationMessage::digest);
        let tried = match message {
            None => Err(NotificationSendError::unreadable(
                "unknown message format; update unstuck",
            )),
            Some(message) => self.sender.send(&target, &message, now).await.map(drop),
        };
        (target.to_string(), tried)
    }
}

fn parse_message(letter: &OutboxMessage) -> serde_json::Result<NotificationMessage> {
    let message: NotificationMessage = serde_json::from_value(letter.body.clone())?;
    Ok(NotificationMessage {
        id: letter.id.clone(),
        ..message
    })
}

/// The messages are sent together, so the newest one determines the retry.
fn failure_result(
    letters: &[OutboxMessage],
    error: NotificationSendError,
    now: Timestamp,
) -> DeliveryResult {
    let next = match (error.retryable, letters.last()) {
        (DeliveryRetryAdvice::After(stated), Some(letter)) => next_attempt(letter, stated, now),
        _ => None,
    };
    let error = error.reason;
    DeliveryResult::Failed { error, next }
}
