//! The memory that this process has in use.

/// The resident memory of this process in bytes; none where the system does not say it in `/proc`.
pub(crate) fn resident_bytes() -> Option<u64> {
    // In kB, whatever the size of a page is.
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kilobytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kilobytes * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(target_os = "linux")]
    fn memory_that_is_used_is_counted() {
        let before = resident_bytes().expect("Linux says it");
        let used = vec![1u8; 64 << 20];
        let after = resident_bytes().expect("Linux says it");
        assert!(after >= before + (32 << 20), "{before} and {after} with {}", used.len());
    }
}
