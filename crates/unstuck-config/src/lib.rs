//! What `unstuck.toml` and its like say, and where each value comes from.
//!
//! A configuration is read in layers, later ones win: built-in values, the user's file, the project's file, a file that
//! was named, the environment, flags. A policy that was set elsewhere than in files counts before the project's file if it is that of
//! all projects, and after all files if it is the project's own. Files are TOML, JSON or YAML with the same keys. Tables are laid over each other
//! by key, roles by their id; everything else is replaced as a whole.
//!
//! ```
//! use unstuck_config::{Config, Layers};
//!
//! let folder = tempfile::tempdir()?;
//! std::fs::write(
//!     folder.path().join("unstuck.toml"),
//!     r#"
//!     [[role]]
//!     id = "planner"
//!     agent = "claude"
//!     prompt = "Plan: {{ task }}"
//!     timeout = "20m"
//!     "#,
//! )?;
//! let layers = Layers { here: Some(folder.path().to_owned()), ..Layers::default() };
//! let config = Config::load(&layers)?;
//! assert_eq!(config.roles()[0].timeout.map(|limit| limit.as_secs()), Some(1200));
//! let origin = config.origin("role.planner.timeout").map(|origin| origin.to_string());
//! assert_eq!(origin.as_deref(), Some("unstuck.toml:6"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod check;
mod config;
mod effective;
mod file;
mod gateway_words;
mod held;
mod key_rules;
mod layers;
mod load;
mod model_prices;
mod policies;
mod problem;
mod project_commands;
mod project_settings;
mod repairs;
mod role_chain;
mod role_policy;
mod safe_directories;
mod schema;
pub mod section;
mod shape;
mod spelling;
mod texts;
mod tree;
mod whose_word;

pub use config::Config;
pub use effective::{Effective, Leaf};
pub use layers::{
    Layers, POLICY, PROJECT_FILES, SetFor, SetPolicy, Setting, USER_FILES, VARIABLES,
    has_project_file, project_folders,
};
pub use load::Loaded;
pub use problem::{ConfigError, Place, Problem};
pub use project_commands::ProjectCommand;
pub use repairs::{
    Change, Distrusted, ProjectRecovery, ProjectTrust, RecoverySaid, difference, lint, narrowed,
};
pub use role_policy::RolePolicy;
pub use schema::schema;
pub use tree::source::Origin;
