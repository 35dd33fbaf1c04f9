//! Tests of variables and errors of prompts.
#![expect(clippy::disallowed_methods, reason = "a test makes files")]

use std::fs;

use unstuck_core::FailureKind;

use super::*;

fn names() -> PromptVariableScope {
    PromptVariableScope::new(
        ["planner", "builder", "my-tester"],
        ["planner", "my-tester"],
    )
}

fn check(text: &str) -> Result<(), String> {
    let checked =
        RolePromptTemplate::new("builder", text).check(&names(), &EmptyPromptFileProvider);
    checked.map_err(|fault| fault.to_string())
}

fn told(text: &str) -> String {
    check(text).unwrap_err()
}

#[test]
fn every_variable_can_be_used() {
    let text = "{{ task }}|{{ iteration }}/{{ max_iterations }}|{{ role }} {{ instance }} of {{ instances }}|\
        {{ outputs.planner }}|{{ outputs['my-tester'] }}|{{ feedback }}|{{ run }}|{{ unstuck.recovery_instructions }}\n";
    assert_eq!(check(text), Ok(()));
    let values = PromptValues {
        task: "T".into(),
        iteration: 2,
        max_iterations: 5,
        role: "builder".into(),
        instance: 1,
        instances: 3,
        outputs: [("planner", "P"), ("my-tester", "M")]
            .map(|(role, text)| (role.to_owned(), text.to_owned()))
            .into(),
        feedback: "F".into(),
        run: "R".into(),
        recovery_instructions: String::new(),
    };
    let prompt = RolePromptTemplate::new("builder", text);
    assert_eq!(
        prompt.render(&values, &EmptyPromptFileProvider).unwrap(),
        "T|2/5|builder 1 of 3|P|M|F|R|\n"
    );
}

/// S1-08: an undefined variable is a context error with its name, reported before anything runs.
#[test]
fn undefined_variable_is_reported_with_the_most_similar_one() {
    assert_eq!(
        told("{{ tsak }}"),
        "the prompt of `builder` uses the undefined variable `{{ tsak }}`, did you mean `task`?"
    );
    assert!(
        told("{{ outputs.planer }}").ends_with("unknown role `planer`, did you mean `planner`?")
    );
    assert!(told("{{ outputs['my-testr'] }}").ends_with("did you mean `my-tester`?"));
    assert!(
        told("{{ outputs.b }}").ends_with("the unknown role `b`; other roles: my-tester, planner")
    );
    assert!(told("{{ task.length }}").contains("task.length"));
    assert!(told("{{ unstuck.version }}").contains("unstuck.version"));
    let fault = RolePromptTemplate::new("a", "{{ x }}").check(&names(), &EmptyPromptFileProvider);
    assert_eq!(fault.unwrap_err().kind(), FailureKind::ContextError);
}

#[test]
fn all_faults_of_a_prompt_are_reported() {
    let text = "{{ taks }} {{ outputs.b }} {{ outputs['c'] }} {{ file('gone.md') }} {{ files['lost.md'] }} {{ task.length }}";
    let faults =
        RolePromptTemplate::new("builder", text).faults(&names(), &EmptyPromptFileProvider);
    let all: Vec<_> = faults.iter().map(ToString::to_string).collect();
    assert_eq!(all.len(), 6, "{all:#?}");
    for words in [
        "taks",
        "unknown role `b`",
        "unknown role `c`",
        "gone.md",
        "lost.md",
        "task.length",
    ] {
        assert!(
            all.iter().any(|one| one.contains(words)),
            "{words}: {all:#?}"
        );
    }
}

#[test]
fn role_with_a_dash_is_reported_with_the_correct_syntax() {
    let faults = RolePromptTemplate::new("builder", "{{ outputs.my-tester }}")
        .faults(&names(), &EmptyPromptFileProvider);
    let all: Vec<_> = faults.iter().map(ToString::to_string).collect();
    assert_eq!(
        all,
        [
            "the prompt of `builder` uses `outputs.my-tester`, where `-` means minus; use `outputs[\"my-tester\"]` instead"
        ]
    );
}

#[test]
fn plain_word_is_not_a_variable() {
    assert!(!RolePromptTemplate::new("a", "Your task is to write").uses_variable("task"));
    assert!(RolePromptTemplate::new("a", "{% if task %}x{% endif %}").uses_variable("task"));
}

#[test]
fn name_in_a_rarely_taken_branch_is_validated() {
    assert!(told("{% if feedback %}{{ fedback }}{% endif %}").contains("fedback"));
    assert!(
        told("{% if not feedback %}{{ outputs['x'] }}{% endif %}").contains("unknown role `x`")
    );
    assert_eq!(
        check("{% for line in feedback | lines %}{{ line }}{% endfor %}{% set a = task %}{{ a }}"),
        Ok(())
    );
}

#[test]
fn output_of_a_role_not_in_needs_is_reported_with_the_fix() {
    let prompt = RolePromptTemplate::new("planner", "{{ outputs.builder }}");
    let told = prompt
        .check(&names(), &EmptyPromptFileProvider)
        .unwrap_err()
        .to_string();
    assert!(
        told.ends_with("add `builder` to the `needs` of `planner`"),
        "{told}"
    );
}

#[test]
fn invalid_template_is_reported_with_its_line() {
    let told = told("fine\n{{ task ");
    assert!(told.contains("(line 2)"), "{told}");
    assert!(check("{{ task | upcase }}").unwrap_err().contains("upcase"));
}

#[test]
fn endless_prompt_is_stopped() {
    let text = "{% for a in range(9999) %}{% for b in range(9999) %}{% endfor %}{% endfor %}";
    let rendered = RolePromptTemplate::new("a", text)
        .render(&PromptValues::default(), &EmptyPromptFileProvider);
    assert!(rendered.unwrap_err().to_string().contains("too many steps"));
}

#[test]
fn only_files_of_the_project_are_included() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("project");
    fs::create_dir_all(root.join("docs")).unwrap();
    fs::write(root.join("docs/spec.md"), "the spec {{ task }}").unwrap();
    fs::write(folder.path().join("secret"), "s").unwrap();
    std::os::unix::fs::symlink(folder.path().join("secret"), root.join("link")).unwrap();
    let files = ProjectPromptFileProvider::new(&root);
    let fill = |text: &str| {
        let prompt = RolePromptTemplate::new("a", text);
        let checked = prompt.check(&PromptVariableScope::default(), &files);
        let rendered = prompt.render(&PromptValues::default(), &files);
        assert_eq!(checked.is_ok(), rendered.is_ok(), "{text}");
        checked.and(rendered).map_err(|fault| fault.to_string())
    };
    // The contents of a file are not a template: an agent may have written it.
    assert_eq!(
        fill("{{ file('docs/spec.md') }}"),
        Ok("the spec {{ task }}".into())
    );
    assert_eq!(
        fill("{{ files['docs/spec.md'] }}"),
        Ok("the spec {{ task }}".into())
    );
    let missing = fill("{{ file('docs/spce.md') }}").unwrap_err();
    assert!(
        missing.ends_with("file not found, did you mean `docs/spec.md`?"),
        "{missing}"
    );
    assert!(
        fill("{{ files['docs/spce.md'] }}")
            .unwrap_err()
            .contains("docs/spce.md")
    );
    for outside in ["../secret", "/etc/passwd", "link", ""] {
        let told = fill(&format!("{{{{ file('{outside}') }}}}")).unwrap_err();
        assert!(told.contains("outside the project"), "{outside}: {told}");
    }
    assert!(
        fill("{{ file('docs') }}")
            .unwrap_err()
            .contains("not a regular file")
    );
}
