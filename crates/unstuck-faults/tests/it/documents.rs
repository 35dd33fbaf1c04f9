//! Every script shown in the guide is valid.

use std::path::Path;

use unstuck_faults::{FaultScript, examples};

fn guide() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/guide/faults.md");
    std::fs::read_to_string(path).unwrap()
}

#[test]
fn every_script_of_the_guide_is_valid() {
    let guide = guide();
    let scripts: Vec<_> = guide
        .split("```toml\n")
        .skip(1)
        .filter_map(|rest| rest.split_once("```"))
        .map(|(script, _)| script.parse::<FaultScript>())
        .collect();
    assert!(scripts.len() >= 3);
    for script in scripts {
        script.unwrap();
    }
}

#[test]
fn the_mix_in_the_guide_equals_the_printed_example() {
    let flaky = examples::find("flaky").unwrap().script().unwrap();
    let guide = guide();
    let (_, after) = guide.split_once("```toml\n[mix]\n").unwrap();
    let (script, _) = after.split_once("```").unwrap();
    assert_eq!(
        format!("[mix]\n{script}").parse::<FaultScript>().unwrap(),
        flaky
    );
}
