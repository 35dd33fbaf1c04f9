//! Renders a prompt.

use std::collections::BTreeMap;
use std::sync::Arc;

use minijinja::syntax::SyntaxConfig;
use minijinja::value::Value;
use minijinja::{Environment, Error, ErrorKind, UndefinedBehavior, context};

use super::template_objects::{
    FilesTemplateObject, MissingTemplateValue, MissingValueRecord, OutputsTemplateObject,
};
use super::{PromptFileProvider, PromptValues, RolePromptError, RolePromptTemplate};

/// Limit of the template engine, far above that of any sensible prompt.
const TEMPLATE_FUEL: u64 = 1_000_000;

impl RolePromptTemplate {
    /// Renders the prompt.
    pub fn render<F>(&self, values: &PromptValues, files: &F) -> Result<String, RolePromptError>
    where
        F: PromptFileProvider + Clone + 'static,
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
    included: Arc<FilesTemplateObject>,
    pub(super) misses: MissingValueRecord,
}

impl<'p> PromptRenderer<'p> {
    pub(super) fn new<F: PromptFileProvider + Clone + 'static>(
        prompt: &'p RolePromptTemplate,
        files: &F,
    ) -> Self {
        let misses = MissingValueRecord::default();
        let included = FilesTemplateObject {
            files: Arc::new(files.clone()),
            misses: misses.clone(),
        };
        Self {
            prompt,
            included: Arc::new(included),
            misses,
        }
    }

    pub(super) fn environment(&self) -> Result<Environment<'p>, RolePromptError> {
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
    ) -> Result<minijinja::Template<'e, 'e>, RolePromptError> {
        let found = environment.get_template("prompt");
        found.map_err(|error| self.fault(&error))
    }

    pub(super) fn context(&self, values: &PromptValues) -> Value {
        let outputs = OutputsTemplateObject {
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

    pub(super) fn fault(&self, error: &Error) -> RolePromptError {
        let role = self.prompt.role.clone();
        match self.misses.first_miss() {
            Some(MissingTemplateValue::File(path, cannot)) => RolePromptError::File {
                role,
                path,
                reason: cannot.reason,
                suggestion: cannot.suggestion,
            },
            Some(MissingTemplateValue::Output(output)) => RolePromptError::UnknownPlaceholder {
                role,
                placeholder: format!("outputs.{output}"),
                suggestion: None,
            },
            None => RolePromptError::InvalidTemplate {
                role,
                reason: match error.kind() {
                    ErrorKind::UndefinedError => "undefined value".to_owned(),
                    ErrorKind::OutOfFuel => {
                        "too many steps; check it for an endless loop".to_owned()
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
