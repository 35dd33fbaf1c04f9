//! The signals that this process was started to ignore, as `nohup` and background jobs of `sh` do.
#![expect(
    clippy::disallowed_methods,
    reason = "files of the system, which no agent can put there"
)]

/// The currently ignored signals.
///
/// A handler must not be installed for a signal that was ignored from the start. Only Linux reports them; elsewhere
/// none is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IgnoredSignals(u64);

impl IgnoredSignals {
    /// Reads the currently ignored signals.
    pub fn now() -> Self {
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        Self::parse(&status)
    }

    /// Returns true if a signal is ignored.
    pub fn contains(self, signal: i32) -> bool {
        (1..=64).contains(&signal) && self.0 >> (signal - 1) & 1 == 1
    }

    fn parse(status: &str) -> Self {
        let mut lines = status.lines();
        let mask = lines.find_map(|line| line.strip_prefix("SigIgn:"));
        let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
        Self(mask.unwrap_or(0))
    }
}

#[cfg(test)]
mod tests {
    use super::IgnoredSignals;

    #[test]
    fn each_bit_of_the_mask_is_one_signal() {
        let ignored = IgnoredSignals::parse("Name:\tx\nSigIgn:\t0000000000001003\nSigCgt:\t0\n");
        let numbers: Vec<_> = (-1..=65)
            .filter(|signal| ignored.contains(*signal))
            .collect();
        assert_eq!(numbers, [1, 2, 13]);
        assert!(!IgnoredSignals::parse("").contains(1));
    }
}
