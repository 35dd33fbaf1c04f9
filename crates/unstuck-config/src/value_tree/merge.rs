//! Merges two trees: tables by key, lists of items with ids by id, everything else as a whole.

use super::{Node, Table, TableEntry, Value};

/// Returns the lower tree with the upper one merged into it.
pub(crate) fn merge(below: &mut Table, above: Table) {
    merge_tables(below, above, &mut Vec::new());
}

fn merge_tables(below: &mut Table, above: Table, way: &mut Vec<String>) {
    // A policy that names its template is complete: changes to another template no longer apply.
    if names_a_template(way, &above) {
        *below = above;
        return;
    }
    for TableEntry {
        key,
        key_span: key_at,
        node,
    } in above.0
    {
        match below.0.iter_mut().find(|known| known.key == key) {
            None => below.0.push(TableEntry {
                key,
                key_span: key_at,
                node,
            }),
            Some(known) => {
                way.push(key);
                if merge_nodes(&mut known.node, node, way) == MergeResult::Replaced {
                    known.key_span = key_at;
                }
                way.pop();
            }
        }
    }
}

#[derive(PartialEq)]
enum MergeResult {
    Merged,
    Replaced,
}

fn merge_nodes(below: &mut Node, above: Node, way: &mut Vec<String>) -> MergeResult {
    match (&mut below.value, above.value) {
        (Value::Table(below), Value::Table(above)) => {
            merge_tables(below, above, way);
            MergeResult::Merged
        }
        (Value::List(below), Value::List(above)) if is_merged_by_id(way) => {
            merge_lists(below, above, way);
            MergeResult::Merged
        }
        (Value::List(below), Value::List(above)) if is_appended(way) => {
            below.extend(above);
            MergeResult::Merged
        }
        (_, value) => {
            *below = Node {
                value,
                span: above.span,
            };
            MergeResult::Replaced
        }
    }
}

fn merge_lists(below: &mut Vec<Node>, above: Vec<Node>, way: &mut Vec<String>) {
    for node in above {
        let known = below
            .iter_mut()
            .find(|known| known.id().is_some() && known.id() == node.id());
        match (known, is_rule(way)) {
            // A mix of two rules would match what neither of them means.
            (Some(known), true) => *known = node,
            (Some(known), false) => {
                merge_nodes(known, node, way);
            }
            (None, _) => below.push(node),
        }
    }
}

fn names_a_template(way: &[String], above: &Table) -> bool {
    let is_policy = match way {
        [section] => section == "policy",
        [section, _] => section == "policies",
        _ => false,
    };
    // In the path of a role, the last step is a key of the role's own table.
    let is_roles = way.len() == 2 && way[0] == "role" && way[1] == "policy";
    (is_policy || is_roles) && above.get("template").is_some()
}

fn is_merged_by_id(way: &[String]) -> bool {
    match way {
        [list] => list == "role",
        [section, list] if section == "models" => matches!(list.as_str(), "model" | "ladder"),
        _ => is_rule(way),
    }
}

fn is_rule(way: &[String]) -> bool {
    match way {
        [repairs, list] => repairs == "repairs" && list == "requirement",
        [kinds, _, rule] => kinds == "kinds" && rule == "rule",
        _ => false,
    }
}

fn is_appended(way: &[String]) -> bool {
    match way {
        // A project adds to the user's targets and cannot silence any.
        [section, _] => section == "repairs" || section == "webhooks",
        [kinds, _, list] => kinds == "kinds" && (list == "sample" || list == "decoy"),
        _ => false,
    }
}
