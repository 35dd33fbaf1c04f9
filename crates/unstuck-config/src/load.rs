//! Reads all layers and lays them over each other.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use unstuck_core::nearest;

use crate::config::{Config, Unread};
use crate::file::File;
use crate::gateway_words;
use crate::layers::{Layers, Owner, POLICY, SetFor, SetPolicy, Setting, Text};
use crate::policies::{Forced, Policies};
use crate::problem::{ConfigError, Problem};
use crate::repairs::{Class, Distrusted, RepairWords};
use crate::section::Webhooks;
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
        Loaded::of(layers, files).in_order()
    }
}

impl Loaded {
    /// Reads every layer, as far as it can be read.
    pub fn read(layers: &Layers) -> Result<Self, ConfigError> {
        Ok(Self::of(layers, layers.read()?))
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

    fn of(layers: &Layers, files: Vec<(Owner, PathBuf, Text)>) -> Self {
        let mut reader = Reader::new(layers.here.as_deref());
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
        reader.finish()
    }
}

/// Where upstreams are named.
const UPSTREAMS: &str = "gateway.upstreams";

/// Lays one source after the other over what was read before.
struct Reader {
    sources: Sources,
    tree: Table,
    files: Vec<PathBuf>,
    forced: Option<Forced>,
    words: RepairWords,
    projects: Vec<SourceId>,
    problems: Vec<Problem>,
}

impl Reader {
    fn new(here: Option<&Path>) -> Self {
        Self {
            sources: Sources::new(here),
            tree: Table::default(),
            files: Vec::new(),
            forced: None,
            words: RepairWords::default(),
            projects: Vec::new(),
            problems: Vec::new(),
        }
    }

    fn file(&mut self, owner: Owner, path: PathBuf, text: Text) {
        let Text { text, class } = text;
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
        for (path, fault) in spelling::settle(&mut tree, folder.as_deref()) {
            self.fault(&path, &fault);
        }
        for (path, fault) in self.words.hear(&class, &name, &tree) {
            self.fault(&path, &fault);
        }
        if (owner, &class) != (Owner::User, &Class::Owner)
            && let Some(entry) = tree.remove("trust_project_config")
        {
            self.no_trust(owner, &class, &name, entry.key_at);
        }
        if class != Class::Owner {
            self.no_commands(owner, &name, &mut tree);
            self.no_upstreams((owner, &class), &name, &mut tree);
            gateway_words::narrow(&self.tree, &mut tree);
        }
        merge::merge(&mut self.tree, tree);
    }

    /// What others than the user can have written runs nothing, and reaches nothing in private networks.
    fn no_commands(&mut self, owner: Owner, file: &Path, tree: &mut Table) {
        let Some(hooks) = tree.get_mut("webhooks").and_then(Node::table_mut) else {
            return;
        };
        for key in Webhooks::OWNERS {
            let Some(entry) = hooks.remove(key) else {
                continue;
            };
            if owner == Owner::User {
                self.words.distrust(Distrusted {
                    file: file.to_owned(),
                    why: "can have been written by others".to_owned(),
                    hint: format!("`webhooks.{key}` counts where nobody else can write it"),
                });
            } else {
                let why = "only the user's own configuration may say this, because agents can write here; move it there";
                self.tell(&format!("webhooks.{key}"), entry.key_at, why.to_owned());
            }
        }
    }

    /// What others than the user can have written tells nobody where the user's keys go.
    fn no_upstreams(&mut self, (owner, class): (Owner, &Class), file: &Path, tree: &mut Table) {
        for (key, at) in gateway_words::take_owners(tree) {
            if owner == Owner::User {
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
            } else {
                let why = "only the user's own configuration may say this, because agents can write here and your API keys go \
                           where the gateway is told; move it to ~/.config/unstuck/config.toml, or to a file outside the project that --config names";
                self.tell(&key, at, why.to_owned());
            }
        }
    }

    /// What others than the user can have written trusts nobody.
    fn no_trust(&mut self, owner: Owner, class: &Class, file: &Path, at: At) {
        match (owner, class) {
            (Owner::User, Class::Project) => self.words.distrust(Distrusted {
                file: file.to_owned(),
                why: "is in the project, where agents can write".to_owned(),
                hint:
                    "`trust_project_config` counts where your configuration is outside the project"
                        .to_owned(),
            }),
            // Told with what else it does not allow.
            (Owner::User, _) => {}
            _ => {
                let why = "only the user's own configuration may trust projects; move it there";
                self.tell("trust_project_config", at, why.to_owned());
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
        for (path, fault) in spelling::settle(&mut tree, None) {
            self.fault(&path, &fault);
        }
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
        let config = Config::new(self.sources, self.tree, file, policies, self.files, unread)
            .with_words(self.words, self.projects);
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
