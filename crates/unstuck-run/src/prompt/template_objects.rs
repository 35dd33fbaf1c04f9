//! The objects in which templates look up values, with a record of missing values.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use minijinja::value::{Enumerator, Object, Value};
use minijinja::{Error, ErrorKind};

use super::include_files::{PromptFileProvider, PromptIncludeError};

/// The first missing value of a template.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum MissingTemplateValue {
    Output(String),
    File(String, PromptIncludeError),
}

/// A record of missing values; the engine's own errors do not name them.
#[derive(Debug, Clone, Default)]
pub(super) struct MissingValueRecord(Arc<Mutex<Option<MissingTemplateValue>>>);

impl MissingValueRecord {
    fn record_miss(&self, vain: MissingTemplateValue) {
        let mut first = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        first.get_or_insert(vain);
    }

    pub(super) fn first_miss(&self) -> Option<MissingTemplateValue> {
        let first = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        first.clone()
    }
}

/// The `outputs` object of templates: the outputs of roles by name.
#[derive(Debug)]
pub(super) struct OutputsTemplateObject {
    pub(super) texts: BTreeMap<String, String>,
    pub(super) misses: MissingValueRecord,
}

impl Object for OutputsTemplateObject {
    fn get_value(self: &Arc<Self>, key: &Value) -> Option<Value> {
        let role = key.as_str()?;
        let found = self.texts.get(role);
        if found.is_none() {
            self.misses
                .record_miss(MissingTemplateValue::Output(role.to_owned()));
        }
        found.map(Value::from)
    }

    fn enumerate(self: &Arc<Self>) -> Enumerator {
        Enumerator::Values(self.texts.keys().map(Value::from).collect())
    }
}

/// The `files` object of templates and the function `file(…)`: files of the project by path.
pub(super) struct FilesTemplateObject {
    pub(super) files: Arc<dyn PromptFileProvider>,
    pub(super) misses: MissingValueRecord,
}

impl std::fmt::Debug for FilesTemplateObject {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("files")
    }
}

impl FilesTemplateObject {
    pub(super) fn read(&self, path: &str) -> Result<String, Error> {
        self.files.read(path).map_err(|cannot| {
            let reason = cannot.reason.clone();
            self.misses
                .record_miss(MissingTemplateValue::File(path.to_owned(), cannot));
            Error::new(ErrorKind::InvalidOperation, reason)
        })
    }
}

impl Object for FilesTemplateObject {
    fn get_value(self: &Arc<Self>, key: &Value) -> Option<Value> {
        self.read(key.as_str()?).ok().map(Value::from)
    }
}
