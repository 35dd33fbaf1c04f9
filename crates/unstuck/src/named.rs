//! What a person names behind a command: a run, a role of it, one attempt.

use anyhow::Result;
use unstuck_core::episode::{AttemptStory, Timeline};
use unstuck_core::event::{Part, RunStarted};

use crate::report::refused;

/// What a person names: a run, and behind slashes a role of it, and one attempt of that.
///
/// A number behind the run alone counts all attempts of the run, behind a role those of the role's newest iteration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Named<'a> {
    /// The first letters of the run's id; the newest run is meant without them.
    pub(crate) letters: Option<&'a str>,
    /// The role, with its instance behind `#` where only one of several is meant.
    pub(crate) role: Option<&'a str>,
    pub(crate) attempt: Option<u32>,
}

impl<'a> Named<'a> {
    /// Reads words such as `k3v9`, `k3v9/2`, `k3v9/tester` and `k3v9/tester/2`.
    pub(crate) fn read(given: Option<&'a str>) -> Result<Self> {
        let mut words = given.unwrap_or_default().splitn(3, '/');
        let letters = words.next().filter(|letters| !letters.is_empty());
        let (role, number) = match (words.next(), words.next()) {
            (None, _) => (None, None),
            // A role whose name is a number must be named with its attempt.
            (Some(word), None) if word.bytes().all(|byte| byte.is_ascii_digit()) => {
                (None, Some(word))
            }
            (Some(word), None) => (Some(word), None),
            (Some(role), Some(number)) => (Some(role), Some(number)),
        };
        let attempt = number.map(number_of).transpose()?;
        Ok(Self {
            letters,
            role,
            attempt,
        })
    }

    /// The attempts of a run that are meant; an error if there is none of that name or number.
    pub(crate) fn attempts<'t>(&self, timeline: &'t Timeline) -> Result<Vec<&'t AttemptStory>> {
        self.check_role(timeline)?;
        let attempts = self.meant(timeline);
        let (Some(number), true) = (self.attempt, attempts.is_empty()) else {
            return Ok(attempts);
        };
        let run = &timeline.view.id;
        let all = Self {
            attempt: None,
            ..*self
        };
        let count = all.newest(timeline).len();
        let (whose, there) = match self.role {
            Some(role) => (
                format!("role {role} of run {run}"),
                "in its newest iteration",
            ),
            None => (format!("run {run}"), "of them"),
        };
        Err(refused(
            format!("{whose} has no attempt {number}"),
            format!("it has {count} {there}"),
        ))
    }

    /// The attempts of a run that are meant, as far as there are any yet.
    pub(crate) fn meant<'t>(&self, timeline: &'t Timeline) -> Vec<&'t AttemptStory> {
        let Some(number) = self.attempt else {
            return self.of_role(timeline).collect();
        };
        match self.role {
            None => {
                let is_it = |story: &&AttemptStory| story.index == number;
                timeline.attempts.iter().filter(is_it).collect()
            }
            Some(_) => {
                let mut newest = self.newest(timeline);
                newest.retain(|story| story.number == number);
                // A role that was run again in the same iteration has had two attempts of each number.
                let last = newest.last().map(|story| story.session.clone());
                let single = !self.is_several(&timeline.run);
                newest.retain(|story| !single || Some(&story.session) == last.as_ref());
                newest
            }
        }
    }

    /// Whether a role is meant that several play at the same time.
    pub(crate) fn is_several(&self, run: &RunStarted) -> bool {
        let role = self.role.filter(|role| !role.contains('#'));
        role.is_some_and(|role| instances_of(run, role) > 1)
    }

    fn of_role<'t>(&self, timeline: &'t Timeline) -> impl Iterator<Item = &'t AttemptStory> {
        let role = self.role;
        let plays = move |story: &&AttemptStory| match (role, &story.part) {
            (None, _) => true,
            (Some(role), Some(part)) => plays(part, role),
            (Some(_), None) => false,
        };
        timeline.attempts.iter().filter(plays)
    }

    /// The attempts of the role's newest iteration.
    fn newest<'t>(&self, timeline: &'t Timeline) -> Vec<&'t AttemptStory> {
        let iteration = |story: &&AttemptStory| story.part.as_ref().map(|part| part.iteration);
        let newest = self.of_role(timeline).map(|story| iteration(&story)).max();
        let attempts = self.of_role(timeline);
        match self.role {
            Some(_) => attempts
                .filter(|story| Some(iteration(story)) == newest)
                .collect(),
            None => attempts.collect(),
        }
    }

    fn check_role(&self, timeline: &Timeline) -> Result<()> {
        let Some(role) = self.role else {
            return Ok(());
        };
        let run = timeline.view.id.short();
        let Some(plan) = timeline.run.pipeline() else {
            return Err(refused(
                format!("run {run} has no roles: it is a single command"),
                format!("write only the run and the number of the attempt, such as {run}/1"),
            ));
        };
        let of_plan = plan.roles.iter().any(|known| known.id == role_of(role));
        let mut sessions = timeline.sessions.iter();
        let played = |part: &Part| plays(part, role);
        match sessions.any(|session| session.part.as_ref().is_some_and(played)) {
            true => Ok(()),
            false if of_plan => Err(refused(
                format!("{role} has not begun in run {run}"),
                format!("`unstuck show {run}` tells how it stands"),
            )),
            false => {
                let roles: Vec<_> = plan.roles.iter().map(|role| role.id.as_str()).collect();
                Err(refused(
                    format!("run {run} has no role `{role}`"),
                    format!("its roles are {}", roles.join(", ")),
                ))
            }
        }
    }
}

fn number_of(word: &str) -> Result<u32> {
    word.parse().map_err(|_| {
        refused(
            format!("`{word}` is not the number of an attempt"),
            "write the run and the number, such as k3v9/2, or the role between them, such as k3v9/tester/2",
        )
    })
}

/// Whether a part is of the role that was named, or the very instance.
pub(crate) fn plays(part: &Part, named: &str) -> bool {
    match named.split_once('#') {
        Some((role, instance)) => part.role == role && instance.parse() == Ok(part.instance),
        None => part.role == named,
    }
}

fn role_of(named: &str) -> &str {
    named.split_once('#').map_or(named, |(role, _)| role)
}

fn instances_of(run: &RunStarted, role: &str) -> u32 {
    let mut roles = run.pipeline().into_iter().flat_map(|plan| &plan.roles);
    roles
        .find(|known| known.id == role)
        .map_or(1, |role| role.instances)
}

/// The name of a part for people: the role, and its instance where there are several.
pub(crate) fn part_name(part: &Part, run: &RunStarted) -> String {
    part.name(instances_of(run, &part.role))
}

/// The name of an attempt for people: with its role and its iteration where there are such.
pub(crate) fn attempt_name(attempt: &AttemptStory, run: &RunStarted) -> String {
    let number = attempt.number;
    let Some(part) = &attempt.part else {
        return format!("attempt {number}");
    };
    let name = part_name(part, run);
    let loops = run.pipeline().is_some_and(|plan| plan.looping.is_some());
    match loops {
        true => format!("{name}, iteration {}, attempt {number}", part.iteration),
        false => format!("{name}, attempt {number}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(given: &str) -> (Option<&str>, Option<&str>, Option<u32>) {
        let named = Named::read(Some(given)).unwrap();
        (named.letters, named.role, named.attempt)
    }

    #[test]
    fn a_run_a_role_and_an_attempt_are_read() {
        assert_eq!(Named::read(None).unwrap(), Named::default());
        assert_eq!(read("k3v9"), (Some("k3v9"), None, None));
        assert_eq!(read("k3v9/2"), (Some("k3v9"), None, Some(2)));
        assert_eq!(read("k3v9/tester"), (Some("k3v9"), Some("tester"), None));
        assert_eq!(
            read("k3v9/tester#2/3"),
            (Some("k3v9"), Some("tester#2"), Some(3))
        );
        assert_eq!(read("k3v9/2/3"), (Some("k3v9"), Some("2"), Some(3)));
        assert_eq!(read("/2"), (None, None, Some(2)));
        let wrong = Named::read(Some("k3v9/tester/last")).unwrap_err();
        assert!(
            wrong.to_string().contains("`last` is not the number"),
            "{wrong}"
        );
    }
}
