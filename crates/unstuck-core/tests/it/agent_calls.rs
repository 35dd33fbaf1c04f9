//! Command lines of every agent for a role, as given in its samples.

use std::collections::BTreeMap;

use serde::Deserialize;
use unstuck_core::agent::{
    Agent, AgentCommandInputs, AgentDefinition, Agents, BuiltCommand, CommandBuildError,
    ConversationStart, ParsedAgentCommandLine, PromptChannel, PromptSource,
};
use unstuck_core::decision::RetryChangeCapability;

use crate::agents::{FILES, words};

#[derive(Debug, Deserialize)]
struct Samples {
    id: String,
    built: Vec<Sample>,
    through: Vec<ThroughSample>,
}

/// A command line that uses a gateway for API calls; without `gives` it must not.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct ThroughSample {
    command: String,
    gives: Option<Vec<String>>,
    env: BTreeMap<String, String>,
    quiet: BTreeMap<String, String>,
    files: BTreeMap<String, String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Sample {
    command: Vec<String>,
    prompt: String,
    prompt_file: Option<String>,
    model: Option<String>,
    new: Option<String>,
    resume: Option<String>,
    message: Option<String>,
    tools: Vec<String>,
    args: Vec<String>,
    gives: String,
    stdin: Option<String>,
    session: Option<String>,
}

impl Sample {
    fn call(&self) -> AgentCommandInputs<'_> {
        let session = match (&self.resume, &self.message) {
            (Some(id), Some(message)) => ConversationStart::Resume { id, message },
            _ => ConversationStart::New {
                id: self.new.as_deref(),
            },
        };
        AgentCommandInputs {
            command: &self.command,
            prompt: &self.prompt,
            prompt_file: self.prompt_file.as_deref(),
            model: self.model.as_deref(),
            session,
            tools: &self.tools,
            args: &self.args,
        }
    }
}

fn samples() -> Vec<(&'static Agent, Sample)> {
    let read = |text: &&str| toml::from_str::<Samples>(text).unwrap();
    let of_agent = |samples: Samples| {
        let agent = agent(&samples.id);
        samples.built.into_iter().map(move |sample| (agent, sample))
    };
    FILES.iter().map(read).flat_map(of_agent).collect()
}

fn agent(id: &str) -> &'static Agent {
    Agents::built_in().get(id).unwrap()
}

#[test]
fn every_command_is_built_as_its_sample_states() {
    for (agent, sample) in samples() {
        let built = agent.build_command(&sample.call()).unwrap();
        let expected = BuiltCommand {
            command: words(&sample.gives),
            stdin: sample.stdin.clone(),
            session: sample.session.clone(),
        };
        assert_eq!(built, expected, "{sample:?}");
    }
}

/// `exec` parses a command line back to the inputs of the role.
#[test]
fn built_command_line_is_parsed_as_intended() {
    for (agent, sample) in samples() {
        if agent.id() == "command" {
            continue;
        }
        let built = agent.build_command(&sample.call()).unwrap();
        let shown = &built.command;
        let recognised = Agents::built_in().recognize(shown);
        assert_eq!(recognised.map(Agent::id), Some(agent.id()), "{shown:?}");
        let read = ParsedAgentCommandLine::parse(agent, shown);
        assert!(read.is_headless(), "{shown:?}");
        assert_eq!(read.model(), sample.model.as_deref(), "{shown:?}");
        assert_eq!(read.session().id, built.session, "{shown:?}");
        assert_eq!(read.session().resumes, sample.resume.is_some(), "{shown:?}");
        let prompt = match agent.prompt_channel(&[]) {
            PromptChannel::Stdin => PromptSource::Stdin,
            PromptChannel::File => PromptSource::File(sample.prompt_file.clone().unwrap()),
            PromptChannel::Argument => PromptSource::Text(sample.prompt.clone()),
        };
        assert_eq!(read.prompt(), prompt, "{shown:?}");
    }
}

#[test]
fn every_agent_receives_long_prompts() {
    let prompt = "x".repeat(1 << 20);
    for agent in Agents::built_in().iter() {
        let command: &[String] = match agent.id() {
            "command" => &["./agent".to_owned()],
            _ => &[],
        };
        let call = AgentCommandInputs {
            command,
            prompt: &prompt,
            prompt_file: Some("role.md"),
            ..AgentCommandInputs::default()
        };
        let built = agent.build_command(&call).unwrap();
        assert!(built.command.iter().all(|word| word.len() < 99));
    }
}

#[test]
fn no_agent_gets_more_tools_than_the_role_allows() {
    for agent in Agents::built_in().iter() {
        let call = format!("{:?}", agent.file().call.command);
        for word in ["dangerously", "yolo", "bypass", "full", "skip", "auto"] {
            assert!(!call.contains(word), "{call}");
        }
    }
}

#[test]
fn capabilities_follow_from_the_placeholders() {
    let can = |line: &str| {
        let command = words(line);
        let call = AgentCommandInputs {
            command: &command,
            ..AgentCommandInputs::default()
        };
        let can = agent("command").call_capabilities(&call);
        let always = [
            RetryChangeCapability::Prompt,
            RetryChangeCapability::Fresh,
            RetryChangeCapability::Timeout,
            RetryChangeCapability::OutputLimit,
        ];
        assert!(always.iter().all(|one| can.has(*one)));
        (
            can.has(RetryChangeCapability::Model),
            can.has(RetryChangeCapability::Resume),
        )
    };
    assert_eq!(can("./agent"), (false, false));
    assert_eq!(can("./agent {model}"), (true, false));
    assert_eq!(can("./agent --id={session}"), (false, true));
    assert_eq!(can("./agent {?resume}"), (false, true));
    for id in ["claude", "codex", "gemini", "opencode", "goose", "aider"] {
        let can = agent(id).call_capabilities(&AgentCommandInputs::default());
        assert!(
            can.has(RetryChangeCapability::Model) && can.has(RetryChangeCapability::Resume),
            "{id}"
        );
    }
}

#[test]
fn unsupported_inputs_are_rejected_before_the_run() {
    let of = |id: &str, call: AgentCommandInputs<'_>| agent(id).build_command(&call).unwrap_err();
    let some = &["x".to_owned()][..];
    let resume = ConversationStart::Resume {
        id: "",
        message: "go on",
    };
    let call = AgentCommandInputs::default();
    let shown = [
        of("command", call),
        of(
            "claude",
            AgentCommandInputs {
                command: some,
                ..call
            },
        ),
        of(
            "command",
            AgentCommandInputs {
                command: some,
                model: Some("m"),
                ..call
            },
        ),
        of(
            "command",
            AgentCommandInputs {
                command: some,
                session: resume,
                ..call
            },
        ),
        of(
            "codex",
            AgentCommandInputs {
                session: resume,
                ..call
            },
        ),
        of(
            "codex",
            AgentCommandInputs {
                tools: some,
                ..call
            },
        ),
        of(
            "command",
            AgentCommandInputs {
                command: some,
                tools: some,
                ..call
            },
        ),
        of("aider", call),
    ];
    let shown: Vec<String> = shown.iter().map(CommandBuildError::to_string).collect();
    let expected = [
        "agent `command` has no command; set one in the role, such as command = [\"my-agent\", \"--model\", \"{model}\"]",
        "agent `claude` already has a command; remove `command` from the role and add arguments with `args`",
        "cannot set the model of `command`: its command has no {model}",
        "`command` cannot resume a conversation: its command has no {resume} or {session}",
        "`codex` cannot resume a conversation without its id",
        "`codex` has no option for allowed tools: omit `allowed_tools`, and choose its sandbox with args = [\"--sandbox\", \"workspace-write\"]",
        "`command` has no option for allowed tools: omit `allowed_tools`",
        "`aider` reads its prompt from a file, but none was written",
    ];
    assert_eq!(shown, expected);
}

#[test]
fn command_without_a_program_is_rejected() {
    for words in [&[][..], &[""], &["{model}"], &["{?resume}"]] {
        let command: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        let call = AgentCommandInputs {
            command: &command,
            args: &["x".to_owned()],
            ..AgentCommandInputs::default()
        };
        let built = agent("command").build_command(&call);
        assert!(
            matches!(built, Err(CommandBuildError::NoCommand { .. })),
            "{words:?}"
        );
    }
}

#[test]
fn prompt_is_never_executed_by_a_shell_nor_longer_than_an_argument() {
    let prompt = "x".repeat(128 * 1024);
    let build = |words: &[&str], prompt: &str| {
        let command: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        let call = AgentCommandInputs {
            command: &command,
            prompt,
            ..AgentCommandInputs::default()
        };
        agent("command").build_command(&call)
    };
    for words in [
        &["sh", "-c", "agent '{prompt}'"][..],
        &["env", "A=b", "/bin/bash", "-lc", "{prompt}"],
    ] {
        let refused = build(words, "hi");
        assert!(
            matches!(refused, Err(CommandBuildError::PromptInShell { .. })),
            "{words:?}"
        );
    }
    assert!(build(&["sh", "-c", "agent \"$1\"", "sh", "{prompt}"], "hi").is_ok());
    assert_eq!(
        build(&["agent", "{prompt}"], &prompt),
        Err(CommandBuildError::TooLong { bytes: 128 * 1024 })
    );
    assert!(build(&["agent"], &prompt).is_ok());
}

#[test]
fn embedded_agents_have_no_problems() {
    for agent in Agents::built_in()
        .iter()
        .filter(|agent| agent.id() != "command")
    {
        assert_eq!(agent.file().check(), [], "{}", agent.id());
    }
}

#[test]
fn user_agent_needs_only_its_command() {
    let text = "call.command = ['/opt/ours', 'run', ['--llm', '{model}'], ['--go-on', '{resume}']]";
    let file = toml::from_str::<AgentDefinition>(text)
        .unwrap()
        .with_id("ours");
    assert_eq!(file.check(), []);
    let agents = Agents::built_in().clone().with(file);
    let ours = agents.get("ours").unwrap();
    assert_eq!((ours.id(), ours.title()), ("ours", "ours"));
    let call = AgentCommandInputs {
        prompt: "fix it",
        model: Some("m"),
        ..AgentCommandInputs::default()
    };
    let built = ours.build_command(&call).unwrap();
    assert_eq!(built.command, words("/opt/ours run --llm m"));
    assert_eq!(built.stdin.as_deref(), Some("fix it"));
    // It is recognized by its first word.
    let known = |line: &str| agents.recognize(&words(line)).map(Agent::id);
    assert_eq!(known("/opt/ours run"), Some("ours"));
    assert_eq!(ours.read_output("Done.", "").text.as_deref(), Some("Done."));
}

#[test]
fn user_agent_is_recognized_by_its_section_and_its_program() {
    let with = |id: &str, text: &str| {
        let file = toml::from_str::<AgentDefinition>(text).unwrap().with_id(id);
        Agents::built_in().clone().with(file)
    };
    let known = |agents: &Agents, line: &str| {
        let agent = agents.recognize(&words(line));
        agent.map(|agent| agent.id().to_owned())
    };
    let own = with("copilot", "call.command = ['copilot', '--ask', '{prompt}']");
    assert_eq!(known(&own, "copilot -p x").as_deref(), Some("copilot"));
    let own = with("mine", "call.command = ['/opt/my-agent', 'run']");
    for line in ["my-agent run", "mine x"] {
        assert_eq!(known(&own, line).as_deref(), Some("mine"), "{line}");
    }
    // Its launcher may start anything else too, and a name belongs to one agent.
    let own = with("boxed", "call.command = ['docker', 'run', 'my-image']");
    assert_eq!(known(&own, "docker ps"), None);
    let own = with("other", "call.command = ['claude', '-p']");
    assert_eq!(known(&own, "claude -p x").as_deref(), Some("claude"));
}

/// On Bedrock and Vertex the API has another URL; with a GitHub login there is none to set.
#[test]
fn variables_decide_whether_an_agent_can_be_redirected() {
    let allowed = |id: &str, set: &[(&str, &'static str)]| {
        let base_url = &agent(id).file().call.base_url;
        base_url.is_allowed_by(|name| {
            let found = set.iter().find(|(one, _)| *one == name);
            found.map(|(_, value)| *value)
        })
    };
    assert!(allowed("claude", &[]));
    assert!(allowed("claude", &[("CLAUDE_CODE_USE_BEDROCK", "0")]));
    assert!(!allowed("claude", &[("CLAUDE_CODE_USE_BEDROCK", "1")]));
    assert!(!allowed("claude", &[("CLAUDE_CODE_USE_VERTEX", "true")]));
    assert!(!allowed("gemini", &[("GOOGLE_GENAI_USE_GCA", "true")]));
    assert!(!allowed("copilot", &[]));
    let own = ("COPILOT_PROVIDER_BASE_URL", "http://mine/v1");
    assert!(allowed("copilot", &[own]));
    assert!(!allowed(
        "copilot",
        &[own, ("COPILOT_PROVIDER_TYPE", "azure")]
    ));
}

#[test]
fn problems_of_a_user_agent_are_reported() {
    let text = r#"
        call.command = ["{model}", "{promt}", [], "awk", "{print}", "bash", "-c", "x {prompt}"]
        call.base_url.env = { "A=B" = "{url}" }
        output.text = [{ at = ["usage"] }, {}]
        output.session = [{ matches = "id: (" }, { matches = "id: .*" }]
    "#;
    let file = toml::from_str::<AgentDefinition>(text)
        .unwrap()
        .with_id("ours");
    let problems: Vec<String> = file.check().iter().map(ToString::to_string).collect();
    let begins = [
        "call.command: must start with a program",
        "call.command: empty group",
        "call.command: unknown placeholder {promt}, did you mean {prompt}?",
        "call.command: the shell would execute the prompt in `x {prompt}`",
        "call.base_url.env: invalid variable name `A=B`",
        "output.text: the path `usage` must begin with `/`",
        "output.text: needs `at` or `matches`",
        "output.session: `matches` is not a valid regular expression",
        "output.session: `matches` needs a capture group",
    ];
    assert_eq!(problems.len(), begins.len(), "{problems:#?}");
    for (problem, begin) in problems.iter().zip(begins) {
        assert!(problem.starts_with(begin), "{problem}");
    }
}

#[test]
fn every_agent_uses_a_gateway_as_its_samples_state() {
    for text in FILES {
        let samples = toml::from_str::<Samples>(text).unwrap();
        let agent = agent(&samples.id);
        assert!(!samples.through.is_empty(), "{}", agent.id());
        for sample in samples.through {
            let through = agent.through_gateway("http://g", &words(&sample.command));
            let Some(gives) = &sample.gives else {
                assert_eq!(through, None, "{sample:?}");
                continue;
            };
            let through = through.unwrap();
            assert_eq!(&through.command, gives, "{sample:?}");
            let map = |pairs: Vec<(String, String)>| pairs.into_iter().collect();
            assert_eq!(sample.env, map(through.env));
            assert_eq!(sample.quiet, map(through.default_env));
            assert_eq!(sample.files, map(through.files));
        }
    }
}

#[test]
fn agent_inherits_everything_but_its_program() {
    let text = "like = 'claude'\ncall.command = ['docker', 'run', '-i', 'box', 'claude', '-p', ['--model', '{model}']]";
    let file = toml::from_str::<AgentDefinition>(text)
        .unwrap()
        .with_id("boxed");
    assert_eq!(file.check(), []);
    let agents = Agents::built_in().clone().with(file);
    let boxed = agents.get("boxed").unwrap();
    let built = boxed.build_command(&AgentCommandInputs::default()).unwrap();
    assert_eq!(built.command, words("docker run -i box claude -p"));
    let told = boxed.read_output(r#"{"type":"result","result":"Done.","session_id":"1"}"#, "");
    assert_eq!(
        (told.text.as_deref(), told.session.as_deref()),
        (Some("Done."), Some("1"))
    );
    assert_eq!(boxed.file().call.version, ["--version"]);
    assert_eq!(
        agents.recognize(&words("claude -p x")).map(Agent::id),
        Some("claude")
    );
}

/// The examples of the guide work unchanged.
#[test]
fn agents_of_the_guide_are_valid() {
    #[derive(Deserialize)]
    struct Example {
        #[serde(default)]
        agents: std::collections::BTreeMap<String, AgentDefinition>,
        #[serde(default)]
        role: Vec<Role>,
    }
    #[derive(Deserialize)]
    struct Role {
        agent: String,
        #[serde(default)]
        command: Vec<String>,
        model: Option<String>,
        #[serde(default)]
        allowed_tools: Vec<String>,
        #[serde(default)]
        args: Vec<String>,
    }
    let guide = include_str!("../../../../docs/guide/agents.md");
    let blocks = guide.split("```toml\n").skip(1);
    let examples: Vec<Example> = blocks
        .map(|block| toml::from_str(block.split("```").next().unwrap()).unwrap())
        .collect();
    let mut agents = Agents::built_in().clone();
    for (id, file) in examples.iter().flat_map(|example| &example.agents) {
        let file = file.clone().with_id(id);
        assert_eq!(file.check(), [], "{id}");
        agents = agents.with(file);
    }
    for role in examples.iter().flat_map(|example| &example.role) {
        let call = AgentCommandInputs {
            command: &role.command,
            prompt: "fix it",
            prompt_file: Some("role.md"),
            model: role.model.as_deref(),
            tools: &role.allowed_tools,
            args: &role.args,
            ..AgentCommandInputs::default()
        };
        agents
            .get(&role.agent)
            .unwrap()
            .build_command(&call)
            .unwrap();
    }
    assert!(examples.len() > 3);
}
