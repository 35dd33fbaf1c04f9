//! The configuration that counts here, or what is wrong with it and what to do about that.

use std::path::Path;

use anyhow::Result;
pub(crate) use unstuck_config::Config;
use unstuck_config::{ConfigError, Layers, Setting};

use crate::environment;
use crate::report::hinted;

/// Reads every configuration file that there is.
pub(crate) fn load(named: Option<&Path>) -> Result<Config> {
    Config::load(&layers(named)).map_err(explained)
}

/// Where configuration is looked for.
pub(crate) fn layers(named: Option<&Path>) -> Layers {
    Layers {
        user: environment::user_config(),
        here: std::env::current_dir().ok(),
        named: named.map(Path::to_owned),
        settings: Setting::from_environment(environment::variable),
    }
}

/// A configuration error with what to do next.
pub(crate) fn explained(error: ConfigError) -> anyhow::Error {
    let hint = match &error {
        ConfigError::Unreadable { .. } => return error.into(),
        ConfigError::Two { .. } => "keep one of them, and remove or rename the other",
        ConfigError::Invalid { .. } => {
            "`unstuck config check` tells more; `unstuck kinds` and `unstuck policy list` show what can be set"
        }
    };
    hinted(error.to_string(), hint)
}
