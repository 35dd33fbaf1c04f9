//! Consistency checks across the parts of a configuration.

mod agents;
mod error_recovery;
mod gateway;
mod repair_permissions;
mod role_dependencies;
mod roles;
mod webhooks;

use std::path::Path;

use unstuck_core::command_policy::sanitize_command;
use unstuck_core::nearest;
use unstuck_files::FileErrorKind;

use crate::config::Config;
use crate::problem::ConfigProblem;
use crate::section::OnUnlistedCommand;
use crate::trust_layering::lint_approval;

impl Config {
    /// Returns all errors that no single value shows by itself.
    ///
    /// Variables in role prompts are checked by the prompt renderer.
    pub fn check(&self) -> Vec<ConfigProblem> {
        let mut check = ConfigChecker {
            config: self,
            problems: Vec::new(),
        };
        check.check_agents();
        check.check_roles();
        check.check_order();
        check.check_loop();
        check.check_recovery();
        check.check_prompts();
        check.check_knowledge();
        check.check_webhooks();
        check.check_gateway();
        let mut problems: Vec<ConfigProblem> = Vec::new();
        // An error that is the same for every role is reported once.
        for problem in check.problems {
            if !problems.contains(&problem) {
                problems.push(problem);
            }
        }
        problems
    }

    /// Returns warnings about valid settings.
    pub fn warnings(&self) -> Vec<ConfigProblem> {
        let mut notes = self.old_names().to_vec();
        notes.extend(self.permissive_rule_warning());
        notes.extend(self.approval_warnings());
        notes.extend(self.untrusted_files().iter().map(|file| ConfigProblem {
            path: String::new(),
            message: file.to_string(),
            location: None,
        }));
        notes.extend(self.unlisted_commands_warning());
        notes.extend(self.retry_cap_warnings());
        notes.extend(self.unknown_model_warnings());
        notes
    }

    /// Warns about a rule that allows commands nobody listed.
    fn permissive_rule_warning(&self) -> Option<ConfigProblem> {
        let section = self.recovery()?;
        let text =
            "allows simple commands that are not listed; prefer listing them in auto_approve";
        (section.on_unknown == OnUnlistedCommand::Allow)
            .then(|| self.problem_at("recovery.on_unknown", text))
    }

    /// Warns about risky approved commands.
    fn approval_warnings(&self) -> Vec<ConfigProblem> {
        let approved = self.recovery().map(|section| section.auto_approve.iter());
        let entries = approved.into_iter().flatten().enumerate();
        let doubts = entries.flat_map(|(at, entry)| {
            let path = format!("recovery.auto_approve.{}", at + 1);
            let told = lint_approval(entry)
                .into_iter()
                .map(move |why| (path.clone(), format!("`{}` {why}", sanitize_command(entry))));
            told.map(|(path, text)| self.problem_at(&path, text))
        });
        doubts.collect()
    }

    /// Warns about retries that the cap removes.
    fn retry_cap_warnings(&self) -> Vec<ConfigProblem> {
        let recovery = self.error_recovery();
        let general = self.policies.for_roles().max_retries;
        let cap = recovery.max_auto_retries.unwrap_or(general);
        let above = recovery.strategies.iter().filter_map(|(kind, one)| {
            let retries = one.max_retries.filter(|retries| *retries > cap)?;
            let path = format!("error_recovery.strategies.{kind}.max_retries");
            let text = format!(
                "is {retries}, but `error_recovery.max_auto_retries` caps it at {cap}; \
                 raise the cap, or set it in the role"
            );
            Some(self.problem_at(&path, text))
        });
        above.collect()
    }

    /// Warns about unknown models in ladders.
    fn unknown_model_warnings(&self) -> Vec<ConfigProblem> {
        let catalog = self.catalog();
        let ladders = self.root.models.ladder.iter();
        ladders
            .flat_map(|ladder| ladder.models.iter().map(move |model| (ladder, model)))
            .filter(|(_, model)| catalog.find(model).is_none())
            .map(|(ladder, model)| {
                let text = format!(
                    "unknown model `{model}`: its cost cannot be estimated; \
                     add it with [[models.model]]"
                );
                self.problem_at(&format!("models.ladder.{}.models", ladder.id), text)
            })
            .collect()
    }
}

/// Collects configuration errors.
struct ConfigChecker<'c> {
    config: &'c Config,
    problems: Vec<ConfigProblem>,
}

impl ConfigChecker<'_> {
    fn report(&mut self, path: &str, what: impl Into<String>) {
        self.problems.push(self.config.problem_at(path, what));
    }

    /// Reads a file; reports an error if it cannot be read.
    fn require_file(&mut self, path: &str, file: &Path) -> Option<String> {
        let shown = self.config.display_path(file);
        let shown = shown.display();
        let told = match self.config.read_named_file(path, file) {
            Ok(text) => return Some(text),
            Err(error) => match error.problem {
                FileErrorKind::Missing => format!("file {shown} not found"),
                FileErrorKind::NotText => format!("{shown} is not valid UTF-8"),
                FileErrorKind::OutsideRoot => format!(
                    "{shown} is outside the project: a configuration file that agents can write can only reference files in the project"
                ),
                problem => format!("cannot read {shown}: {problem}"),
            },
        };
        self.report(path, told);
        None
    }

    fn check_loop(&mut self) {
        let Some(looping) = self.config.loop_section() else {
            return;
        };
        if self.config.roles().is_empty() {
            self.report("loop", "has no roles to run; add a [[role]]");
        }
        let Some(promise) = &looping.until.promise else {
            return;
        };
        if promise.text.trim().is_empty() {
            self.report(
                "loop.until.promise.text",
                "must not be empty, or the loop would always end",
            );
        }
        if let Some(role) = &promise.role
            && !self.config.has_role(role)
        {
            let ids = self.config.roles().iter().map(|role| role.id.as_str());
            let text = unknown_name("role", role, ids);
            self.report("loop.until.promise.role", text);
        }
    }

    /// Checks user-defined rules, chains, strategies and repairs.
    fn check_knowledge(&mut self) {
        // The built-in knowledge is valid, and parsing it takes time.
        let own = self.config.origin("repairs").is_some();
        if let Some(Err(error)) = own.then(|| self.config.repair_catalog()) {
            self.report("repairs", error.to_string());
        }
        let Err(error) = self.config.prepare() else {
            return;
        };
        let kinds = self.config.root.kinds.keys();
        let meant = kinds.map(|kind| kind.name()).find(|name| {
            error.location.contains(&format!("`{name}`"))
                || error.location.contains(&format!("/{name}."))
        });
        let path = meant.map_or_else(|| "kinds".to_owned(), |name| format!("kinds.{name}"));
        let text = match error.location.split_once("rule ") {
            Some((_, rule)) => format!("rule {rule}: {}", error.problem),
            None => error.problem,
        };
        self.report(&path, text);
    }
}

/// Returns the message for an unknown name.
fn unknown_name<'a>(what: &str, name: &str, known: impl Iterator<Item = &'a str>) -> String {
    let known: Vec<_> = known.collect();
    let near = nearest(name, known.iter().map(|known| (*known, *known)));
    let hint = match near {
        Some(near) => format!(", did you mean `{near}`?"),
        None if known.is_empty() => String::new(),
        None if known.len() <= 15 => format!("; known: {}", known.join(", ")),
        None => String::new(),
    };
    format!("unknown {what} `{name}`{hint}")
}
