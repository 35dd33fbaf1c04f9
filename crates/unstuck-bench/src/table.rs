//! The result table: median, with minimum and maximum in parentheses.

use std::io::{self, Write};

use anyhow::Result;

use crate::measure::Samples;

/// The target of a figure.
#[derive(Debug, Clone, Copy)]
pub(crate) enum FigureTarget {
    /// No target.
    None,
    AtLeast(f64),
    AtMost(f64),
}

impl FigureTarget {
    fn verdict(self, value: f64) -> String {
        let (met, text) = match self {
            Self::None => return String::new(),
            Self::AtLeast(least) => (value >= least, format!("at least {least}")),
            Self::AtMost(most) => (value <= most, format!("at most {most}")),
        };
        format!("{text}: {}", if met { "met" } else { "MISSED" })
    }
}

/// A table that prints each row as soon as it is measured.
pub(crate) struct FigureTable(io::Stdout);

impl FigureTable {
    pub(crate) fn begin() -> Result<Self> {
        let mut table = Self(io::stdout());
        writeln!(
            table.0,
            "median (min–max) of {} rounds; every round measures each side once{}",
            crate::measure::ROUNDS,
            load_average().unwrap_or_default()
        )?;
        Ok(table)
    }

    pub(crate) fn section(&mut self, title: &str) -> Result<()> {
        Ok(writeln!(self.0, "\n{title}")?)
    }

    pub(crate) fn note(&mut self, text: &str) -> Result<()> {
        Ok(writeln!(self.0, "  {text}")?)
    }

    pub(crate) fn row(
        &mut self,
        what: &str,
        samples: &Samples,
        unit: &str,
        target: FigureTarget,
    ) -> Result<()> {
        let (least, most) = samples.range();
        let shown = format!(
            "{} ({}–{}) {unit}",
            significant_digits(samples.median()),
            significant_digits(least),
            significant_digits(most)
        );
        let line = format!(
            "  {what:<52} {shown:<34} {}",
            target.verdict(samples.median())
        );
        writeln!(self.0, "{}", line.trim_end())?;
        Ok(self.0.flush()?)
    }
}

/// Returns the system load, if available: on a busy machine only the ratios are meaningful.
#[expect(clippy::disallowed_methods, reason = "a file of the kernel in /proc")]
fn load_average() -> Option<String> {
    let text = std::fs::read_to_string("/proc/loadavg").ok()?;
    let cores = std::thread::available_parallelism().ok()?;
    let load = text.split_whitespace().next()?;
    Some(format!("; load {load} on {cores} cores"))
}

/// Formats a number with three significant digits.
fn significant_digits(value: f64) -> String {
    let decimals = match value.abs() {
        100.0.. => 0,
        10.0.. => 1,
        _ => 2,
    };
    format!("{value:.decimals$}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_shows_if_it_is_met() {
        assert_eq!(FigureTarget::AtLeast(8.0).verdict(9.0), "at least 8: met");
        assert_eq!(
            FigureTarget::AtMost(10.0).verdict(10.5),
            "at most 10: MISSED"
        );
        assert_eq!(FigureTarget::None.verdict(1.0), "");
        assert_eq!(
            [
                significant_digits(1234.5),
                significant_digits(12.34),
                significant_digits(1.234)
            ],
            ["1234", "12.3", "1.23"]
        );
    }
}
