//! Resource limits of one command.

use std::io;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::sandbox::sandbox_profile::ResourceLimits;

/// Sets the limits; none is ever raised.
pub(super) fn set_limits(bounds: &ResourceLimits) -> io::Result<()> {
    lower_limit(Resource::Core, 0)?;
    lower_limit(Resource::Nproc, bounds.processes)?;
    lower_limit(Resource::Nofile, bounds.open_files)?;
    lower_limit(Resource::Fsize, bounds.file_size)
}

fn lower_limit(resource: Resource, to: u64) -> io::Result<()> {
    let now = getrlimit(resource);
    let least = |limit: Option<u64>| Some(limit.map_or(to, |limit| limit.min(to)));
    let new = Rlimit {
        current: least(now.current),
        maximum: least(now.maximum),
    };
    Ok(setrlimit(resource, new)?)
}
