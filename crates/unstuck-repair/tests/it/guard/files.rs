//! `recovery.json` is read once or not at all.

use std::fs::{self, File};
use std::os::unix::fs::symlink;
use std::path::Path;

use rustix::fs::{CWD, FileType, Mode, mknodat};
use unstuck_core::command_policy::MAX_BYTES;
use unstuck_repair::proposal_file::{ProposalFile, ProposalFileError};

use super::Place;

#[test]
fn a_file_is_read_with_its_hash() {
    let place = Place::new();
    let path = place.project().join("recovery.json");
    assert!(
        ProposalFile::read(&path).unwrap().is_none(),
        "no file, no proposal"
    );
    fs::write(&path, "abc").unwrap();
    let read = ProposalFile::read(&path).unwrap().unwrap();
    assert_eq!(read.bytes, b"abc");
    assert_eq!(
        read.sha256,
        "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    );
    assert_eq!(read, ProposalFile::from_bytes(b"abc".to_vec()));
    // The bytes already read are unchanged.
    fs::write(&path, "other").unwrap();
    assert_eq!(read.bytes, b"abc");
}

#[test]
fn only_regular_files_are_read_and_reads_never_block() {
    let place = Place::new();
    let at = |name: &str| place.project().join(name);
    fs::write(at("real.json"), "{}").unwrap();
    symlink("real.json", at("link.json")).unwrap();
    mknodat(
        CWD,
        at("pipe.json"),
        FileType::Fifo,
        Mode::RUSR | Mode::WUSR,
        0,
    )
    .unwrap();
    let socket = std::os::unix::net::UnixListener::bind(at("socket.json")).unwrap();
    for name in [
        "link.json",
        "pipe.json",
        "packages",
        "socket.json",
        "dangling",
    ] {
        let told = ProposalFile::read(&at(name)).unwrap_err();
        assert!(
            matches!(told, ProposalFileError::NotAFile),
            "{name}: {told}"
        );
    }
    drop(socket);
    let told = ProposalFile::read(Path::new("/dev/null")).unwrap_err();
    assert!(matches!(told, ProposalFileError::NotAFile), "{told}");
}

/// A parent directory may have been replaced with a link, too.
#[test]
fn no_link_is_followed_below_an_open_directory() {
    let place = Place::new();
    let root = place.root();
    fs::write(place.project().join("packages/web/recovery.json"), "{}").unwrap();
    fs::write(place.outside().join("recovery.json"), "{}").unwrap();
    let read = |path: &str| ProposalFile::read_in(&root, Path::new(path));
    assert!(read("packages/web/recovery.json").unwrap().is_some());
    assert!(read("packages/recovery.json").unwrap().is_none());
    for path in [
        "inside/recovery.json",
        "beside/recovery.json",
        "../outside/recovery.json",
    ] {
        assert!(
            matches!(read(path), Err(ProposalFileError::NotAFile)),
            "{path}"
        );
    }
}

#[test]
fn a_large_file_is_not_read() {
    let place = Place::new();
    let path = place.project().join("recovery.json");
    fs::write(&path, vec![b' '; MAX_BYTES]).unwrap();
    assert_eq!(
        ProposalFile::read(&path).unwrap().unwrap().bytes.len(),
        MAX_BYTES
    );
    File::create(&path).unwrap().set_len(1 << 40).unwrap();
    let told = ProposalFile::read(&path).unwrap_err();
    assert_eq!(
        told.to_string(),
        "recovery.json is too large: 1099511627776 bytes, limit 262144"
    );
}
