//! A repair that is to be run.

use std::time::Duration;

use unstuck_core::guard::{Approved, ApprovedBy};
use unstuck_repair::environment::Environment;
use unstuck_repair::guard_files::GuardFile;
use unstuck_repair::place::{Folder, Root};
use unstuck_repair::sandbox::wire::Steps;
use unstuck_repair::sandbox::{Demand, Profile, Reach, Rights, reach, rights};

/// A repair that is to be run, with the handles on which it was decided.
#[derive(Debug)]
pub struct Job<'a> {
    /// The text that was approved, the only one that runs.
    pub approved: &'a Approved,
    /// The project.
    pub root: &'a Root,
    /// The folder to run it in.
    pub folder: &'a Folder,
    /// The variables that it gets.
    pub environment: Environment,
    /// How far it is confined.
    pub profile: Profile,
    /// The files that decide what it does, as they were when it was decided on.
    pub checked: Vec<GuardFile>,
    /// How long it may take.
    pub timeout: Duration,
}

impl<'a> Job<'a> {
    /// A repair with the strictest profile that its text can work in.
    pub fn new(
        approved: &'a Approved,
        root: &'a Root,
        folder: &'a Folder,
        environment: Environment,
    ) -> Self {
        let profile = Profile {
            reach: reach(approved.text()),
            rights: rights(approved.text()),
            ..Profile::of(root.path())
        };
        Self {
            approved,
            root,
            folder,
            environment,
            profile,
            checked: Vec::new(),
            timeout: Duration::from_secs(120),
        }
    }

    /// What to run, as it is told to the sandbox.
    pub(super) fn steps(&self) -> Steps {
        Steps::of(self.approved.text())
    }

    /// Whether nobody approved it and nothing takes what it writes.
    pub(super) fn is_out_of_place(&self) -> bool {
        self.approved.by() == ApprovedBy::Preview && self.profile.overlay.is_none()
    }

    /// The profile that really counts: what nobody listed and nobody has seen never runs without a whole sandbox.
    pub(super) fn strict_profile(&self) -> Profile {
        let mut profile = self.profile.clone();
        profile.root = self.root.path().to_owned();
        let is_unseen = match self.approved.by() {
            ApprovedBy::Allowance | ApprovedBy::Preview => true,
            ApprovedBy::List | ApprovedBy::Person => false,
        };
        if is_unseen {
            profile.demand = Demand::Required;
            profile.reach = Reach::Own;
            profile.rights = Rights::Own;
        }
        profile
    }
}
