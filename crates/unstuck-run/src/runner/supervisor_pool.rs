//! A pool of supervisors, which run the children: started on demand, up to the allowed parallelism.

use std::cell::RefCell;
use std::ops::{Deref, DerefMut};

use tokio::sync::{Semaphore, SemaphorePermit};

use crate::process::{ChildSignalSender, ProcessError, ReaperProgram, Supervisor};

/// The supervisors for the attempts of a run.
pub struct SupervisorPool {
    program: ReaperProgram,
    idle: RefCell<Vec<Supervisor>>,
    permits: Semaphore,
}

impl SupervisorPool {
    /// Starts one supervisor at once, and more on demand up to a limit.
    pub fn start(program: ReaperProgram, most: u32) -> Result<Self, ProcessError> {
        let first = Supervisor::start(&program)?;
        let most = usize::try_from(most.max(1)).unwrap_or(1);
        Ok(Self {
            program,
            idle: RefCell::new(vec![first]),
            permits: Semaphore::new(most.min(Semaphore::MAX_PERMITS)),
        })
    }

    /// Returns a sender that forwards signals to the child of the first supervisor.
    pub fn signal_sender(&self) -> Option<ChildSignalSender> {
        self.idle.borrow().first().map(Supervisor::signal_sender)
    }

    /// Returns a supervisor for an attempt; waits until one is free.
    pub(super) async fn acquire(&self) -> Result<SupervisorGuard<'_>, ProcessError> {
        let permit = self.permits.acquire().await;
        // The semaphore is never closed.
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

/// A supervisor that is used by an attempt; returned to the pool on drop.
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
