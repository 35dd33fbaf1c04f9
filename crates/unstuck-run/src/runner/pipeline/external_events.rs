//! Events outside of this process while a run waits: an answer, or a changed configuration.

use std::time::SystemTime;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use unstuck_core::event::RunOutcome;

use super::{PipelineExecution, PipelineRunner};
use crate::process::AttemptStopRequest;
use crate::runner::error::RunError;
use crate::runner::notify_hook::NotifyingEventWriter;
use crate::runner::resume::{ANSWER_POLL_INTERVAL, expire_escalation};
use crate::runner::session_runner::wait_for_stop;

/// An event outside of this process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ExternalEvent {
    /// An escalation was answered.
    Answer,
    /// The configuration file was changed.
    Configuration,
}

impl PipelineRunner<'_> {
    /// Completes when an escalation of this run was answered in any process, or when the configuration was changed.
    ///
    /// It only detects the event, since the caller may drop the future:
    /// [`apply_while_running`](Self::apply_while_running) processes the event without interruption.
    pub(super) async fn next_external_event(
        &self,
        stage: &PipelineExecution<'_, '_>,
    ) -> Result<ExternalEvent, RunError> {
        let scribe = NotifyingEventWriter {
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

    /// Applies an external event while role instances run: they may hold what is needed for it, so they continue
    /// meanwhile. Returns their results.
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
                // Read before the configuration: a later change is a new event.
                stage.config_modified_at.set(self.config_modified_at());
                self.reload_waiting(stage).await
            }
        }
    }

    /// Returns the modification time of the configuration.
    pub(super) fn config_modified_at(&self) -> Option<SystemTime> {
        let plan = self.plan();
        let path = plan.config_path.as_ref()?;
        std::fs::metadata(path).ok()?.modified().ok()
    }

    /// Waits for an external event while the run is blocked, or until it is stopped.
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
            AttemptStopRequest::Continue => Ok(()),
            _ => self.finish(journal, RunOutcome::Interrupted).await,
        }
    }
}
