//! Environment repairs: approved ones run, others need approval, and the repaired run continues.

mod answers;
mod binding;
mod environments;
mod exec;
mod hardening;
mod limits;
mod of_roles;
mod proposals;

use crate::{Ended, Place};

impl Place {
    /// Runs a command without input.
    fn go(&self, args: &[&str]) -> Ended {
        self.run(args, "")
    }
}

/// A project whose `[recovery]` is trusted, with delays short enough for a test.
fn project(recovery: &str) -> Place {
    let place = bare();
    place.write(
        "unstuck.toml",
        &format!(
            "[recovery]\ncooldown_seconds = 0\n{recovery}\n\n[policy]\ntemplate = \"standard\"\ncurve = \"exponential\"\nbackoffBase = 0.001\n"
        ),
    );
    place.go(&["trust"]).told(0, &[]);
    place
}

/// A check that fails until a directory exists, as many programs do.
const NEEDS_FOLDER: &str = "python3 report.py";

/// A project with nothing but that check.
fn bare() -> Place {
    let place = Place::new();
    place.write(
        "report.py",
        "import os, sys\nif not os.path.isdir('out/reports'):\n    sys.exit(\"report: directory 'out/reports' does not exist\")\nopen('out/reports/summary.txt', 'w').write('ok')\n",
    );
    place
}
