//! Those who run the children of a run: as many side by side as are allowed, and no more are started than needed.

use std::cell::RefCell;
use std::ops::{Deref, DerefMut};

use tokio::sync::{Semaphore, SemaphorePermit};

use crate::process::{ChildSignalSender, ProcessError, ReaperProgram, Supervisor};

/// Supervisors for the attempts of a run.
pub struct SupervisorPool {
    program: ReaperProgram,
    idle: RefCell<Vec<Supervisor>>,
    permits: Semaphore,
}

impl SupervisorPool {
    /// One that is started at once, and more up to a limit when they are needed.
    pub fn start(program: ReaperProgram, most: u32) -> Result<Self, ProcessError> {
        let first = Supervisor::start(&program)?;
        let most = usize::try_from(most.max(1)).unwrap_or(1);
        Ok(Self {
            program,
            idle: RefCell::new(vec![first]),
            permits: Semaphore::new(most.min(Semaphore::MAX_PERMITS)),
        })
    }

    /// Passes signals on to the child of the first one.
    pub fn signal_sender(&self) -> Option<ChildSignalSender> {
        self.idle.borrow().first().map(Supervisor::signal_sender)
    }

    /// One for an attempt; waits until one is free.
    pub(super) async fn acquire(&self) -> Result<SupervisorGuard<'_>, ProcessError> {
        let permit = self.permits.acquire().await;
        // Nobody closes it.
        let permit = permit.map_err(|_| ProcessError::ReaperDied)?;
        let idle = self.idle.borrow_mut().pop();
        let supervisor = match idle {
            Some(idle) => idle,
            None => Supervisor::start(&self.program)?,
        };
        Ok(SupervisorGuard {
            supervisor: Some(supervisor),
            pool: self,
            _permit: permit,
        })
    }
}

/// A supervisor that was taken for an attempt; it goes back when it is dropped.
pub(super) struct SupervisorGuard<'s> {
    supervisor: Option<Supervisor>,
    pool: &'s SupervisorPool,
    _permit: SemaphorePermit<'s>,
}

impl Deref for SupervisorGuard<'_> {
    type Target = Supervisor;

    fn deref(&self) -> &Supervisor {
        match &self.supervisor {
            Some(supervisor) => supervisor,
            None => unreachable!("it is only given back when it is dropped"),
        }
    }
}

impl DerefMut for SupervisorGuard<'_> {
    fn deref_mut(&mut self) -> &mut Supervisor {
        match &mut self.supervisor {
            Some(supervisor) => supervisor,
            None => unreachable!("it is only given back when it is dropped"),
        }
    }
}

impl Drop for SupervisorGuard<'_> {
    fn drop(&mut self) {
        if let Some(supervisor) = self.supervisor.take() {
            self.pool.idle.borrow_mut().push(supervisor);
        }
    }
}
