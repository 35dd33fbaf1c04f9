//! Converts a spec to the start request for the reaper.

use std::ffi::OsStr;

use crate::reaper::wire::{ChildStartRequest, OsText, ProcessGroupSetup};

use super::child_streams::ChildStreams;
use super::killed_reaper_cleanup;
use super::reaper_handle::ReaperHandle;
use super::spec::{EnvInheritance, ProcessSpec, StreamWiring};

/// Builds the start request of a spec; the child also gets the variable by which it can be found again.
pub(super) fn start_request(
    spec: &ProcessSpec,
    streams: &ChildStreams<'_>,
    reaper: &ReaperHandle,
) -> ChildStartRequest {
    let (program, arg0, arguments) = streams.command(spec, &reaper.program);
    let cookie = (
        killed_reaper_cleanup::REAPER_COOKIE.into(),
        killed_reaper_cleanup::cookie_value(reaper.id).into(),
    );
    let set = spec.env.iter().chain([&cookie]);
    ChildStartRequest {
        program: os_text(&program),
        arg0: arg0.as_ref().map(os_text),
        arguments: arguments.iter().map(os_text).collect(),
        folder: spec.folder.as_ref().map(os_text),
        inherits_env: spec.env_inheritance == EnvInheritance::All,
        env: set
            .map(|(name, value)| (os_text(name), os_text(value)))
            .collect(),
        env_remove: spec.env_remove.iter().map(os_text).collect(),
        leadership: match spec.wiring {
            StreamWiring::Pipes if streams.terminal.is_some() => ProcessGroupSetup::ReaperJoining,
            StreamWiring::Pipes => ProcessGroupSetup::Reaper,
            StreamWiring::Pty => ProcessGroupSetup::Child,
        },
        exit_record: spec.exit_record.as_ref().map(os_text),
    }
}

fn os_text(text: &(impl AsRef<OsStr> + ?Sized)) -> OsText {
    OsText::from(text.as_ref())
}
