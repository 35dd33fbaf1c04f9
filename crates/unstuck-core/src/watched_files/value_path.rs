//! Finds values by paths such as `target.*.dependencies`.

use super::config_value::ConfigValue;

/// Returns the values at a path, each with its own path.
pub(super) fn values_at_path(value: &ConfigValue, path: &str) -> Vec<(String, ConfigValue)> {
    let mut found = vec![(String::new(), value)];
    for step in path.split('.') {
        let inside = found.into_iter().flat_map(|(way, value)| {
            let ConfigValue::Table(table) = value else {
                return Vec::new();
            };
            let fits = table.iter().filter(|(key, _)| step == "*" || *key == step);
            let join = |key: &str| {
                if way.is_empty() {
                    key.to_owned()
                } else {
                    format!("{way}.{key}")
                }
            };
            fits.map(|(key, value)| (join(key), value)).collect()
        });
        found = inside.collect();
    }
    let found = found.into_iter();
    found.map(|(way, value)| (way, value.clone())).collect()
}
