//! What happens outside while a run waits: somebody answers, or writes the configuration.

use std::time::SystemTime;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use unstuck_core::event::Outcome;

use super::{Conductor, Stage};
use crate::drive::announce::Scribe;
use crate::drive::engine::stopped;
use crate::drive::error::RunError;
use crate::drive::resume::{LOOK, lapse_one};
use crate::process::Stop;

/// What may happen outside while a run waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum News {
    /// Somebody answered.
    Answer,
    /// Somebody wrote the configuration.
    Configuration,
}

impl Conductor<'_> {
    /// Comes when a question of this run was answered, in whatever process, or when the configuration was written.
    ///
    /// It only looks, since whoever waits for it may have something better to do: what follows is [taken in](Self::take_in)
    /// without being cut off half-way.
    pub(super) async fn news(&self, stage: &Stage<'_, '_>) -> Result<News, RunError> {
        let scribe = Scribe {
            store: self.store,
            announcer: self.announcer,
        };
        let journal = stage.journal;
        loop {
            tokio::time::sleep(LOOK).await;
            if self.config_written() != stage.config_seen.get() {
                return Ok(News::Configuration);
            }
            let open = journal.know(|run| run.questions.iter().cloned().collect::<Vec<_>>());
            for asked in &open {
                lapse_one(&scribe, journal.run(), asked, self.clock.at()).await?;
                if !self.store.waits(journal.run(), &asked.id).await? {
                    return Ok(News::Answer);
                }
            }
        }
    }

    /// Takes news in while others are at work: they may hold what is needed for it, so they go on meanwhile. Gives what they
    /// came to.
    pub(super) async fn take_in_beside<F: Future>(
        &self,
        stage: &Stage<'_, '_>,
        news: News,
        running: &mut FuturesUnordered<F>,
    ) -> Result<Vec<F::Output>, RunError> {
        let taking = self.take_in(stage, news);
        tokio::pin!(taking);
        let mut ended = Vec::new();
        loop {
            tokio::select! {
                taken = &mut taking => return taken.map(|()| ended),
                Some(one) = running.next(), if !running.is_empty() => ended.push(one),
            }
        }
    }

    async fn take_in(&self, stage: &Stage<'_, '_>, news: News) -> Result<(), RunError> {
        match news {
            News::Answer => stage.journal.hear().await,
            News::Configuration => {
                // Before it is read: what is written meanwhile is news again.
                stage.config_seen.set(self.config_written());
                self.reload_waiting(stage).await
            }
        }
    }

    /// When the configuration was last written.
    pub(super) fn config_written(&self) -> Option<SystemTime> {
        let plan = self.plan();
        let path = plan.config_path.as_ref()?;
        std::fs::metadata(path).ok()?.modified().ok()
    }

    /// Waits until there is news for whoever waits for a person, or somebody stops it.
    pub(super) async fn wait_for_person(&self, stage: &Stage<'_, '_>) -> Result<(), RunError> {
        let journal = stage.journal;
        let mut stop = self.stop.clone();
        let heard = async {
            tokio::select! {
                news = self.news(stage) => news.map(Some),
                () = stopped(&mut stop) => Ok(None),
            }
        };
        if let Some(news) = self.watching(journal, heard).await? {
            self.take_in(stage, news).await?;
        }
        match *self.stop.borrow() {
            Stop::No => Ok(()),
            _ => self.finish(journal, Outcome::Interrupted).await,
        }
    }
}
