//! Common context of commands that run something or read the store.

use std::path::Path;

use unstuck_core::recovery_plan::shell_quote;
use unstuck_store::StoreLocation;

use crate::config::ConfigSources;
use crate::environment_variables;
use crate::output::ColorMode;
use crate::project_lookup::abbreviate_home;

/// Common context of a command.
#[derive(Debug)]
pub(crate) struct CommandContext<'a> {
    pub(crate) store: &'a StoreLocation,
    /// Configuration file given by `--config`.
    pub(crate) config: Option<&'a Path>,
    pub(crate) color: ColorMode,
}

impl CommandContext<'_> {
    /// Returns the configuration sources.
    pub(crate) fn sources(&self) -> ConfigSources<'_> {
        ConfigSources {
            named: self.config,
            store: Some(self.store),
            accepted: None,
        }
    }

    /// Returns a copyable command line of unstuck that uses the same store.
    pub(crate) fn unstuck_command(&self, words: &str) -> String {
        format!("unstuck {words}{}", self.store_option())
    }

    /// Returns the option that names the store, with a leading space; empty for the default store.
    pub(crate) fn store_option(&self) -> String {
        if environment_variables::store_location().is_ok_and(|usual| usual == *self.store) {
            return String::new();
        }
        let path = self.store.to_string();
        match shell_quote(&path) {
            quoted if quoted == path => format!(" --store {}", abbreviate_home(&path)),
            quoted => format!(" --store {quoted}"),
        }
    }
}
