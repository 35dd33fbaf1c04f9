//! What is wrong with a prompt, as far as that can be told before anything runs.

use std::collections::{BTreeMap, BTreeSet};

use minijinja::ErrorKind;
use minijinja::value::{Value, merge_maps};
use unstuck_core::nearest;

use super::files::CannotInclude;
use super::look::Vain;
use super::names::{OTHERS, PLAIN, UNSTUCK};
use super::template::Filler;
use super::{Files, Names, PromptFault, PromptSource, Values};

/// Functions that every template has.
const FUNCTIONS: [&str; 4] = ["range", "dict", "namespace", "debug"];
/// More faults than anyone reads at once.
const MOST: usize = 20;

impl PromptSource {
    /// Whether the prompt can be filled; the first thing that is wrong with it.
    pub fn check<F>(&self, names: &Names, files: &F) -> Result<(), PromptFault>
    where
        F: Files + Clone + 'static,
    {
        self.faults(names, files)
            .into_iter()
            .next()
            .map_or(Ok(()), Err)
    }

    /// All that is wrong with the prompt.
    pub fn faults<F>(&self, names: &Names, files: &F) -> Vec<PromptFault>
    where
        F: Files + Clone + 'static,
    {
        let used = match self.names() {
            Ok(used) => used,
            Err(broken) => return vec![broken],
        };
        let mut told = Told::default();
        for name in self.with_minus(&used, names, &mut told) {
            if let Some(fault) = self.about(&name, names) {
                told.name(&name, fault);
            }
        }
        // What the names alone do not show (`outputs["a"]`, files) shows when it is filled, with texts and without.
        for sample in ["x", ""] {
            while told.faults.len() < MOST && self.try_out(sample, names, files, &mut told) {}
        }
        told.faults
    }

    /// Whether a name is filled in anywhere.
    pub fn uses(&self, name: &str) -> bool {
        self.names()
            .is_ok_and(|used| used.iter().any(|one| one.split('.').next() == Some(name)))
    }

    /// The names that the template uses, such as `task` and `outputs.planner`.
    fn names(&self) -> Result<BTreeSet<String>, PromptFault> {
        let filler = Filler::new(self, &super::NoFiles);
        let environment = filler.environment()?;
        let template = filler.compiled(&environment)?;
        Ok(template.undeclared_variables(true).into_iter().collect())
    }

    /// The names without those into which `outputs.my-role` falls apart; that is told instead.
    fn with_minus(
        &self,
        used: &BTreeSet<String>,
        names: &Names,
        told: &mut Told,
    ) -> BTreeSet<String> {
        let mut used = used.clone();
        for role in names.roles.iter().filter(|role| role.contains('-')) {
            let mut parts = role.split('-').map(str::to_owned);
            let first = parts.next().map(|first| format!("outputs.{first}"));
            let first = first.filter(|first| used.contains(first));
            let is_written = self.text.contains(&format!("outputs.{role}"));
            let (Some(first), true) = (first, is_written) else {
                continue;
            };
            let fault = PromptFault::Minus {
                role: self.role.clone(),
                other: role.clone(),
            };
            told.name(&first, fault);
            used.remove(&first);
            for part in parts {
                if used.remove(&part) {
                    told.made_up.insert(part);
                }
            }
        }
        used
    }

    /// Fills the prompt with a sample; true if something new came of it, and there may be more.
    fn try_out<F>(&self, sample: &str, names: &Names, files: &F, told: &mut Told) -> bool
    where
        F: Files + Clone + 'static,
    {
        let known = Spared {
            files: files.clone(),
            paths: told.files.clone(),
        };
        let filler = Filler::new(self, &known);
        let environment = match filler.environment() {
            Ok(environment) => environment,
            Err(fault) => return told.last(fault),
        };
        let template = match filler.compiled(&environment) {
            Ok(template) => template,
            Err(fault) => return told.last(fault),
        };
        let values = self.samples(sample, names, told);
        let made_up = told
            .made_up
            .iter()
            .map(|name| (name.clone(), sample.to_owned()));
        let made_up: BTreeMap<_, _> = made_up.collect();
        let context = merge_maps([Value::from(made_up), filler.context(&values)]);
        let Err(error) = template.render(context) else {
            return false;
        };
        match (filler.asked.vain(), error.kind()) {
            (Some(Vain::Output(role)), _) if !told.outputs.contains(&role) => {
                let name = format!("outputs.{role}");
                let fault = self.about(&name, names);
                told.outputs.insert(role);
                told.faults.extend(fault);
                true
            }
            (Some(Vain::File(path, _)), _) if told.files.insert(path.clone()) => {
                told.faults.push(filler.fault(&error));
                true
            }
            // These depend on what the values are, and those are made up here.
            (
                None,
                ErrorKind::BadSerialization | ErrorKind::CannotUnpack | ErrorKind::InvalidOperation,
            ) => false,
            (None, ErrorKind::UndefinedError) if !told.faults.is_empty() => false,
            _ => told.last(filler.fault(&error)),
        }
    }

    fn samples(&self, sample: &str, names: &Names, told: &Told) -> Values {
        let outputs = names.outputs.iter().chain(&told.outputs);
        Values {
            task: sample.to_owned(),
            feedback: sample.to_owned(),
            outputs: outputs
                .map(|role| (role.clone(), sample.to_owned()))
                .collect(),
            iteration: 1,
            max_iterations: 1,
            instance: 1,
            instances: 1,
            role: self.role.clone(),
            ..Values::default()
        }
    }

    /// What is wrong with a name that the template uses.
    fn about(&self, name: &str, names: &Names) -> Option<PromptFault> {
        let (first, rest) = name.split_once('.').unwrap_or((name, ""));
        let rest = rest.split('.').next().unwrap_or_default();
        let known = match first {
            "outputs" if rest.is_empty() || names.outputs.contains(rest) => true,
            "outputs" => return Some(self.about_output(rest, names)),
            "unstuck" => UNSTUCK.contains(&rest),
            "files" | "file" => true,
            _ if FUNCTIONS.contains(&first) => true,
            _ => PLAIN.contains(&first) && rest.is_empty() || OTHERS.contains(&first),
        };
        if known {
            return None;
        }
        let all: Vec<_> = names.all().collect();
        let all = all.iter().map(|known| (known.as_str(), known.clone()));
        Some(PromptFault::Unknown {
            role: self.role.clone(),
            placeholder: name.to_owned(),
            suggestion: nearest(name, all),
        })
    }

    fn about_output(&self, other: &str, names: &Names) -> PromptFault {
        let (role, other) = (self.role.clone(), other.to_owned());
        if names.roles.contains(&other) {
            return PromptFault::NotNeeded { role, other };
        }
        let known = names.roles.iter().filter(|id| **id != role);
        PromptFault::NoRole {
            suggestion: nearest(&other, known.clone().map(|id| (id.as_str(), id.clone()))),
            known: known.cloned().collect(),
            role: role.clone(),
            other,
        }
    }
}

/// What was told, and is there from then on, so that the rest shows too.
#[derive(Default)]
struct Told {
    faults: Vec<PromptFault>,
    made_up: BTreeSet<String>,
    outputs: BTreeSet<String>,
    files: BTreeSet<String>,
}

impl Told {
    /// A name that nothing fills.
    fn name(&mut self, name: &str, fault: PromptFault) {
        match name.split_once('.') {
            Some(("outputs", role)) => {
                let role = role.split('.').next().unwrap_or_default();
                self.outputs.insert(role.to_owned());
            }
            Some(_) => {}
            None => {
                self.made_up.insert(name.to_owned());
            }
        }
        self.faults.push(fault);
    }

    /// A fault behind which nothing more can be seen.
    fn last(&mut self, fault: PromptFault) -> bool {
        if !self.faults.contains(&fault) {
            self.faults.push(fault);
        }
        false
    }
}

/// Files, and those of which it was told that they are not there.
#[derive(Clone)]
struct Spared<F> {
    files: F,
    paths: BTreeSet<String>,
}

impl<F: Files> Files for Spared<F> {
    fn read(&self, path: &str) -> Result<String, CannotInclude> {
        if self.paths.contains(path) {
            return Ok(String::new());
        }
        self.files.read(path)
    }
}
