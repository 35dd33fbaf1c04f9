//! The corpora beside the repository: real output of tools and APIs, in which only keys are redacted.

use std::path::Path;

use super::redactor;

#[test]
fn no_hash_or_id_of_the_corpora_is_redacted() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/corpus");
    let mut hidden = Vec::new();
    let mut texts = 0;
    for file in [
        "api-agent.dev.jsonl",
        "commands.dev.jsonl",
        "tool-infra.dev.jsonl",
        "v2/api-agent.dev.jsonl",
        "v2/api-agent.dev2.jsonl",
        "v2/tool-infra.dev.jsonl",
        "v2/tool-infra.dev2.jsonl",
    ] {
        let lines = std::fs::read_to_string(folder.join(file)).unwrap();
        for line in lines.lines() {
            let value: serde_json::Value = serde_json::from_str(line).unwrap();
            for text in value
                .as_object()
                .unwrap()
                .values()
                .filter_map(|one| one.as_str())
            {
                texts += 1;
                let shown = redactor().redact(text).into_owned();
                let names = shown.split("[redacted:").skip(1);
                hidden.extend(names.map(|rest| {
                    let name = rest.split(']').next().unwrap_or_default();
                    (name.to_owned(), value["id"].to_string())
                }));
            }
        }
    }
    assert!(texts > 5000, "{texts}");
    // Those of two cases that are about keys on the screen.
    hidden.retain(|(name, id)| !(name == "anthropic_key" && id.contains("cmd-display-")));
    assert!(hidden.is_empty(), "{hidden:?}");
}
