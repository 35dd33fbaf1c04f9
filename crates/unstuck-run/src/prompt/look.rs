//! What templates look values up in, and what they asked for in vain.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use minijinja::value::{Enumerator, Object, Value};
use minijinja::{Error, ErrorKind};

use super::files::{CannotInclude, Files};

/// The first thing that a template asked for in vain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Vain {
    Output(String),
    File(String, CannotInclude),
}

/// Keeps what was asked for in vain; the engine's own errors do not tell it.
#[derive(Debug, Clone, Default)]
pub(super) struct Asked(Arc<Mutex<Option<Vain>>>);

impl Asked {
    fn note(&self, vain: Vain) {
        let mut first = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        first.get_or_insert(vain);
    }

    pub(super) fn vain(&self) -> Option<Vain> {
        let first = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        first.clone()
    }
}

/// `outputs`.
#[derive(Debug)]
pub(super) struct Outputs {
    pub(super) texts: BTreeMap<String, String>,
    pub(super) asked: Asked,
}

impl Object for Outputs {
    fn get_value(self: &Arc<Self>, key: &Value) -> Option<Value> {
        let role = key.as_str()?;
        let found = self.texts.get(role);
        if found.is_none() {
            self.asked.note(Vain::Output(role.to_owned()));
        }
        found.map(Value::from)
    }

    fn enumerate(self: &Arc<Self>) -> Enumerator {
        Enumerator::Values(self.texts.keys().map(Value::from).collect())
    }
}

/// `files` and `file(…)`.
pub(super) struct Included {
    pub(super) files: Arc<dyn Files>,
    pub(super) asked: Asked,
}

impl std::fmt::Debug for Included {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("files")
    }
}

impl Included {
    pub(super) fn read(&self, path: &str) -> Result<String, Error> {
        self.files.read(path).map_err(|cannot| {
            let reason = cannot.reason.clone();
            self.asked.note(Vain::File(path.to_owned(), cannot));
            Error::new(ErrorKind::InvalidOperation, reason)
        })
    }
}

impl Object for Included {
    fn get_value(self: &Arc<Self>, key: &Value) -> Option<Value> {
        self.read(key.as_str()?).ok().map(Value::from)
    }
}
