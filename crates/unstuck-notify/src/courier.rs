//! Takes messages out of the outbox and sends them, until they have arrived.

use std::time::Duration;

use futures_util::future::join_all;
use tokio::sync::watch;
use unstuck_core::Timestamp;
use unstuck_store::{Letter, Sent, Store, StoreError};

use crate::message::Message;
use crate::patience::next_try;
use crate::send::{Again, SendError, Sender};
use crate::target::Target;

/// So many receivers are told at once.
const AT_ONCE: usize = 8;
/// How often the outbox is looked at.
const LOOK: Duration = Duration::from_millis(500);

/// Sends what is in the outbox of a store.
#[derive(Debug, Clone)]
pub struct Courier {
    store: Store,
    sender: Sender,
}

/// What came of one try.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delivery {
    /// The message; of several the newest.
    pub id: String,
    /// How many were sent as one.
    pub count: usize,
    /// Where to.
    pub target: String,
    /// What came of it.
    pub sent: Sent,
}

impl Courier {
    /// Sends what is in the outbox of this store.
    pub fn new(store: Store, sender: Sender) -> Self {
        Self { store, sender }
    }

    /// Sends what is due, once, and tells what came of it; nothing where nothing is due.
    pub async fn deliver(&self, now: Timestamp) -> Result<Vec<Delivery>, StoreError> {
        let letters = self.store.outbox_due(now, AT_ONCE).await?;
        self.send_all(&letters, now).await
    }

    /// Sends all that waits, once, also what is to be tried later; what others are sending is left to them.
    pub async fn deliver_all(&self, now: Timestamp) -> Result<Vec<Delivery>, StoreError> {
        let letters = self.store.outbox_waiting(now).await?;
        self.send_all(&letters, now).await
    }

    async fn send_all(
        &self,
        letters: &[Letter],
        now: Timestamp,
    ) -> Result<Vec<Delivery>, StoreError> {
        let same =
            |one: &Letter, other: &Letter| one.group == other.group && one.target == other.target;
        let sent = letters.chunk_by(same).map(|group| self.send(group, now));
        join_all(sent).await.into_iter().collect()
    }

    /// Sends what is due until it is told to stop; then what is due is sent once more.
    pub async fn work(&self, now: impl Fn() -> Timestamp, mut stop: watch::Receiver<bool>) {
        while !*stop.borrow() {
            // The store is asked again; whoever writes to it hears what is wrong with it.
            let _ = self.deliver(now()).await;
            tokio::select! {
                () = tokio::time::sleep(LOOK) => {}
                gone = stop.changed() => if gone.is_err() { break },
            }
        }
        // What fails now is not due again so soon.
        while matches!(self.deliver(now()).await, Ok(sent) if !sent.is_empty()) {}
    }

    /// Sends the messages of one group to one target.
    async fn send(&self, letters: &[Letter], now: Timestamp) -> Result<Delivery, StoreError> {
        let (target, tried) = self.tried(letters, now).await;
        let sent = match tried {
            Ok(()) => Sent::Delivered,
            Err(error) => failed(letters, error, now),
        };
        let ids: Vec<_> = letters.iter().map(|letter| letter.id.clone()).collect();
        let delivery = Delivery {
            id: ids.last().cloned().unwrap_or_default(),
            count: ids.len(),
            target,
            sent: sent.clone(),
        };
        self.store.outbox_sent(ids, sent, now).await?;
        Ok(delivery)
    }

    async fn tried(&self, letters: &[Letter], now: Timestamp) -> (String, Result<(), SendError>) {
        let target = letters.first().map(|letter| letter.target.clone());
        let target = serde_json::from_value::<Target>(target.unwrap_or_default());
        let Ok(target) = target else {
            let why = "only a newer unstuck knows where to";
            return ("?".to_owned(), Err(SendError::unreadable(why)));
        };
        let messages: Result<Vec<_>, _> = letters.iter().map(message).collect();
        let message = messages.ok().and_then(Message::digest);
        let tried = match message {
            None => Err(SendError::unreadable("only a newer unstuck can read it")),
            Some(message) => self.sender.send(&target, &message, now).await.map(drop),
        };
        (target.to_string(), tried)
    }
}

fn message(letter: &Letter) -> serde_json::Result<Message> {
    let message: Message = serde_json::from_value(letter.body.clone())?;
    Ok(Message {
        id: letter.id.clone(),
        ..message
    })
}

/// Which of the messages are tried again is decided by the newest of them: they go together.
fn failed(letters: &[Letter], error: SendError, now: Timestamp) -> Sent {
    let next = match (error.again, letters.last()) {
        (Again::After(stated), Some(letter)) => next_try(letter, stated, now),
        _ => None,
    };
    let error = error.why;
    Sent::Failed { error, next }
}
