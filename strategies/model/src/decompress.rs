//! The limit of decompression, the same for every format.
//!
//! Without a limit, a small hostile file can make a reader fill the memory. [`Expansion`] is how far the compressed parts of
//! a file may still expand.

#[cfg(feature = "formats")]
use std::io::{self, Read};

/// How far the compressed parts of a file may still expand: each to `ratio` times its size, all of them together by
/// `floor_bytes` more, and none to more than `most_bytes`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Expansion {
    ratio: u64,
    floor_bytes: u64,
    most_bytes: u64,
}

impl Expansion {
    /// At the beginning of a file: 64 times its size, 16 MiB in total beyond that, and 4 GiB per part. Writers of frames
    /// store data with a better ratio uncompressed.
    pub const NEW: Expansion = Expansion { ratio: 64, floor_bytes: 16 << 20, most_bytes: 4 << 30 };

    /// At the beginning of a file of a checkpoint: 64 times its size. Its writer stores data with a better ratio uncompressed.
    pub const BY_SIZE: Expansion = Expansion { floor_bytes: 0, ..Expansion::NEW };

    /// At the beginning of a binary file in an older version, whose writers allowed themselves more: databases before
    /// version 3, traces before version 4.
    pub const OLDER: Expansion = Expansion { ratio: 1024, floor_bytes: 16 << 20, most_bytes: u64::MAX };

    /// The largest number of bytes to which `stored` bytes may expand.
    pub fn limit(&self, stored: u64) -> u64 {
        stored.saturating_mul(self.ratio).saturating_add(self.floor_bytes).min(self.most_bytes)
    }

    /// Whether `stored` bytes may expand to `decoded` bytes. If so, subtracts what exceeds the ratio from the floor.
    pub fn take(&mut self, decoded: u64, stored: u64) -> bool {
        let is_plausible = decoded <= self.limit(stored);
        if is_plausible {
            self.floor_bytes -= decoded.saturating_sub(stored.saturating_mul(self.ratio));
        }
        is_plausible
    }
}

/// Decompresses a whole file of `stored` bytes with `decoder`, and stops at the limit.
///
/// # Errors
/// If the decoder fails, or, with [`io::ErrorKind::FileTooLarge`], if the content is larger than the limit.
#[cfg(feature = "formats")]
pub fn read_whole(mut decoder: impl Read, stored: u64) -> io::Result<Vec<u8>> {
    let limit = Expansion::NEW.limit(stored);
    let (mut content, mut part) = (Vec::new(), vec![0; 1 << 16]);
    loop {
        let read = match decoder.read(&mut part) {
            Ok(0) => return Ok(content),
            Ok(read) => read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        if (content.len() + read) as u64 > limit {
            let sentence =
                format!("its {stored} bytes expand to more than {limit} bytes, the limit for this size");
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, sentence));
        }
        if content.capacity() < content.len() + read {
            // Doubling would allocate far more than the content.
            content.try_reserve_exact(read.max(content.len() / 4)).map_err(|_| io::ErrorKind::OutOfMemory)?;
        }
        content.extend_from_slice(&part[..read]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_expand_by_the_ratio_and_together_by_the_floor() {
        let mut expansion = Expansion::NEW;
        let Expansion { ratio, floor_bytes, most_bytes } = expansion;
        assert!(expansion.take(floor_bytes + ratio, 1));
        assert!(!expansion.take(floor_bytes, 1), "the floor is used up");
        assert!(expansion.take(2 * ratio, 2), "a rejected part uses nothing");
        assert_eq!(expansion.floor_bytes, 0);
        assert!(!expansion.take(most_bytes + 1, u64::MAX), "the absolute limit");
    }

    #[test]
    fn reading_stops_at_the_limit() {
        let error = read_whole(io::repeat(b' '), 3).expect_err("endless");
        let expected = format!("its 3 bytes expand to more than {} bytes", Expansion::NEW.limit(3));
        assert_eq!(error.kind(), io::ErrorKind::FileTooLarge);
        assert!(error.to_string().contains(&expected), "{error}");
        assert_eq!(read_whole(&b"abc"[..], 3).expect("three bytes"), b"abc");
    }
}
