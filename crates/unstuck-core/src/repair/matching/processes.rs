//! Matches commands with ports held by leftover processes, and services that are not running.

use super::{RequirementMatch, RequirementMatcher, contains_word};
use crate::repair::command_effects::{CommandAnalysis, CommandEffect};
use crate::repair::failure_requirement::Requirement;
use crate::repair::project_facts::PortFact;
use crate::repair::repair_knowledge_file::EffectKind;

impl RequirementMatcher<'_> {
    /// Matches freeing a port by stopping the process that holds it, only if that process belongs to the project.
    pub(super) fn match_port(
        &self,
        need: &Requirement<'_>,
        entry: &CommandAnalysis,
    ) -> Option<RequirementMatch> {
        let stops: Vec<&CommandEffect> = entry.effects_of_kind(EffectKind::Stop).collect();
        let wanted = |port: u16| need.port.is_none_or(|wanted| wanted == port);
        let facts = self.facts.ports.iter().filter(|(port, _)| wanted(**port));
        let holders: Vec<(&u16, &PortFact)> =
            facts.filter(|(_, fact)| fact.pid.is_some()).collect();
        let is_known = need
            .port
            .is_some_and(|port| self.facts.ports.contains_key(&port));
        let by_pid_file = |deed: &&CommandEffect| self.stops_by_pid_file(deed, &holders, is_known);
        if stops.iter().any(by_pid_file) {
            return RequirementMatch::tied(0);
        }
        let ours = holders
            .iter()
            .filter(|(_, fact)| fact.in_project == Some(true));
        let ours: Vec<_> = ours.collect();
        if stops.is_empty() || (is_known && ours.is_empty()) {
            return None;
        }
        let by_number = if is_known || need.port.is_none() {
            ours.iter().any(|(port, _)| entry.ports.contains(port))
        } else {
            need.port.is_some_and(|port| entry.ports.contains(&port))
        };
        let by_name = ours
            .iter()
            .any(|(_, fact)| stops_process(&stops, &fact.command));
        let by_project = stops
            .iter()
            .any(|deed| deed.script.is_some() || deed.file.is_some());
        match () {
            () if by_number || by_name => RequirementMatch::tied(1),
            () if by_project && !ours.is_empty() => RequirementMatch::loose(2),
            () => None,
        }
    }

    /// Returns true if an effect stops the living process of a pid file and that process may hold the port.
    fn stops_by_pid_file(
        &self,
        deed: &CommandEffect,
        holders: &[(&u16, &PortFact)],
        known: bool,
    ) -> bool {
        deed.reads.iter().any(|path| {
            let file = self.facts.pid_files.get(path);
            let holds = |pid| holders.iter().any(|(_, fact)| fact.pid == Some(pid));
            file.is_some_and(|file| file.alive && (holds(file.pid) || !known && holders.is_empty()))
        })
    }

    /// Matches starting a service by its name or port.
    pub(super) fn match_service(
        &self,
        need: &Requirement<'_>,
        entry: &CommandAnalysis,
    ) -> Option<RequirementMatch> {
        let starts: Vec<&CommandEffect> = entry.effects_of_kind(EffectKind::Start).collect();
        if starts.is_empty() {
            return None;
        }
        let is_it = |port: u16, names: &[String]| {
            let of_port = need.port == Some(port);
            let named = need
                .name
                .as_deref()
                .is_some_and(|name| names.iter().any(|known| name.eq_ignore_ascii_case(known)));
            of_port || named
        };
        let mut known: Vec<String> = self
            .book
            .services()
            .filter(|one| one.ports.iter().any(|port| is_it(*port, &one.names)))
            .flat_map(|one| one.names.clone())
            .collect();
        known.extend(need.name.clone());
        let is_name = |word: &str| {
            let lower = word.to_ascii_lowercase();
            known
                .iter()
                .any(|name| contains_word(&lower.replace(['_', '-', '.', '/', ':'], " "), name))
        };
        let by_name = starts.iter().any(|deed| {
            let script = deed.script.iter().map(|(_, name)| name);
            let mut words = deed.things.iter().chain(deed.file.iter()).chain(script);
            is_name(&deed.program) || words.any(|word| is_name(word))
        });
        let port = need.port.map(|port| port.to_string());
        let by_port = port.is_some_and(|port| {
            let composed = || {
                self.facts
                    .files_naming(&port)
                    .any(|file| file.contains("compose"))
            };
            let composes = starts
                .iter()
                .any(|deed| deed.program.contains("docker") || deed.program.contains("podman"));
            self.mentions(entry, &port) || (composes && composed())
        });
        let by_project = starts
            .iter()
            .any(|deed| deed.script.is_some() || deed.file.is_some());
        match (by_name, by_port) {
            (true, _) => RequirementMatch::tied(0),
            (_, true) => RequirementMatch::tied(1),
            // If the service is unknown, whatever the project itself starts may be it.
            _ if by_project && need.port.is_none() && need.name.is_none() => {
                RequirementMatch::loose(2)
            }
            _ => None,
        }
    }
}

/// Returns true if the words of a command name a process.
fn stops_process(stops: &[&CommandEffect], command: &str) -> bool {
    let words = stops.iter().flat_map(|deed| &deed.things);
    let mut words = words.filter(|word| word.len() > 2 && !word.starts_with('-'));
    words.any(|word| contains_word(command, word))
}
