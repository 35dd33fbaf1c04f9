//! Removes looser `[gateway]` and `[budget]` settings from a project file: agents can write it, so it may only tighten.

use crate::section::OnLoop;
use crate::value_tree::{Node, Table};

/// Removes settings that would loosen earlier layers.
pub(crate) fn restrict(before: &Table, tree: &mut Table) {
    restrict_budget(before, tree);
    let before = before.get("gateway").and_then(Node::table);
    let Some(before) = before else {
        return;
    };
    let Some(gateway) = tree.get_mut("gateway").and_then(Node::table_mut) else {
        return;
    };
    let strictness = |table: &Table| on_loop(table.get("on_loop")?);
    if strictness(gateway) < strictness(before) {
        gateway.remove("on_loop");
    }
    let Some(owners) = before.get("budgets").and_then(Node::table) else {
        return;
    };
    let Some(budgets) = gateway.get_mut("budgets").and_then(Node::table_mut) else {
        return;
    };
    for key in ["per_session", "per_day"] {
        let amount = |table: &Table| table.get(key).and_then(Node::number);
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

/// Keeps a project from raising the owner's budget.
fn restrict_budget(before: &Table, tree: &mut Table) {
    let owners = before.get("budget").and_then(Node::table);
    let own = tree.get_mut("budget").and_then(Node::table_mut);
    let (Some(owners), Some(own)) = (owners, own) else {
        return;
    };
    for time in ["per_run", "per_day"] {
        let owners = owners.get(time).and_then(Node::table);
        let own = own.get_mut(time).and_then(Node::table_mut);
        let (Some(owners), Some(own)) = (owners, own) else {
            continue;
        };
        for key in ["usd", "tokens"] {
            let amount = |table: &Table| table.get(key).and_then(Node::number);
            if let (Some(owners), Some(more)) = (amount(owners), amount(own))
                && more > owners
            {
                own.remove(key);
            }
        }
    }
}

fn on_loop(node: &Node) -> Option<OnLoop> {
    serde_json::from_value(node.to_json()).ok()
}
