//! Laws that hold for every plan.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::failure::Category;
use crate::recovery_plan::{MAX_STRATEGIES, shell_tokens};

static RECOVERY_KNOWLEDGE: LazyLock<RecoveryKnowledge> =
    LazyLock::new(|| RecoveryKnowledge::built_in().clone());

fn any_layer() -> impl Strategy<Value = FailureLayer> {
    prop::sample::select(vec![
        FailureLayer::Api,
        FailureLayer::Tool,
        FailureLayer::Agent,
        FailureLayer::Infra,
    ])
}

fn any_command() -> impl Strategy<Value = String> {
    let usual = [
        "git clone https://github.com/u/r x",
        "rg a src | head",
        "cat /etc/x",
        "curl -O https://pypi.org/simple/a",
        "sudo make -j8",
        "timeout 9 pytest -q",
        "npm install",
        "echo 'open",
        "jq .a.b f.json",
        "",
        "find . -name '*.rs'",
        "rm -rf build && make",
        "for f in *; do echo $f",
    ];
    prop_oneof![
        prop::sample::select(usual.to_vec()).prop_map(str::to_owned),
        "\\PC{0,40}"
    ]
}

fn any_line() -> impl Strategy<Value = String> {
    prop_oneof![
        Just("bash: git: command not found".to_owned()),
        Just("cat: a/b.txt: No such file or directory".to_owned()),
        Just("limit: Expected number, received string".to_owned()),
        "\\PC{0,60}",
    ]
}

fn any_forbidden() -> impl Strategy<Value = Vec<String>> {
    let known = vec![
        "sudo",
        "install",
        "network",
        "delete",
        "write",
        "curl",
        "sh",
        "find",
        "retry_same",
        "mirror",
        "head",
        "git",
    ];
    prop::collection::vec(prop::sample::select(known).prop_map(str::to_owned), 0..4)
}

fn texts(value: &serde_json::Value, into: &mut String) {
    match value {
        serde_json::Value::String(text) => into.push_str(&format!(" {text} ")),
        serde_json::Value::Array(items) => items.iter().for_each(|item| texts(item, into)),
        serde_json::Value::Object(fields) => fields.values().for_each(|item| texts(item, into)),
        _ => {}
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    /// S2-19, S2-20, S2-22, S2-26: at most four strategies and an escalation last, no duplicates, nothing forbidden,
    /// numbered.
    #[test]
    fn every_plan_obeys_the_rules(
        kind in prop::sample::select(FailureKind::ALL.to_vec()),
        layer in any_layer(),
        command in any_command(),
        line in any_line(),
        forbid in any_forbidden(),
        path in "\\PC{0,20}",
        as_args in any::<bool>(),
    ) {
        let failure = Failure { layer, ..Failure::tool(if as_args { "read_file" } else { "run_bash" }) };
        let failure = if as_args { failure } else { failure.with_command(command) }.with_stderr(line.as_str());
        let diagnosis = diagnosis(kind, layer, &line);
        let args = json!({ "path": path, "limit": "5" });
        let mut request = RecoveryPlanRequest::new(&RECOVERY_KNOWLEDGE, &failure, &diagnosis);
        request.args = as_args.then_some(&args);
        request.forbid = forbid.clone();
        let plan = plan(&request);
        if matches!(kind.category(), Category::Code | Category::None) {
            prop_assert!(plan.is_empty());
            return Ok(());
        }
        prop_assert!(plan.len() <= MAX_STRATEGIES + 1);
        let asks: Vec<bool> = plan.iter().map(|one| RECOVERY_KNOWLEDGE.strategy(&one.strategy).unwrap().requires_human).collect();
        prop_assert_eq!(asks.iter().position(|asks| *asks), Some(plan.len() - 1));
        let unique: BTreeSet<_> = plan.iter().map(|one| &one.strategy).collect();
        prop_assert_eq!(unique.len(), plan.len());
        for (index, one) in plan.iter().enumerate() {
            prop_assert_eq!(one.priority as usize, index + 1);
            prop_assert_eq!(&one.fallback_chain, &ids(&plan)[index + 1..]);
            prop_assert!(!one.steps.is_empty());
        }
        let is_sound = !as_args && shell_tokens(failure.command.as_deref().unwrap_or_default()).is_ok();
        for script in plan.iter().flat_map(|one| &one.steps).filter_map(|step| step.args.get("script")) {
            prop_assert!(!is_sound || shell_tokens(script.as_str().unwrap()).is_ok(), "{script}");
        }
        let mut all = String::new();
        for step in plan[..plan.len() - 1].iter().flat_map(|one| &one.steps) {
            texts(&step.args, &mut all);
        }
        for word in forbid.iter().map(String::as_str).chain(["sudo"]) {
            let found = all.split(|c: char| !c.is_alphanumeric() && c != '_').any(|part| part == word);
            prop_assert!(!found, "{word} in {all}");
        }
    }
}
