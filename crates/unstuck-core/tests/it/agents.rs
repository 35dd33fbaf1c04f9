//! Parsing and changing command lines, and reading outputs, of every agent, as given in its samples.

use proptest::prelude::*;
use serde::Deserialize;
use unstuck_core::agent::{
    Agent, AgentDefinition, Agents, CommandLineRewrite, CommandRewriteError, ConversationChoice,
    ParsedAgentCommandLine, PromptSource,
};
use unstuck_core::decision::RetryChangeCapability;

pub(crate) const FILES: [&str; 9] = [
    include_str!("../../data/agents/aider.toml"),
    include_str!("../../data/agents/claude.toml"),
    include_str!("../../data/agents/codex.toml"),
    include_str!("../../data/agents/command.toml"),
    include_str!("../../data/agents/copilot.toml"),
    include_str!("../../data/agents/gemini.toml"),
    include_str!("../../data/agents/goose.toml"),
    include_str!("../../data/agents/opencode.toml"),
    include_str!("../../data/agents/qwen.toml"),
];

#[derive(Debug, Deserialize)]
struct Samples {
    id: String,
    #[serde(default)]
    sample: Vec<Sample>,
    answer: Vec<Answer>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Sample {
    command: String,
    prompt: Option<String>,
    file: Option<String>,
    #[serde(default)]
    stdin: bool,
    model: Option<String>,
    format: Option<String>,
    session: Option<String>,
    #[serde(default)]
    resumes: bool,
    #[serde(default)]
    interactive: bool,
    #[serde(default)]
    changed: Vec<Change>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Change {
    prompt: Option<String>,
    model: Option<String>,
    resume: Option<String>,
    message: Option<String>,
    #[serde(default)]
    fresh: bool,
    stdin: Option<String>,
    gives: String,
}

#[derive(Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Answer {
    stdout: String,
    stderr: String,
    text: Option<String>,
    session: Option<String>,
    model: Option<String>,
    cost_usd: Option<f64>,
    input: Option<u64>,
    output: Option<u64>,
    cached: Option<u64>,
    turns: Option<u32>,
    context: Option<u64>,
}

fn samples() -> Vec<(&'static Agent, Samples)> {
    let read = |text: &&str| toml::from_str::<Samples>(text).unwrap();
    let with_agent = |samples: Samples| (Agents::built_in().get(&samples.id).unwrap(), samples);
    FILES.iter().map(read).map(with_agent).collect()
}

/// Splits words at blanks; double quotes may contain blanks.
pub(crate) fn words(line: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let (mut quoted, mut any) = (false, false);
    for c in line.chars() {
        match c {
            '"' => (quoted, any) = (!quoted, true),
            ' ' if !quoted => {
                words.push(String::new());
                any = false;
            }
            c => words.last_mut().unwrap().push(c),
        }
    }
    assert!(!quoted && (any || !line.ends_with(' ')), "{line}");
    words
}

fn read<'a>(agent: &'a Agent, sample: &Sample) -> ParsedAgentCommandLine<'a> {
    let command = words(&sample.command);
    let recognised = Agents::built_in().recognize(&command);
    assert_eq!(
        recognised.map(Agent::id),
        Some(agent.id()),
        "{}",
        sample.command
    );
    ParsedAgentCommandLine::parse(agent, &command)
}

#[test]
fn every_command_line_is_parsed_as_its_sample_states() {
    for (agent, samples) in samples() {
        for sample in &samples.sample {
            let invocation = read(agent, sample);
            assert_eq!(
                invocation.is_headless(),
                !sample.interactive,
                "{}",
                sample.command
            );
            if sample.interactive {
                continue;
            }
            let prompt = match (&sample.prompt, &sample.file, sample.stdin) {
                (Some(text), ..) => PromptSource::Text(text.clone()),
                (_, Some(file), _) => PromptSource::File(file.clone()),
                (.., true) => PromptSource::Stdin,
                _ => PromptSource::Elsewhere,
            };
            assert_eq!(invocation.prompt(), prompt, "{}", sample.command);
            assert_eq!(
                invocation.model(),
                sample.model.as_deref(),
                "{}",
                sample.command
            );
            assert_eq!(
                invocation.format(),
                sample.format.as_deref(),
                "{}",
                sample.command
            );
            assert_eq!(
                invocation.session().id,
                sample.session,
                "{}",
                sample.command
            );
            assert_eq!(
                invocation.session().resumes,
                sample.resumes,
                "{}",
                sample.command
            );
        }
    }
}

#[test]
fn every_command_line_is_changed_as_its_sample_states() {
    for (agent, samples) in samples() {
        for sample in &samples.sample {
            for change in &sample.changed {
                let resume = change.resume.clone().map(|id| ConversationChoice::Resume {
                    id,
                    message: change.message.clone().unwrap(),
                });
                let changes = CommandLineRewrite {
                    prompt: change.prompt.clone(),
                    model: change.model.clone(),
                    session: resume.or(change.fresh.then_some(ConversationChoice::Fresh)),
                };
                let changed = read(agent, sample).with_changes(&changes).unwrap();
                let shown = (&sample.command, &changes);
                assert_eq!(changed.command, words(&change.gives), "{shown:?}");
                assert_eq!(changed.stdin, change.stdin, "{shown:?}");
            }
        }
    }
}

#[test]
fn resumed_command_line_is_parsed_as_resuming() {
    for (agent, samples) in samples() {
        for sample in samples
            .sample
            .iter()
            .filter(|sample| sample.prompt.is_some() && !sample.interactive)
        {
            let session = ConversationChoice::Resume {
                id: "job-7".to_owned(),
                message: "go on".to_owned(),
            };
            let changes = CommandLineRewrite {
                session: Some(session),
                ..CommandLineRewrite::default()
            };
            let changed = read(agent, sample).with_changes(&changes).unwrap();
            let again = ParsedAgentCommandLine::parse(agent, &changed.command);
            assert!(again.session().resumes, "{:?}", changed.command);
            assert_eq!(
                again.prompt(),
                PromptSource::Text("go on".to_owned()),
                "{:?}",
                changed.command
            );
            let named = agent
                .file()
                .session
                .resume
                .iter()
                .any(|word| word == "{id}");
            assert_eq!(
                again.session().id.as_deref(),
                named.then_some("job-7"),
                "{:?}",
                changed.command
            );
        }
    }
}

#[test]
fn every_output_is_read_as_its_sample_states() {
    for (agent, samples) in samples() {
        for answer in samples.answer {
            let report = agent.read_output(&answer.stdout, &answer.stderr);
            let tokens = report.tokens;
            let read = Answer {
                text: report.text,
                session: report.session,
                model: report.model,
                cost_usd: report.cost_usd,
                input: tokens.map(|tokens| tokens.input),
                output: tokens.map(|tokens| tokens.output),
                cached: tokens
                    .map(|tokens| tokens.cached)
                    .filter(|count| *count > 0),
                turns: report.turns,
                context: report.context_tokens,
                stdout: answer.stdout.clone(),
                stderr: answer.stderr.clone(),
            };
            assert_eq!(read, answer, "{}", agent.id());
        }
    }
}

/// An agent's commands print what they like, also lines that look like the agent's own.
#[test]
fn reported_conversation_that_is_an_option_a_path_or_a_pattern_is_ignored() {
    let read = |id: &str, stdout: &str| {
        let agent = Agents::built_in().get(id).unwrap();
        agent.read_output(stdout, "").session
    };
    for bad in ["--dangerously-skip-permissions", "-c", "../../x", "*", ".x"] {
        assert_eq!(read("codex", &format!("session id: {bad}\n")), None);
        assert_eq!(read("goose", &format!("    session id: {bad}\n")), None);
        for agent in ["claude", "gemini", "qwen"] {
            let line = format!(r#"{{"type":"x","session_id":"{bad}"}}"#);
            assert_eq!(read(agent, &line), None, "{agent} {bad}");
        }
    }
}

#[test]
fn interrupted_run_is_distinguished_from_a_finished_one() {
    let read = |id: &str, stdout: &str| {
        let agent = Agents::built_in().get(id).unwrap();
        agent.read_output(stdout, "")
    };
    let begun = r#"{"type":"thread.started","thread_id":"t1"}"#;
    let ended = r#"{"type":"turn.completed","usage":{"input_tokens":1,"output_tokens":0}}"#;
    assert!(read("codex", begun).is_unfinished);
    let empty = read("codex", &format!("{begun}\n{ended}"));
    assert_eq!((empty.is_unfinished, empty.text), (false, None));
    assert!(!read("codex", "Done.").is_unfinished);
    // JSON that is the answer itself is not a record of the agent.
    assert!(!read("claude", r#"{"colour":"red"}"#).is_unfinished);
}

#[test]
fn unfinished_step_is_named() {
    let claude = Agents::built_in().get("claude").unwrap();
    let call = r#"{"type":"assistant","message":{"content":[{"type":"tool_use","id":"a","name":"Bash","input":{"command":"make"}}]}}"#;
    let result = r#"{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"a","content":"ok"}]}}"#;
    let step = |text: &str| claude.unfinished_step(text);
    assert_eq!(step("Working on it."), None);
    let open = step(call).unwrap();
    assert_eq!(
        open,
        r#"`Bash {"command":"make"}`, which returned no result"#
    );
    let done = step(&format!("{call}\n{result}")).unwrap();
    assert!(done.starts_with("the step after `Bash"), "{done}");
}

#[test]
fn missing_conversation_is_recognized_by_the_agents_message() {
    for (id, words) in [
        ("claude", "No conversation found with session ID: 11-22"),
        (
            "gemini",
            "Error resuming session: Invalid session identifier",
        ),
        (
            "copilot",
            "Error: No session, task, or name matched '11-22'.",
        ),
        ("qwen", "No saved session found with ID 11-22."),
        ("opencode", "Error: Session not found"),
    ] {
        let agent = Agents::built_in().get(id).unwrap();
        assert!(agent.reports_missing_conversation("", words), "{id}");
        assert!(
            !agent.reports_missing_conversation("", "Rate limited"),
            "{id}"
        );
    }
}

#[test]
fn other_programs_are_not_agents() {
    for line in [
        "cargo test",
        "npx vite",
        "env A=b",
        "npx",
        "timeout 5 make",
        "git commit -m claude",
        "sh -c claude",
    ] {
        assert_eq!(Agents::built_in().recognize(&words(line)), None, "{line}");
    }
    assert_eq!(Agents::built_in().recognize(&[]), None);
    let line = words("timeout -k 5 10m nice -n 5 pnpm dlx @openai/codex@0.166.0 exec hi");
    assert_eq!(
        Agents::built_in().recognize(&line).map(Agent::id),
        Some("codex")
    );
}

#[test]
fn interactive_command_cannot_be_changed() {
    let claude = Agents::built_in().get("claude").unwrap();
    let invocation = ParsedAgentCommandLine::parse(claude, &words("claude fix"));
    let changes = CommandLineRewrite {
        prompt: Some("other".to_owned()),
        ..CommandLineRewrite::default()
    };
    assert_eq!(
        invocation.with_changes(&changes),
        Err(CommandRewriteError::Interactive)
    );
    assert!(!invocation.capabilities().has(RetryChangeCapability::Prompt));
}

#[test]
fn conversation_can_be_resumed_once_it_is_known() {
    let claude = Agents::built_in().get("claude").unwrap();
    let invocation = ParsedAgentCommandLine::parse(claude, &words("claude -p fix"));
    let can = invocation.capabilities();
    assert!(
        can.has(RetryChangeCapability::Prompt)
            && can.has(RetryChangeCapability::Model)
            && can.has(RetryChangeCapability::Fresh)
    );
    assert!(!can.has(RetryChangeCapability::Resume));
    let knowing = invocation.with_reported_session(Some("11-22".to_owned()));
    assert!(knowing.capabilities().has(RetryChangeCapability::Resume));
    let aider = Agents::built_in().get("aider").unwrap();
    let invocation = ParsedAgentCommandLine::parse(aider, &words("aider --message fix"));
    assert!(invocation.capabilities().has(RetryChangeCapability::Resume));
}

#[test]
fn user_can_add_an_agent() {
    let text = "id = 'ours'\ntitle = 'Ours'\nnames = ['ours']\n[prompt]\nflags = ['--do']\n[flags]\nmodel = ['--llm']";
    let file: AgentDefinition = toml::from_str(text).unwrap();
    let agents = Agents::built_in().clone().with(file);
    let command = words("ours --do this");
    let invocation = ParsedAgentCommandLine::parse(agents.recognize(&command).unwrap(), &command);
    let changes = CommandLineRewrite {
        model: Some("x".to_owned()),
        prompt: Some("that".to_owned()),
        ..CommandLineRewrite::default()
    };
    assert_eq!(
        invocation.with_changes(&changes).unwrap().command,
        words("ours --llm x --do that")
    );
    assert!(toml::from_str::<AgentDefinition>(&format!("{text}\nunknown = 1")).is_err());
}

fn any_command() -> impl Strategy<Value = Vec<String>> {
    let word = prop_oneof![
        prop::sample::select(vec![
            "claude",
            "codex",
            "exec",
            "gemini",
            "goose",
            "run",
            "opencode",
            "aider",
            "resume",
            "npx",
            "env",
            "A=b",
            "-p",
            "-m",
            "--model",
            "--model=",
            "--resume",
            "-r",
            "-n",
            "-s",
            "--",
            "-",
            "-t",
            "-i",
            "--message",
            "--message-file",
            "--last",
            "--print",
            "--allowedTools",
            "-mx",
            "é",
            "-é",
        ])
        .prop_map(str::to_owned),
        ".{0,6}",
    ];
    prop::collection::vec(word, 0..10)
}

/// A trailing model flag without a value must not consume a word that is appended after it.
#[test]
fn model_flag_without_a_value_is_replaced_by_the_new_model() {
    let claude = Agents::built_in().get("claude").unwrap();
    let command = ["claude", "--model", "x", "-p", "--model"].map(str::to_owned);
    let changes = CommandLineRewrite {
        model: Some("y".to_owned()),
        session: Some(ConversationChoice::Resume {
            id: "i".to_owned(),
            message: "go on".to_owned(),
        }),
        ..CommandLineRewrite::default()
    };
    let changed = ParsedAgentCommandLine::parse(claude, &command)
        .with_changes(&changes)
        .unwrap();
    let again = ParsedAgentCommandLine::parse(claude, &changed.command);
    assert_eq!(again.model(), Some("y"), "{:?}", changed.command);
}

proptest! {
    #[test]
    fn command_line_without_changes_stays_as_it_is(command in any_command()) {
        for agent in Agents::built_in().iter() {
            let changed = ParsedAgentCommandLine::parse(agent, &command).with_changes(&CommandLineRewrite::default()).unwrap();
            prop_assert_eq!((changed.command, changed.stdin), (command.clone(), None));
        }
    }

    #[test]
    fn any_command_line_can_be_changed_in_any_way(command in any_command(), what in 0_u8..16) {
        let session = match what & 3 {
            0 => None,
            1 => Some(ConversationChoice::Fresh),
            _ => Some(ConversationChoice::Resume { id: "i".to_owned(), message: "-m".to_owned() }),
        };
        let (prompt, model) = ((what & 4 > 0).then(|| "p".to_owned()), (what & 8 > 0).then(|| "x".to_owned()));
        let changes = CommandLineRewrite { prompt, model: model.clone(), session };
        for agent in Agents::built_in().iter() {
            let invocation = ParsedAgentCommandLine::parse(agent, &command);
            if let (Ok(changed), Some(model)) = (invocation.with_changes(&changes), model.as_deref()) {
                let again = ParsedAgentCommandLine::parse(agent, &changed.command);
                prop_assert_eq!(again.model(), Some(model), "{:?}", changed.command);
            }
        }
    }

    #[test]
    fn any_output_can_be_read(stdout in "[{}\\[\\]\":,a-z0-9\n ]{0,80}", stderr in ".{0,40}") {
        for agent in Agents::built_in().iter() {
            agent.read_output(&stdout, &stderr);
        }
    }
}
