//! What only a file can suffer: damage, read-only and full disks, other programs, crashes, older and newer versions.

mod crash;
mod damage;
mod disks;
mod files;
mod migration;
mod processes;
mod schema;

use rusqlite::Connection;

use crate::contract::Place;

/// The file as SQLite alone sees it.
fn bare(place: &Place) -> Connection {
    Connection::open(place.file()).unwrap()
}
