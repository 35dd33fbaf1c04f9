//! Paths to values in the configuration tree.

use super::{Node, Span, Table, TableEntry, Value};

/// A step into a table or a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum PathStep {
    Key(String),
    Item(usize),
}

/// The path from the root to a value.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct ValuePath(pub(crate) Vec<PathStep>);

impl ValuePath {
    /// Returns the path as users write it, with list items by id.
    pub(crate) fn display(&self, root: &Table) -> String {
        let mut parts: Vec<String> = Vec::new();
        let mut here = PathCursor::Table(root);
        for step in &self.0 {
            let (part, next) = here.step(step);
            parts.push(part);
            here = next;
        }
        parts.join(".")
    }

    /// Returns the path of a key in the table at this path.
    pub(super) fn with_key(&self, key: &str) -> Self {
        let mut steps = self.0.clone();
        steps.push(PathStep::Key(key.to_owned()));
        Self(steps)
    }

    pub(super) fn starts_with(&self, other: &Self) -> bool {
        self.0.starts_with(&other.0)
    }

    /// Removes the value at this path; returns false if there is none.
    pub(crate) fn remove_from(&self, root: &mut Table) -> bool {
        let Some((last, way)) = self.0.split_last() else {
            return false;
        };
        if way.is_empty() {
            return match last {
                PathStep::Key(key) => root.remove(key).is_some(),
                PathStep::Item(_) => false,
            };
        }
        let Some(around) = descend(root, way) else {
            return false;
        };
        match (last, &mut around.value) {
            (PathStep::Key(key), Value::Table(table)) => table.remove(key).is_some(),
            (PathStep::Item(at), Value::List(list)) if *at < list.len() => {
                list.remove(*at);
                true
            }
            _ => false,
        }
    }
}

fn descend<'t>(root: &'t mut Table, way: &[PathStep]) -> Option<&'t mut Node> {
    let (first, rest) = way.split_first()?;
    let PathStep::Key(key) = first else {
        return None;
    };
    let mut here = root.get_mut(key)?;
    for step in rest {
        here = match (step, &mut here.value) {
            (PathStep::Key(key), Value::Table(table)) => table.get_mut(key)?,
            (PathStep::Item(at), Value::List(list)) => list.get_mut(*at)?,
            _ => return None,
        };
    }
    Some(here)
}

enum PathCursor<'t> {
    Table(&'t Table),
    List(&'t [Node]),
    Nowhere,
}

impl<'t> PathCursor<'t> {
    fn from_node(node: Option<&'t Node>) -> Self {
        match node.map(|node| &node.value) {
            Some(Value::Table(table)) => Self::Table(table),
            Some(Value::List(list)) => Self::List(list),
            _ => Self::Nowhere,
        }
    }

    fn step(&self, step: &PathStep) -> (String, Self) {
        match (self, step) {
            (Self::Table(table), PathStep::Key(key)) => {
                (key.clone(), Self::from_node(table.get(key)))
            }
            (Self::List(list), PathStep::Item(at)) => {
                let item = list.get(*at);
                let id = item.and_then(Node::id).map(quoted);
                (
                    id.unwrap_or_else(|| (at + 1).to_string()),
                    Self::from_node(item),
                )
            }
            (_, PathStep::Key(key)) => (key.clone(), Self::Nowhere),
            (_, PathStep::Item(at)) => ((at + 1).to_string(), Self::Nowhere),
        }
    }
}

/// Returns an id as a path segment, quoted if it could be taken for several segments.
fn quoted(id: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || c == '_' || c == '-';
    if id.chars().all(is_plain) {
        return id.to_owned();
    }
    let short: String = id.chars().take(64).collect();
    let end = if short.len() < id.len() { "…" } else { "" };
    format!("\"{short}{end}\"")
}

/// Returns the value at a path such as `role.planner.timeout`; keys may contain dots.
pub(crate) fn find_value<'t>(table: &'t Table, path: &str) -> Option<&'t Node> {
    find_entry(table, path).map(|found| found.node)
}

/// A value and the location of its key.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LocatedNode<'t> {
    pub(crate) node: &'t Node,
    pub(crate) key_span: Span,
}

/// Returns the value at a path, with the location of its key.
pub(crate) fn find_entry<'t>(table: &'t Table, path: &str) -> Option<LocatedNode<'t>> {
    table.0.iter().find_map(
        |TableEntry {
             key,
             key_span: key_at,
             node,
         }| {
            let found = LocatedNode {
                node,
                key_span: *key_at,
            };
            path_below(path, key).and_then(|rest| find_within(found, rest))
        },
    )
}

fn find_within<'t>(found: LocatedNode<'t>, rest: &str) -> Option<LocatedNode<'t>> {
    if rest.is_empty() {
        return Some(found);
    }
    match &found.node.value {
        Value::Table(table) => find_entry(table, rest),
        Value::List(list) => list.iter().enumerate().find_map(|(at, node)| {
            let number = (at + 1).to_string();
            let item = LocatedNode {
                node,
                key_span: node.span,
            };
            let rest = path_below(rest, node.id().unwrap_or(&number))?;
            find_within(item, rest)
        }),
        _ => None,
    }
}

/// Returns the rest of a path after a key.
fn path_below<'p>(path: &'p str, key: &str) -> Option<&'p str> {
    let rest = path.strip_prefix(key)?;
    if rest.is_empty() {
        Some(rest)
    } else {
        rest.strip_prefix('.')
    }
}
