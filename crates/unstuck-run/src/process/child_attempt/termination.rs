//! Terminates a child: at a time limit, on a stop request, or if its output has no reader.

use std::time::Duration;

use unstuck_core::duration::to_millis;

use crate::process::error::ProcessError;
use crate::reaper::wire::ReaperRequest;

use super::{ChildAttempt, EndCause};

impl ChildAttempt<'_> {
    pub(super) async fn handle_deadline(&mut self) -> Result<(), ProcessError> {
        if self.deadlines.take_tick() {
            self.sink.on_tick();
            self.stop_if_unread().await?;
        }
        match self.deadlines.reached_limit() {
            Some(limit) => self.request_end(EndCause::Limit(limit), self.grace).await,
            None => Ok(()),
        }
    }

    /// Handles Ctrl-C, which stops the attempt even if the child ignores it.
    pub(super) async fn handle_interrupt(&mut self) -> Result<(), ProcessError> {
        self.handle_stop().await?;
        self.is_interrupted = true;
        Ok(())
    }

    /// Handles a stop request: the first is graceful, the second kills.
    pub(super) async fn handle_stop(&mut self) -> Result<(), ProcessError> {
        let is_asked = self.is_interrupted || self.end_cause == Some(EndCause::Stop);
        let grace = if is_asked { Duration::ZERO } else { self.grace };
        self.request_end(EndCause::Stop, grace).await
    }

    /// Stops a child whose output has no reader: with a pipe it would have received SIGPIPE.
    pub(super) async fn stop_if_unread(&mut self) -> Result<(), ProcessError> {
        if self.end_cause.is_none() && !self.sink.is_open() {
            self.handle_stop().await?;
        }
        Ok(())
    }

    /// Asks the child to end; only the first cause is recorded.
    pub(super) async fn request_end(
        &mut self,
        cause: EndCause,
        grace: Duration,
    ) -> Result<(), ProcessError> {
        self.end_cause.get_or_insert(cause);
        self.deadlines.disable();
        let grace_ms = to_millis(grace);
        self.send_request(&ReaperRequest::End { grace_ms }).await
    }
}
