//! Measures the overhead of running a command under unstuck: one child process, and the whole program.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use tokio::sync::watch;
use unstuck_run::process::{
    AttemptStopRequest, ChildSupervisor, DiscardOutput, ProcessSpec, ReaperProgram, Stdin,
};

use crate::measure::{ROUNDS, Samples, now};
use crate::startup::{millis, program_command, sibling_program};
use crate::table::{FigureTable, FigureTarget};

/// Child processes per round.
const CHILDREN: usize = 100;
/// Complete commands per round.
const COMMANDS: usize = 40;

pub(crate) fn measure(table: &mut FigureTable) -> Result<()> {
    table.section("6. Supervising /bin/true")?;
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?
        .block_on(measure_children(table))?;
    measure_program(table)?;
    measure_idle(table)
}

async fn measure_children(table: &mut FigureTable) -> Result<()> {
    let mut supervisor = ChildSupervisor::start(&ReaperProgram::own())?;
    let (mut bare, mut supervised) = (Samples::default(), Samples::default());
    for _ in 0..ROUNDS {
        let (mut theirs, mut ours) = (Samples::default(), Samples::default());
        for _ in 0..CHILDREN {
            theirs.push(bare_child().await?);
            ours.push(supervised_child(&mut supervisor).await?);
        }
        bare.push(theirs.median());
        supervised.push(ours.median());
    }
    table.row(
        "tokio's output()",
        &bare.map(millis),
        "ms",
        FigureTarget::None,
    )?;
    table.row(
        "supervised",
        &supervised.map(millis),
        "ms",
        FigureTarget::None,
    )?;
    let ratio = supervised.ratio_to(&bare);
    table.row("supervised ÷ bare", &ratio, "×", FigureTarget::AtMost(1.3))
}

async fn bare_child() -> Result<f64> {
    let begin = now();
    tokio::process::Command::new("/bin/true").output().await?;
    Ok(begin.elapsed().as_secs_f64())
}

async fn supervised_child(supervisor: &mut ChildSupervisor) -> Result<f64> {
    let spec = ProcessSpec::new("/bin/true");
    let (_keep, stop) = watch::channel(AttemptStopRequest::Continue);
    let begin = now();
    supervisor
        .run(&spec, &mut Stdin::null(), &mut DiscardOutput, stop)
        .await?;
    Ok(begin.elapsed().as_secs_f64())
}

/// Measures the whole program from a cold start, with its durable history, against the bare command.
fn measure_program(table: &mut FigureTable) -> Result<()> {
    let Some(program) = sibling_program("unstuck").filter(|path| path.exists()) else {
        return table.note("unstuck is not built: whole command skipped");
    };
    let folder = tempfile::tempdir()?;
    time_command(&mut exec_command(&program, folder.path(), "true"))?;
    let (mut ours, mut theirs) = (Samples::default(), Samples::default());
    for _ in 0..COMMANDS {
        theirs.push(time_command(&mut program_command(Path::new("/bin/true")))?);
        ours.push(time_command(&mut exec_command(
            &program,
            folder.path(),
            "true",
        ))?);
    }
    let more = ours.minus(&theirs).map(millis);
    table.row("unstuck exec", &ours.map(millis), "ms", FigureTarget::None)?;
    table.row(
        "  overhead over bare",
        &more,
        "ms",
        FigureTarget::AtMost(12.0),
    )
}

/// Measures the memory needed to supervise an idle child process.
#[expect(clippy::disallowed_methods, reason = "a file of the kernel in /proc")]
fn measure_idle(table: &mut FigureTable) -> Result<()> {
    let Some(program) = sibling_program("unstuck").filter(|path| path.exists()) else {
        return Ok(());
    };
    let folder = tempfile::tempdir()?;
    let mut child = exec_command(&program, folder.path(), "sleep")
        .arg("1.2")
        .stdout(Stdio::null())
        .spawn()?;
    pause(Duration::from_millis(900));
    let status = std::fs::read_to_string(format!("/proc/{}/status", child.id()))?;
    child.wait()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kilobytes = line.and_then(|line| line.trim().strip_suffix(" kB"));
    let kilobytes: f64 = kilobytes.context("VmRSS is missing")?.trim().parse()?;
    let megabytes: Samples = [kilobytes / 1024.0].into_iter().collect();
    table.row(
        "memory when idle",
        &megabytes,
        "MB",
        FigureTarget::AtMost(20.0),
    )
}

fn exec_command(program: &Path, folder: &Path, child: &str) -> Command {
    let mut command = program_command(program);
    command
        .args(["exec", "--", child])
        .current_dir(folder)
        .env("UNSTUCK_STORE", folder.join("history.db"));
    command
}

fn time_command(command: &mut Command) -> Result<f64> {
    command.stdin(Stdio::null()).stdout(Stdio::null());
    let begin = now();
    let status = command.status()?;
    ensure!(status.success(), "{command:?} failed with {status}");
    Ok(begin.elapsed().as_secs_f64())
}

#[expect(clippy::disallowed_methods, reason = "the child must settle first")]
fn pause(time: Duration) {
    std::thread::sleep(time);
}
