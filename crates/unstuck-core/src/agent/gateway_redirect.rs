//! Settings that make an agent use a gateway for its API calls.

use super::agent_file::{BaseUrlSpec, CustomApiAddressSign};
use super::{Agent, ParsedAgentCommandLine};

/// The command and environment that make an agent use a gateway.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CommandThroughGateway {
    /// The command line.
    pub command: Vec<String>,
    /// Variables with the gateway's address, overriding previous values.
    pub env: Vec<(String, String)>,
    /// Variables that make it wait for the gateway, unless the user has set them.
    pub default_env: Vec<(String, String)>,
    /// Variables that name a file, and the contents of that file, unless the user has set them.
    pub files: Vec<(String, String)>,
}

impl Agent {
    /// Returns the command that uses the gateway at this URL; none if that is impossible, or if the command line shows
    /// that the user wants something else. The caller must check [its files and variables](BaseUrlSpec::unless).
    pub fn through_gateway(&self, url: &str, command: &[String]) -> Option<CommandThroughGateway> {
        let (base_url, gateway) = (&self.file.call.base_url, &self.file.call.gateway);
        if !base_url.is_known() || base_url.is_refused_by(command) {
            return None;
        }
        let (env, mut args) = self.base_url_settings(url);
        args.extend(gateway.args.iter().cloned());
        let pairs = |map: &std::collections::BTreeMap<String, String>| {
            map.iter()
                .map(|(name, value)| (name.clone(), value.clone()))
                .collect()
        };
        Some(CommandThroughGateway {
            command: if args.is_empty() {
                command.to_vec()
            } else {
                ParsedAgentCommandLine::parse(self, command).with_args(&args)?
            },
            env,
            default_env: pairs(&gateway.env),
            files: pairs(&gateway.files),
        })
    }
}

impl BaseUrlSpec {
    /// Returns true if any way is known.
    pub fn is_known(&self) -> bool {
        !self.env.is_empty() || !self.args.is_empty()
    }

    /// Returns the files to search.
    pub fn indicator_files(&self) -> impl Iterator<Item = (&str, &CustomApiAddressSign)> {
        let named = |sign| Some((CustomApiAddressSign::checked_file(sign)?, sign));
        self.unless.iter().filter_map(named)
    }

    /// Returns true if the environment permits redirecting the agent.
    pub fn is_allowed_by<'v>(&self, variable: impl Fn(&str) -> Option<&'v str>) -> bool {
        let is_needed = !self.required_env.is_empty();
        let is_there = self
            .required_env
            .iter()
            .any(|name| variable(name).is_some());
        let says_no = |sign: &CustomApiAddressSign| {
            let value = sign.env.as_deref().and_then(&variable);
            value.is_some_and(|value| sign.is_shown_by(value))
        };
        (!is_needed || is_there) && !self.unless.iter().any(says_no)
    }

    fn is_refused_by(&self, command: &[String]) -> bool {
        let of_command = |sign: &&CustomApiAddressSign| sign.file.is_none() && sign.env.is_none();
        let mut signs = self.unless.iter().filter(of_command);
        signs.any(|sign| command.iter().any(|word| word.contains(&sign.contains)))
    }
}

impl CustomApiAddressSign {
    fn checked_file(&self) -> Option<&str> {
        self.file.as_deref()
    }

    /// Returns true if a variable with this value is a sign of it.
    fn is_shown_by(&self, value: &str) -> bool {
        let is_no = |value: &str| ["", "0", "false", "no", "off"].contains(&value);
        match self.contains.as_str() {
            "" => !is_no(value.trim().to_ascii_lowercase().as_str()),
            holds => value.contains(holds),
        }
    }
}
