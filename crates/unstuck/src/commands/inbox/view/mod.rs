//! Interactive inbox on a terminal: a list, one escalation at a time, answers by single keys.
//!
//! The state is a value (`view_state`) that is rendered into lines (`render`). Slow work is done in `worker`, so that
//! keys are handled at once.

mod keys;
mod render;
mod shown_escalation;
mod terminal;
mod view_state;
mod worker;

#[cfg(test)]
mod tests;

use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result};
use crossterm::event;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use unstuck_store::EscalationRow;

use self::terminal::RawTerminal;
use self::view_state::{InboxAction, InboxView};
use self::worker::{InboxWorker, InboxWorkerEvent, InboxWorkerRequest};
use crate::clock;
use crate::command_context::CommandContext;
use crate::output::ColorMode;

/// Timeout for polling keys before worker events are checked.
const KEY_POLL_TIMEOUT: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 50_000_000,
};
/// Base of the exit code after a signal (128 + number).
const SIGNAL_EXIT_BASE: usize = 128;

/// Shows pending escalations until the user leaves.
pub(super) fn run(waiting: Vec<EscalationRow>, session: &CommandContext<'_>) -> Result<ExitCode> {
    let (to_desk, requests) = mpsc::channel();
    let (news, from_desk) = mpsc::channel();
    let color = session.color;
    thread::scope(|scope| {
        let person = scope.spawn(move || run_ui(waiting, color, &to_desk, &from_desk));
        InboxWorker::new(session, news).serve(&requests);
        match person.join() {
            Ok(left) => left,
            Err(panic) => std::panic::resume_unwind(panic),
        }
    })
}

/// Render loop: draws and handles keys until the user leaves.
fn run_ui(
    waiting: Vec<EscalationRow>,
    color: ColorMode,
    to_desk: &Sender<InboxWorkerRequest>,
    from_desk: &Receiver<InboxWorkerEvent>,
) -> Result<ExitCode> {
    let signalled = Arc::new(AtomicUsize::new(0));
    // A hangup ends the process as usual: there is no terminal left to restore.
    for signal in [SIGINT, SIGTERM] {
        let number = usize::try_from(signal)?;
        signal_hook::flag::register_usize(signal, Arc::clone(&signalled), number)?;
    }
    let mut terminal = RawTerminal::acquire(color).context("cannot use the terminal")?;
    let mut view = InboxView::new(waiting);
    loop {
        let (size, now) = (terminal.size(), clock::now().at);
        view.scroll_within(render::max_scroll(&view, size, now));
        terminal.paint(render::screen(&view, size, now))?;
        let mut wishes = Vec::new();
        let keys = wait_for_keys();
        if keys.contains(PollFlags::HUP) {
            return Ok(signal_exit_code(usize::try_from(SIGHUP)?));
        }
        while keys.contains(PollFlags::IN) && event::poll(Duration::ZERO)? {
            wishes.extend(keys::from_event(event::read()?).and_then(|key| view.on_key(key)));
        }
        wishes.extend(from_desk.try_iter().filter_map(|news| view.on_event(news)));
        match signalled.load(Ordering::SeqCst) {
            0 => {}
            signal => return Ok(signal_exit_code(signal)),
        }
        for wish in wishes {
            match wish {
                InboxAction::Leave => return Ok(ExitCode::SUCCESS),
                InboxAction::Interrupt => return Ok(signal_exit_code(usize::try_from(SIGINT)?)),
                // A worker that ended has already reported why.
                InboxAction::Send(request) => drop(to_desk.send(request)),
            }
        }
    }
}

/// Waits briefly and returns whether keys are available or the terminal is gone.
///
/// A lost terminal must be detected here: reading keys from it would return nothing forever.
fn wait_for_keys() -> PollFlags {
    let stdin = std::io::stdin();
    let mut ready = [PollFd::new(&stdin, PollFlags::IN)];
    // The caller checks for signals.
    let _ = poll(&mut ready, Some(&KEY_POLL_TIMEOUT));
    ready[0].revents()
}

fn signal_exit_code(signal: usize) -> ExitCode {
    ExitCode::from(u8::try_from(SIGNAL_EXIT_BASE + signal).unwrap_or(1))
}
