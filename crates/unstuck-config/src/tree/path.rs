//! Ways through a tree.

use super::{At, Entry, Node, Table, Value};

/// One step into a table or a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Step {
    Key(String),
    Item(usize),
}

/// A way from the root to a value.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Path(pub(crate) Vec<Step>);

impl Path {
    /// The path as people write it: items of a list go by their id.
    pub(crate) fn shown(&self, root: &Table) -> String {
        let mut parts: Vec<String> = Vec::new();
        let mut here = Here::Table(root);
        for step in &self.0 {
            let (part, next) = here.step(step);
            parts.push(part);
            here = next;
        }
        parts.join(".")
    }

    /// The path of a key in the table at its end.
    pub(super) fn then(&self, key: &str) -> Self {
        let mut steps = self.0.clone();
        steps.push(Step::Key(key.to_owned()));
        Self(steps)
    }

    pub(super) fn starts_with(&self, other: &Self) -> bool {
        self.0.starts_with(&other.0)
    }

    /// Takes the value at the end of the path out of the tree; false if there is none.
    pub(crate) fn remove_from(&self, root: &mut Table) -> bool {
        let Some((last, way)) = self.0.split_last() else {
            return false;
        };
        if way.is_empty() {
            return match last {
                Step::Key(key) => root.remove(key).is_some(),
                Step::Item(_) => false,
            };
        }
        let Some(around) = descend(root, way) else {
            return false;
        };
        match (last, &mut around.value) {
            (Step::Key(key), Value::Table(table)) => table.remove(key).is_some(),
            (Step::Item(at), Value::List(list)) if *at < list.len() => {
                list.remove(*at);
                true
            }
            _ => false,
        }
    }
}

fn descend<'t>(root: &'t mut Table, way: &[Step]) -> Option<&'t mut Node> {
    let (first, rest) = way.split_first()?;
    let Step::Key(key) = first else {
        return None;
    };
    let mut here = root.get_mut(key)?;
    for step in rest {
        here = match (step, &mut here.value) {
            (Step::Key(key), Value::Table(table)) => table.get_mut(key)?,
            (Step::Item(at), Value::List(list)) => list.get_mut(*at)?,
            _ => return None,
        };
    }
    Some(here)
}

enum Here<'t> {
    Table(&'t Table),
    List(&'t [Node]),
    Nowhere,
}

impl<'t> Here<'t> {
    fn of(node: Option<&'t Node>) -> Self {
        match node.map(|node| &node.value) {
            Some(Value::Table(table)) => Self::Table(table),
            Some(Value::List(list)) => Self::List(list),
            _ => Self::Nowhere,
        }
    }

    fn step(&self, step: &Step) -> (String, Self) {
        match (self, step) {
            (Self::Table(table), Step::Key(key)) => (key.clone(), Self::of(table.get(key))),
            (Self::List(list), Step::Item(at)) => {
                let item = list.get(*at);
                let id = item.and_then(Node::id).map(quoted);
                (id.unwrap_or_else(|| (at + 1).to_string()), Self::of(item))
            }
            (_, Step::Key(key)) => (key.clone(), Self::Nowhere),
            (_, Step::Item(at)) => ((at + 1).to_string(), Self::Nowhere),
        }
    }
}

/// An id as a part of a path: in quotes where it could be taken for more than one part.
fn quoted(id: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || c == '_' || c == '-';
    if id.chars().all(is_plain) {
        return id.to_owned();
    }
    let short: String = id.chars().take(64).collect();
    let end = if short.len() < id.len() { "…" } else { "" };
    format!("\"{short}{end}\"")
}

/// The value at a path as people write it, such as `role.planner.timeout`; keys may have dots themselves.
pub(crate) fn find<'t>(table: &'t Table, path: &str) -> Option<&'t Node> {
    find_entry(table, path).map(|found| found.node)
}

/// A value and where its key stands.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Found<'t> {
    pub(crate) node: &'t Node,
    pub(crate) key_at: At,
}

/// The value at a path, with the place of its key.
pub(crate) fn find_entry<'t>(table: &'t Table, path: &str) -> Option<Found<'t>> {
    table.0.iter().find_map(|Entry { key, key_at, node }| {
        let found = Found {
            node,
            key_at: *key_at,
        };
        after(path, key).and_then(|rest| inside(found, rest))
    })
}

fn inside<'t>(found: Found<'t>, rest: &str) -> Option<Found<'t>> {
    if rest.is_empty() {
        return Some(found);
    }
    match &found.node.value {
        Value::Table(table) => find_entry(table, rest),
        Value::List(list) => list.iter().enumerate().find_map(|(at, node)| {
            let number = (at + 1).to_string();
            let item = Found {
                node,
                key_at: node.at,
            };
            let rest = after(rest, node.id().unwrap_or(&number))?;
            inside(item, rest)
        }),
        _ => None,
    }
}

/// What comes after a key in a path.
fn after<'p>(path: &'p str, key: &str) -> Option<&'p str> {
    let rest = path.strip_prefix(key)?;
    if rest.is_empty() {
        Some(rest)
    } else {
        rest.strip_prefix('.')
    }
}
