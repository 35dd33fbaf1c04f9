//! The embedded policy templates (`data/policies.toml`).

use std::sync::LazyLock;

use serde::Deserialize;

use super::RetryPolicy;

#[derive(Deserialize)]
struct PolicyTemplatesFile {
    policy: Vec<RetryPolicy>,
}

/// A test ensures that the file can be parsed; otherwise only the built-in default would be left.
static TEMPLATES: LazyLock<Vec<RetryPolicy>> = LazyLock::new(|| {
    read(include_str!("../../../data/policies.toml"))
        .unwrap_or_else(|_| vec![RetryPolicy::default()])
});

fn read(text: &str) -> Result<Vec<RetryPolicy>, toml::de::Error> {
    toml::from_str::<PolicyTemplatesFile>(text).map(|file| file.policy)
}

/// The id of the default template.
pub const DEFAULT_TEMPLATE: &str = "resilient";

/// Returns the default template.
pub fn default_template() -> RetryPolicy {
    template(DEFAULT_TEMPLATE).cloned().unwrap_or_default()
}

/// Returns all templates, in display order.
pub fn templates() -> &'static [RetryPolicy] {
    &TEMPLATES
}

/// Returns the template with this id.
pub fn template(id: &str) -> Option<&'static RetryPolicy> {
    templates().iter().find(|one| one.id == id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_embedded_templates_can_be_parsed_and_have_descriptions() {
        let read = read(include_str!("../../../data/policies.toml")).unwrap();
        let ids: Vec<_> = read.iter().map(|one| &*one.id).collect();
        assert_eq!(
            ids,
            [
                "resilient",
                "standard",
                "patient",
                "pipeline",
                "critical",
                "thrifty",
                "off"
            ]
        );
        assert!(read.iter().all(|one| one.description.ends_with('.')));
    }

    #[test]
    fn the_default_is_the_template_resilient() {
        let resilient = template(DEFAULT_TEMPLATE).unwrap();
        let described = RetryPolicy {
            description: resilient.description.clone(),
            ..RetryPolicy::default()
        };
        assert_eq!(&described, resilient);
        assert_eq!(default_template(), *resilient);
    }

    /// The founding documents limit the number of retries: only the default is bounded by the time without progress.
    #[test]
    fn only_the_default_template_is_bounded_by_time() {
        let timed = templates().iter().filter(|one| one.give_up_after.is_some());
        let ids: Vec<_> = timed.map(|one| &*one.id).collect();
        assert_eq!(ids, [DEFAULT_TEMPLATE]);
    }
}
