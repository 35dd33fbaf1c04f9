//! What a prompt uses, as far as its text shows.

use super::RolePromptTemplate;

impl RolePromptTemplate {
    /// Whether it builds on the output of a role.
    pub fn uses_output(&self, role: &str) -> bool {
        let written = [
            format!("outputs.{role}"),
            format!("outputs[\"{role}\"]"),
            format!("outputs['{role}']"),
        ];
        written.iter().any(|name| self.text.contains(name))
    }
}
