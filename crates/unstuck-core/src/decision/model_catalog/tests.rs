//! Tests of the embedded models and of the choice of another one.

use super::*;

#[test]
fn the_embedded_models_are_complete() {
    let catalog = ModelCatalog::parse(include_str!("../../../data/models.toml")).unwrap();
    assert!(catalog.models.len() > 20 && catalog.ladders.len() == 3);
    for ladder in &catalog.ladders {
        for id in &ladder.models {
            let model = catalog.find(id).unwrap();
            assert!(model.price.is_some() && model.context.is_some(), "{id}");
        }
    }
}

/// S4-14: haiku, sonnet, opus; in any spelling, and from an older model of the family.
#[test]
fn the_ladder_leads_from_haiku_to_sonnet_to_opus() {
    let catalog = ModelCatalog::embedded();
    let next = |name| catalog.next_model(name);
    assert_eq!(next("claude-haiku-5-5"), Ok("claude-sonnet-5-5"));
    assert_eq!(next("anthropic/claude-sonnet-5.5"), Ok("claude-opus-5-5"));
    assert_eq!(next("haiku"), Ok("claude-sonnet-5-5"));
    assert_eq!(next("claude-sonnet-4-5-20250929"), Ok("claude-opus-5-5"));
    assert_eq!(next("gpt-6-luna"), Ok("gpt-6.1-terra"));
    assert_eq!(next("gemini-3.8-flash"), Ok("gemini-4-argon"));
}

/// S4-14: the ladder is configuration, and may name models that are not in the catalog.
#[test]
fn a_custom_ladder_is_used() {
    let mut catalog = ModelCatalog::embedded();
    catalog.ladders = vec![ModelLadder {
        id: "mine".into(),
        models: vec!["local-small".into(), "local-large".into()],
    }];
    assert_eq!(catalog.next_model("local-small"), Ok("local-large"));
    assert_eq!(
        catalog.next_model("claude-haiku-5-5"),
        Err(ModelSwitchTargetError::NotOnALadder)
    );
}

/// S4-15: there is no next model if the model is unknown or already on top.
#[test]
fn there_is_no_model_above_the_top_or_above_an_unknown_one() {
    let catalog = ModelCatalog::embedded();
    let top = catalog.next_model("claude-opus-5-5").unwrap_err();
    assert_eq!(
        top.to_string(),
        "already at the most capable model of the ladder"
    );
    assert_eq!(
        catalog.next_model("no-such-model"),
        Err(ModelSwitchTargetError::NotOnALadder)
    );
}

#[test]
fn a_larger_context_is_searched_in_the_same_family_first() {
    let catalog = ModelCatalog::embedded();
    assert_eq!(
        catalog.larger_context("claude-sonnet-4-5"),
        Ok("claude-sonnet-5-5")
    );
    assert_eq!(
        catalog.larger_context("claude-opus-5-5"),
        Err(ModelSwitchTargetError::NoneLarger)
    );
}

#[test]
fn a_sibling_costs_about_the_same() {
    let catalog = ModelCatalog::embedded();
    assert_eq!(catalog.sibling("claude-sonnet-5-5"), Ok("claude-sonnet-5"));
    assert_eq!(catalog.sibling("gpt-6.1-sol"), Ok("gpt-6-sol"));
    assert_eq!(
        catalog.sibling("no-such-model"),
        Err(ModelSwitchTargetError::Unknown)
    );
}

#[test]
fn models_and_ladders_are_added_or_replaced() {
    let known = ModelCatalog::embedded();
    let mut opus = known.find("opus").cloned().unwrap();
    opus.context = Some(5);
    let ladder = |id: &str, models: &[&str]| ModelLadder {
        id: id.to_owned(),
        models: models.iter().map(|id| (*id).to_owned()).collect(),
    };
    let catalog = known
        .clone()
        .with(opus)
        .with_ladder(ladder("ours", &["gpt-6-luna", "claude-opus-5-5"]));
    assert_eq!(catalog.models.len(), known.models.len());
    assert_eq!(catalog.find("opus").unwrap().context, Some(5));
    assert_eq!(catalog.next_model("gpt-6-luna"), Ok("claude-opus-5-5"));
    let replaced = catalog.with_ladder(ladder("ours", &["gpt-6-luna", "gpt-6-sol"]));
    assert_eq!(replaced.next_model("gpt-6-luna"), Ok("gpt-6-sol"));
}
