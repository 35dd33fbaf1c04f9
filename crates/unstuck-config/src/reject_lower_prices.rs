//! Keeps a project's `[models]` from lowering prices: budgets in USD belong to the owner.

use serde::Deserialize;
use unstuck_core::decision::{CatalogModel, ModelCatalog};

use crate::config::with_model;
use crate::section::ModelsSection;
use crate::value_tree::{Node, Span, Table, Value, decode};

/// A setting that would lower the computed cost of calls.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct PriceReduction {
    /// The path of the removed setting.
    pub(crate) path: String,
    /// Its location.
    pub(crate) at: Span,
    /// The reason, as text.
    pub(crate) why: String,
}

/// The only section that prices are read from.
#[derive(Default, Deserialize)]
#[serde(default)]
struct OnlyModels {
    models: ModelsSection,
}

/// Removes settings from a project's file that make a model cheaper than earlier layers say, or leave its calls without
/// a price.
pub(crate) fn take_cheaper(before: &Table, tree: &mut Table) -> Vec<PriceReduction> {
    let models = tree.get_mut("models").and_then(Node::table_mut);
    let models = models.and_then(|models| models.get_mut("model"));
    let Some(list) = models.and_then(Node::list_mut) else {
        return Vec::new();
    };
    let known = catalog_of(before);
    let mut taken = Vec::new();
    list.retain_mut(|one| is_kept(one, &known, &mut taken));
    taken
}

/// Returns the model catalog before the project's settings.
fn catalog_of(before: &Table) -> ModelCatalog {
    let mut alone = Table(before.entry("models").cloned().into_iter().collect());
    let (OnlyModels { models }, _) = decode::decode_table(&mut alone);
    models
        .model
        .iter()
        .fold(ModelCatalog::embedded(), with_model)
}

/// Returns whether any of a model's settings remain.
fn is_kept(one: &mut Node, known: &ModelCatalog, taken: &mut Vec<PriceReduction>) -> bool {
    let at = one.span;
    let Some(id) = one.id().map(str::to_owned) else {
        return true;
    };
    let Some(table) = one.table_mut() else {
        return true;
    };
    let path = format!("models.model.{id}");
    let is_more_expensive = |table: &Table, model: &CatalogModel| {
        let price = table.get("price").and_then(Node::table);
        price.is_some_and(|price| covers(price, model))
    };
    let same = known.models.iter().find(|model| model.id == id);
    match (same, known.find(&id)) {
        (Some(model), _) => {
            if let Some(price) = table.entry("price").map(|entry| entry.key_span)
                && model.price.is_some()
                && !is_more_expensive(table, model)
            {
                table.remove("price");
                taken.push(PriceReduction {
                    path: format!("{path}.price"),
                    at: price,
                    why: format!("lowers the price of `{id}` below {}", stated(model)),
                });
            }
        }
        // An alias of a known model would shadow it.
        (None, Some(model)) if model.price.is_some() && !is_more_expensive(table, model) => {
            taken.push(PriceReduction {
                path,
                at,
                why: format!("lowers the price of `{}` below {}", model.id, stated(model)),
            });
            return false;
        }
        (None, _) => {}
    }
    let aliases = aliases_of(table);
    let means_another = |alias: &String| {
        let other = known.find(alias).filter(|other| other.id != id);
        other.is_some_and(|other| other.price.is_some())
    };
    let lost = |aliases: &[String]| {
        let same = same.filter(|model| model.price.is_some());
        let mut wanted = same.into_iter().flat_map(|model| &model.aliases);
        wanted.any(|alias| !aliases.contains(alias))
    };
    if let Some((entry, aliases)) = aliases
        && (aliases.iter().any(means_another) || lost(&aliases))
    {
        table.remove("aliases");
        taken.push(PriceReduction {
            path: format!("{path}.aliases"),
            at: entry,
            why: "reassigns or removes the name of a known model, which changes the price of its calls"
                .to_owned(),
        });
    }
    true
}

fn aliases_of(table: &Table) -> Option<(Span, Vec<String>)> {
    let entry = table.entry("aliases")?;
    let Value::List(list) = &entry.node.value else {
        return None;
    };
    let texts = list.iter().filter_map(|one| match &one.value {
        Value::Text(text) => Some(text.clone()),
        _ => None,
    });
    Some((entry.key_span, texts.collect()))
}

/// Returns whether a price is at least that of a model, for prompts of every length; a missing price is not.
fn covers(price: &Table, model: &CatalogModel) -> bool {
    let Some(base) = &model.price else {
        return true;
    };
    let long = model.long.as_ref();
    let most = |base: Option<f64>, long: Option<f64>| match (base, long) {
        (Some(base), Some(long)) => Some(base.max(long)),
        (one, other) => one.or(other),
    };
    let wanted = [
        (
            "input",
            most(Some(base.input), long.and_then(|long| long.input)),
        ),
        (
            "output",
            most(Some(base.output), long.and_then(|long| long.output)),
        ),
        (
            "cached",
            most(base.cached, long.and_then(|long| long.cached)),
        ),
    ];
    wanted.into_iter().all(|(key, wanted)| {
        let said = price.get(key).and_then(Node::number);
        wanted.is_none_or(|wanted| said.is_some_and(|said| said >= wanted))
    })
}

/// Returns the price of a model, as text.
fn stated(model: &CatalogModel) -> String {
    let Some(price) = &model.price else {
        return "the known price".to_owned();
    };
    let cached = price.cached.map(|cached| format!(", cached {cached}"));
    let long = model.long.as_ref().map(|_| ", more for long prompts");
    format!(
        "the known price (input {}, output {}{}{})",
        price.input,
        price.output,
        cached.unwrap_or_default(),
        long.unwrap_or_default()
    )
}
