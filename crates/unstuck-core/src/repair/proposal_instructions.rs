//! The instructions that teach an agent to propose a repair.

/// Returns the prompt text that tells an agent when and how to propose a repair.
pub fn agent_instructions() -> &'static str {
    include_str!("../../data/recovery_instructions.md")
}

#[cfg(test)]
mod tests {
    use super::agent_instructions;
    use crate::command_policy::Proposal;

    /// S3-28 to S3-30: the example given to agents is a valid proposal.
    #[test]
    fn agent_instructions_example_is_a_valid_proposal() {
        let text = agent_instructions();
        let from = text.find("```json\n").unwrap() + 8;
        let to = from + text[from..].find("```").unwrap();
        let proposal = Proposal::parse(&text.as_bytes()[from..to]).unwrap();
        assert_eq!(proposal.recovery.command, "npm ci");
        for part in [
            "UNSTUCK_RECOVERY_FILE",
            "failing assertions",
            "confidence: high",
        ] {
            assert!(text.contains(part), "{part}");
        }
    }
}
