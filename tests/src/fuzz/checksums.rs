//! The checksums of damaged binary files, so that readers look behind them.

use equipoise::model::frames;

/// Corrects the checksums after `begin` bytes: those of sections, or of the frames of older versions.
pub(super) fn correct_checksums(input: &mut [u8], begin: usize, has_sections: bool) {
    let (mut at, head_bytes) = (begin, if has_sections { 24 } else { 20 });
    while let Some(head) = input.get(at..at + head_bytes) {
        let number = |from: usize| u64::from_le_bytes(head[from..from + 8].try_into().expect("8 bytes"));
        let lengths = [number(0), number(8)];
        let begin = at + head_bytes;
        let end = usize::try_from(lengths[1]).ok().and_then(|stored| stored.checked_add(begin));
        let Some(stored) = end.and_then(|end| input.get(begin..end)) else { return };
        let next = begin + stored.len();
        let sums = match has_sections {
            true => frames::checksums(lengths, stored).to_vec(),
            false => frames::checksum(lengths, stored).to_vec(),
        };
        input[at + 16..begin].copy_from_slice(&sums);
        at = next;
    }
}
