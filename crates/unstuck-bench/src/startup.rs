//! Measures the time to the first diagnosis: in a fresh process, and of the program itself.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use unstuck_core::Classifier;
use unstuck_core::knowledge::DiagnosisKnowledge;

use crate::diagnose::{diagnose_all, now};
use crate::measure::{ROUNDS, Samples, time_once};
use crate::regex_baseline::RegexLoop;
use crate::table::{FigureTable, FigureTarget};
use crate::texts::{TextGenerator, USUAL_SIZE, failed, one_line};

/// The argument for a cold-start process.
pub(crate) const COLD_ARG: &str = "cold";

/// Number of process starts.
const STARTS: usize = 30;

pub(crate) fn measure(table: &mut FigureTable) -> Result<()> {
    table.section("4. Cold start")?;
    measure_fresh_process(table)?;
    measure_program(table)
}

/// Prints the duration of each part of the first diagnosis; possible only once per process.
pub(crate) fn run_cold() -> Result<()> {
    let failures = [failed(
        TextGenerator::from_seed(9).log(Some(one_line()), USUAL_SIZE),
    )];
    let knowledge = time_once(DiagnosisKnowledge::built_in);
    let classifier = time_once(Classifier::built_in);
    let first = time_once(|| Classifier::built_in().diagnose(&failures[0], &now()));
    let second = time_once(|| diagnose_all(Classifier::built_in(), &failures));
    let baseline =
        time_once(|| RegexLoop::from_knowledge(DiagnosisKnowledge::built_in()).count_matches(b""));
    let parts = [knowledge, classifier, first, second, baseline].map(|part| part.to_string());
    Ok(writeln!(std::io::stdout(), "{}", parts.join(" "))?)
}

fn measure_fresh_process(table: &mut FigureTable) -> Result<()> {
    let own = std::env::current_exe()?;
    let mut parts: [Samples; 5] = Default::default();
    let mut whole = Samples::default();
    for _ in 0..ROUNDS {
        let output = program_command(&own).arg(COLD_ARG).output()?;
        ensure!(output.status.success(), "cold start failed");
        let text = String::from_utf8(output.stdout)?;
        let seconds: Vec<f64> = text
            .split_whitespace()
            .map(str::parse)
            .collect::<Result<_, _>>()?;
        for (samples, value) in parts.iter_mut().zip(&seconds) {
            samples.push(*value);
        }
        whole.push(seconds[..3].iter().sum());
    }
    let [knowledge, classifier, first, second, baseline] = parts;
    let mut row =
        |what, samples: &Samples| table.row(what, &samples.map(millis), "ms", FigureTarget::None);
    row("load the knowledge", &knowledge)?;
    row("build the classifier", &classifier)?;
    row("first diagnosis", &first)?;
    row("  same diagnosis repeated", &second)?;
    row("total of these three", &whole)?;
    row("compile the loop's expressions", &baseline)?;
    table.row(
        "compile the loop ÷ unstuck total",
        &baseline.ratio_to(&whole),
        "×",
        FigureTarget::None,
    )
}

fn measure_program(table: &mut FigureTable) -> Result<()> {
    let Some(program) = sibling_program("unstuck").filter(|path| path.exists()) else {
        return table.note("unstuck is not built: its cold start skipped");
    };
    let small = Path::new("/bin/true");
    let (mut ours, mut theirs) = (Samples::default(), Samples::default());
    for _ in 0..STARTS {
        ours.push(time_start(program_command(&program).args([
            "classify",
            "--exit-code",
            "1",
        ]))?);
        theirs.push(time_start(&mut program_command(small))?);
    }
    let title = format!("unstuck classify, one line ({STARTS} starts)");
    table.row(&title, &ours.map(millis), "ms", FigureTarget::AtMost(10.0))?;
    table.row("/bin/true", &theirs.map(millis), "ms", FigureTarget::None)?;
    table.row(
        "unstuck ÷ true",
        &ours.ratio_to(&theirs),
        "×",
        FigureTarget::None,
    )
}

/// Returns the seconds from start to end of a process with one line on standard input.
fn time_start(command: &mut Command) -> Result<f64> {
    let begin = crate::measure::now();
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()?;
    if let Some(mut stdin) = child.stdin.take() {
        // A program that does not read its input may be gone by now.
        let _ = writeln!(stdin, "{}", one_line());
    }
    let status = child.wait()?;
    ensure!(status.success(), "{command:?} failed with {status}");
    Ok(begin.elapsed().as_secs_f64())
}

pub(crate) fn program_command(program: &Path) -> Command {
    #[expect(
        clippy::disallowed_methods,
        reason = "a cold start needs a new process, and the benchmark supervises nothing"
    )]
    Command::new(program)
}

/// Returns a program from the same build.
pub(crate) fn sibling_program(name: &str) -> Option<PathBuf> {
    let own = std::env::current_exe()
        .context("cannot locate this program")
        .ok()?;
    Some(own.parent()?.join(name))
}

pub(crate) fn millis(seconds: f64) -> f64 {
    seconds * 1e3
}
