//! What happens outside while a run waits: somebody answers, or writes the configuration.

use std::time::SystemTime;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use unstuck_core::event::RunOutcome;

use super::{PipelineExecution, PipelineRunner};
use crate::process::StopRequest;
use crate::runner::error::RunError;
use crate::runner::notify_hook::EventWriter;
use crate::runner::resume::{ANSWER_POLL_INTERVAL, expire_escalation};
use crate::runner::session_runner::wait_for_stop;

/// What may happen outside while a run waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ExternalEvent {
    /// Somebody answered.
    Answer,
    /// Somebody wrote the configuration.
    Configuration,
}

impl PipelineRunner<'_> {
    /// Comes when a question of this run was answered, in whatever process, or when the configuration was written.
    ///
    /// It only looks, since whoever waits for it may have something better to do: what follows is [taken in](Self::take_in)
    /// without being cut off half-way.
    pub(super) async fn next_external_event(
        &self,
        stage: &PipelineExecution<'_, '_>,
    ) -> Result<ExternalEvent, RunError> {
        let scribe = EventWriter {
            store: self.store,
            notifier: self.notifier,
        };
        let journal = stage.journal;
        loop {
            tokio::time::sleep(ANSWER_POLL_INTERVAL).await;
            if self.config_modified_at() != stage.config_modified_at.get() {
                return Ok(ExternalEvent::Configuration);
            }
            let open =
                journal.with_view(|run| run.open_escalations.iter().cloned().collect::<Vec<_>>());
            for asked in &open {
                expire_escalation(&scribe, journal.run(), asked, self.clock.timestamp()).await?;
                if !self
                    .store
                    .is_escalation_open(journal.run(), &asked.id)
                    .await?
                {
                    return Ok(ExternalEvent::Answer);
                }
            }
        }
    }

    /// Takes news in while others are at work: they may hold what is needed for it, so they go on meanwhile. Gives what they
    /// came to.
    pub(super) async fn apply_while_running<F: Future>(
        &self,
        stage: &PipelineExecution<'_, '_>,
        news: ExternalEvent,
        running: &mut FuturesUnordered<F>,
    ) -> Result<Vec<F::Output>, RunError> {
        let taking = self.apply_external_event(stage, news);
        tokio::pin!(taking);
        let mut ended = Vec::new();
        loop {
            tokio::select! {
                taken = &mut taking => return taken.map(|()| ended),
                Some(one) = running.next(), if !running.is_empty() => ended.push(one),
            }
        }
    }

    async fn apply_external_event(
        &self,
        stage: &PipelineExecution<'_, '_>,
        news: ExternalEvent,
    ) -> Result<(), RunError> {
        match news {
            ExternalEvent::Answer => stage.journal.apply_external_events().await,
            ExternalEvent::Configuration => {
                // Before it is read: what is written meanwhile is news again.
                stage.config_modified_at.set(self.config_modified_at());
                self.reload_waiting(stage).await
            }
        }
    }

    /// When the configuration was last written.
    pub(super) fn config_modified_at(&self) -> Option<SystemTime> {
        let plan = self.plan();
        let path = plan.config_path.as_ref()?;
        std::fs::metadata(path).ok()?.modified().ok()
    }

    /// Waits until there is news for whoever waits for a person, or somebody stops it.
    pub(super) async fn wait_for_answer(
        &self,
        stage: &PipelineExecution<'_, '_>,
    ) -> Result<(), RunError> {
        let journal = stage.journal;
        let mut stop = self.stop.clone();
        let heard = async {
            tokio::select! {
                news = self.next_external_event(stage) => news.map(Some),
                () = wait_for_stop(&mut stop) => Ok(None),
            }
        };
        if let Some(news) = self.with_ticks(journal, heard).await? {
            self.apply_external_event(stage, news).await?;
        }
        match *self.stop.borrow() {
            StopRequest::Continue => Ok(()),
            _ => self.finish(journal, RunOutcome::Interrupted).await,
        }
    }
}
