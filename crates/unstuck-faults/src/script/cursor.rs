//! Which step is next: the script's state while it is played.

use unstuck_core::Timestamp;

use super::{Reply, Script, Step, Times};

/// A script that is being played.
#[derive(Debug)]
pub(crate) struct Cursor {
    steps: Vec<Playing>,
}

#[derive(Debug)]
struct Playing {
    step: Step,
    taken: u32,
    /// The moment at which its usage limit ends, once it was met.
    reset: Option<Timestamp>,
}

/// What a request gets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Taken {
    pub(crate) reply: Reply,
    /// The moment at which the usage limit ends, if it is one.
    pub(crate) reset: Option<Timestamp>,
}

impl Cursor {
    pub(crate) fn new(script: Script) -> Self {
        let playing = |step| Playing {
            step,
            taken: 0,
            reset: None,
        };
        Self {
            steps: script.steps.into_iter().map(playing).collect(),
        }
    }

    /// The step for a request; `None` if the script has none for it.
    pub(crate) fn take(&mut self, model: &str, prompt: &str, now: Timestamp) -> Option<Taken> {
        let mut fitting = self
            .steps
            .iter_mut()
            .filter(|playing| playing.step.when.fits(model, prompt));
        let mut chosen = fitting.next()?;
        while chosen.is_used_up(now) {
            let Some(next) = fitting.next() else { break };
            chosen = next;
        }
        Some(chosen.take(now))
    }
}

impl Playing {
    fn is_used_up(&self, now: Timestamp) -> bool {
        match (&self.step.reply, self.step.times) {
            (Reply::UsageLimit(limit), _) if limit.holds => {
                self.reset.is_some_and(|reset| now >= reset)
            }
            (_, Times::Count(count)) => self.taken >= count,
            (_, Times::Always) => false,
        }
    }

    fn take(&mut self, now: Timestamp) -> Taken {
        self.taken = self.taken.saturating_add(1);
        if let Reply::UsageLimit(limit) = &self.step.reply {
            let stated = || {
                limit
                    .resets_at
                    .unwrap_or_else(|| now.after(limit.resets_in))
            };
            self.reset.get_or_insert_with(stated);
        }
        Taken {
            reply: self.step.reply.clone(),
            reset: self.reset,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const START: Timestamp = Timestamp::from_seconds(1_763_000_000);

    fn names(script: Script, calls: &[(&str, &str)]) -> Vec<&'static str> {
        let mut cursor = Cursor::new(script);
        calls
            .iter()
            .map(|(model, prompt)| {
                cursor
                    .take(model, prompt, START)
                    .map_or("nothing", |taken| taken.reply.name())
            })
            .collect()
    }

    #[test]
    fn steps_come_in_their_order_and_the_last_repeats() {
        let script = Script::default()
            .then(Step::from(Reply::Overloaded).times(2))
            .then(Reply::answer("done"));
        let taken = names(script, &[("m", "p"); 4]);
        assert_eq!(taken, ["overloaded", "overloaded", "answer", "answer"]);
    }

    #[test]
    fn a_step_for_one_model_leaves_the_others_alone() {
        let script = Script::default()
            .then(Step::from(Reply::Quota).when_model("haiku").always())
            .then(Reply::Auth)
            .then(Step::from(Reply::Empty).when_prompt("title"));
        let calls = [
            ("haiku-4", "x"),
            ("opus", "x"),
            ("haiku-4", "x"),
            ("opus", "a title"),
            ("opus", "x"),
        ];
        assert_eq!(
            names(script, &calls),
            ["quota", "auth", "quota", "empty", "auth"]
        );
    }

    #[test]
    fn a_request_that_no_step_fits_gets_none() {
        let script = Script::default().then(Step::from(Reply::Quota).when_prompt("title"));
        assert_eq!(names(script, &[("m", "other")]), ["nothing"]);
    }

    #[test]
    fn a_usage_limit_that_holds_ends_at_its_reset() {
        let script = Script::default()
            .then(Reply::usage_limit(Duration::from_secs(5)))
            .then(Reply::answer("done"));
        let mut cursor = Cursor::new(script);
        let mut after = |seconds| {
            let now = START.after(Duration::from_secs(seconds));
            cursor
                .take("m", "p", now)
                .map(|taken| (taken.reply.name(), taken.reset))
        };
        let reset = Some(START.after(Duration::from_secs(5)));
        assert_eq!(after(0), Some(("usage_limit", reset)));
        assert_eq!(after(4), Some(("usage_limit", reset)));
        assert_eq!(after(5), Some(("answer", None)));
    }
}
