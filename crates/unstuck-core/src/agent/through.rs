//! How an agent is called so that it asks its API through a gateway.

use super::file::{BaseUrlFile, Sign};
use super::{Agent, Invocation};

/// How an agent is called so that it asks its API through a gateway.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Through {
    /// The command line.
    pub command: Vec<String>,
    /// Variables by which it finds the gateway, whatever they said before.
    pub env: Vec<(String, String)>,
    /// Variables that make it wait for the gateway, unless the user has set them.
    pub quiet: Vec<(String, String)>,
    /// Variables that name a file, and what must be in it, unless the user has set them.
    pub files: Vec<(String, String)>,
}

impl Agent {
    /// How a command line of it is called through the gateway at that address; none where it cannot be, or where the
    /// command line says that the user wants something else. What [its files](BaseUrlFile::unless) say is the caller's
    /// to look up.
    pub fn through(&self, url: &str, command: &[String]) -> Option<Through> {
        let (base_url, gateway) = (&self.file.call.base_url, &self.file.call.gateway);
        if !base_url.is_known() || base_url.is_refused_by(command) {
            return None;
        }
        let (env, mut args) = self.base_url(url);
        args.extend(gateway.args.iter().cloned());
        let pairs = |map: &std::collections::BTreeMap<String, String>| {
            map.iter()
                .map(|(name, value)| (name.clone(), value.clone()))
                .collect()
        };
        Some(Through {
            command: match args.is_empty() {
                true => command.to_vec(),
                false => Invocation::read(self, command).with_args(&args)?,
            },
            env,
            quiet: pairs(&gateway.env),
            files: pairs(&gateway.files),
        })
    }
}

impl BaseUrlFile {
    /// Whether anything is known.
    pub fn is_known(&self) -> bool {
        !self.env.is_empty() || !self.args.is_empty()
    }

    /// The files that are looked into.
    pub fn files(&self) -> impl Iterator<Item = (&str, &Sign)> {
        let named = |sign| Some((Sign::file(sign)?, sign));
        self.unless.iter().filter_map(named)
    }

    fn is_refused_by(&self, command: &[String]) -> bool {
        let mut signs = self.unless.iter().filter(|sign| sign.file.is_none());
        signs.any(|sign| command.iter().any(|word| word.contains(&sign.holds)))
    }
}

impl Sign {
    fn file(&self) -> Option<&str> {
        self.file.as_deref()
    }
}
