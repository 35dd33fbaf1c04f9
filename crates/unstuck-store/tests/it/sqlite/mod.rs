//! Failure modes of files: damage, read-only and full disks, other programs, crashes, older and newer versions.

mod crash;
mod damage;
mod disks;
mod files;
mod migration;
mod processes;
mod schema;

use rusqlite::Connection;

use crate::contract::Place;

/// Opens the file with plain SQLite.
fn bare(place: &Place) -> Connection {
    Connection::open(place.file()).unwrap()
}
