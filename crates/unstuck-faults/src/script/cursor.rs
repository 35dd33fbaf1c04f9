//! Which step is next: the script's state while it is played.

use std::sync::Arc;

use unstuck_core::Timestamp;

use super::{Asking, Mix, Pace, Reply, Script, Step, Times};

/// A script that is being played.
#[derive(Debug)]
pub(crate) struct Cursor {
    steps: Vec<Playing>,
    mix: Option<Mixing>,
    pace: Pace,
}

#[derive(Debug)]
struct Playing {
    step: Step,
    reply: Arc<Reply>,
    taken: u32,
    /// When it was first taken.
    begun: Option<Timestamp>,
    /// How many requests fitted, their place aside.
    fitted: u64,
    /// The moment at which its usage limit ends, once it was met.
    reset: Option<Timestamp>,
}

#[derive(Debug)]
struct Mixing {
    mix: Mix,
    answer: Arc<Reply>,
    drawn: u64,
}

/// What a request gets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Taken {
    pub(crate) reply: Arc<Reply>,
    pub(crate) pace: Pace,
    /// The moment at which the usage limit ends, if it is one.
    pub(crate) reset: Option<Timestamp>,
}

/// Whether a request asks a model; other questions only get steps that name their path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Asked {
    Model,
    Aside,
}

impl Cursor {
    pub(crate) fn new(script: &Script) -> Self {
        let playing = |step: &Step| Playing {
            step: step.clone(),
            reply: Arc::new(step.reply.clone()),
            taken: 0,
            begun: None,
            fitted: 0,
            reset: None,
        };
        Self {
            steps: script.steps.iter().map(playing).collect(),
            mix: script.mix.clone().map(Mixing::new),
            pace: script.pace,
        }
    }

    /// The step for a request; `None` if the script has none for it.
    ///
    /// `failures` takes the place of the mix's own share.
    pub(crate) fn take(
        &mut self,
        asking: &Asking<'_>,
        asked: Asked,
        failures: Option<f64>,
        now: Timestamp,
    ) -> Option<Taken> {
        let mut last = None;
        for (index, playing) in self.steps.iter_mut().enumerate() {
            let is_for = asked == Asked::Model || playing.step.when.path.is_some();
            if !is_for || !playing.fits(asking) {
                continue;
            }
            last = Some(index);
            if !playing.is_used_up(now) {
                return Some(playing.take(self.pace, now));
            }
        }
        match (&mut self.mix, asked, last) {
            (Some(mixing), Asked::Model, _) => Some(mixing.take(asking, failures, self.pace)),
            (_, Asked::Model, Some(index)) => Some(self.steps[index].take(self.pace, now)),
            _ => None,
        }
    }
}

impl Playing {
    /// Whether a request is meant; it is counted if it fits but for its place.
    fn fits(&mut self, asking: &Asking<'_>) -> bool {
        if !self.step.when.fits(asking) {
            return false;
        }
        self.fitted = self.fitted.saturating_add(1);
        self.step.when.fits_place(self.fitted)
    }

    fn is_used_up(&self, now: Timestamp) -> bool {
        match (&*self.reply, self.step.times) {
            (Reply::UsageLimit(limit), _) if limit.holds => {
                self.reset.is_some_and(|reset| now >= reset)
            }
            (_, Times::Count(count)) => self.taken >= count,
            (_, Times::Within(time)) => self.begun.is_some_and(|begun| begun.after(time) <= now),
            (_, Times::Always) => false,
        }
    }

    fn take(&mut self, pace: Pace, now: Timestamp) -> Taken {
        self.taken = self.taken.saturating_add(1);
        self.begun.get_or_insert(now);
        if let Reply::UsageLimit(limit) = &*self.reply {
            let stated = || {
                limit
                    .resets_at
                    .unwrap_or_else(|| now.after(limit.resets_in))
            };
            self.reset.get_or_insert_with(stated);
        }
        Taken {
            reply: Arc::clone(&self.reply),
            pace: self.step.pace.unwrap_or(pace),
            reset: self.reset,
        }
    }
}

impl Mixing {
    fn new(mix: Mix) -> Self {
        Self {
            answer: Arc::new(Reply::Answer(mix.answer.clone())),
            mix: mix.complete(),
            drawn: 0,
        }
    }

    fn take(&mut self, asking: &Asking<'_>, failures: Option<f64>, pace: Pace) -> Taken {
        self.drawn = self.drawn.saturating_add(1);
        let failures = failures.unwrap_or(self.mix.failures);
        let fault = self
            .mix
            .draw(self.drawn, failures, |when| when.fits(asking));
        Taken {
            reply: fault.unwrap_or_else(|| Arc::clone(&self.answer)),
            pace,
            reset: None,
        }
    }
}

#[cfg(test)]
mod tests;
