//! What one command may use up.

use std::io;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::sandbox::profile::Bounds;

/// Sets the bounds; none is ever raised.
pub(super) fn set(bounds: &Bounds) -> io::Result<()> {
    lower(Resource::Core, 0)?;
    lower(Resource::Nproc, bounds.processes)?;
    lower(Resource::Nofile, bounds.open_files)?;
    lower(Resource::Fsize, bounds.file_size)
}

fn lower(resource: Resource, to: u64) -> io::Result<()> {
    let now = getrlimit(resource);
    let least = |limit: Option<u64>| Some(limit.map_or(to, |limit| limit.min(to)));
    let new = Rlimit {
        current: least(now.current),
        maximum: least(now.maximum),
    };
    Ok(setrlimit(resource, new)?)
}
