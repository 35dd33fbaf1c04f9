//! The JSON Schema of a configuration file, for editors.

use serde_json::Value;

use crate::root_section::RootSection;

/// Returns the JSON Schema of a configuration file.
pub fn schema() -> Value {
    let generator = schemars::generate::SchemaSettings::draft07().into_generator();
    generator.into_root_schema_for::<RootSection>().to_value()
}
