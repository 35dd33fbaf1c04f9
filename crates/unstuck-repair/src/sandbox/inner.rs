//! The inner process of a sandbox: it confines itself for good and then runs the command.
//!
//! Where there is a namespace of processes it is the first one in it, so that its end is the end of them all.

use std::ffi::OsString;
use std::io;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use rustix::process::Signal;

use super::effective::Effective;
use super::failure::{Failure, While};
use super::profile::{Demand, Reach, Rights};
use super::runner::Private;
use super::wakes::Wakes;
use super::wire::{self, End, Order, Report};
use super::{SET_UP_FAILED, checked, link, programs, runner, scratch, system};

/// The folders of programs that only root can write to.
const OF_SYSTEM: &str = "/usr/sbin:/usr/bin:/sbin:/bin";

/// Is the whole of `unstuck __sandbox-init`.
pub(super) fn main(arguments: &[OsString]) -> i32 {
    let Ok(link) = link::from_stdin() else {
        return SET_UP_FAILED;
    };
    match run(&link, system::Entered::from_arguments(arguments)) {
        Ok(end) => end.code(),
        Err(failure) => {
            // If nobody listens, our exit code has to be enough.
            let _ = wire::report(&link, &failure.report());
            SET_UP_FAILED
        }
    }
}

fn run(link: &UnixStream, entered: system::Entered) -> Result<End, Failure> {
    let (order, project, folder) = wire::receive(link).to("read the order")?;
    rustix::process::setsid().to("leave the terminal")?;
    link::die_with_parent(link, Signal::KILL).to("tie our life to unstuck's")?;
    let mut wakes = Wakes::listen().to("listen to signals")?;
    let effective = match order.profile.demand {
        Demand::Off => system::unconfined(&order, &folder)?,
        Demand::Required | Demand::BestEffort => {
            system::confine(&order, entered, &project, &folder)?
        }
    };
    // Given-up privileges take that bond away.
    link::die_with_parent(link, Signal::KILL).to("tie our life to unstuck's")?;
    drop((project, folder));
    // The command must not reach into this process, which has the link to unstuck.
    system::close_to_others().to("close ourselves to the command")?;
    let private = private(&order, entered).to("make a private home")?;
    Ok(repair(link, &order, effective, &private, &mut wakes))
}

/// Folders that only this command has.
fn private(order: &Order, entered: system::Entered) -> io::Result<Private> {
    let temporary = match entered.has_mounts() {
        true => PathBuf::from("/tmp"),
        false => order.surroundings.scratch.join(scratch::TEMPORARY),
    };
    let home = match order.surroundings.home {
        Some(_) => None,
        None => {
            let home = temporary.join("home");
            std::fs::create_dir(&home)?;
            Some(home)
        }
    };
    // With more power than others, it runs no program that an agent could have put somewhere.
    let profile = &order.profile;
    let is_mighty = profile.reach == Reach::Looks || profile.rights == Rights::Anyones;
    let search = is_mighty.then_some(OF_SYSTEM);
    Ok(Private {
        temporary,
        home,
        search,
    })
}

fn repair(
    link: &UnixStream,
    order: &Order,
    effective: Effective,
    private: &Private,
    wakes: &mut Wakes,
) -> End {
    let tell = |report: &Report| {
        // Whoever does not listen any more has been told enough.
        let _ = wire::report(link, report);
    };
    let search = match private.search {
        Some(search) => search.to_owned(),
        None => link::search_path(),
    };
    let programs = match programs::find(&order.steps, &order.profile, &search) {
        Ok(programs) => programs,
        Err(refusal) => {
            let reason = refusal.to_string();
            tell(&Report::Refused { reason });
            return End::Exited(SET_UP_FAILED);
        }
    };
    if let Err(reason) = checked::verify(order, private.temporary != Path::new("/tmp")) {
        tell(&Report::Refused { reason });
        return End::Exited(SET_UP_FAILED);
    }
    tell(&Report::Ready {
        effective,
        programs: programs.clone(),
    });
    let mut groups = Vec::new();
    let end = runner::run(&order.steps, &programs, private, wakes, &mut groups);
    let end = end.unwrap_or(End::Exited(SET_UP_FAILED));
    let left = system::left_behind(&groups);
    tell(&Report::Ended { end, left });
    end
}
