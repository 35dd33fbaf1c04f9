//! The objects in which templates look up values, with a record of missing values.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use minijinja::value::{Enumerator, Object, Value};
use minijinja::{Error, ErrorKind};

use super::include_files::{IncludeError, IncludeFiles};

/// The first missing value of a template.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum MissingLookup {
    Output(String),
    File(String, IncludeError),
}

/// A record of missing values; the engine's own errors do not name them.
#[derive(Debug, Clone, Default)]
pub(super) struct MissedLookups(Arc<Mutex<Option<MissingLookup>>>);

impl MissedLookups {
    fn record_miss(&self, vain: MissingLookup) {
        let mut first = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        first.get_or_insert(vain);
    }

    pub(super) fn first_miss(&self) -> Option<MissingLookup> {
        let first = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        first.clone()
    }
}

/// The `outputs` object.
#[derive(Debug)]
pub(super) struct OutputsObject {
    pub(super) texts: BTreeMap<String, String>,
    pub(super) misses: MissedLookups,
}

impl Object for OutputsObject {
    fn get_value(self: &Arc<Self>, key: &Value) -> Option<Value> {
        let role = key.as_str()?;
        let found = self.texts.get(role);
        if found.is_none() {
            self.misses
                .record_miss(MissingLookup::Output(role.to_owned()));
        }
        found.map(Value::from)
    }

    fn enumerate(self: &Arc<Self>) -> Enumerator {
        Enumerator::Values(self.texts.keys().map(Value::from).collect())
    }
}

/// The `files` object and the function `file(…)`.
pub(super) struct IncludedFiles {
    pub(super) files: Arc<dyn IncludeFiles>,
    pub(super) misses: MissedLookups,
}

impl std::fmt::Debug for IncludedFiles {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("files")
    }
}

impl IncludedFiles {
    pub(super) fn read(&self, path: &str) -> Result<String, Error> {
        self.files.read(path).map_err(|cannot| {
            let reason = cannot.reason.clone();
            self.misses
                .record_miss(MissingLookup::File(path.to_owned(), cannot));
            Error::new(ErrorKind::InvalidOperation, reason)
        })
    }
}

impl Object for IncludedFiles {
    fn get_value(self: &Arc<Self>, key: &Value) -> Option<Value> {
        self.read(key.as_str()?).ok().map(Value::from)
    }
}
