//! Follows the log: first what stands in the table, then what is written.

use futures_util::Stream;
use futures_util::stream::unfold;
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;

use super::watch::{self, News};
use super::{Sqlite, read};
use crate::error::StoreError;
use crate::query::{Placed, Position};

struct Follower {
    store: Sqlite,
    news: Receiver<Result<News, StoreError>>,
    last: Position,
    /// Whether there may be more in the table than was told.
    is_behind: bool,
}

impl Sqlite {
    pub(crate) async fn follow(
        &self,
        after: Option<Position>,
    ) -> Result<impl Stream<Item = Result<Vec<Placed>, StoreError>> + Send + use<>, StoreError>
    {
        // Listening comes first: what is written while the table is read is heard.
        let news = self.shared.watch.listen()?;
        let last = match after {
            Some(after) => after,
            None => self.read(read::newest).await?,
        };
        let follower = Follower {
            store: self.clone(),
            news,
            last,
            is_behind: after.is_some(),
        };
        Ok(unfold(Some(follower), async |follower| {
            let mut follower = follower?;
            let next = follower.next().await?;
            let goes_on = next.is_ok();
            Some((next, goes_on.then_some(follower)))
        }))
    }
}

impl Follower {
    /// What comes next; none once the store is closed.
    async fn next(&mut self) -> Option<Result<Vec<Placed>, StoreError>> {
        loop {
            let events = match self.is_behind {
                true => self.read_on().await,
                false => self.listen().await?,
            };
            match events {
                Ok(events) if events.is_empty() => {}
                Ok(events) => {
                    self.last = events.last().map_or(self.last, |newest| newest.place);
                    return Some(Ok(events));
                }
                Err(error) => return Some(Err(error)),
            }
        }
    }

    async fn read_on(&mut self) -> Result<Vec<Placed>, StoreError> {
        let last = self.last;
        let read = self
            .store
            .read(move |connection| read::after(connection, last, watch::PAGE))
            .await?;
        self.is_behind = read.len() == watch::PAGE;
        Ok(read)
    }

    async fn listen(&mut self) -> Option<Result<Vec<Placed>, StoreError>> {
        match self.news.recv().await {
            Ok(Ok(news)) if news.after > self.last => self.is_behind = true,
            Ok(Ok(news)) => {
                let fresh = news.events.iter().filter(|one| one.place > self.last);
                return Some(Ok(fresh.cloned().collect()));
            }
            Ok(Err(error)) => return Some(Err(error)),
            Err(RecvError::Lagged(_)) => self.is_behind = true,
            Err(RecvError::Closed) => return None,
        }
        Some(Ok(Vec::new()))
    }
}
