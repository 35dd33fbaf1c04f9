//! The repair knowledge as it stands in its files (`data/repairs/*.toml`).

mod manager;
mod need;
mod never;
mod place;
mod program;

pub(super) use manager::{Manager, StateCommand};
pub(super) use need::{Lack, NeedRule, PathIs, State};
pub(super) use never::{Forbidden, Never};
pub(super) use place::{Alias, Holds, Place, ServiceName};
pub(super) use program::{Does, NameWord, Operands, Program, Work};

use serde::Deserialize;

use super::pattern::Pattern;
use super::sample::Sample;

/// What one file knows about its subject; what a user's configuration adds has the same form.
///
/// ```
/// use unstuck_core::repair::{Book, RepairFile};
///
/// let config = r#"
///     [[need]]
///     id = "our_index"
///     needs = "generated"
///     category = "environment"
///     any = ["the search index is stale"]
///     cause = "The search index is older than the pages."
///     outcome = "The index is made again."
/// "#;
/// let own: RepairFile = toml::from_str(config)?;
/// let book = Book::built_in().overlaid(own)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RepairFile {
    /// What it is about.
    pub title: String,
    pub(super) manager: Vec<Manager>,
    pub(super) program: Vec<Program>,
    pub(super) word: Vec<NameWord>,
    pub(super) place: Vec<Place>,
    pub(super) service: Vec<ServiceName>,
    pub(super) alias: Vec<Alias>,
    /// How programs write that they write files.
    pub(super) writing: Vec<Pattern>,
    pub(super) never: Vec<Never>,
    pub(super) forbidden: Vec<Forbidden>,
    pub(super) need: Vec<NeedRule>,
    pub(super) sample: Vec<Sample>,
}

impl RepairFile {
    /// Failures in projects, each with what must be offered for it.
    pub fn samples(&self) -> impl Iterator<Item = &Sample> {
        self.sample.iter()
    }
}
