//! Checking and filling a prompt.

use std::collections::BTreeMap;
use std::sync::Arc;

use minijinja::syntax::SyntaxConfig;
use minijinja::value::Value;
use minijinja::{Environment, Error, ErrorKind, UndefinedBehavior, context};
use unstuck_core::nearest;

use super::look::{Asked, Included, Outputs, Vain};
use super::names::{OTHERS, PLAIN, UNSTUCK};
use super::{Files, Names, PromptFault, PromptSource, Values};

/// More steps than any sensible prompt takes.
const FUEL: u64 = 1_000_000;
/// Functions that every template has.
const FUNCTIONS: [&str; 4] = ["range", "dict", "namespace", "debug"];

impl PromptSource {
    /// Whether the prompt can be filled, as far as that can be told before anything runs.
    pub fn check<F>(&self, names: &Names, files: &F) -> Result<(), PromptFault>
    where
        F: Files + Clone + 'static,
    {
        let filler = Filler::new(self, files);
        let environment = filler.environment()?;
        let template = filler.compiled(&environment)?;
        let mut used: Vec<_> = template.undeclared_variables(true).into_iter().collect();
        used.sort_unstable();
        for name in used {
            self.check_name(&name, names)?;
        }
        // What the names alone do not show (`outputs["a"]`, files) shows when it is filled, with texts and without.
        for sample in ["x", ""] {
            let outputs = names.outputs.iter();
            let values = Values {
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
            };
            self.try_out(&values, names, files)?;
        }
        Ok(())
    }

    fn try_out<F>(&self, values: &Values, names: &Names, files: &F) -> Result<(), PromptFault>
    where
        F: Files + Clone + 'static,
    {
        let filler = Filler::new(self, files);
        let environment = filler.environment()?;
        let template = filler.compiled(&environment)?;
        let Err(error) = template.render(filler.context(values)) else {
            return Ok(());
        };
        if let Some(Vain::Output(role)) = filler.asked.vain() {
            return self.check_name(&format!("outputs.{role}"), names);
        }
        match error.kind() {
            // These depend on what the values are, and those are made up here.
            ErrorKind::BadSerialization | ErrorKind::CannotUnpack => Ok(()),
            ErrorKind::InvalidOperation if filler.asked.vain().is_none() => Ok(()),
            _ => Err(filler.fault(&error)),
        }
    }

    /// Whether a name that the template uses is known.
    fn check_name(&self, name: &str, names: &Names) -> Result<(), PromptFault> {
        let (first, rest) = name.split_once('.').unwrap_or((name, ""));
        let rest = rest.split('.').next().unwrap_or_default();
        let known = match first {
            "outputs" if rest.is_empty() => true,
            "outputs" if names.outputs.contains(rest) => true,
            "outputs" if names.roles.contains(rest) => {
                return Err(PromptFault::NotNeeded {
                    role: self.role.clone(),
                    other: rest.to_owned(),
                });
            }
            "unstuck" => UNSTUCK.contains(&rest),
            "files" | "file" => true,
            _ if FUNCTIONS.contains(&first) => true,
            _ => {
                PLAIN.contains(&first) && rest.is_empty()
                    || OTHERS.contains(&first) && first != "outputs"
            }
        };
        if known {
            return Ok(());
        }
        let all: Vec<_> = names.all().collect();
        Err(PromptFault::Unknown {
            role: self.role.clone(),
            placeholder: name.to_owned(),
            suggestion: nearest(
                name,
                all.iter().map(|known| (known.as_str(), known.clone())),
            ),
        })
    }

    /// The prompt, filled.
    pub fn render<F>(&self, values: &Values, files: &F) -> Result<String, PromptFault>
    where
        F: Files + Clone + 'static,
    {
        let filler = Filler::new(self, files);
        let environment = filler.environment()?;
        let template = filler.compiled(&environment)?;
        template
            .render(filler.context(values))
            .map_err(|error| filler.fault(&error))
    }
}

/// Fills one prompt.
struct Filler<'p> {
    prompt: &'p PromptSource,
    included: Arc<Included>,
    asked: Asked,
}

impl<'p> Filler<'p> {
    fn new<F: Files + Clone + 'static>(prompt: &'p PromptSource, files: &F) -> Self {
        let asked = Asked::default();
        let included = Included {
            files: Arc::new(files.clone()),
            asked: asked.clone(),
        };
        Self {
            prompt,
            included: Arc::new(included),
            asked,
        }
    }

    fn environment(&self) -> Result<Environment<'p>, PromptFault> {
        let mut environment = Environment::new();
        environment.set_undefined_behavior(UndefinedBehavior::Strict);
        let syntax = SyntaxConfig::builder().keep_trailing_newline(true).build();
        environment.set_syntax(syntax.map_err(|error| self.fault(&error))?);
        environment.set_fuel(Some(FUEL));
        let included = Arc::clone(&self.included);
        environment.add_function("file", move |path: String| included.read(&path));
        environment
            .add_template("prompt", &self.prompt.text)
            .map_err(|error| self.fault(&error))?;
        Ok(environment)
    }

    fn compiled<'e>(
        &self,
        environment: &'e Environment<'p>,
    ) -> Result<minijinja::Template<'e, 'e>, PromptFault> {
        let found = environment.get_template("prompt");
        found.map_err(|error| self.fault(&error))
    }

    fn context(&self, values: &Values) -> Value {
        let outputs = Outputs {
            texts: values.outputs.clone(),
            asked: self.asked.clone(),
        };
        let unstuck = BTreeMap::from([(
            "recovery_instructions",
            values.recovery_instructions.clone(),
        )]);
        context! {
            task => values.task.as_str(),
            iteration => values.iteration,
            max_iterations => values.max_iterations,
            role => values.role.as_str(),
            instance => values.instance,
            instances => values.instances,
            feedback => values.feedback.as_str(),
            run => values.run.as_str(),
            outputs => Value::from_object(outputs),
            files => Value::from_dyn_object(Arc::clone(&self.included)),
            unstuck => unstuck,
        }
    }

    fn fault(&self, error: &Error) -> PromptFault {
        let role = self.prompt.role.clone();
        match self.asked.vain() {
            Some(Vain::File(path, cannot)) => PromptFault::File {
                role,
                path,
                reason: cannot.reason,
                suggestion: cannot.suggestion,
            },
            Some(Vain::Output(output)) => PromptFault::Unknown {
                role,
                placeholder: format!("outputs.{output}"),
                suggestion: None,
            },
            None => PromptFault::Broken {
                role,
                reason: match error.kind() {
                    ErrorKind::UndefinedError => "a value that it uses is not there".to_owned(),
                    ErrorKind::OutOfFuel => {
                        "it takes too many steps; is there an endless loop?".to_owned()
                    }
                    kind => error
                        .detail()
                        .map_or_else(|| kind.to_string(), str::to_owned),
                },
                line: error.line(),
            },
        }
    }
}
