//! Measures what supervising costs: `/bin/true` through a supervisor and through a bare tokio command, taking turns.

use std::time::{Duration, Instant};

use tokio::sync::watch;
use unstuck_run::process::{Discard, ReaperProgram, Spec, Stdin, Stop, Supervisor};

const ROUNDS: usize = 500;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args_os().skip(1).peekable();
    if arguments.peek().is_some() {
        // It is its own reaper.
        return match unstuck_run::reaper::main(arguments) {
            0 => Ok(()),
            code => Err(format!("the reaper failed with {code}").into()),
        };
    }
    compare()
}

#[expect(clippy::print_stdout, reason = "that is what an example is for")]
#[tokio::main]
async fn compare() -> Result<(), Box<dyn std::error::Error>> {
    let mut supervisor = Supervisor::start(&ReaperProgram::own())?;
    let (mut bare, mut supervised) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        bare.push(measure_bare().await?);
        supervised.push(measure_supervised(&mut supervisor).await?);
    }
    let (bare, supervised) = (median(bare), median(supervised));
    println!("bare        {:>7.1} µs", bare * 1e6);
    println!("supervised  {:>7.1} µs", supervised * 1e6);
    println!("ratio       {:>7.2}", supervised / bare);
    Ok(())
}

async fn measure_bare() -> std::io::Result<Duration> {
    let start = now();
    tokio::process::Command::new("/bin/true").output().await?;
    Ok(start.elapsed())
}

async fn measure_supervised(
    supervisor: &mut Supervisor,
) -> Result<Duration, unstuck_run::process::ProcessError> {
    let spec = Spec::new("/bin/true");
    let (_keep, stop) = watch::channel(Stop::No);
    let start = now();
    supervisor
        .run(&spec, &mut Stdin::null(), &mut Discard, stop)
        .await?;
    Ok(start.elapsed())
}

fn median(mut times: Vec<Duration>) -> f64 {
    times.sort_unstable();
    times[times.len() / 2].as_secs_f64()
}

#[expect(clippy::disallowed_methods, reason = "it measures real time")]
fn now() -> Instant {
    Instant::now()
}
