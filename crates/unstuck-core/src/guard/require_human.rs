//! Patterns of `require_human`: being too generous only asks. So far everything fits.

pub(super) struct Line(String);
impl Line {
    pub(super) fn new(command: &str) -> Self {
        Self(command.to_owned())
    }
    pub(super) fn fits(&self, _pattern: &str) -> bool {
        true
    }
}
