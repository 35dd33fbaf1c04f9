//! The policies of a configuration, each defined as changes to another one.

use std::collections::BTreeMap;

use unstuck_core::RetryPolicy;
use unstuck_core::decision::{DEFAULT_TEMPLATE, default_template, template, templates};
use unstuck_core::nearest;

use crate::key_aliases::ValueErrors;
use crate::value_tree::value_error::{ValueError, ValueErrorKind};
use crate::value_tree::{Node, Table, Value, path};

/// All policies of a configuration.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct RetryPolicies {
    /// The `[policies]`, base policies first.
    named: Vec<RetryPolicy>,
    /// The `[policy]` section.
    pub(crate) general: Option<RetryPolicy>,
    /// The policies of roles, by role.
    pub(crate) roles: BTreeMap<String, RetryPolicy>,
    /// True if `[error_recovery]` limits the number of retries.
    counts_retries: bool,
    /// The policy selected by the environment or a flag.
    pub(crate) policy_override: Option<PolicyOverride>,
}

/// A policy that a variable or flag selects instead of those in the files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PolicyOverride {
    /// The policy name.
    pub(crate) policy: String,
    /// The variable or flag that selects it.
    pub(crate) by: String,
}

impl RetryPolicies {
    /// Reads the policies of a tree.
    pub(crate) fn read(tree: &Table, forced: Option<PolicyOverride>) -> (Self, ValueErrors) {
        let recovery = tree.get("error_recovery").and_then(Node::table);
        let cap = recovery.and_then(|recovery| recovery.get("max_auto_retries"));
        let mut policies = Self {
            counts_retries: cap.is_some(),
            policy_override: forced,
            ..Self::default()
        };
        let mut faults = ValueErrors::new();
        if let Some(named) = tree.get("policies").and_then(Node::table) {
            policies.read_named(named, &mut faults);
        }
        if let Some(node) = tree.get("policy") {
            policies.general = policies.derive("policy", None, node, &mut faults);
        }
        let roles = match tree.get("role").map(|node| &node.value) {
            Some(Value::List(roles)) => roles.as_slice(),
            _ => &[],
        };
        for role in roles {
            let node = role.table().and_then(|role| role.get("policy"));
            if let (Some(id), Some(node)) = (role.id(), node) {
                let place = format!("role.{id}.policy");
                let policy = policies.for_role(&place, node, &mut faults);
                policies
                    .roles
                    .extend(policy.map(|policy| (id.to_owned(), policy)));
            }
        }
        (policies, faults)
    }

    /// Returns the configured policies and the templates, each id once.
    pub(crate) fn all(&self) -> impl Iterator<Item = &RetryPolicy> {
        let built_in = templates()
            .iter()
            .filter(|policy| self.named.iter().all(|own| own.id != policy.id));
        self.named.iter().chain(built_in)
    }

    /// Returns the policy with this id.
    pub(crate) fn get(&self, id: &str) -> Option<&RetryPolicy> {
        self.all().find(|policy| policy.id == id)
    }

    /// Reads policies that may build on each other in any order.
    fn read_named(&mut self, named: &Table, faults: &mut ValueErrors) {
        let mut waiting: Vec<_> = named.0.iter().collect();
        while !waiting.is_empty() {
            let is_ready = |node: &Node| {
                let base = node.table().and_then(|table| table.get("template")?.text());
                base.is_none_or(|base| waiting.iter().all(|entry| entry.key != base))
            };
            // A cyclic policy is read first, and rejected if there is no such template.
            let next = waiting.iter().position(|entry| is_ready(&entry.node));
            let entry = waiting.remove(next.unwrap_or(0));
            let place = format!("policies.{}", entry.key);
            if let Some(policy) = self.derive(&place, Some(&entry.key), &entry.node, faults) {
                self.named.retain(|known| known.id != entry.key);
                self.named.push(policy);
            }
        }
    }

    /// Returns a role's policy: changes to the policy it names, or to the general one.
    fn for_role(&self, place: &str, node: &Node, faults: &mut ValueErrors) -> Option<RetryPolicy> {
        let named = node.table().and_then(|table| table.get("template"));
        match named {
            Some(_) => self.derive(place, None, node, faults),
            None => {
                let base = self.for_roles();
                derive_policy(&base, place, None, node, faults)
            }
        }
    }

    /// Returns the policy of roles without their own.
    pub(crate) fn for_roles(&self) -> RetryPolicy {
        let base = self.general.clone();
        base.unwrap_or_else(|| self.built_in_for_roles())
    }

    /// Returns the default template of roles: if `[error_recovery]` limits retries, the matching one.
    fn built_in_for_roles(&self) -> RetryPolicy {
        let pipeline = template("pipeline").filter(|_| self.counts_retries);
        pipeline.cloned().unwrap_or_else(default_template)
    }

    /// Derives a policy from the template or configured policy that it names.
    fn derive(
        &self,
        place: &str,
        id: Option<&str>,
        node: &Node,
        faults: &mut ValueErrors,
    ) -> Option<RetryPolicy> {
        let named = node.table().and_then(|table| table.get("template"));
        let wanted = named.and_then(Node::text).unwrap_or(DEFAULT_TEMPLATE);
        let Some(base) = self.get(wanted) else {
            let mut fault = ValueError::new(ValueErrorKind::Custom(self.unknown_message(wanted)));
            fault.span = named.map(|node| node.span);
            faults.push((place.to_owned(), fault));
            return None;
        };
        derive_policy(base, place, id, node, faults)
    }

    /// Returns the message for an unknown policy name.
    pub(crate) fn unknown_message(&self, wanted: &str) -> String {
        let ids: Vec<_> = self.all().map(|policy| policy.id.as_str()).collect();
        let near = nearest(wanted, ids.iter().map(|id| (*id, *id)));
        let near = near.map(|near| format!(", did you mean `{near}`?"));
        format!(
            "unknown policy template `{wanted}`{}",
            near.unwrap_or_else(|| format!("; known: {}", ids.join(", ")))
        )
    }
}

fn derive_policy(
    base: &RetryPolicy,
    place: &str,
    id: Option<&str>,
    node: &Node,
    faults: &mut ValueErrors,
) -> Option<RetryPolicy> {
    let before = faults.len();
    reject_non_finite(place, node, faults);
    let mut changes = node.to_json();
    if let Some(fields) = changes.as_object_mut() {
        fields.remove("template");
        if let Some(id) = id {
            fields.entry("id").or_insert_with(|| id.into());
        }
    }
    match base.with_json(&changes) {
        Ok(policy) if faults.len() == before => Some(policy),
        Ok(_) => None,
        Err(error) => {
            for problem in error.problems {
                let at = node
                    .table()
                    .and_then(|table| path::find_value(table, &problem.field));
                let what = format!("is {}: {}", problem.value, problem.expected);
                let mut fault = ValueError::new(ValueErrorKind::AfterName(what));
                fault.span = Some(at.map_or(node.span, |node| node.span));
                faults.push((format!("{place}.{}", problem.field), fault));
            }
            None
        }
    }
}

/// Rejects NaN and infinity, which TOML and YAML allow and JSON, used to change policies, silently loses.
fn reject_non_finite(place: &str, node: &Node, faults: &mut ValueErrors) {
    match &node.value {
        Value::Number(number) if !number.is_finite() => {
            let mut fault = ValueError::new(ValueErrorKind::WrongType {
                found: number.to_string(),
                expected: "a number".to_owned(),
            });
            fault.span = Some(node.span);
            faults.push((place.to_owned(), fault));
        }
        Value::Table(table) => {
            for entry in &table.0 {
                reject_non_finite(&format!("{place}.{}", entry.key), &entry.node, faults);
            }
        }
        _ => {}
    }
}
