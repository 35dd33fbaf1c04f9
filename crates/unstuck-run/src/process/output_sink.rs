//! Receivers of a child's output while it runs.

/// Receives the output of a child, piece by piece and unchanged.
pub trait OutputSink {
    /// Receives a piece of standard output.
    fn on_stdout(&mut self, bytes: &[u8]);

    /// Receives a piece of standard error.
    fn on_stderr(&mut self, bytes: &[u8]);

    /// Reports that the child has started.
    fn on_started(&mut self, _pid: u32) {}

    /// Reports the forwarded standard input so far; `_complete` is true at its end.
    fn on_input(&mut self, _so_far: &[u8], _complete: bool) {}

    /// Returns true if [`OutputSink::on_tick`] should be called; false by default, so that a quiet child causes no
    /// wake-ups.
    fn wants_ticks(&self) -> bool {
        false
    }

    /// Is called about every 200 ms while the child runs.
    fn on_tick(&mut self) {}

    /// Returns true if the output still has a reader; otherwise the child is stopped. Called after each piece and each
    /// tick.
    fn is_open(&self) -> bool {
        true
    }
}

/// A sink for which the captured output is enough.
#[derive(Debug, Default, Clone, Copy)]
pub struct DiscardOutput;

impl OutputSink for DiscardOutput {
    fn on_stdout(&mut self, _bytes: &[u8]) {}
    fn on_stderr(&mut self, _bytes: &[u8]) {}
}
