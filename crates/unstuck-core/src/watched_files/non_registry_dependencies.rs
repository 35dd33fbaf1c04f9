//! Dependencies that do not come from a registry: directories, repositories, URLs.

use std::collections::BTreeMap;

use regex::Regex;

use super::config_value::ConfigValue;

/// The form of a dependency that comes from a registry.
pub(super) struct RegistryDependencyForm<'r> {
    /// The pattern of a string.
    pub(super) pattern: Option<&'r Regex>,
    /// The permitted keys of a table; if empty, a table contains further dependencies.
    pub(super) keys: &'r [String],
}

impl RegistryDependencyForm<'_> {
    /// Returns the dependencies that do not match; none if all match.
    pub(super) fn non_registry_dependencies(
        &self,
        dependencies: &ConfigValue,
    ) -> Option<ConfigValue> {
        match dependencies {
            ConfigValue::Table(table) => {
                let rest = table.iter().filter_map(|(name, one)| {
                    let rest = match one {
                        ConfigValue::Table(_) if self.keys.is_empty() => {
                            self.non_registry_dependencies(one)
                        }
                        ConfigValue::List(_) => self.non_registry_dependencies(one),
                        _ => self.non_registry_dependency(one),
                    };
                    Some((name.clone(), rest?))
                });
                let rest: BTreeMap<_, _> = rest.collect();
                (!rest.is_empty()).then_some(ConfigValue::Table(rest))
            }
            ConfigValue::List(list) => {
                let rest: Vec<_> = list
                    .iter()
                    .filter_map(|one| self.non_registry_dependency(one))
                    .collect();
                (!rest.is_empty()).then_some(ConfigValue::List(rest))
            }
            one => self.non_registry_dependency(one),
        }
    }

    fn non_registry_dependency(&self, one: &ConfigValue) -> Option<ConfigValue> {
        let is_plain = |text: &str| self.pattern.is_some_and(|plain| plain.is_match(text));
        let is_usual = match one {
            ConfigValue::Text(text) => is_plain(text),
            ConfigValue::Table(table) => {
                let known = |key: &String| self.keys.contains(key);
                let version = match table.get("version") {
                    Some(ConfigValue::Text(version)) => is_plain(version),
                    _ => true,
                };
                version && table.keys().all(known)
            }
            ConfigValue::Null | ConfigValue::Flag(_) => true,
            ConfigValue::Number(_) | ConfigValue::List(_) => false,
        };
        (!is_usual).then(|| one.clone())
    }
}
