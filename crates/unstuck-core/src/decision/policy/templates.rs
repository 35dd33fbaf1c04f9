//! The policy templates that come with the program (`data/policies.toml`).

use std::sync::LazyLock;

use serde::Deserialize;

use super::RetryPolicy;

#[derive(Deserialize)]
struct File {
    policy: Vec<RetryPolicy>,
}

/// A test makes sure that the file can be read; an unreadable one would leave the built-in `standard`.
static TEMPLATES: LazyLock<Vec<RetryPolicy>> = LazyLock::new(|| {
    read(include_str!("../../../data/policies.toml"))
        .unwrap_or_else(|_| vec![RetryPolicy::default()])
});

fn read(text: &str) -> Result<Vec<RetryPolicy>, toml::de::Error> {
    toml::from_str::<File>(text).map(|file| file.policy)
}

/// Every template, in the order in which they are offered.
pub fn templates() -> &'static [RetryPolicy] {
    &TEMPLATES
}

/// The template of that id.
pub fn template(id: &str) -> Option<&'static RetryPolicy> {
    templates().iter().find(|one| one.id == id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_embedded_templates_can_be_read_and_say_what_they_are() {
        let read = read(include_str!("../../../data/policies.toml")).unwrap();
        let ids: Vec<_> = read.iter().map(|one| &*one.id).collect();
        assert_eq!(
            ids,
            [
                "standard", "patient", "pipeline", "critical", "thrifty", "off"
            ]
        );
        assert!(read.iter().all(|one| one.description.ends_with('.')));
    }

    #[test]
    fn the_default_is_the_template_standard() {
        let standard = template("standard").unwrap();
        let described = RetryPolicy {
            description: standard.description.clone(),
            ..RetryPolicy::default()
        };
        assert_eq!(&described, standard);
    }
}
