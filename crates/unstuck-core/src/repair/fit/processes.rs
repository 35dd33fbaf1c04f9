//! Processes: ports that a left-over holds, services that do not run.

use super::{Fit, Judge, contains_word};
use crate::repair::data::Work;
use crate::repair::deed::{Deed, Entry};
use crate::repair::need::Need;

impl Judge<'_> {
    /// A port is freed by stopping what holds it, and only if that belongs to the project.
    pub(super) fn port(&self, need: &Need<'_>, entry: &Entry) -> Option<Fit> {
        let holder = need.port.and_then(|port| self.facts.ports.get(&port));
        let holder_pid = holder.and_then(|holder| holder.pid);
        let stranger = holder.is_some_and(|holder| holder.ours == Some(false));
        let stops = || entry.doing(Work::Stop);
        let pid_file = |deed: &Deed| {
            deed.reads.iter().any(|path| {
                let file = self.facts.pid_files.get(path);
                let is_holder = |pid| holder_pid.is_none_or(|holder| holder == pid);
                file.is_some_and(|file| file.alive && is_holder(file.pid))
            })
        };
        if stops().any(pid_file) {
            return Fit::tied(0);
        }
        if stranger || holder.is_some_and(|holder| holder.pid.is_none()) {
            return None;
        }
        let by_number = need.port.is_some_and(|port| entry.ports.contains(&port));
        let by_name = |deed: &Deed| {
            let command = holder.map_or("", |holder| holder.command.as_str());
            let plain = |word: &&String| word.len() > 2 && !word.starts_with('-');
            let mut words = deed.things.iter().filter(plain);
            words.any(|word| contains_word(command, word))
        };
        let by_project = |deed: &Deed| deed.script.is_some() || deed.file.is_some();
        if stops().next().is_some() && by_number || stops().any(by_name) {
            Fit::tied(1)
        } else if stops().any(by_project) && holder.is_some_and(|holder| holder.ours == Some(true))
        {
            Fit::loose(2)
        } else {
            None
        }
    }

    /// A service is started by what names it, or its port.
    pub(super) fn service(&self, need: &Need<'_>, entry: &Entry) -> Option<Fit> {
        let starts: Vec<&Deed> = entry.doing(Work::Start).collect();
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
            self.names(entry, &port) || (composes && composed())
        });
        match (by_name, by_port) {
            (true, _) => Fit::tied(0),
            (_, true) => Fit::tied(1),
            _ => None,
        }
    }
}
