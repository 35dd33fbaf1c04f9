//! A pool of supervisors, which run the children: started on demand, up to the allowed parallelism.

use std::cell::RefCell;
use std::ops::{Deref, DerefMut};

use tokio::sync::{Semaphore, SemaphorePermit};

use crate::process::{ChildSignalSender, ChildSupervisor, ProcessError, ReaperProgram};

/// The supervisors for the attempts of a run.
pub struct ChildSupervisorPool {
    program: ReaperProgram,
    idle: RefCell<Vec<ChildSupervisor>>,
    permits: Semaphore,
}

impl ChildSupervisorPool {
    /// Starts one supervisor at once, and more on demand up to a limit.
    pub fn start(program: ReaperProgram, most: u32) -> Result<Self, ProcessError> {
        let first = ChildSupervisor::start(&program)?;
        let most = usize::try_from(most.max(1)).unwrap_or(1);
        Ok(Self {
            program,
            idle: RefCell::new(vec![first]),
            permits: Semaphore::new(most.min(Semaphore::MAX_PERMITS)),
        })
    }

    /// Returns a sender that forwards signals to the child of the first supervisor.
    pub fn signal_sender(&self) -> Option<ChildSignalSender> {
        self.idle
            .borrow()
            .first()
            .map(ChildSupervisor::signal_sender)
    }

    /// Returns a supervisor for an attempt; waits until one is free.
    pub(super) async fn acquire(&self) -> Result<PooledChildSupervisor<'_>, ProcessError> {
        let permit = self.permits.acquire().await;
        // The semaphore is never closed.
        let permit = permit.map_err(|_| ProcessError::ReaperDied)?;
        let idle = self.idle.borrow_mut().pop();
        let supervisor = match idle {
            Some(idle) => idle,
            None => ChildSupervisor::start(&self.program)?,
        };
        Ok(PooledChildSupervisor {
            supervisor: Some(supervisor),
            pool: self,
            _permit: permit,
        })
    }
}

/// A supervisor that is used by an attempt; returned to the pool on drop.
pub(super) struct PooledChildSupervisor<'s> {
    supervisor: Option<ChildSupervisor>,
    pool: &'s ChildSupervisorPool,
    _permit: SemaphorePermit<'s>,
}

impl Deref for PooledChildSupervisor<'_> {
    type Target = ChildSupervisor;

    fn deref(&self) -> &ChildSupervisor {
        match &self.supervisor {
            Some(supervisor) => supervisor,
            None => unreachable!("returned to the pool only on drop"),
        }
    }
}

impl DerefMut for PooledChildSupervisor<'_> {
    fn deref_mut(&mut self) -> &mut ChildSupervisor {
        match &mut self.supervisor {
            Some(supervisor) => supervisor,
            None => unreachable!("returned to the pool only on drop"),
        }
    }
}

impl Drop for PooledChildSupervisor<'_> {
    fn drop(&mut self) {
        if let Some(supervisor) = self.supervisor.take() {
            self.pool.idle.borrow_mut().push(supervisor);
        }
    }
}
