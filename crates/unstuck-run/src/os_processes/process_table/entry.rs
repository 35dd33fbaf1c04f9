//! One process in the process table.

/// One entry of the process table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ProcessEntry {
    pub(crate) pid: u32,
    pub(crate) parent: u32,
    pub(crate) group: u32,
    pub(crate) session: u32,
    pub(crate) state: u8,
    pub(crate) started: u64,
}

impl ProcessEntry {
    /// Returns true if it has ended and was not waited for yet.
    pub(crate) fn is_zombie(&self) -> bool {
        matches!(self.state, b'Z' | b'X')
    }
}
