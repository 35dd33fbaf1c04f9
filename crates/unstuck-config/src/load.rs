//! Reads and merges all layers.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path, PathBuf};

use serde::Deserialize;
use unstuck_core::agent::AgentFile;
use unstuck_core::nearest;

use crate::aliases;
use crate::config::{Config, UnreadableValues};
use crate::gateway_trust;
use crate::key_rules;
use crate::layers::{
    FileOwner, Layers, POLICY, PolicyScope, SettingOverride, SourceText, StoredPolicy,
};
use crate::model_prices;
use crate::policies::{Policies, PolicyOverride};
use crate::problem::{ConfigError, ConfigProblem};
use crate::project_settings::ProjectComparison;
use crate::resolved::defaults;
use crate::root::RootSection;
use crate::spanned::source::{ConfigSource, FileFormat, Sources};
use crate::spanned::value_error::{ValueError, ValueErrorKind};
use crate::spanned::{Node, SourceId, Span, Table, Value, decode, merge, parse};
use crate::trust_layering::{FileTrust, RepairDeclarations, UntrustedFile};

/// A configuration as far as it could be read, with its problems.
#[derive(Debug, Default)]
pub struct LoadResult {
    /// The readable part of the configuration.
    pub config: Config,
    /// The problems.
    pub problems: Vec<ConfigProblem>,
}

impl Config {
    /// Loads every layer and reports all problems at once.
    pub fn load(layers: &Layers) -> Result<Self, ConfigError> {
        LoadResult::read(layers)?.into_valid()
    }

    /// Loads every layer, with a text in place of the project's file, which is not read.
    pub fn load_with_project_text(
        layers: &Layers,
        path: &Path,
        text: &str,
    ) -> Result<Self, ConfigError> {
        let files = layers.read_with_project_text(path, text)?;
        LoadResult::from_texts(layers, files)?.into_valid()
    }
}

impl LoadResult {
    /// Loads every layer as far as possible.
    pub fn read(layers: &Layers) -> Result<Self, ConfigError> {
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
        layers: &Layers,
        files: Vec<(FileOwner, PathBuf, SourceText)>,
    ) -> Result<Self, ConfigError> {
        let mut reader = LayerReader::new(layers)?;
        let mut everybodys = layers
            .stored_policies
            .iter()
            .filter(|one| one.scope == PolicyScope::Everybody);
        for (owner, path, text) in files {
            if owner != FileOwner::User {
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
            format!("only the user's own configuration may trust projects; move it to {USER_FILE}")
        }
        "safe_directories" => format!(
            "only the user's own configuration may declare folders safe; move it to {USER_FILE}"
        ),
        _ if key.starts_with("gateway.") => format!(
            "only the user's own configuration may say this, because agents can write here and your API keys go where the gateway is told; \
             move it to {USER_FILE}, or to a file outside the project that --config names"
        ),
        _ if key.ends_with("_env") => format!(
            "only the user's own configuration may say this, because agents can write here and what is in that variable would be sent to \
             an address of theirs; move the whole entry to {USER_FILE}"
        ),
        _ => format!(
            "only the user's own configuration may say this, because agents can write here; move it to {USER_FILE}"
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
    layers: &'l Layers,
    /// The directories of the project.
    agent_writable_dirs: Vec<PathBuf>,
    sources: Sources,
    tree: Table,
    files: Vec<PathBuf>,
    forced: Option<PolicyOverride>,
    repair_trust: RepairDeclarations,
    projects: Vec<SourceId>,
    comparison: ProjectComparison,
    /// The agents defined in the owner's files.
    owner_agents: Table,
    problems: Vec<ConfigProblem>,
    old_names: Vec<ConfigProblem>,
}

/// The only section that is read from the owner's files alone.
#[derive(Default, Deserialize)]
#[serde(default)]
struct OnlyAgents {
    agents: BTreeMap<String, AgentFile>,
}

impl<'l> LayerReader<'l> {
    fn new(layers: &'l Layers) -> Result<Self, ConfigError> {
        Ok(Self {
            layers,
            agent_writable_dirs: layers.agent_writable_dirs()?,
            sources: Sources::new(layers.work_dir.as_deref()),
            tree: Table::default(),
            files: Vec::new(),
            forced: None,
            repair_trust: RepairDeclarations::default(),
            projects: Vec::new(),
            comparison: ProjectComparison::default(),
            owner_agents: Table::default(),
            problems: Vec::new(),
            old_names: Vec::new(),
        })
    }

    fn add_file(&mut self, owner: FileOwner, path: PathBuf, text: SourceText) {
        let SourceText {
            text, trust: class, ..
        } = text;
        let format = FileFormat::from_path(&path);
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
        self.settle(&mut tree, folder.as_deref());
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
            gateway_trust::restrict(&self.tree, &mut tree);
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
    fn settle(&mut self, tree: &mut Table, folder: Option<&Path>) {
        let spelled = aliases::resolve_aliases(tree, folder);
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
        (owner, class): (FileOwner, &FileTrust),
        file: &Path,
        tree: &mut Table,
    ) {
        if class == &FileTrust::Owner {
            // A file given for a single command does not apply to all projects.
            if owner != FileOwner::User {
                for key in OWNER_ONLY_KEYS {
                    if let Some(entry) = tree.remove(key) {
                        self.report(key, entry.key_span, owner_only_message(key));
                    }
                }
            }
            return;
        }
        let taken = key_rules::remove_owner_only(tree, &defaults(SourceId(0)));
        for one in &taken {
            let key = one.display_path();
            if owner == FileOwner::User {
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
        (owner, class): (FileOwner, &FileTrust),
        file: &Path,
        tree: &mut Table,
    ) {
        for one in model_prices::take_cheaper(&self.tree, tree) {
            if owner == FileOwner::User {
                self.report_ignored(class, file, &one.path);
            } else {
                let why = format!(
                    "{}; only the user's own configuration may say this, because agents can write here and budgets are counted by it; move \
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
                "is in the project, where agents can write",
                format!("`{key}` counts in every other folder"),
            ),
            _ => (
                "can have been written by others",
                format!("`{key}` counts where nobody else can write it"),
            ),
        };
        let ignored = UntrustedFile {
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
        for (path, at, text) in key_rules::project_paths(tree) {
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
                    "{} is not in the project: a project's configuration reads no other files of yours; move it into the project, or this \
                     key to {USER_FILE}",
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
        self.settle(&mut tree, None);
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

    fn finish(mut self) -> LoadResult {
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
        let (policies, faults) = Policies::read(&self.tree, self.forced.take());
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
        LoadResult {
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
