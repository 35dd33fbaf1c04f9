//! The contents of files, compared and hashed in pieces.

use std::fs::File;
use std::io::{self, Read};

use sha2::{Digest, Sha256};

use super::change::hex;

/// How much of a file is held at once.
const PIECE: usize = 128 * 1024;

/// Whether two files hold the same bytes.
pub(super) fn is_same(mut one: File, mut other: File) -> io::Result<bool> {
    let (mut left, mut right) = (vec![0; PIECE], vec![0; PIECE]);
    loop {
        let (some, more) = (fill(&mut one, &mut left)?, fill(&mut other, &mut right)?);
        if left[..some] != right[..more] {
            return Ok(false);
        }
        if some < PIECE {
            return Ok(true);
        }
    }
}

/// The hash of what a file holds.
pub(super) fn hash(mut file: File) -> io::Result<String> {
    let mut piece = vec![0; PIECE];
    let mut hash = Sha256::new();
    loop {
        let length = fill(&mut file, &mut piece)?;
        hash.update(&piece[..length]);
        if length < PIECE {
            return Ok(hex(&hash.finalize()));
        }
    }
}

/// Reads until the piece is full or the file is at its end.
fn fill(file: &mut File, piece: &mut [u8]) -> io::Result<usize> {
    let mut length = 0;
    while length < piece.len() {
        match file.read(&mut piece[length..]) {
            Ok(0) => break,
            Ok(more) => length += more,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(length)
}
