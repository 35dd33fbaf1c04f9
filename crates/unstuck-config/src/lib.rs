//! The configuration: `unstuck.toml` and its variants, with the source of each value.
//!
//! A configuration is read in layers, later ones win: defaults, the user's file, the project's file, an explicit file,
//! the environment, flags. A stored policy for all projects is applied before the project's file, a stored policy of
//! the project after all files. Files are TOML, JSON or YAML with the same keys. Tables are merged by key, roles by id;
//! everything else is replaced as a whole.
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
//! let layers = Layers { work_dir: Some(folder.path().to_owned()), ..Layers::default() };
//! let config = Config::load(&layers)?;
//! assert_eq!(config.roles()[0].timeout.map(|limit| limit.as_secs()), Some(1200));
//! let origin = config.origin("role.planner.timeout").map(|origin| origin.to_string());
//! assert_eq!(origin.as_deref(), Some("unstuck.toml:6"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod aliases;
mod check;
mod config;
mod gateway_trust;
mod held_changes;
mod key_rules;
mod layers;
mod load;
mod model_prices;
mod policies;
mod problem;
mod project_commands;
mod project_settings;
mod prompt_files;
mod resolved;
mod role_chain;
mod role_policy;
mod root;
mod safe_directories;
mod schema;
mod schema_helpers;
pub mod section;
mod spanned;
mod trust_layering;
mod trust_queries;

pub use config::Config;
pub use layers::{
    Layers, POLICY, PROJECT_FILES, PolicyScope, SettingOverride, StoredPolicy, USER_FILES,
    VARIABLES, has_project_file, project_dirs,
};
pub use load::LoadResult;
pub use problem::{ConfigError, ConfigProblem, SourceLocation};
pub use project_commands::ProjectCommand;
pub use resolved::{ResolvedConfig, ResolvedValue};
pub use role_policy::RolePolicy;
pub use schema::schema;
pub use spanned::source::Origin;
pub use trust_layering::{
    DeclaredRepairPolicy, ProjectRecovery, ProjectTrust, RepairPolicyChange, UntrustedFile,
    diff_policies, intersect, lint_approval,
};
