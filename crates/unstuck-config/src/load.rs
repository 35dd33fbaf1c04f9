//! Reads all layers and lays them over each other.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path, PathBuf};

use serde::Deserialize;
use unstuck_core::agent::AgentFile;
use unstuck_core::nearest;

use crate::config::{Config, Unread};
use crate::effective::defaults;
use crate::file::File;
use crate::gateway_words;
use crate::key_rules;
use crate::layers::{Layers, Owner, POLICY, SetFor, SetPolicy, Setting, Text};
use crate::model_prices;
use crate::policies::{Forced, Policies};
use crate::problem::{ConfigError, Problem};
use crate::project_settings::Compared;
use crate::repairs::{Class, Distrusted, RepairWords};
use crate::spelling;
use crate::tree::fault::{Fault, What};
use crate::tree::source::{Format, Source, Sources};
use crate::tree::{At, Node, SourceId, Table, Value, decode, merge, parse};

/// A configuration as far as it could be read, and what is wrong with it.
#[derive(Debug, Default)]
pub struct Loaded {
    /// What could be read.
    pub config: Config,
    /// What could not.
    pub problems: Vec<Problem>,
}

impl Config {
    /// Reads every layer; all that is wrong is told at once.
    pub fn load(layers: &Layers) -> Result<Self, ConfigError> {
        Loaded::read(layers)?.in_order()
    }

    /// Reads every layer, with a text in the place of the project's file: that file itself is not read.
    pub fn load_with_project_text(
        layers: &Layers,
        path: &Path,
        text: &str,
    ) -> Result<Self, ConfigError> {
        let files = layers.read_with_project_text(path, text)?;
        Loaded::of(layers, files)?.in_order()
    }
}

impl Loaded {
    /// Reads every layer, as far as it can be read.
    pub fn read(layers: &Layers) -> Result<Self, ConfigError> {
        Self::of(layers, layers.read()?)
    }

    fn in_order(self) -> Result<Config, ConfigError> {
        if self.problems.is_empty() {
            Ok(self.config)
        } else {
            Err(ConfigError::Invalid {
                problems: self.problems,
            })
        }
    }

    fn of(layers: &Layers, files: Vec<(Owner, PathBuf, Text)>) -> Result<Self, ConfigError> {
        let mut reader = Reader::new(layers)?;
        let mut everybodys = layers.set.iter().filter(|one| one.of == SetFor::Everybody);
        for (owner, path, text) in files {
            if owner != Owner::User {
                everybodys.by_ref().for_each(|one| reader.set(one));
            }
            reader.file(owner, path, text);
        }
        everybodys.for_each(|one| reader.set(one));
        let own = layers.set.iter().filter(|one| one.of == SetFor::Project);
        own.for_each(|one| reader.set(one));
        for setting in &layers.settings {
            reader.setting(setting);
        }
        let accepted = layers.accepted.as_ref();
        if let Some(gone) = accepted.and_then(|accepted| reader.compared.gone(accepted)) {
            return Err(gone);
        }
        Ok(reader.finish())
    }
}

/// Where upstreams are named.
const UPSTREAMS: &str = "gateway.upstreams";
/// The file that only the user writes.
const USERS_FILE: &str = "~/.config/unstuck/config.toml";
/// What only the user's own file says, for all projects.
const FOR_ALL_PROJECTS: [&str; 2] = ["trust_project_config", "safe_directories"];

/// Why a key is not for this file, and what to do.
fn only_the_users(key: &str) -> String {
    match key {
        "trust_project_config" => {
            format!("only the user's own configuration may trust projects; move it to {USERS_FILE}")
        }
        "safe_directories" => format!(
            "only the user's own configuration may declare folders safe; move it to {USERS_FILE}"
        ),
        _ if key.starts_with("gateway.") => format!(
            "only the user's own configuration may say this, because agents can write here and your API keys go where the gateway is told; \
             move it to {USERS_FILE}, or to a file outside the project that --config names"
        ),
        _ if key.ends_with("_env") => format!(
            "only the user's own configuration may say this, because agents can write here and what is in that variable would be sent to \
             an address of theirs; move the whole entry to {USERS_FILE}"
        ),
        _ => format!(
            "only the user's own configuration may say this, because agents can write here; move it to {USERS_FILE}"
        ),
    }
}

/// Drops addresses that are left without an address.
fn drop_addressless(tree: &mut Table) {
    let hooks = tree.get_mut("webhooks").and_then(Node::table_mut);
    for entry in hooks.into_iter().flat_map(|hooks| &mut hooks.0) {
        if let Some(list) = entry.node.list_mut() {
            list.retain(|one| one.table().is_none_or(|hook| hook.get("url").is_some()));
        }
    }
}

/// A path without `.` and `..`, by its words alone.
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

/// Lays one source after the other over what was read before.
struct Reader<'l> {
    layers: &'l Layers,
    /// The folders of the project.
    reach: Vec<PathBuf>,
    sources: Sources,
    tree: Table,
    files: Vec<PathBuf>,
    forced: Option<Forced>,
    words: RepairWords,
    projects: Vec<SourceId>,
    compared: Compared,
    /// The agents of the owner's own files.
    owners_agents: Table,
    problems: Vec<Problem>,
    old_names: Vec<Problem>,
}

/// The one section that is read of the owner's files alone.
#[derive(Default, Deserialize)]
#[serde(default)]
struct OnlyAgents {
    agents: BTreeMap<String, AgentFile>,
}

impl<'l> Reader<'l> {
    fn new(layers: &'l Layers) -> Result<Self, ConfigError> {
        Ok(Self {
            layers,
            reach: layers.reach()?,
            sources: Sources::new(layers.here.as_deref()),
            tree: Table::default(),
            files: Vec::new(),
            forced: None,
            words: RepairWords::default(),
            projects: Vec::new(),
            compared: Compared::default(),
            owners_agents: Table::default(),
            problems: Vec::new(),
            old_names: Vec::new(),
        })
    }

    fn file(&mut self, owner: Owner, path: PathBuf, text: Text) {
        let Text { text, class, .. } = text;
        let format = Format::of(&path);
        self.files.push(path.clone());
        let id = self.sources.next();
        let parsed = parse(format, &text, id);
        let name = path.clone();
        let id = self.sources.add(Source::File { path, text });
        if class != Class::Owner {
            self.projects.push(id);
        }
        let mut tree = match parsed {
            Ok(tree) => tree,
            Err(errors) => {
                for error in errors {
                    self.tell("", error.at, error.why);
                }
                return;
            }
        };
        let folder = self.sources.folder(id).map(Path::to_owned);
        self.settle(&mut tree, folder.as_deref());
        for (path, fault) in self.words.hear(&class, &name, &tree) {
            self.fault(&path, &fault);
        }
        self.owners_only((owner, &class), &name, &mut tree);
        self.note_roles(&tree);
        if class != Class::Owner {
            self.inside_project(&tree);
            let at = At {
                source: id,
                start: 0,
                end: 0,
            };
            let accepted = self.layers.accepted.as_ref();
            self.compared.take(&name, &mut tree, at, accepted);
            gateway_words::narrow(&self.tree, &mut tree);
            self.no_cheaper_models((owner, &class), &name, &mut tree);
        }
        if class == Class::Owner
            && let Some(agents) = tree.entry("agents")
        {
            merge::merge(&mut self.owners_agents, Table(vec![agents.clone()]));
        }
        merge::merge(&mut self.tree, tree);
    }

    /// Brings the keys of one source into the one form.
    fn settle(&mut self, tree: &mut Table, folder: Option<&Path>) {
        let spelled = spelling::settle(tree, folder);
        for (path, fault) in spelled.faults {
            self.fault(&path, &fault);
        }
        for (path, fault) in spelled.old_names {
            let problem = Problem::of(&self.sources, &path, &fault);
            self.old_names.push(problem);
        }
    }

    /// The roles as the files name them.
    fn note_roles(&mut self, tree: &Table) {
        let Some(Value::List(roles)) = tree.get("role").map(|node| &node.value) else {
            return;
        };
        for id in roles.iter().filter_map(Node::id) {
            if !self.compared.roles.iter().any(|known| known == id) {
                self.compared.roles.push(id.to_owned());
            }
        }
    }

    /// What others than the user can have written reaches neither the user's secrets nor their privileges.
    fn owners_only(&mut self, (owner, class): (Owner, &Class), file: &Path, tree: &mut Table) {
        if class == &Class::Owner {
            // A file that is named for one command does not decide about all projects.
            if owner != Owner::User {
                for key in FOR_ALL_PROJECTS {
                    if let Some(entry) = tree.remove(key) {
                        self.tell(key, entry.key_at, only_the_users(key));
                    }
                }
            }
            return;
        }
        let taken = key_rules::take_owner_only(tree, &defaults(SourceId(0)));
        for one in &taken {
            let key = one.shown();
            if owner == Owner::User {
                self.ignored(class, file, &key);
            } else {
                self.tell(&key, one.at, only_the_users(&key));
            }
        }
        if taken
            .iter()
            .any(|one| one.path.first().is_some_and(|first| first == "webhooks"))
        {
            drop_addressless(tree);
        }
    }

    /// What a budget of the user's is spent by is not for others to lower.
    fn no_cheaper_models(
        &mut self,
        (owner, class): (Owner, &Class),
        file: &Path,
        tree: &mut Table,
    ) {
        for one in model_prices::take_cheaper(&self.tree, tree) {
            if owner == Owner::User {
                self.ignored(class, file, &one.path);
            } else {
                let why = format!(
                    "{}; only the user's own configuration may say this, because agents can write here and budgets are counted by it; move \
                     it to {USERS_FILE}",
                    one.why
                );
                self.tell(&one.path, one.at, why);
            }
        }
    }

    /// A value of the user's own file that does not count because others can have written it.
    fn ignored(&mut self, class: &Class, file: &Path, key: &str) {
        let (why, hint) = match class {
            Class::Project => (
                "is in the project, where agents can write",
                format!("`{key}` counts in every other folder"),
            ),
            _ => (
                "can have been written by others",
                format!("`{key}` counts where nobody else can write it"),
            ),
        };
        let ignored = Distrusted {
            file: file.to_owned(),
            why: why.to_owned(),
            hint,
        };
        if key == UPSTREAMS {
            self.words.ignore_upstreams(ignored.clone());
        }
        self.words.distrust(ignored);
    }

    /// A project reads files of its own, and none of the user's others.
    fn inside_project(&mut self, tree: &Table) {
        for (path, at, text) in key_rules::project_paths(tree) {
            let file = Path::new(&text);
            let named = normalized(file);
            let real = file.canonicalize().ok();
            let real = real.as_deref().unwrap_or(&named);
            let is_inside = |way: &Path| self.reach.iter().any(|folder| way.starts_with(folder));
            let is_named_inside = is_inside(&named)
                || self.reach.iter().any(|folder| normalized(folder) == named)
                || self.layers.here.iter().any(|here| named.starts_with(here));
            if !is_named_inside || !is_inside(real) {
                let why = format!(
                    "{} is not in the project: a project's configuration reads no other files of yours; move it into the project, or this \
                     key to {USERS_FILE}",
                    real.display()
                );
                self.tell(&path, at, why);
            }
        }
    }

    /// Takes over a policy that was set elsewhere than in files.
    fn set(&mut self, set: &SetPolicy) {
        let source = self.sources.add(Source::Named(set.origin.clone()));
        let text = serde_json::json!({ POLICY: set.policy }).to_string();
        let mut tree = match parse(Format::Json, &text, source) {
            Ok(tree) => tree,
            Err(errors) => {
                for error in errors {
                    self.tell(POLICY, error.at, error.why);
                }
                return;
            }
        };
        self.settle(&mut tree, None);
        self.tree.remove(POLICY);
        merge::merge(&mut self.tree, tree);
    }

    fn setting(&mut self, setting: &Setting) {
        let source = self.sources.add(Source::Named(setting.name.clone()));
        if setting.key == POLICY {
            self.forced = Some(Forced {
                policy: setting.value.clone(),
                by: setting.name.clone(),
            });
            return;
        }
        let Some((section, key)) = setting.key.split_once('.') else {
            return;
        };
        // A number of iterations alone makes no loop.
        if section == "loop" && self.tree.get(section).is_none() {
            return;
        }
        let at = At {
            source,
            start: 0,
            end: 0,
        };
        let text = setting.value.trim();
        let value = match (key, text.parse(), text.parse()) {
            ("task", ..) => Value::Text(setting.value.clone()),
            (_, Ok(number), _) => Value::Whole(number),
            (_, _, Ok(flag)) => Value::Flag(flag),
            _ => Value::Text(setting.value.clone()),
        };
        let mut table = Table::default();
        table.insert(key, Node { value, at });
        let value = Value::Table(table);
        let mut above = Table::default();
        above.insert(section, Node { value, at });
        merge::merge(&mut self.tree, above);
    }

    fn finish(mut self) -> Loaded {
        complete(&mut self.tree);
        let mut unread = Unread {
            roles: role_ids(&self.tree),
            values: BTreeSet::new(),
        };
        let (file, faults) = decode::read::<File>(&mut self.tree);
        for (path, fault) in faults {
            self.fault(&path, &fault);
            unread.values.insert(fault.meant_at(&path));
        }
        let (policies, faults) = Policies::read(&self.tree, self.forced.take());
        for (path, fault) in faults {
            self.fault(&path, &fault);
        }
        unread
            .roles
            .retain(|id| file.role.iter().all(|role| role.id != *id));
        // What is wrong with them is told of all files together.
        let (OnlyAgents { agents }, _) = decode::read(&mut self.owners_agents);
        let owners_agents = agents;
        let config = Config::new(self.sources, self.tree, file, policies, self.files, unread)
            .with_words(self.words, self.projects)
            .with_compared(self.compared)
            .with_owners_agents(owners_agents)
            .with_old_names(self.old_names);
        Loaded {
            config,
            problems: self.problems,
        }
    }

    fn tell(&mut self, path: &str, at: At, why: String) {
        let mut fault = Fault::new(What::Told(why));
        fault.at = Some(at);
        self.fault(path, &fault);
    }

    fn fault(&mut self, path: &str, fault: &Fault) {
        let problem = Problem::of(&self.sources, path, fault);
        // What is wrong in one layer is wrong in all of them together, and is told once.
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

/// Says what goes without saying: a role with a command, be it mistyped, is run by the agent `command`.
fn complete(tree: &mut Table) {
    let is_command = |key: &str| nearest(key, [("command", ())]).is_some();
    let is_agent = |key: &str| nearest(key, [("agent", ())]).is_some();
    let roles = tree.get_mut("role").and_then(Node::list_mut);
    for role in roles.into_iter().flatten().filter_map(Node::table_mut) {
        let command = role.0.iter().find(|entry| is_command(&entry.key));
        let command = command.map(|entry| entry.node.at);
        if let Some(at) = command
            && !role.0.iter().any(|entry| is_agent(&entry.key))
        {
            let value = Value::Text("command".to_owned());
            role.insert("agent", Node { value, at });
        }
    }
}
