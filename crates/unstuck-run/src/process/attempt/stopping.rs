//! Why and how a child is told to end: a limit, somebody who wants it to stop, nobody who reads it.

use std::time::Duration;

use unstuck_core::duration::in_millis;

use crate::process::error::ProcessError;
use crate::reaper::wire::Request;

use super::{Attempt, Cause};

impl Attempt<'_> {
    pub(super) async fn due(&mut self) -> Result<(), ProcessError> {
        if self.deadlines.ticks() {
            self.sink.tick();
            self.look_for_readers().await?;
        }
        match self.deadlines.reached() {
            Some(limit) => self.end(Cause::Limit(limit), self.grace).await,
            None => Ok(()),
        }
    }

    /// The person has pressed Ctrl-C, which is for us too, whatever the child makes of it.
    pub(super) async fn interrupted(&mut self) -> Result<(), ProcessError> {
        self.stop().await?;
        self.is_interrupted = true;
        Ok(())
    }

    /// Somebody wants it to stop: the first time gently, then at once.
    pub(super) async fn stop(&mut self) -> Result<(), ProcessError> {
        let is_asked = self.is_interrupted || self.ending == Some(Cause::Stop);
        let grace = if is_asked { Duration::ZERO } else { self.grace };
        self.end(Cause::Stop, grace).await
    }

    /// Stops a child that works for nobody: a pipe would have told it so by SIGPIPE.
    pub(super) async fn look_for_readers(&mut self) -> Result<(), ProcessError> {
        if self.ending.is_none() && !self.sink.is_open() {
            self.stop().await?;
        }
        Ok(())
    }

    /// Has the child ended; the first cause is the one that counts.
    pub(super) async fn end(&mut self, cause: Cause, grace: Duration) -> Result<(), ProcessError> {
        self.ending.get_or_insert(cause);
        self.deadlines.lift();
        let grace_ms = in_millis(grace);
        self.ask(&Request::End { grace_ms }).await
    }
}
