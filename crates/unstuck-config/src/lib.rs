//! The configuration: `unstuck.toml` and its variants, with the source of each value.
//!
//! A configuration is read in layers, later ones win: defaults, the user's file, the project's file, an explicit file,
//! the environment, flags. A stored policy for all projects is applied before the project's file, a stored policy of
//! the project after all files. Files are TOML, JSON or YAML with the same keys. Tables are merged by key, roles by id;
//! everything else is replaced as a whole.
//!
//! ```
//! use unstuck_config::{Config, ConfigLayers};
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
//! let layers = ConfigLayers { work_dir: Some(folder.path().to_owned()), ..ConfigLayers::default() };
//! let config = Config::load(&layers)?;
//! assert_eq!(config.roles()[0].timeout.map(|limit| limit.as_secs()), Some(1200));
//! let origin = config.origin("role.planner.timeout").map(|origin| origin.to_string());
//! assert_eq!(origin.as_deref(), Some("unstuck.toml:6"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod check;
mod config;
mod config_report;
mod effective_repair_permissions;
mod key_aliases;
mod key_permissions;
mod layers;
mod load;
mod problem;
mod project_commands;
mod project_settings_comparison;
mod prompt_files;
mod reject_lower_prices;
mod retry_policies;
mod role_recovery_chains;
mod role_retry_policy;
mod root_section;
mod safe_directories;
mod schema;
mod schema_helpers;
pub mod section;
mod tighten_only_settings;
mod trust_layering;
mod unapproved_changes;
mod value_tree;

pub use config::Config;
pub use config_report::{ConfigReport, ConfigReportValue};
pub use layers::{
    ConfigLayers, POLICY, PROJECT_FILES, PolicyScope, SettingOverride, StoredPolicy, USER_FILES,
    VARIABLES, has_project_file, project_dirs,
};
pub use load::ConfigLoadResult;
pub use problem::{ConfigError, ConfigProblem, SourceLocation};
pub use project_commands::ProjectCommandSetting;
pub use role_retry_policy::RoleRetryPolicy;
pub use schema::schema;
pub use trust_layering::{
    DeclaredRepairPolicy, ProjectRepairPolicy, ProjectTrust, RepairPolicyChange,
    UntrustedOwnerFile, diff_policies, intersect, lint_approval,
};
pub use value_tree::source::ConfigValueOrigin;
