//! Validates a prompt before anything runs.

use std::collections::{BTreeMap, BTreeSet};

use minijinja::ErrorKind;
use minijinja::value::{Value, merge_maps};
use unstuck_core::nearest;

use super::available_variables::{OBJECT_NAMES, SCALAR_NAMES, UNSTUCK_NAMES};
use super::include_files::PromptIncludeError;
use super::render::PromptRenderer;
use super::template_objects::MissingTemplateValue;
use super::{
    PromptFileProvider, PromptValues, PromptVariableScope, RolePromptError, RolePromptTemplate,
};

/// Built-in functions of every template.
const BUILT_IN_FUNCTIONS: [&str; 4] = ["range", "dict", "namespace", "debug"];
/// Largest number of faults that are reported.
const MAX_FAULTS: usize = 20;

impl RolePromptTemplate {
    /// Returns the first fault of the prompt.
    pub fn check<F>(&self, names: &PromptVariableScope, files: &F) -> Result<(), RolePromptError>
    where
        F: PromptFileProvider + Clone + 'static,
    {
        self.faults(names, files)
            .into_iter()
            .next()
            .map_or(Ok(()), Err)
    }

    /// Returns all faults of the prompt.
    pub fn faults<F>(&self, names: &PromptVariableScope, files: &F) -> Vec<RolePromptError>
    where
        F: PromptFileProvider + Clone + 'static,
    {
        let used = match self.variables_used() {
            Ok(used) => used,
            Err(broken) => return vec![broken],
        };
        let mut told = PromptFindings::default();
        let used = self.without_split_names(&used, names, &mut told);
        let mut used: Vec<_> = used.into_iter().collect();
        used.sort_by_key(|name| self.text.find(name));
        for name in used {
            if let Some(fault) = self.check_name(&name, names) {
                told.add_unknown_name(&name, fault);
            }
        }
        // Faults that are not visible from the names (`outputs["a"]`, files) appear when it is rendered, with and
        // without text.
        for sample in ["x", ""] {
            while told.faults.len() < MAX_FAULTS && self.try_render(sample, names, files, &mut told)
            {
            }
        }
        told.faults
    }

    /// Returns true if a variable is used anywhere.
    pub fn uses_variable(&self, name: &str) -> bool {
        self.variables_used()
            .is_ok_and(|used| used.iter().any(|one| one.split('.').next() == Some(name)))
    }

    /// Returns the names that the template uses, such as `task` and `outputs.planner`.
    fn variables_used(&self) -> Result<BTreeSet<String>, RolePromptError> {
        let filler = PromptRenderer::new(self, &super::EmptyPromptFileProvider);
        let environment = filler.environment()?;
        let template = filler.compile(&environment)?;
        Ok(template.undeclared_variables(true).into_iter().collect())
    }

    /// Removes the names into which `outputs.my-role` is split; that fault is reported instead.
    fn without_split_names(
        &self,
        used: &BTreeSet<String>,
        names: &PromptVariableScope,
        told: &mut PromptFindings,
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
            let fault = RolePromptError::HyphenInName {
                role: self.role.clone(),
                other: role.clone(),
            };
            told.add_unknown_name(&first, fault);
            used.remove(&first);
            for part in parts {
                if used.remove(&part) {
                    told.sample_names.insert(part);
                }
            }
        }
        used
    }

    /// Renders the prompt with a sample; returns true if there was a new fault and there may be more.
    fn try_render<F>(
        &self,
        sample: &str,
        names: &PromptVariableScope,
        files: &F,
        told: &mut PromptFindings,
    ) -> bool
    where
        F: PromptFileProvider + Clone + 'static,
    {
        let known = FilesExceptMissing {
            files: files.clone(),
            paths: told.files.clone(),
        };
        let filler = PromptRenderer::new(self, &known);
        let environment = match filler.environment() {
            Ok(environment) => environment,
            Err(fault) => return told.add_final_fault(fault),
        };
        let template = match filler.compile(&environment) {
            Ok(template) => template,
            Err(fault) => return told.add_final_fault(fault),
        };
        let values = self.sample_values(sample, names, told);
        let made_up = told
            .sample_names
            .iter()
            .map(|name| (name.clone(), sample.to_owned()));
        let made_up: BTreeMap<_, _> = made_up.collect();
        let context = merge_maps([Value::from(made_up), filler.context(&values)]);
        let Err(error) = template.render(context) else {
            return false;
        };
        match (filler.misses.first_miss(), error.kind()) {
            (Some(MissingTemplateValue::Output(role)), _) if !told.outputs.contains(&role) => {
                let name = format!("outputs.{role}");
                let fault = self.check_name(&name, names);
                told.outputs.insert(role);
                told.faults.extend(fault);
                true
            }
            (Some(MissingTemplateValue::File(path, _)), _) if told.files.insert(path.clone()) => {
                told.faults.push(filler.fault(&error));
                true
            }
            // These depend on the values, which are made up here.
            (
                None,
                ErrorKind::BadSerialization | ErrorKind::CannotUnpack | ErrorKind::InvalidOperation,
            ) => false,
            (None, ErrorKind::UndefinedError) if !told.faults.is_empty() => false,
            _ => told.add_final_fault(filler.fault(&error)),
        }
    }

    fn sample_values(
        &self,
        sample: &str,
        names: &PromptVariableScope,
        told: &PromptFindings,
    ) -> PromptValues {
        let outputs = names.outputs.iter().chain(&told.outputs);
        PromptValues {
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
            ..PromptValues::default()
        }
    }

    /// Returns the fault of a name that the template uses.
    fn check_name(&self, name: &str, names: &PromptVariableScope) -> Option<RolePromptError> {
        let (first, rest) = name.split_once('.').unwrap_or((name, ""));
        let rest = rest.split('.').next().unwrap_or_default();
        let known = match first {
            "outputs" if rest.is_empty() || names.outputs.contains(rest) => true,
            "outputs" => return Some(self.check_output_name(rest, names)),
            "unstuck" => UNSTUCK_NAMES.contains(&rest),
            "files" | "file" => true,
            _ if BUILT_IN_FUNCTIONS.contains(&first) => true,
            _ => SCALAR_NAMES.contains(&first) && rest.is_empty() || OBJECT_NAMES.contains(&first),
        };
        if known {
            return None;
        }
        let all: Vec<_> = names.all_placeholders().collect();
        let all = all.iter().map(|known| (known.as_str(), known.clone()));
        Some(RolePromptError::UnknownPlaceholder {
            role: self.role.clone(),
            placeholder: name.to_owned(),
            suggestion: nearest(name, all),
        })
    }

    fn check_output_name(&self, other: &str, names: &PromptVariableScope) -> RolePromptError {
        let (role, other) = (self.role.clone(), other.to_owned());
        if names.roles.contains(&other) {
            return RolePromptError::MissingDependency { role, other };
        }
        let known = names.roles.iter().filter(|id| **id != role);
        RolePromptError::UnknownRole {
            suggestion: nearest(&other, known.clone().map(|id| (id.as_str(), id.clone()))),
            known: known.cloned().collect(),
            role: role.clone(),
            other,
        }
    }
}

/// The reported faults; missing names are defined from then on, so that further faults appear.
#[derive(Default)]
struct PromptFindings {
    faults: Vec<RolePromptError>,
    sample_names: BTreeSet<String>,
    outputs: BTreeSet<String>,
    files: BTreeSet<String>,
}

impl PromptFindings {
    /// Adds an undefined name.
    fn add_unknown_name(&mut self, name: &str, fault: RolePromptError) {
        match name.split_once('.') {
            Some(("outputs", role)) => {
                let role = role.split('.').next().unwrap_or_default();
                self.outputs.insert(role.to_owned());
            }
            Some(_) => {}
            None => {
                self.sample_names.insert(name.to_owned());
            }
        }
        self.faults.push(fault);
    }

    /// Adds a fault that hides all further ones.
    fn add_final_fault(&mut self, fault: RolePromptError) -> bool {
        if !self.faults.contains(&fault) {
            self.faults.push(fault);
        }
        false
    }
}

/// The files, with empty contents for those reported as missing.
#[derive(Clone)]
struct FilesExceptMissing<F> {
    files: F,
    paths: BTreeSet<String>,
}

impl<F: PromptFileProvider> PromptFileProvider for FilesExceptMissing<F> {
    fn read(&self, path: &str) -> Result<String, PromptIncludeError> {
        if self.paths.contains(path) {
            return Ok(String::new());
        }
        self.files.read(path)
    }
}
