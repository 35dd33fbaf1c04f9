//! What commands that run something, or look at what ran, start from.

use std::path::Path;

use unstuck_core::planner::shell_quote;
use unstuck_store::StoreLocation;

use crate::config::ConfigSources;
use crate::environment;
use crate::output::Color;
use crate::paths::abbreviate_home;

/// What every command that runs something starts from.
#[derive(Debug)]
pub(crate) struct CommandContext<'a> {
    pub(crate) store: &'a StoreLocation,
    /// The configuration file that was named.
    pub(crate) config: Option<&'a Path>,
    pub(crate) color: Color,
}

impl CommandContext<'_> {
    /// Where configuration comes from.
    pub(crate) fn sources(&self) -> ConfigSources<'_> {
        ConfigSources {
            named: self.config,
            store: Some(self.store),
            accepted: None,
        }
    }

    /// A command line of unstuck that finds this very store when a person copies it.
    pub(crate) fn unstuck_command(&self, words: &str) -> String {
        format!("unstuck {words}{}", self.store_option())
    }

    /// The option that names the store, with a blank before it; empty where it is the usual one.
    pub(crate) fn store_option(&self) -> String {
        if environment::store_location().is_ok_and(|usual| usual == *self.store) {
            return String::new();
        }
        let path = self.store.to_string();
        match shell_quote(&path) {
            quoted if quoted == path => format!(" --store {}", abbreviate_home(&path)),
            quoted => format!(" --store {quoted}"),
        }
    }
}
