//! Caches that the sandbox is complete on this machine, so that not every process probes it.
//!
//! Only a complete sandbox is cached, until the next reboot: execution then requires all features, so a wrong cache
//! entry never weakens the sandbox.
#![expect(
    clippy::disallowed_methods,
    reason = "the file is in the state directory, outside all projects"
)]

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use unstuck_files::DirHandle;
use unstuck_repair::sandbox::{ConfinementLevel, ConfinementReport, run_as_user};

const CACHE_FILE: &str = "sandbox-survey.json";
const BOOT_ID_FILE: &str = "/proc/sys/kernel/random/boot_id";

/// The cached probe of the sandbox for the projects of one user.
pub(super) struct SandboxProbeCache {
    file: PathBuf,
    key: Option<String>,
}

#[derive(Serialize, Deserialize)]
struct CachedProbe {
    key: String,
    #[serde(alias = "found")]
    confinement: ConfinementReport,
}

impl SandboxProbeCache {
    pub(super) fn new(state: &Path, project: &Path) -> Self {
        let boot = std::fs::read_to_string(BOOT_ID_FILE).ok();
        let user = DirHandle::open(project).ok().and_then(run_as_user);
        let user = user.map_or_else(rustix::process::geteuid, |user| {
            rustix::process::Uid::from_raw(user.uid)
        });
        let version = env!("CARGO_PKG_VERSION");
        Self {
            file: state.join(CACHE_FILE),
            key: boot.map(|boot| format!("{} {} {version}", boot.trim(), user.as_raw())),
        }
    }

    /// Returns the cached report, if it exists and is complete.
    pub(super) fn read(&self) -> Option<ConfinementReport> {
        let text = std::fs::read(&self.file).ok()?;
        let kept: CachedProbe = serde_json::from_slice(&text).ok()?;
        let is_it = self.key.as_ref() == Some(&kept.key);
        (is_it && kept.confinement.level == ConfinementLevel::Full).then_some(kept.confinement)
    }

    /// Saves a report.
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
            // If it cannot be saved, the next process probes again.
            let _ = std::fs::write(&self.file, text);
        }
    }
}
