//! Hidden process `unstuck __demo-agent`: the scripted agent that talks to the demo API.

use std::ffi::OsString;
use std::net::TcpStream;

use unstuck_faults::FaultServer;

use super::scene;

/// Runs the demo agent if the process was started as one, and returns its exit code.
pub(crate) fn run_if_agent(arguments: &[OsString]) -> Option<u8> {
    if arguments.get(1)? != scene::DEMO_AGENT_ARG {
        return None;
    }
    let mut arguments = arguments.get(2..)?.to_vec();
    // The API ends with the demo; a session resumed later starts its own.
    let _later = restart_api_if_stopped(&mut arguments);
    let code = unstuck_faults::scripted_agent::main(arguments);
    Some(u8::try_from(code).unwrap_or(1))
}

/// Starts a new API if the given one is gone, and substitutes its address in the arguments.
fn restart_api_if_stopped(arguments: &mut [OsString]) -> Option<FaultServer> {
    let at = arguments.iter().position(|word| word == "--api")? + 1;
    let address = arguments.get(at)?.to_str()?.strip_prefix("http://")?;
    if TcpStream::connect(address).is_ok() {
        return None;
    }
    let server = FaultServer::start(scene::script_after_demo().ok()?).ok()?;
    arguments[at] = server.url().into();
    Some(server)
}
