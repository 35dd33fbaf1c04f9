//! Renders a prompt.

use std::collections::BTreeMap;
use std::sync::Arc;

use minijinja::syntax::SyntaxConfig;
use minijinja::value::Value;
use minijinja::{Environment, Error, ErrorKind, UndefinedBehavior, context};

use super::lookup::{IncludedFiles, MissedLookups, MissingLookup, OutputsObject};
use super::{IncludeFiles, PromptFault, PromptValues, RolePromptTemplate};

/// Limit of the template engine, far above that of any sensible prompt.
const TEMPLATE_FUEL: u64 = 1_000_000;

impl RolePromptTemplate {
    /// Renders the prompt.
    pub fn render<F>(&self, values: &PromptValues, files: &F) -> Result<String, PromptFault>
    where
        F: IncludeFiles + Clone + 'static,
    {
        let filler = PromptRenderer::new(self, files);
        let environment = filler.environment()?;
        let template = filler.compile(&environment)?;
        template
            .render(filler.context(values))
            .map_err(|error| filler.fault(&error))
    }
}

/// Renders one prompt.
pub(super) struct PromptRenderer<'p> {
    prompt: &'p RolePromptTemplate,
    included: Arc<IncludedFiles>,
    pub(super) misses: MissedLookups,
}

impl<'p> PromptRenderer<'p> {
    pub(super) fn new<F: IncludeFiles + Clone + 'static>(
        prompt: &'p RolePromptTemplate,
        files: &F,
    ) -> Self {
        let misses = MissedLookups::default();
        let included = IncludedFiles {
            files: Arc::new(files.clone()),
            misses: misses.clone(),
        };
        Self {
            prompt,
            included: Arc::new(included),
            misses,
        }
    }

    pub(super) fn environment(&self) -> Result<Environment<'p>, PromptFault> {
        let mut environment = Environment::new();
        environment.set_undefined_behavior(UndefinedBehavior::Strict);
        let syntax = SyntaxConfig::builder().keep_trailing_newline(true).build();
        environment.set_syntax(syntax.map_err(|error| self.fault(&error))?);
        environment.set_fuel(Some(TEMPLATE_FUEL));
        let included = Arc::clone(&self.included);
        environment.add_function("file", move |path: String| included.read(&path));
        environment
            .add_template("prompt", &self.prompt.text)
            .map_err(|error| self.fault(&error))?;
        Ok(environment)
    }

    pub(super) fn compile<'e>(
        &self,
        environment: &'e Environment<'p>,
    ) -> Result<minijinja::Template<'e, 'e>, PromptFault> {
        let found = environment.get_template("prompt");
        found.map_err(|error| self.fault(&error))
    }

    pub(super) fn context(&self, values: &PromptValues) -> Value {
        let outputs = OutputsObject {
            texts: values.outputs.clone(),
            misses: self.misses.clone(),
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

    pub(super) fn fault(&self, error: &Error) -> PromptFault {
        let role = self.prompt.role.clone();
        match self.misses.first_miss() {
            Some(MissingLookup::File(path, cannot)) => PromptFault::File {
                role,
                path,
                reason: cannot.reason,
                suggestion: cannot.suggestion,
            },
            Some(MissingLookup::Output(output)) => PromptFault::UnknownPlaceholder {
                role,
                placeholder: format!("outputs.{output}"),
                suggestion: None,
            },
            None => PromptFault::InvalidTemplate {
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
