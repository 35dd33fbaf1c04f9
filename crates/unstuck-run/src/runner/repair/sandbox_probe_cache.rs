//! Remembers that a sandbox is complete on this machine, so that it is not tried again by every process.
//!
//! Only a complete one is remembered, until the machine starts again: what is taken for complete is asked for in full
//! when something runs, so a mistake here lets nothing run with less.
#![expect(
    clippy::disallowed_methods,
    reason = "the file is in the state folder, which no project reaches"
)]

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use unstuck_repair::sandbox::{ConfinementLevel, ConfinementReport, run_as_user};

const CACHE_FILE: &str = "sandbox-survey.json";
const BOOT_ID_FILE: &str = "/proc/sys/kernel/random/boot_id";

/// What is remembered about the sandbox for projects of one user.
pub(super) struct SandboxProbeCache {
    file: PathBuf,
    key: Option<String>,
}

#[derive(Serialize, Deserialize)]
struct CachedProbe {
    key: String,
    #[serde(rename = "found")]
    confinement: ConfinementReport,
}

impl SandboxProbeCache {
    pub(super) fn new(state: &Path, project: &Path) -> Self {
        let boot = std::fs::read_to_string(BOOT_ID_FILE).ok();
        let user = run_as_user(project).map_or_else(rustix::process::geteuid, |user| {
            rustix::process::Uid::from_raw(user.uid)
        });
        let version = env!("CARGO_PKG_VERSION");
        Self {
            file: state.join(CACHE_FILE),
            key: boot.map(|boot| format!("{} {} {version}", boot.trim(), user.as_raw())),
        }
    }

    /// What was found before, if that is known and was complete.
    pub(super) fn read(&self) -> Option<ConfinementReport> {
        let text = std::fs::read(&self.file).ok()?;
        let kept: CachedProbe = serde_json::from_slice(&text).ok()?;
        let is_it = self.key.as_ref() == Some(&kept.key);
        (is_it && kept.confinement.level == ConfinementLevel::Full).then_some(kept.confinement)
    }

    /// Remembers what was found.
    pub(super) fn save(&self, found: &ConfinementReport) {
        let Some(key) = self.key.clone() else {
            return;
        };
        let kept = CachedProbe {
            key,
            confinement: found.clone(),
        };
        if found.level == ConfinementLevel::Full
            && let Ok(text) = serde_json::to_vec(&kept)
        {
            // It is tried again where it cannot be kept.
            let _ = std::fs::write(&self.file, text);
        }
    }
}
