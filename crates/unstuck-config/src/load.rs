//! Reads and merges all layers.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path, PathBuf};

use serde::Deserialize;
use unstuck_core::agent::AgentDefinition;
use unstuck_core::nearest;
use unstuck_core::project_settings_snapshot::ProjectSettingsSnapshot;

use crate::config::{Config, UnreadableValues};
use crate::config_report::defaults;
use crate::key_aliases;
use crate::key_permissions;
use crate::layers::{
    ConfigFileLayer, ConfigLayers, ConfigTextWithTrust, POLICY, PolicyScope, SettingOverride,
    StoredPolicy,
};
use crate::problem::{ConfigError, ConfigProblem};
use crate::project_settings_comparison::ProjectSettingsComparison;
use crate::reject_lower_prices;
use crate::retry_policies::{PolicyOverride, RetryPolicies};
use crate::root_section::RootSection;
use crate::tighten_only_settings;
use crate::trust_layering::{FileTrust, LayeredRepairPolicy, UntrustedOwnerFile};
use crate::value_tree::source::{ConfigSource, FileFormat, Sources};
use crate::value_tree::value_error::{ValueError, ValueErrorKind};
use crate::value_tree::{Node, SourceId, Span, Table, Value, decode, merge, parse};

/// A configuration as far as it could be read, with its problems.
#[derive(Debug, Default)]
pub struct ConfigLoadResult {
    /// The readable part of the configuration.
    pub config: Config,
    /// The problems.
    pub problems: Vec<ConfigProblem>,
}

impl Config {
    /// Loads every layer and reports all problems at once.
    pub fn load(layers: &ConfigLayers) -> Result<Self, ConfigError> {
        ConfigLoadResult::read(layers)?.into_valid()
    }

    /// Loads every layer, with a text in place of the project's file, which is not read.
    pub fn load_with_project_text(
        layers: &ConfigLayers,
        path: &Path,
        text: &str,
    ) -> Result<Self, ConfigError> {
        let files = layers.read_with_project_text(path, text)?;
        ConfigLoadResult::from_texts(layers, files)?.into_valid()
    }

    /// Loads the owner's layers, with the settings that a run has accepted in place of the project's files, which are
    /// not opened.
    ///
    /// Values of the project that are invalid meanwhile, such as the path of a replaced file, are no error: nothing in
    /// the project can make the others not apply.
    pub fn load_with_accepted_settings(
        layers: &ConfigLayers,
        settings: &ProjectSettingsSnapshot,
    ) -> Result<Self, ConfigError> {
        let owners = ConfigLayers {
            without_project: true,
            ..layers.clone()
        };
        Self::load(&owners)?;
        let files = layers.read_with_settings(settings)?;
        Ok(ConfigLoadResult::from_texts(layers, files)?.config)
    }
}

impl ConfigLoadResult {
    /// Loads every layer as far as possible.
    pub fn read(layers: &ConfigLayers) -> Result<Self, ConfigError> {
        Self::from_texts(layers, layers.read()?)
    }

    fn into_valid(self) -> Result<Config, ConfigError> {
        if self.problems.is_empty() {
            Ok(self.config)
        } else {
            Err(ConfigError::Invalid {
                problems: self.problems,
            })
        }
    }

    fn from_texts(
        layers: &ConfigLayers,
        files: Vec<(ConfigFileLayer, PathBuf, ConfigTextWithTrust)>,
    ) -> Result<Self, ConfigError> {
        let mut reader = LayerReader::new(layers)?;
        let mut everybodys = layers
            .stored_policies
            .iter()
            .filter(|one| one.scope == PolicyScope::Everybody);
        for (owner, path, text) in files {
            if owner != ConfigFileLayer::User {
                everybodys
                    .by_ref()
                    .for_each(|one| reader.add_stored_policy(one));
            }
            reader.add_file(owner, path, text);
        }
        everybodys.for_each(|one| reader.add_stored_policy(one));
        let own = layers
            .stored_policies
            .iter()
            .filter(|one| one.scope == PolicyScope::Project);
        own.for_each(|one| reader.add_stored_policy(one));
        for setting in &layers.overrides {
            reader.add_override(setting);
        }
        let accepted = layers.accepted.as_ref();
        if let Some(gone) = accepted.and_then(|accepted| reader.comparison.missing_file(accepted)) {
            return Err(gone);
        }
        Ok(reader.finish())
    }
}

/// The key that defines upstreams.
const UPSTREAMS: &str = "gateway.upstreams";
/// The file that only the user writes.
const USER_FILE: &str = "~/.config/unstuck/config.toml";
/// The keys that are allowed only in the user's own file.
const OWNER_ONLY_KEYS: [&str; 2] = ["trust_project_config", "safe_directories"];

/// Returns the message for a key that this file may not set.
fn owner_only_message(key: &str) -> String {
    match key {
        "trust_project_config" => {
            format!(
                "projects can be trusted only in your own configuration; move it to {USER_FILE}"
            )
        }
        "safe_directories" => format!(
            "directories can be declared safe only in your own configuration; move it to {USER_FILE}"
        ),
        _ if key.starts_with("gateway.") => format!(
            "allowed only in your own configuration, because agents can write this file and could redirect your API keys; \
             move it to {USER_FILE}, or to a file outside the project and pass it with --config"
        ),
        _ if key.ends_with("_env") => format!(
            "allowed only in your own configuration, because agents can write this file and could send the variable to a server of \
             their choice; move the whole entry to {USER_FILE}"
        ),
        _ => format!(
            "allowed only in your own configuration, because agents can write this file; move it to {USER_FILE}"
        ),
    }
}

/// Drops webhook entries that have lost their address.
fn drop_empty_addresses(tree: &mut Table) {
    let hooks = tree.get_mut("webhooks").and_then(Node::table_mut);
    for entry in hooks.into_iter().flat_map(|hooks| &mut hooks.0) {
        if let Some(list) = entry.node.list_mut() {
            list.retain(|one| one.table().is_none_or(|hook| hook.get("url").is_some()));
        }
    }
}

/// Returns a path without `.` and `..`, without accessing the file system.
fn normalized(path: &Path) -> PathBuf {
    let mut way = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                way.pop();
            }
            part => way.push(part),
        }
    }
    way
}

/// Merges the sources one after the other.
struct LayerReader<'l> {
    layers: &'l ConfigLayers,
    /// The directories of the project.
    agent_writable_dirs: Vec<PathBuf>,
    sources: Sources,
    tree: Table,
    files: Vec<PathBuf>,
    forced: Option<PolicyOverride>,
    repair_trust: LayeredRepairPolicy,
    projects: Vec<SourceId>,
    comparison: ProjectSettingsComparison,
    /// The agents defined in the owner's files.
    owner_agents: Table,
    problems: Vec<ConfigProblem>,
    old_names: Vec<ConfigProblem>,
}

/// The only section that is read from the owner's files alone.
#[derive(Default, Deserialize)]
#[serde(default)]
struct OnlyAgents {
    agents: BTreeMap<String, AgentDefinition>,
}

impl<'l> LayerReader<'l> {
    fn new(layers: &'l ConfigLayers) -> Result<Self, ConfigError> {
        Ok(Self {
            layers,
            agent_writable_dirs: layers.agent_writable_dirs()?,
            sources: Sources::new(layers.work_dir.as_deref()),
            tree: Table::default(),
            files: Vec::new(),
            forced: None,
            repair_trust: LayeredRepairPolicy::default(),
            projects: Vec::new(),
            comparison: ProjectSettingsComparison::default(),
            owner_agents: Table::default(),
            problems: Vec::new(),
            old_names: Vec::new(),
        })
    }

    fn add_file(&mut self, owner: ConfigFileLayer, path: PathBuf, text: ConfigTextWithTrust) {
        let ConfigTextWithTrust {
            text,
            format,
            trust: class,
            ..
        } = text;
        self.files.push(path.clone());
        let id = self.sources.next();
        let parsed = parse(format, &text, id);
        let name = path.clone();
        let id = self.sources.add(ConfigSource::File { path, text });
        if class != FileTrust::Owner {
            self.projects.push(id);
        }
        let mut tree = match parsed {
            Ok(tree) => tree,
            Err(errors) => {
                for error in errors {
                    self.report("", error.span, error.reason);
                }
                return;
            }
        };
        let folder = self.sources.folder(id).map(Path::to_owned);
        self.apply_precedence(&mut tree, folder.as_deref());
        for (path, fault) in self.repair_trust.add_file(&class, &name, &tree) {
            self.report_error(&path, &fault);
        }
        self.drop_untrusted((owner, &class), &name, &mut tree);
        self.note_roles(&tree);
        if class != FileTrust::Owner {
            self.check_project_paths(&tree);
            let at = Span {
                source: id,
                start: 0,
                end: 0,
            };
            let accepted = self.layers.accepted.as_ref();
            self.comparison.add_file(&name, &mut tree, at, accepted);
            tighten_only_settings::restrict(&self.tree, &mut tree);
            self.no_cheaper_models((owner, &class), &name, &mut tree);
        }
        if class == FileTrust::Owner
            && let Some(agents) = tree.entry("agents")
        {
            merge::merge(&mut self.owner_agents, Table(vec![agents.clone()]));
        }
        merge::merge(&mut self.tree, tree);
    }

    /// Converts one source to the canonical form.
    fn apply_precedence(&mut self, tree: &mut Table, folder: Option<&Path>) {
        let spelled = key_aliases::resolve_aliases(tree, folder);
        for (path, fault) in spelled.faults {
            self.report_error(&path, &fault);
        }
        for (path, fault) in spelled.old_names {
            let problem = ConfigProblem::from_error(&self.sources, &path, &fault);
            self.old_names.push(problem);
        }
    }

    /// Records the roles as the files name them.
    fn note_roles(&mut self, tree: &Table) {
        let Some(Value::List(roles)) = tree.get("role").map(|node| &node.value) else {
            return;
        };
        for id in roles.iter().filter_map(Node::id) {
            if !self.comparison.roles.iter().any(|known| known == id) {
                self.comparison.roles.push(id.to_owned());
            }
        }
    }

    /// Drops settings that would give others access to the user's secrets or privileges.
    fn drop_untrusted(
        &mut self,
        (owner, class): (ConfigFileLayer, &FileTrust),
        file: &Path,
        tree: &mut Table,
    ) {
        if class == &FileTrust::Owner {
            // A file given for a single command does not apply to all projects.
            if owner != ConfigFileLayer::User {
                for key in OWNER_ONLY_KEYS {
                    if let Some(entry) = tree.remove(key) {
                        self.report(key, entry.key_span, owner_only_message(key));
                    }
                }
            }
            return;
        }
        let taken = key_permissions::remove_owner_only(tree, &defaults(SourceId(0)));
        for one in &taken {
            let key = one.display_path();
            if owner == ConfigFileLayer::User {
                self.report_ignored(class, file, &key);
            } else {
                self.report(&key, one.at, owner_only_message(&key));
            }
        }
        if taken
            .iter()
            .any(|one| one.path.first().is_some_and(|first| first == "webhooks"))
        {
            drop_empty_addresses(tree);
        }
    }

    /// Keeps others from lowering the prices that the user's budget is computed with.
    fn no_cheaper_models(
        &mut self,
        (owner, class): (ConfigFileLayer, &FileTrust),
        file: &Path,
        tree: &mut Table,
    ) {
        for one in reject_lower_prices::take_cheaper(&self.tree, tree) {
            if owner == ConfigFileLayer::User {
                self.report_ignored(class, file, &one.path);
            } else {
                let why = format!(
                    "{}; allowed only in your own configuration, because agents can write this file and budgets depend on prices; move \
                     it to {USER_FILE}",
                    one.why
                );
                self.report(&one.path, one.at, why);
            }
        }
    }

    /// Reports a value of the user's file that is ignored because others may have written it.
    fn report_ignored(&mut self, class: &FileTrust, file: &Path, key: &str) {
        let (why, hint) = match class {
            FileTrust::Project => (
                "is in the project and writable by agents",
                format!("move `{key}` to a file outside of the project, where agents cannot write"),
            ),
            _ => (
                "is writable by other users",
                format!("`{key}` applies only in a file that other users cannot write"),
            ),
        };
        let ignored = UntrustedOwnerFile {
            file: file.to_owned(),
            reason: why.to_owned(),
            hint,
        };
        if key == UPSTREAMS {
            self.repair_trust.ignore_upstreams(ignored.clone());
        }
        self.repair_trust.add_untrusted(ignored);
    }

    /// Checks that a project only references its own files.
    fn check_project_paths(&mut self, tree: &Table) {
        for (path, at, text) in key_permissions::project_paths(tree) {
            let file = Path::new(&text);
            let named = normalized(file);
            let real = file.canonicalize().ok();
            let real = real.as_deref().unwrap_or(&named);
            let is_inside = |way: &Path| {
                self.agent_writable_dirs
                    .iter()
                    .any(|folder| way.starts_with(folder))
            };
            let is_named_inside = is_inside(&named)
                || self
                    .agent_writable_dirs
                    .iter()
                    .any(|folder| normalized(folder) == named)
                || self
                    .layers
                    .work_dir
                    .iter()
                    .any(|here| named.starts_with(here));
            if !is_named_inside || !is_inside(real) {
                let why = format!(
                    "{} is outside the project: a project configuration can only reference files in the project; move it into the project, or \
                     this key to {USER_FILE}",
                    real.display()
                );
                self.report(&path, at, why);
            }
        }
    }

    /// Applies a stored policy.
    fn add_stored_policy(&mut self, set: &StoredPolicy) {
        let source = self.sources.add(ConfigSource::Named(set.origin.clone()));
        let text = serde_json::json!({ POLICY: set.policy }).to_string();
        let mut tree = match parse(FileFormat::Json, &text, source) {
            Ok(tree) => tree,
            Err(errors) => {
                for error in errors {
                    self.report(POLICY, error.span, error.reason);
                }
                return;
            }
        };
        self.apply_precedence(&mut tree, None);
        self.tree.remove(POLICY);
        merge::merge(&mut self.tree, tree);
    }

    fn add_override(&mut self, setting: &SettingOverride) {
        let source = self.sources.add(ConfigSource::Named(setting.name.clone()));
        if setting.key == POLICY {
            self.forced = Some(PolicyOverride {
                policy: setting.value.clone(),
                by: setting.name.clone(),
            });
            return;
        }
        let Some((section, key)) = setting.key.split_once('.') else {
            return;
        };
        // A number of iterations alone is not a loop.
        if section == "loop" && self.tree.get(section).is_none() {
            return;
        }
        let at = Span {
            source,
            start: 0,
            end: 0,
        };
        let text = setting.value.trim();
        let value = match (key, text.parse(), text.parse()) {
            ("task", ..) => Value::Text(setting.value.clone()),
            (_, Ok(number), _) => Value::Integer(number),
            (_, _, Ok(flag)) => Value::Bool(flag),
            _ => Value::Text(setting.value.clone()),
        };
        let mut table = Table::default();
        table.insert(key, Node { value, span: at });
        let value = Value::Table(table);
        let mut above = Table::default();
        above.insert(section, Node { value, span: at });
        merge::merge(&mut self.tree, above);
    }

    fn finish(mut self) -> ConfigLoadResult {
        fill_agent(&mut self.tree);
        let mut unread = UnreadableValues {
            roles: role_ids(&self.tree),
            values: BTreeSet::new(),
        };
        let (file, faults) = decode::decode_table::<RootSection>(&mut self.tree);
        for (path, fault) in faults {
            self.report_error(&path, &fault);
            unread.values.insert(fault.intended_path_text(&path));
        }
        let (policies, faults) = RetryPolicies::read(&self.tree, self.forced.take());
        for (path, fault) in faults {
            self.report_error(&path, &fault);
        }
        unread
            .roles
            .retain(|id| file.role.iter().all(|role| role.id != *id));
        // Errors in them are reported for all files together.
        let (OnlyAgents { agents }, _) = decode::decode_table(&mut self.owner_agents);
        let owners_agents = agents;
        let config = Config::new(self.sources, self.tree, file, policies, self.files, unread)
            .with_repair_trust(self.repair_trust, self.projects)
            .with_comparison(self.comparison)
            .with_owner_agents(owners_agents)
            .with_old_names(self.old_names);
        ConfigLoadResult {
            config,
            problems: self.problems,
        }
    }

    fn report(&mut self, path: &str, at: Span, why: String) {
        let mut fault = ValueError::new(ValueErrorKind::Custom(why));
        fault.span = Some(at);
        self.report_error(path, &fault);
    }

    fn report_error(&mut self, path: &str, fault: &ValueError) {
        let problem = ConfigProblem::from_error(&self.sources, path, fault);
        // An error in one layer recurs in the merged result, and is reported once.
        if !self.problems.contains(&problem) {
            self.problems.push(problem);
        }
    }
}

fn role_ids(tree: &Table) -> BTreeSet<String> {
    let roles = match tree.get("role").map(|node| &node.value) {
        Some(Value::List(roles)) => roles.as_slice(),
        _ => &[],
    };
    let ids = roles.iter().filter_map(Node::id);
    ids.map(str::to_owned).collect()
}

/// Fills in the implied agent: a role with a command, even a misspelled one, uses the agent `command`.
fn fill_agent(tree: &mut Table) {
    let is_command = |key: &str| nearest(key, [("command", ())]).is_some();
    let is_agent = |key: &str| nearest(key, [("agent", ())]).is_some();
    let roles = tree.get_mut("role").and_then(Node::list_mut);
    for role in roles.into_iter().flatten().filter_map(Node::table_mut) {
        let command = role.0.iter().find(|entry| is_command(&entry.key));
        let command = command.map(|entry| entry.node.span);
        if let Some(at) = command
            && !role.0.iter().any(|entry| is_agent(&entry.key))
        {
            let value = Value::Text("command".to_owned());
            role.insert("agent", Node { value, span: at });
        }
    }
}
