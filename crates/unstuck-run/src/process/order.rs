//! Turns a spec into what the reaper is asked to start.

use std::ffi::OsStr;

use crate::reaper::wire::{Leadership, Order, Raw};

use super::orphans;
use super::reaper_handle::ReaperHandle;
use super::spec::{Inherits, Spec, Wiring};
use super::streams::Streams;

/// The order for a spec; in addition to its own variables the child gets the one by which it can be found again.
pub(super) fn order(spec: &Spec, streams: &Streams<'_>, reaper: &ReaperHandle) -> Order {
    let (program, arguments) = streams.command(spec, &reaper.program);
    let cookie = (orphans::COOKIE.into(), orphans::cookie(reaper.id).into());
    let set = spec.set.iter().chain([&cookie]);
    Order {
        program: raw(&program),
        arguments: arguments.iter().map(raw).collect(),
        folder: spec.folder.as_ref().map(raw),
        inherits: spec.inherits == Inherits::All,
        set: set.map(|(name, value)| (raw(name), raw(value))).collect(),
        remove: spec.remove.iter().map(raw).collect(),
        leadership: match spec.wiring {
            Wiring::Pipes if streams.terminal.is_some() => Leadership::Joined,
            Wiring::Pipes => Leadership::Given,
            Wiring::Pty => Leadership::Taken,
        },
        exit_record: spec.exit_record.as_ref().map(raw),
    }
}

fn raw(text: &(impl AsRef<OsStr> + ?Sized)) -> Raw {
    Raw::from(text.as_ref())
}
