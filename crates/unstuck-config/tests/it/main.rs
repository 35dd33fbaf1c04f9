//! Configuration tests.
#![expect(clippy::disallowed_methods, reason = "a test makes and looks at files")]
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod damage;
mod formats;
mod gateway;
mod held;
mod hostile;
mod layering;
mod mistakes;
mod model_prices;
mod recovery;
mod schema;
mod shown;
mod trust;

use std::fs;
use std::path::Path;

use tempfile::TempDir;
use unstuck_config::{Config, ConfigError, ConfigLayers, ConfigLoadResult, SettingOverride};

/// A home and a project with configuration files.
struct Place {
    folder: TempDir,
}

impl Place {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir_all(folder.path().join("project")).unwrap();
        fs::create_dir_all(folder.path().join("user")).unwrap();
        Self { folder }
    }

    /// A project with one file.
    fn with(name: &str, text: &str) -> Self {
        let place = Self::new();
        place.project(name, text);
        place
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    fn project(&self, name: &str, text: &str) -> &Self {
        fs::write(self.path().join("project").join(name), text).unwrap();
        self
    }

    fn user(&self, name: &str, text: &str) -> &Self {
        fs::write(self.path().join("user").join(name), text).unwrap();
        self
    }

    fn layers(&self) -> ConfigLayers {
        ConfigLayers {
            user: Some(self.path().join("user")),
            work_dir: Some(self.path().join("project")),
            ..ConfigLayers::default()
        }
    }

    fn load(&self) -> Result<Config, ConfigError> {
        Config::load(&self.layers())
    }

    fn config(&self) -> Config {
        match self.load() {
            Ok(config) => config,
            Err(error) => panic!("{error}"),
        }
    }

    /// Returns the configuration with these environment variables.
    fn config_with(&self, variables: &[(&str, &str)]) -> Config {
        let variable = |name: &str| {
            let found = variables.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| (*value).to_owned())
        };
        let layers = ConfigLayers {
            overrides: SettingOverride::from_environment(variable),
            ..self.layers()
        };
        Config::load(&layers).unwrap()
    }

    /// Returns all problems, as texts.
    fn problems(&self) -> Vec<String> {
        let ConfigLoadResult { config, problems } = ConfigLoadResult::read(&self.layers()).unwrap();
        let more = config.check();
        let all = problems.into_iter().chain(more);
        all.map(|problem| problem.to_string()).collect()
    }
}

/// Returns a valid role with additional lines.
fn role(id: &str, lines: &str) -> String {
    format!(
        "[[role]]\nid = \"{id}\"\nagent = \"claude\"\nprompt = \"Do {{{{ task }}}}\"\n{lines}\n"
    )
}
