//! How much memory is available. Sizes that a user or a file gives are checked against it before memory is allocated,
//! because a failed allocation ends the process.
//!
//! The smallest of these counts: the free memory of the system, the limits of the process (`ulimit -v`, `ulimit -d`), and
//! the limits of its control group (containers, batch systems). They are read from `/proc` and `/sys`; on systems without
//! these, nothing is refused.

use std::fs;
use std::path::Path;

use crate::table;

/// Sizes below this are always accepted, without a look at the system.
const SMALL: u64 = 1 << 24;

/// Where control groups are mounted.
const GROUPS: &str = "/sys/fs/cgroup";

/// Checks that `bytes` of memory are available for `what`.
///
/// # Errors
/// If less is available: a sentence that says so, with `remedy` at its end (an imperative, such as `use fewer PEs`).
pub fn check(bytes: u64, what: &str, remedy: &str) -> Result<(), String> {
    if bytes < SMALL {
        return Ok(());
    }
    match available() {
        Some(available) if bytes > available => Err(refusal(bytes, available, what, remedy)),
        _ => Ok(()),
    }
}

/// What to do about a file that does not fit into memory.
pub const SMALLER_FILE: &str = "use a smaller file, or a computer with more memory";

/// Checks that the content of the file at `path` fits into memory. Files whose size is unknown, such as pipes, are
/// accepted.
///
/// # Errors
/// As for [`check`].
pub fn check_file(path: &Path) -> Result<(), String> {
    let length = fs::metadata(path).map_or(0, |file| file.len());
    let what = format!("a file of {}", table::bytes(length));
    check(length, &what, SMALLER_FILE)
}

/// Appends an item to a list that is made from the content of a file.
///
/// The memory is checked whenever the list grows, because the size of a file does not tell how many items it has: a table
/// of zeros has no edges, and an edge may have 4 characters or 100.
///
/// # Errors
/// As for [`check`].
pub fn push<T>(list: &mut Vec<T>, item: T) -> Result<(), String> {
    if list.len() == list.capacity() {
        grow(list)?;
    }
    list.push(item);
    Ok(())
}

/// Doubles the capacity, or adds a quarter if memory is short.
#[cold]
fn grow<T>(list: &mut Vec<T>) -> Result<(), String> {
    let items = list.len().max(4);
    let what = format!("a list that grows beyond {}", table::count(list.len() as u64, "entry"));
    let mut refused = String::new();
    for more in [items, items.div_ceil(4)] {
        let bytes = (more as u64).saturating_mul(size_of::<T>() as u64);
        match check(bytes, &what, SMALLER_FILE) {
            Ok(()) if list.try_reserve_exact(more).is_ok() => return Ok(()),
            Ok(()) => refused = refusal(bytes, available().unwrap_or(0), &what, SMALLER_FILE),
            Err(reason) => refused = reason,
        }
    }
    Err(refused)
}

fn refusal(bytes: u64, available: u64, what: &str, remedy: &str) -> String {
    let [needed, available] = [bytes, available].map(table::bytes);
    format!("{what} needs about {needed} of memory, and {available} are available; {remedy}")
}

/// The bytes that this process can still allocate; `None` if the system does not say.
pub fn available() -> Option<u64> {
    let text = |path: &str| fs::read_to_string(path).unwrap_or_default();
    let (memory, status) = (text("/proc/meminfo"), text("/proc/self/status"));
    let limits = text("/proc/self/limits");
    let limit = |name: &str, used: &str| {
        let limit = limit(&limits, name)?;
        Some(limit.saturating_sub(kilobytes(&status, used).unwrap_or(0)))
    };
    let all = [
        kilobytes(&memory, "MemAvailable:").map(|free| free + kilobytes(&memory, "SwapFree:").unwrap_or(0)),
        limit("Max address space", "VmSize:"),
        limit("Max data size", "VmData:"),
        of_groups(&text("/proc/self/cgroup")),
    ];
    all.into_iter().flatten().min()
}

/// The bytes on the line of `text` that begins with `name` and ends in `N kB`.
fn kilobytes(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

/// The soft limit `name` in `/proc/self/limits`, in bytes; `None` if it is unlimited.
fn limit(limits: &str, name: &str) -> Option<u64> {
    let line = limits.lines().find_map(|line| line.strip_prefix(name))?;
    line.split_ascii_whitespace().next()?.parse().ok()
}

/// The bytes left in the control groups of the process, given `/proc/self/cgroup`; `None` without a limit.
fn of_groups(groups: &str) -> Option<u64> {
    let left = |line: &str| {
        let (controllers, path) = line.split_once(':')?.1.split_once(':')?;
        let (folder, most, used) = match controllers {
            "" => (GROUPS.to_string(), "memory.max", "memory.current"),
            _ if controllers.split(',').any(|it| it == "memory") => {
                (format!("{GROUPS}/memory"), "memory.limit_in_bytes", "memory.usage_in_bytes")
            }
            _ => return None,
        };
        // The limits of all groups above also hold. In a container, the path may be that of the host: then only the top
        // exists.
        let path = Path::new(path.trim_start_matches('/'));
        path.ancestors().filter_map(|group| of_group(&Path::new(&folder).join(group), most, used)).min()
    };
    groups.lines().filter_map(left).min()
}

/// The bytes left in one control group. Cached files count as free, because the system drops them when memory is short.
fn of_group(folder: &Path, most: &str, used: &str) -> Option<u64> {
    let text = |name: &str| fs::read_to_string(folder.join(name)).ok();
    let number = |name: &str| text(name)?.trim().parse::<u64>().ok();
    let (most, used) = (number(most)?, number(used)?);
    let statistics = text("memory.stat").unwrap_or_default();
    let sum = |names: &[&str]| -> u64 {
        let value =
            |name: &&str| statistics.lines().find_map(|line| line.strip_prefix(*name)?.parse::<u64>().ok());
        names.iter().filter_map(value).sum()
    };
    // Version 1 has totals of a group and those below; its other names are without them.
    let cached = match statistics.contains("total_inactive_file ") {
        true => sum(&["total_inactive_file ", "total_active_file "]),
        false => sum(&["inactive_file ", "active_file ", "slab_reclaimable "]),
    };
    Some(most.saturating_sub(used.saturating_sub(cached)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_numbers_of_the_system_are_read() {
        let status = "Name:\tx\nVmPeak:\t  90 kB\nVmSize:\t   12 kB\n";
        assert_eq!(kilobytes(status, "VmSize:"), Some(12 << 10));
        assert_eq!(kilobytes(status, "VmData:"), None);
        let limits = "Limit        Soft Limit  Hard Limit  Units\nMax address space     4096000      unlimited   \
                      bytes\nMax data size         unlimited    unlimited   bytes\n";
        assert_eq!(limit(limits, "Max address space"), Some(4_096_000));
        assert_eq!(limit(limits, "Max data size"), None);
        assert_eq!(of_groups("3:cpu:/\nnonsense\n"), None);
    }

    #[test]
    fn a_control_group_leaves_its_limit_minus_what_is_used_without_caches() {
        let folder = tempfile::tempdir().expect("a folder");
        let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).expect("a file");
        let left = || of_group(folder.path(), "memory.max", "memory.current");
        assert_eq!(left(), None);
        write("memory.max", "max\n");
        write("memory.current", "700\n");
        assert_eq!(left(), None);
        write("memory.max", "1000\n");
        assert_eq!(left(), Some(300));
        write("memory.stat", "anon 600\ninactive_file 50\nactive_file 50\n");
        assert_eq!(left(), Some(400));
    }

    #[test]
    fn lists_grow_by_as_much_as_there_is() {
        let mut list = Vec::new();
        for item in 0..100u32 {
            push(&mut list, item).expect("400 bytes are available");
        }
        assert!(list.iter().copied().eq(0..100) && list.capacity() == 128, "{}", list.capacity());
        // No list has room for twice as many of these as the address space.
        let mut large: Vec<[u8; 1 << 60]> = Vec::new();
        let refused = grow(&mut large).expect_err("4 times 2^60 bytes");
        assert!(refused.starts_with("a list that grows beyond 0 entries needs about "), "{refused}");
        assert!(
            refused.ends_with(" are available; use a smaller file, or a computer with more memory"),
            "{refused}"
        );
    }

    #[test]
    fn what_cannot_be_available_is_refused_with_both_sizes() {
        assert_eq!(check(1000, "`flat:2`", "use fewer PEs"), Ok(()));
        if available().is_some() {
            let refused = check(u64::MAX, "`flat:9`", "use fewer PEs").expect_err("it is too much");
            assert!(refused.starts_with("`flat:9` needs about "), "{refused}");
            assert!(refused.ends_with("are available; use fewer PEs"), "{refused}");
        }
        let refused = refusal(80_000_000_000, 12_000_000_000, "a table", "use fewer PEs");
        assert_eq!(
            refused,
            "a table needs about 80.0 GB of memory, and 12.0 GB are available; use fewer PEs"
        );
    }
}
