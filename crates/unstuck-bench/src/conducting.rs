//! What it costs to run a pipeline of many roles: beyond their commands, and with snapshots of the work tree.

use std::fmt::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Result, ensure};
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;

use crate::measure::{ROUNDS, Samples, moment};
use crate::resources::{Memory, cpu_of_children, watched};
use crate::starting::{beside, command, millis};
use crate::table::{Table, Target};

/// The argument with which this program starts itself, to do nothing but start the commands.
pub(crate) const BARE: &str = "bare";

/// Waves of roles that need one of the wave before.
const WAVES: usize = 10;
const ROLES: usize = 20;
const PARALLEL: usize = 8;
/// Snapshots cost more than all else, so that fewer waves tell enough.
const WAVES_WITH_GIT: usize = 2;
/// What each role runs.
const COMMAND: [&str; 3] = ["/bin/echo", "It", "works"];
/// The size of the work tree of which snapshots are taken.
const FILES: usize = 2000;

pub(crate) fn measure(table: &mut Table) -> Result<()> {
    let attempts = WAVES * ROLES;
    table.section(&format!(
        "9. A pipeline of {attempts} roles, {PARALLEL} side by side"
    ))?;
    let Some(program) = beside("unstuck").filter(|path| path.exists()) else {
        return table.note("the program is not built: no pipeline");
    };
    processor(table, &program)?;
    memory(table, &program)?;
    snapshots(table, &program)
}

/// Starts the commands as any program would that wants their output.
pub(crate) fn bare() -> Result<()> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?
        .block_on(start_all())
}

async fn start_all() -> Result<()> {
    let mut running = FuturesUnordered::new();
    for _ in 0..WAVES * ROLES {
        if running.len() == PARALLEL {
            running.next().await.transpose()?;
        }
        let [program, arguments @ ..] = COMMAND;
        let mut command = tokio::process::Command::new(program);
        running.push(command.args(arguments).output());
    }
    while let Some(ended) = running.next().await {
        ended?;
    }
    Ok(())
}

fn processor(table: &mut Table, program: &Path) -> Result<()> {
    let own = std::env::current_exe()?;
    let (mut ours, mut theirs) = (Cost::default(), Cost::default());
    for _ in 0..ROUNDS {
        theirs.push(command(&own).arg(BARE))?;
        ours.push(&mut Project::new(WAVES, "")?.run(program))?;
    }
    let each = |samples: &Samples| samples.map(|seconds| millis(seconds) / (WAVES * ROLES) as f64);
    let more = each(&ours.processor.minus(&theirs.processor));
    table.row(
        "only starting the commands, processor each",
        &each(&theirs.processor),
        "ms",
        Target::Open,
    )?;
    table.row(
        "unstuck run, its reapers and the commands, each",
        &each(&ours.processor),
        "ms",
        Target::Open,
    )?;
    table.row("  more than bare", &more, "ms", Target::AtMost(5.0))?;
    table.row(
        "only starting the commands, time each",
        &each(&theirs.time),
        "ms",
        Target::Open,
    )?;
    table.row(
        "unstuck run, time each",
        &each(&ours.time),
        "ms",
        Target::Open,
    )
}

fn memory(table: &mut Table, program: &Path) -> Result<()> {
    let (mut alone, mut together) = (Samples::default(), Samples::default());
    for _ in 0..ROUNDS {
        let project = Project::new(WAVES, "")?;
        let Memory { peak, shared } = watched(quiet(&mut project.run(program)).spawn()?)?;
        alone.push(peak);
        together.push(shared);
    }
    table.row(
        "largest memory of unstuck",
        &alone,
        "MB",
        Target::AtMost(60.0),
    )?;
    table.row(
        "  with its reapers, what is shared once",
        &together,
        "MB",
        Target::AtMost(60.0),
    )
}

/// The same in a repository, with and without a snapshot before and after each attempt.
fn snapshots(table: &mut Table, program: &Path) -> Result<()> {
    if !git(Path::new("."), &["--version"]).is_ok_and(|works| works) {
        return table.note("git is not installed: no snapshots");
    }
    let (mut with, mut without) = (Cost::default(), Cost::default());
    for _ in 0..ROUNDS {
        for (settings, cost) in [("", &mut with), ("snapshots = false", &mut without)] {
            let project = Project::new(WAVES_WITH_GIT, settings)?;
            project.become_repository()?;
            cost.push(&mut project.run(program))?;
        }
    }
    let each = |ours: &Samples, theirs: &Samples| {
        let more = ours.minus(theirs);
        more.map(|seconds| millis(seconds) / (WAVES_WITH_GIT * ROLES) as f64)
    };
    let processor = each(&with.processor, &without.processor);
    let time = each(&with.time, &without.time);
    let title = format!("two snapshots of {FILES} files for an attempt");
    table.row(&title, &processor, "ms of processor", Target::Open)?;
    table.row("  by the clock", &time, "ms", Target::Open)
}

/// What some runs cost, in seconds.
#[derive(Default)]
struct Cost {
    processor: Samples,
    time: Samples,
}

impl Cost {
    fn push(&mut self, command: &mut Command) -> Result<()> {
        let (before, begin) = (cpu_of_children()?, moment());
        let output = quiet(command).output()?;
        ensure!(
            output.status.success(),
            "{command:?} ended with {}: {}",
            output.status,
            String::from_utf8_lossy(&output.stderr)
        );
        self.time.push(begin.elapsed().as_secs_f64());
        self.processor.push(cpu_of_children()? - before);
        Ok(())
    }
}

/// A folder with a pipeline in it.
struct Project(tempfile::TempDir);

impl Project {
    fn new(waves: usize, settings: &str) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let project = folder.path().join("project");
        std::fs::create_dir(&project)?;
        std::fs::write(project.join("unstuck.toml"), pipeline(waves, settings)?)?;
        Ok(Self(folder))
    }

    fn become_repository(&self) -> Result<()> {
        let project = self.0.path().join("project");
        for number in 0..FILES {
            let folder = project.join(format!("src/{}", number % 50));
            std::fs::create_dir_all(&folder)?;
            let text = format!("// File {number}.\n").repeat(100);
            std::fs::write(folder.join(format!("{number}.rs")), text)?;
        }
        ensure!(git(&project, &["init", "--quiet"])?, "git init failed");
        ensure!(git(&project, &["add", "."])?, "git add failed");
        Ok(())
    }

    fn run(&self, program: &Path) -> Command {
        let mut command = command(program);
        command
            .args(["run", "--quiet"])
            .current_dir(self.0.path().join("project"))
            .env("UNSTUCK_STORE", self.0.path().join("history.db"))
            .env("XDG_STATE_HOME", self.0.path().join("state"))
            .env("XDG_CONFIG_HOME", self.0.path().join("config"));
        command
    }
}

fn pipeline(waves: usize, settings: &str) -> Result<String> {
    let mut text = format!("[run]\nparallel = {PARALLEL}\n{settings}\n");
    for wave in 0..waves {
        for role in 0..ROLES {
            let needs = match wave {
                0 => String::new(),
                _ => format!("needs = [\"role-{}-{role}\"]\n", wave - 1),
            };
            writeln!(
                text,
                "[[role]]\nid = \"role-{wave}-{role}\"\nagent = \"command\"\ncommand = {COMMAND:?}\nprompt = \"Work\"\n{needs}"
            )?;
        }
    }
    Ok(text)
}

fn git(folder: &Path, arguments: &[&str]) -> Result<bool> {
    let mut git = command(Path::new("git"));
    let git = git.current_dir(folder).args(arguments);
    Ok(quiet(git).stderr(Stdio::null()).status()?.success())
}

fn quiet(command: &mut Command) -> &mut Command {
    command.stdin(Stdio::null()).stdout(Stdio::null())
}
