//! Compares and hashes file contents in chunks.

use std::fs::File;
use std::io::{self, Read};

use sha2::{Digest, Sha256};

use super::change_set::hex;

/// Size of a chunk.
const CHUNK_BYTES: usize = 128 * 1024;

/// True if two files have the same content.
pub(super) fn has_same_bytes(mut one: File, mut other: File) -> io::Result<bool> {
    let (mut left, mut right) = (vec![0; CHUNK_BYTES], vec![0; CHUNK_BYTES]);
    loop {
        let (some, more) = (
            fill_chunk(&mut one, &mut left)?,
            fill_chunk(&mut other, &mut right)?,
        );
        if left[..some] != right[..more] {
            return Ok(false);
        }
        if some < CHUNK_BYTES {
            return Ok(true);
        }
    }
}

/// Returns the hash of a file's content.
pub(super) fn hash(mut file: File) -> io::Result<String> {
    let mut piece = vec![0; CHUNK_BYTES];
    let mut hash = Sha256::new();
    loop {
        let length = fill_chunk(&mut file, &mut piece)?;
        hash.update(&piece[..length]);
        if length < CHUNK_BYTES {
            return Ok(hex(&hash.finalize()));
        }
    }
}

/// Reads until the chunk is full or the file ends.
fn fill_chunk(file: &mut File, piece: &mut [u8]) -> io::Result<usize> {
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
