//! The inbox on a terminal: a list to go through, one question at a time, answers by single keys.
//!
//! What is seen is a value (`state`) that is drawn into lines (`draw`). Whatever may take time is done at the `desk`, so
//! that keys are heard at once.

mod desk;
mod draw;
mod keys;
mod opened;
mod state;
mod terminal;

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
use unstuck_store::Question;

use self::desk::{Desk, News, Request};
use self::state::{View, Wish};
use self::terminal::Terminal;
use crate::clock;
use crate::config::Config;
use crate::output::Color;
use crate::session::Session;

/// How long keys are waited for before news are looked at.
const TICK: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 50_000_000,
};
/// What is added to the number of a signal that ended it.
const SIGNALLED: usize = 128;

/// Shows the questions that wait until the person leaves.
pub(super) fn run(
    waiting: Vec<Question>,
    config: &Config,
    session: &Session<'_>,
) -> Result<ExitCode> {
    let (to_desk, requests) = mpsc::channel();
    let (news, from_desk) = mpsc::channel();
    let color = session.color;
    thread::scope(|scope| {
        let person = scope.spawn(move || attend(waiting, color, &to_desk, &from_desk));
        Desk::new(config, session, news).serve(&requests);
        match person.join() {
            Ok(left) => left,
            Err(panic) => std::panic::resume_unwind(panic),
        }
    })
}

/// Draws, and hears keys, until the person leaves.
fn attend(
    waiting: Vec<Question>,
    color: Color,
    to_desk: &Sender<Request>,
    from_desk: &Receiver<News>,
) -> Result<ExitCode> {
    let signalled = Arc::new(AtomicUsize::new(0));
    // A hangup ends it as it ends every program: there is no terminal to be given back.
    for signal in [SIGINT, SIGTERM] {
        let number = usize::try_from(signal)?;
        signal_hook::flag::register_usize(signal, Arc::clone(&signalled), number)?;
    }
    let mut terminal = Terminal::take(color).context("cannot use the terminal")?;
    let mut view = View::new(waiting);
    loop {
        let (size, now) = (terminal.size(), clock::now().at);
        view.scroll_within(draw::most_scroll(&view, size, now));
        terminal.paint(draw::screen(&view, size, now))?;
        let mut wishes = Vec::new();
        let keys = wait_for_keys();
        if keys.contains(PollFlags::HUP) {
            return Ok(ended(usize::try_from(SIGHUP)?));
        }
        while keys.contains(PollFlags::IN) && event::poll(Duration::ZERO)? {
            wishes.extend(keys::key(event::read()?).and_then(|key| view.press(key)));
        }
        wishes.extend(from_desk.try_iter().filter_map(|news| view.learn(news)));
        match signalled.load(Ordering::SeqCst) {
            0 => {}
            signal => return Ok(ended(signal)),
        }
        for wish in wishes {
            match wish {
                Wish::Leave => return Ok(ExitCode::SUCCESS),
                Wish::Interrupt => return Ok(ended(usize::try_from(SIGINT)?)),
                // A desk that is gone has told why.
                Wish::Ask(request) => drop(to_desk.send(request)),
            }
        }
    }
}

/// Waits for a moment, and tells whether keys have come or the terminal is gone.
///
/// A terminal that is gone has to be noticed here: who reads keys from it would read nothing, without end.
fn wait_for_keys() -> PollFlags {
    let stdin = std::io::stdin();
    let mut ready = [PollFd::new(&stdin, PollFlags::IN)];
    // A signal is looked at by the caller.
    let _ = poll(&mut ready, Some(&TICK));
    ready[0].revents()
}

fn ended(signal: usize) -> ExitCode {
    ExitCode::from(u8::try_from(SIGNALLED + signal).unwrap_or(1))
}
