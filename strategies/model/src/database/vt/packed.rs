//! Brotli compression of vt files, which vt uses by default.

use std::io::{self, Write as _};

use crate::decompress::read_whole;

/// Decompresses a file.
///
/// # Errors
/// If the bytes are not compressed with brotli, or, with [`io::ErrorKind::FileTooLarge`], if they expand to more than the
/// limit of [`crate::decompress`].
pub fn unpack(bytes: &[u8]) -> io::Result<Vec<u8>> {
    // The low bits that announce a window beyond the 16 MiB of the standard (RFC 7932, section 9.1), which would be
    // allocated at once.
    if bytes.first().is_some_and(|first| first & 0x7f == 0x11) {
        let sentence = "it needs a window of more than 16 MiB, which the standard does not allow";
        return Err(io::Error::new(io::ErrorKind::InvalidData, sentence));
    }
    read_whole(brotli::Decompressor::new(bytes, 1 << 16), bytes.len() as u64)
}

/// Compresses a file.
///
/// # Errors
/// If the compressor fails.
pub fn pack(text: &[u8]) -> io::Result<Vec<u8>> {
    let mut packed = Vec::new();
    let mut compressor = brotli::CompressorWriter::new(&mut packed, 1 << 16, 6, 22);
    compressor.write_all(text)?;
    compressor.flush()?;
    drop(compressor);
    Ok(packed)
}
