//! Where the output of a child goes while it runs.

/// Takes what a child writes, piece by piece and untouched.
pub trait OutputSink {
    /// Takes a piece of standard output.
    fn on_stdout(&mut self, bytes: &[u8]);

    /// Takes a piece of standard error.
    fn on_stderr(&mut self, bytes: &[u8]);

    /// Takes note that the child runs.
    fn on_started(&mut self, _pid: u32) {}

    /// Takes note of what has come on a standard input that is passed on, and whether that is all of it.
    fn on_input(&mut self, _so_far: &[u8], _complete: bool) {}

    /// Whether [`OutputSink::on_tick`] is wanted; no by default, so that a quiet child wakes nobody.
    fn wants_ticks(&self) -> bool {
        false
    }

    /// Is called about every 200 ms while the child runs.
    fn on_tick(&mut self) {}

    /// Whether anybody still takes the output; when nobody does, the child is stopped. Looked at after each piece and each tick.
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
