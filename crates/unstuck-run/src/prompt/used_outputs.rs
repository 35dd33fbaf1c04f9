//! Finds out by its text if a prompt uses the output of a role.

use super::RolePromptTemplate;

impl RolePromptTemplate {
    /// Returns true if it uses the output of a role.
    pub fn uses_output(&self, role: &str) -> bool {
        let written = [
            format!("outputs.{role}"),
            format!("outputs[\"{role}\"]"),
            format!("outputs['{role}']"),
        ];
        written.iter().any(|name| self.text.contains(name))
    }
}
