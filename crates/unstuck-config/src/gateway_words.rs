//! What of `[gateway]` counts, by whose word it is. The keys of the user go where it says, so a project, which agents
//! can write, only narrows it.

use serde_json::Value as Json;

use crate::effective::defaults;
use crate::section::{GatewaySection, OnCircles};
use crate::tree::{At, Entry, Node, SourceId, Table, Value};

/// Takes what only the owner may say out of a file of others, and tells what it was.
pub(crate) fn take_owners(tree: &mut Table) -> Vec<(String, At)> {
    let Some(gateway) = tree.get_mut("gateway").and_then(Node::table_mut) else {
        return Vec::new();
    };
    let is_owners = |entry: &Entry| !GatewaySection::OF_PROJECTS.contains(&entry.key.as_str());
    let built_in = defaults(SourceId(0)).get("gateway").map(Node::to_json);
    let built_in = built_in.unwrap_or_default();
    // What is built in anyway, as when somebody keeps what `config show` shows, changes nothing.
    let is_built_in = |entry: &Entry| says_less(&entry.node.to_json(), &built_in[&entry.key]);
    let taken = gateway.0.iter().filter(|entry| is_owners(entry));
    let taken = taken.filter(|entry| !is_built_in(entry));
    let taken = taken.map(|entry| (format!("gateway.{}", entry.key), entry.key_at));
    let taken = taken.collect();
    gateway.0.retain(|entry| !is_owners(entry));
    taken
}

/// Takes out what would widen what has been said before.
pub(crate) fn narrow(before: &Table, tree: &mut Table) {
    let before = before.get("gateway").and_then(Node::table);
    let Some(before) = before else {
        return;
    };
    let Some(gateway) = tree.get_mut("gateway").and_then(Node::table_mut) else {
        return;
    };
    let strictness = |table: &Table| circles(table.get("on_circles")?);
    if strictness(gateway) < strictness(before) {
        gateway.remove("on_circles");
    }
    let Some(owners) = before.get("budgets").and_then(Node::table) else {
        return;
    };
    let Some(budgets) = gateway.get_mut("budgets").and_then(Node::table_mut) else {
        return;
    };
    for key in ["session", "day"] {
        let amount = |table: &Table| table.get(key).and_then(number);
        if let (Some(owners), Some(own)) = (amount(owners), amount(budgets))
            && own > owners
        {
            budgets.remove(key);
        }
    }
    if owners.get("on_reached").is_some() {
        budgets.remove("on_reached");
    }
}

/// Whether a value says nothing that the other does not say.
fn says_less(value: &Json, other: &Json) -> bool {
    match (value, other) {
        (Json::Object(values), Json::Object(others)) => values.iter().all(|(key, value)| {
            let other = others.get(key);
            other.is_some_and(|other| says_less(value, other))
        }),
        _ => value == other,
    }
}

fn circles(node: &Node) -> Option<OnCircles> {
    serde_json::from_value(node.to_json()).ok()
}

fn number(node: &Node) -> Option<f64> {
    match node.value {
        #[expect(clippy::cast_precision_loss, reason = "an amount of money")]
        Value::Whole(number) => Some(number as f64),
        Value::Number(number) => Some(number),
        _ => None,
    }
}
