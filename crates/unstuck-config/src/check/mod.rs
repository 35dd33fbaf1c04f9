//! What only shows when the parts of a configuration are held against each other.

mod agents;
mod gateway;
mod order;
mod recovery;
mod repair;
mod roles;
mod webhooks;

use std::path::Path;

use unstuck_core::guard::show_command;
use unstuck_core::nearest;
use unstuck_files::FileProblem;

use crate::config::Config;
use crate::problem::Problem;
use crate::repairs::lint;
use crate::section::OnUnknown;

impl Config {
    /// Everything that is wrong although each value by itself can be read.
    ///
    /// Placeholders of role prompts are not looked at here: whoever renders prompts knows them.
    pub fn check(&self) -> Vec<Problem> {
        let mut check = Check {
            config: self,
            problems: Vec::new(),
        };
        check.agents();
        check.roles();
        check.order();
        check.looping();
        check.recovery();
        check.prompts();
        check.knowledge();
        check.webhooks();
        check.gateway();
        let mut problems: Vec<Problem> = Vec::new();
        // What is wrong for every role in the same way is told once.
        for problem in check.problems {
            if !problems.contains(&problem) {
                problems.push(problem);
            }
        }
        problems
    }

    /// What is worth knowing although nothing is wrong.
    pub fn notes(&self) -> Vec<Problem> {
        let mut notes = self.old_names().to_vec();
        notes.extend(self.open_door());
        notes.extend(self.doubtful_approvals());
        notes.extend(self.distrusted().iter().map(|file| Problem {
            path: String::new(),
            message: file.to_string(),
            place: None,
        }));
        notes.extend(self.allowance());
        notes.extend(self.capped());
        notes.extend(self.unknown_models());
        notes
    }

    /// A rule that lets run what nobody named.
    fn open_door(&self) -> Option<Problem> {
        let section = self.recovery()?;
        let text = "lets simple commands run that nobody named; auto_approve is the safe way";
        (section.on_unknown == OnUnknown::Allow)
            .then(|| self.problem_at("recovery.on_unknown", text))
    }

    /// Approved commands that are worth a second look.
    fn doubtful_approvals(&self) -> Vec<Problem> {
        let approved = self.recovery().map(|section| section.auto_approve.iter());
        let entries = approved.into_iter().flatten().enumerate();
        let doubts = entries.flat_map(|(at, entry)| {
            let path = format!("recovery.auto_approve.{}", at + 1);
            let told = lint(entry)
                .into_iter()
                .map(move |why| (path.clone(), format!("`{}` {why}", show_command(entry))));
            told.map(|(path, text)| self.problem_at(&path, text))
        });
        doubts.collect()
    }

    /// Retries that the cap takes back.
    fn capped(&self) -> Vec<Problem> {
        let recovery = self.error_recovery();
        let general = self.policies.for_roles().max_retries;
        let cap = recovery.max_auto_retries.unwrap_or(general);
        let above = recovery.strategies.iter().filter_map(|(kind, one)| {
            let retries = one.max_retries.filter(|retries| *retries > cap)?;
            let path = format!("error_recovery.strategies.{kind}.max_retries");
            let text = format!(
                "is {retries}, but `error_recovery.max_auto_retries` is {cap} and the smaller one counts; \
                 raise that too, or set it on the role"
            );
            Some(self.problem_at(&path, text))
        });
        above.collect()
    }

    /// Models of ladders that nothing is known about.
    fn unknown_models(&self) -> Vec<Problem> {
        let catalog = self.catalog();
        let ladders = self.file.models.ladder.iter();
        ladders
            .flat_map(|ladder| ladder.models.iter().map(move |model| (ladder, model)))
            .filter(|(_, model)| catalog.find(model).is_none())
            .map(|(ladder, model)| {
                let text = format!(
                    "nothing is known about `{model}`, so what it costs cannot be estimated; \
                     [[models.model]] can say it"
                );
                self.problem_at(&format!("models.ladder.{}.models", ladder.id), text)
            })
            .collect()
    }
}

/// Collects what is wrong.
struct Check<'c> {
    config: &'c Config,
    problems: Vec<Problem>,
}

impl Check<'_> {
    fn tell(&mut self, path: &str, what: impl Into<String>) {
        self.problems.push(self.config.problem_at(path, what));
    }

    /// The text of a file; tells if it cannot be read.
    fn needs_file(&mut self, path: &str, file: &Path) -> Option<String> {
        let shown = self.config.shown(file);
        let shown = shown.display();
        let told = match self.config.named_file(path, file) {
            Ok(text) => return Some(text),
            Err(error) => match error.problem {
                FileProblem::Missing => format!("there is no file {shown}"),
                FileProblem::NotText => format!("{shown} is not text in UTF-8"),
                FileProblem::Outside => format!(
                    "{shown} is outside of the project: a file that agents can write names only files of the project"
                ),
                problem => format!("cannot read {shown}: {problem}"),
            },
        };
        self.tell(path, told);
        None
    }

    fn looping(&mut self) {
        let Some(looping) = self.config.looping() else {
            return;
        };
        if self.config.roles().is_empty() {
            self.tell(
                "loop",
                "there is no role that could run in it; add a [[role]]",
            );
        }
        let Some(promise) = &looping.until.promise else {
            return;
        };
        if promise.text.trim().is_empty() {
            self.tell("loop.until.promise.text", "an empty promise is always kept");
        }
        if let Some(role) = &promise.role
            && !self.config.knows_role(role)
        {
            let ids = self.config.roles().iter().map(|role| role.id.as_str());
            let text = unknown("role", role, ids);
            self.tell("loop.until.promise.role", text);
        }
    }

    /// Rules, chains, strategies and repairs of the user's own.
    fn knowledge(&mut self) {
        // What is built in is in order, and reading it takes time.
        let own = self.config.origin("repairs").is_some();
        if let Some(Err(error)) = own.then(|| self.config.book()) {
            self.tell("repairs", error.to_string());
        }
        let Err(error) = self.config.prepare() else {
            return;
        };
        let kinds = self.config.file.kinds.keys();
        let meant = kinds.map(|kind| kind.name()).find(|name| {
            error.place.contains(&format!("`{name}`")) || error.place.contains(&format!("/{name}."))
        });
        let path = meant.map_or_else(|| "kinds".to_owned(), |name| format!("kinds.{name}"));
        let text = match error.place.split_once("rule ") {
            Some((_, rule)) => format!("rule {rule}: {}", error.problem),
            None => error.problem,
        };
        self.tell(&path, text);
    }
}

/// What to tell about a name that nothing has.
fn unknown<'a>(what: &str, name: &str, known: impl Iterator<Item = &'a str>) -> String {
    let known: Vec<_> = known.collect();
    let near = nearest(name, known.iter().map(|known| (*known, *known)));
    let hint = match near {
        Some(near) => format!(", did you mean `{near}`?"),
        None if known.is_empty() => String::new(),
        None if known.len() <= 15 => format!("; there are {}", known.join(", ")),
        None => String::new(),
    };
    format!("there is no {what} `{name}`{hint}")
}
