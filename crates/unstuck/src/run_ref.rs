//! Parses references to a run, one of its roles or one attempt.

use anyhow::Result;
use unstuck_core::event::{RoleInstance, RunStarted};
use unstuck_core::views::{AttemptView, RunTimeline};

use crate::error_report::refusal;

/// A reference to a run, optionally followed by `/ROLE` and `/ATTEMPT`.
///
/// Without a role, the number counts all attempts of the run; with a role, those of the role's newest iteration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct RunRef<'a> {
    /// Prefix of the run id; none for the newest run.
    pub(crate) run_prefix: Option<&'a str>,
    /// Role name, followed by `#` and the instance to select one of several.
    pub(crate) role: Option<&'a str>,
    pub(crate) attempt: Option<u32>,
}

impl<'a> RunRef<'a> {
    /// Parses references such as `k3v9`, `k3v9/2`, `k3v9/tester` and `k3v9/tester/2`.
    pub(crate) fn parse(given: Option<&'a str>) -> Result<Self> {
        let mut words = given.unwrap_or_default().splitn(3, '/');
        let letters = words.next().filter(|letters| !letters.is_empty());
        let (role, number) = match (words.next(), words.next()) {
            (None, _) => (None, None),
            // A role with a numeric name must be followed by an attempt number.
            (Some(word), None) if word.bytes().all(|byte| byte.is_ascii_digit()) => {
                (None, Some(word))
            }
            (Some(word), None) => (Some(word), None),
            (Some(role), Some(number)) => (Some(role), Some(number)),
        };
        let attempt = number.map(parse_number).transpose()?;
        Ok(Self {
            run_prefix: letters,
            role,
            attempt,
        })
    }

    /// Returns the selected attempts; an error if there is no match.
    pub(crate) fn find_attempts<'t>(
        &self,
        timeline: &'t RunTimeline,
    ) -> Result<Vec<&'t AttemptView>> {
        self.check_role(timeline)?;
        let attempts = self.matching_attempts(timeline);
        let (Some(number), true) = (self.attempt, attempts.is_empty()) else {
            return Ok(attempts);
        };
        let run = &timeline.summary.id;
        let all = Self {
            attempt: None,
            ..*self
        };
        let count = all.newest_attempts_of_role(timeline).len();
        let (whose, there) = match self.role {
            Some(role) => (
                format!("role {role} of run {run}"),
                " in its newest iteration",
            ),
            None => (format!("run {run}"), ""),
        };
        Err(refusal(
            format!("{whose} has no attempt {number}"),
            match count {
                1 => format!("there is 1 attempt{there}"),
                count => format!("there are {count} attempts{there}"),
            },
        ))
    }

    /// Returns the selected attempts, possibly none yet.
    pub(crate) fn matching_attempts<'t>(&self, timeline: &'t RunTimeline) -> Vec<&'t AttemptView> {
        let Some(number) = self.attempt else {
            return self.attempts_of_role(timeline).collect();
        };
        match self.role {
            None => {
                let is_it = |story: &&AttemptView| story.index == number;
                timeline.attempts.iter().filter(is_it).collect()
            }
            Some(_) => {
                let mut newest = self.newest_attempts_of_role(timeline);
                newest.retain(|story| story.number == number);
                // A role that was re-run in the same iteration has two attempts with the same number.
                let last = newest.last().map(|story| story.session.clone());
                let single = !self.has_instances(&timeline.run);
                newest.retain(|story| !single || Some(&story.session) == last.as_ref());
                newest
            }
        }
    }

    /// True if the selected role has several parallel instances.
    pub(crate) fn has_instances(&self, run: &RunStarted) -> bool {
        let role = self.role.filter(|role| !role.contains('#'));
        role.is_some_and(|role| instance_count(run, role) > 1)
    }

    fn attempts_of_role<'t>(
        &self,
        timeline: &'t RunTimeline,
    ) -> impl Iterator<Item = &'t AttemptView> {
        let role = self.role;
        let plays = move |story: &&AttemptView| match (role, &story.part) {
            (None, _) => true,
            (Some(role), Some(part)) => part_matches(part, role),
            (Some(_), None) => false,
        };
        timeline.attempts.iter().filter(plays)
    }

    /// Returns the attempts of the role's newest iteration.
    fn newest_attempts_of_role<'t>(&self, timeline: &'t RunTimeline) -> Vec<&'t AttemptView> {
        let iteration = |story: &&AttemptView| story.part.as_ref().map(|part| part.iteration);
        let newest = self
            .attempts_of_role(timeline)
            .map(|story| iteration(&story))
            .max();
        let attempts = self.attempts_of_role(timeline);
        match self.role {
            Some(_) => attempts
                .filter(|story| Some(iteration(story)) == newest)
                .collect(),
            None => attempts.collect(),
        }
    }

    fn check_role(&self, timeline: &RunTimeline) -> Result<()> {
        let Some(role) = self.role else {
            return Ok(());
        };
        let run = timeline.summary.id.short();
        let Some(plan) = timeline.run.pipeline() else {
            return Err(refusal(
                format!("run {run} has no roles: it is a single command"),
                format!("specify only the run and the attempt number, such as {run}/1"),
            ));
        };
        let of_plan = plan.roles.iter().any(|known| known.id == role_name(role));
        let mut sessions = timeline.sessions.iter();
        let played = |part: &RoleInstance| part_matches(part, role);
        match sessions.any(|session| session.part.as_ref().is_some_and(played)) {
            true => Ok(()),
            false if of_plan => Err(refusal(
                format!("{role} has not started in run {run}"),
                format!("`unstuck show {run}` shows its status"),
            )),
            false => {
                let roles: Vec<_> = plan.roles.iter().map(|role| role.id.as_str()).collect();
                Err(refusal(
                    format!("unknown role `{role}` in run {run}"),
                    format!("valid roles: {}", roles.join(", ")),
                ))
            }
        }
    }
}

fn parse_number(word: &str) -> Result<u32> {
    word.parse().map_err(|_| {
        refusal(
            format!("invalid attempt number `{word}`"),
            "use RUN/ATTEMPT, such as k3v9/2, or RUN/ROLE/ATTEMPT, such as k3v9/tester/2",
        )
    })
}

/// True if the instance has the named role, or is the named instance.
pub(crate) fn part_matches(part: &RoleInstance, named: &str) -> bool {
    match named.split_once('#') {
        Some((role, instance)) => part.role == role && instance.parse() == Ok(part.instance),
        None => part.role == named,
    }
}

fn role_name(named: &str) -> &str {
    named.split_once('#').map_or(named, |(role, _)| role)
}

fn instance_count(run: &RunStarted, role: &str) -> u32 {
    let mut roles = run.pipeline().into_iter().flat_map(|plan| &plan.roles);
    roles
        .find(|known| known.id == role)
        .map_or(1, |role| role.instances)
}

/// Returns the display name of a role instance: the role, plus the instance number if there are several.
pub(crate) fn part_name(part: &RoleInstance, run: &RunStarted) -> String {
    part.display_name(instance_count(run, &part.role))
}

/// Returns the display name of an attempt, with its role and iteration if it has them.
pub(crate) fn attempt_name(attempt: &AttemptView, run: &RunStarted) -> String {
    let number = attempt.number;
    let Some(part) = &attempt.part else {
        return format!("attempt {number}");
    };
    let name = part_name(part, run);
    let loops = run
        .pipeline()
        .is_some_and(|plan| plan.loop_settings.is_some());
    if loops {
        format!("{name}, iteration {}, attempt {number}", part.iteration)
    } else {
        format!("{name}, attempt {number}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(given: &str) -> (Option<&str>, Option<&str>, Option<u32>) {
        let named = RunRef::parse(Some(given)).unwrap();
        (named.run_prefix, named.role, named.attempt)
    }

    #[test]
    fn references_to_run_role_and_attempt_are_parsed() {
        assert_eq!(RunRef::parse(None).unwrap(), RunRef::default());
        assert_eq!(read("k3v9"), (Some("k3v9"), None, None));
        assert_eq!(read("k3v9/2"), (Some("k3v9"), None, Some(2)));
        assert_eq!(read("k3v9/tester"), (Some("k3v9"), Some("tester"), None));
        assert_eq!(
            read("k3v9/tester#2/3"),
            (Some("k3v9"), Some("tester#2"), Some(3))
        );
        assert_eq!(read("k3v9/2/3"), (Some("k3v9"), Some("2"), Some(3)));
        assert_eq!(read("/2"), (None, None, Some(2)));
        let wrong = RunRef::parse(Some("k3v9/tester/last")).unwrap_err();
        assert!(
            wrong.to_string().contains("invalid attempt number `last`"),
            "{wrong}"
        );
    }
}
